"""One column of cards."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from council_tui.console.glyphs import TONES, Part
from council_tui.console.widgets.painted import between
from council_tui.console.widgets.virtual_list import VirtualList
from council_tui.control.views import AgentView, CardView
from council_tui.domain.card import WAITING_BLOCKS, CardState
from council_tui.domain.text import span

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TROUBLED = ("late", "stalled", "orphan", "failed", "held")
WIDE = 40
"""From this width on, a card says in one line what needs two in a narrow lane."""


class Lane(VirtualList[CardView]):
    """The cards of one state."""

    EMPTY: ClassVar[str] = "No cards here."

    def __init__(self, state: CardState) -> None:
        super().__init__(state.value.capitalize(), id=f"lane-{state.value}", classes=f"lane lane-{state.value}")
        self.state = state
        self.number = ""
        """The board's number, on its first lane."""
        self.alone = False
        """True where it stands for a board without any card."""
        self.agents: Mapping[str, AgentView] = {}

    def show_cards(self, cards: Sequence[CardView], agents: Mapping[str, AgentView], trouble: str = "") -> None:
        """Take this state's cards and all agents by name."""
        self.agents = agents
        self.show(cards, trouble)

    def key(self, item: CardView) -> str:
        """The card's id."""
        return item.id

    def words(self, item: CardView) -> str:
        """Everything the card says."""
        return f"{item.id} {item.label} {item.title} {item.agent or ''} {item.block or ''} {item.fail or ''}"

    def is_bad(self, item: CardView) -> bool:
        """Failed, blocked, or in the hands of an agent in trouble."""
        if item.state in (CardState.FAILED, CardState.BLOCKED):
            return True
        agent = self.agents.get(item.agent or "")
        return agent is not None and agent.health in ("late", "stalled", "orphan", "held")

    def wants_a_person(self, item: CardView) -> bool:
        """Held, late, stalled, being reaped, or waiting for an answer."""
        agent = self.agents.get(item.agent or "")
        troubled = agent is not None and not agent.ended and agent.health in _TROUBLED
        return troubled or item.block in WAITING_BLOCKS

    def pick(self) -> list[CardView]:
        """What wants a person comes first; the rest keeps its order."""
        return sorted(super().pick(), key=lambda card: not self.wants_a_person(card))

    def height_of_row(self) -> int:
        """Three or two lines, and an empty one."""
        return 3 if self.size.width >= WIDE else 4

    def _count(self) -> str:
        return f"{len(self.rows):,}" if len(self.rows) == len(self.items) else f"{len(self.rows)}/{len(self.items)}"

    def _count_fits(self) -> bool:
        # a border keeps three cells at each end of its title
        return len(f"{self.number}{self.title} {self._count()}") <= self.outer_size.width - 6

    def void(self) -> str:
        """An empty board says what fills it."""
        return (
            "No cards yet: s spawns a child and makes its card." if self.alone and not self.trouble else super().void()
        )

    def caption(self) -> str:
        """The state, and how many cards where that fits."""
        if self.alone:
            return f"{self.number}Board"
        title = f"{self.number}{self.title}"
        return f"{title} {self._count()}" if self._count_fits() else title

    def position(self) -> str:
        """A lane has room for less than other lists."""
        if self.size.width >= WIDE:
            return super().position()
        shown = max(1, self.size.height // self.height_of_row())
        if len(self.rows) <= shown:
            return "" if self._count_fits() else self._count()
        first = self.scroll_offset.y // self.height_of_row() + 1
        return f"{first}-{min(first + shown - 1, len(self.rows))}/{len(self.rows)}"

    def line(self, item: CardView, line: int, width: int) -> list[Part]:
        """Name; what it is; how it stands; nothing."""
        if width >= WIDE:
            return self._wide(item, line, width)
        if line == 0:
            return [(self.glyphs.fit_middle(item.label, width), "p-strong")]
        if line == 1:
            if item.state == CardState.FAILED and item.reason:
                return [(item.reason, "p-bad")]
            return [(item.title if width >= 18 and item.title != item.label else item.id, "p-quiet")]
        return self.standing(item, width) if line == 2 else []

    def _wide(self, item: CardView, line: int, width: int) -> list[Part]:
        if line == 0:
            title = f"  {item.title}" if item.title != item.label else ""
            return between([(item.label, "p-strong"), (title, "")], [(f" {item.id}", "p-quiet")], width, self.glyphs)
        if line == 1:
            about = f"  {self.glyphs.dot} {span(item.age_seconds)} here"
            why = f"  {self.glyphs.dot} {item.reason}" if item.reason else ""
            return [("  ", ""), *self.standing(item, width), (about, "p-quiet"), (why, "p-quiet")]
        return []

    def standing(self, item: CardView, width: int) -> list[Part]:
        """How the card stands, as sign and word."""
        glyphs = self.glyphs
        agent = self.agents.get(item.agent or "")
        if item.state == CardState.DONE:
            found = f" {glyphs.dot} {item.findings} found" if item.findings and width >= 20 else ""
            return [(f"{glyphs.good} {'signed' if item.entry is not None else 'done'}", "p-good"), (found, "p-quiet")]
        if item.state == CardState.FAILED:
            return [(f"{glyphs.health['failed']} {(item.fail or 'failed').replace('_', ' ')}", "p-bad")]
        if item.state == CardState.BLOCKED:
            return self._blocked(item, width)
        if agent is not None:
            state, since = glyphs.state(agent.health), f" {span(agent.counted_seconds)}"
            return [*state, (since, TONES[agent.health])] if len(state[0][0] + since) <= width else state
        if item.after and item.state == CardState.BACKLOG:
            return [self._after(item, width)]
        return [(f"{glyphs.health['offered']} waits {span(item.age_seconds)}", "p-quiet")]

    def _blocked(self, item: CardView, width: int) -> list[Part]:
        kind = (item.block or "blocked").replace("_", " ")
        if item.block == "dependency":
            return [self._after(item, width)]
        return [(f"{self.glyphs.health['waiting']} {kind}", "p-late")]

    def _after(self, item: CardView, width: int) -> Part:
        names = ", ".join(item.after)
        if len(item.after) > 1 and len(names) + 8 > width:
            names = f"{len(item.after)} cards" if width >= 15 else str(len(item.after))
        return (f"{self.glyphs.health['offered']} after {self.glyphs.fit_middle(names, width - 8).rstrip()}", "p-quiet")

    def on_resize(self) -> None:
        """Rows have another height in another width."""
        self.refresh()
