"""What the cursor is on, in a few lines; in a wide terminal in full."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len

from council_tui.console.widgets.page import Page, pairs, wrapped
from council_tui.console.widgets.painted import width_of
from council_tui.control.swarms import in_full
from council_tui.control.views import AgentView, CardView, Detail, RoomView
from council_tui.domain.text import counted, span

if TYPE_CHECKING:
    from council_tui.console.glyphs import Part

MIB = 1024 * 1024


class Selected(Page, can_focus=False):
    """An agent or a card."""

    def __init__(self) -> None:
        super().__init__("Selected", empty="Nothing selected: move with the arrows.", id="selected")
        self.shown: tuple[AgentView | CardView | None, RoomView | None, Detail | None] = (None, None, None)

    def show_subject(self, subject: AgentView | CardView | None, view: RoomView | None, detail: Detail | None) -> None:
        """Take a new subject; `detail` fills the pane where there is room."""
        self.shown = (subject, view, detail)
        self.heading = self._heading(subject)
        if subject is None or view is None:
            self.write([])
            return
        found = self._agent(subject, view) if isinstance(subject, AgentView) else self._card(subject, view)
        parts = [part for part in found if any(text for text, _ in part)]
        if self.size.height <= 8:
            self.write(self._compact(parts))
            return
        lines = [wrap for part in parts for wrap in self._wrapped(part)]
        if detail is not None:
            lines += [[], *pairs(detail.facts, self.size.width)]
            if detail.log:
                lines += [[], [("Log", "p-strong")]]
                for line in detail.log[-20:]:
                    lines += [[(part, "p-quiet")] for part in wrapped(line, max(20, self.size.width))]
        self.write(lines)

    def on_resize(self) -> None:
        """What goes into a line depends on the width."""
        super().on_resize()
        self.show_subject(*self.shown)

    def _heading(self, subject: AgentView | CardView | None) -> str:
        if subject is None:
            return self.title
        card = subject.card or "" if isinstance(subject, AgentView) else subject.id
        return f"{self.title} {subject.label} {card}".rstrip()

    def _wrapped(self, part: list[Part]) -> list[list[Part]]:
        text, tone = "".join(text for text, _ in part), part[-1][1]
        width = max(20, self.size.width)
        return [part] if cell_len(text) <= width else [[(line, tone)] for line in wrapped(text, width)]

    def _compact(self, parts: list[list[Part]]) -> list[list[Part]]:
        """Each fact in the first line that has room for it; what has no room stays away, so that nothing is cut."""
        lines: list[list[Part]] = []
        width = self.size.width
        for part in parts:
            home = next((line for line in lines if width_of(line) + 3 + width_of(part) <= width), None)
            if home is not None:
                home += [(f" {self.glyphs.dot} ", "p-frame"), *part]
            elif len(lines) < max(1, self.size.height):
                lines.append(list(part))
        return lines

    def _agent(self, agent: AgentView, view: RoomView) -> list[list[Part]]:
        parent = next((other.label for other in view.agents if other.name == agent.parent), "")
        under: list[Part] = [(f"under {parent}" if parent else "", "p-quiet")]
        if agent.ended:
            return self._ended(agent, under)
        used = f"slice {agent.slice_used // MIB} of {agent.slice_limit // MIB} MiB" if agent.slice_limit else ""
        return [
            self.glyphs.state(agent.health),
            [(agent.phase, "")],
            [(agent.reason, "p-bad")],
            *([(f"{swarm.name}: {in_full(swarm)}", "")] for swarm in agent.swarms),
            under,
            [(agent.enforcement, "")],
            [(used, "p-quiet")],
            [(agent.status, "")],
            [(f"up {span(agent.started_seconds)}" if agent.started_seconds else "", "p-quiet")],
            [(f"ttl {span(agent.ttl_seconds)}" if agent.ttl_seconds is not None else "", "p-quiet")],
            [(f"beat {agent.beat_count:,} every {agent.beat_seconds:g} s" if agent.beat_count else "", "p-quiet")],
            [(counted(agent.children, "child", "children") if agent.children else "", "p-quiet")],
            [(f"pid {agent.pid}" if agent.pid else "", "p-quiet")],
        ]

    def _ended(self, agent: AgentView, under: list[Part]) -> list[list[Part]]:
        lived = f"lived {span(agent.lived_seconds)}" if agent.lived_seconds is not None else ""
        return [
            self.glyphs.state(agent.health),
            [(agent.phase, "")],
            under,
            [(lived, "p-quiet")],
            self.glyphs.why(agent.fail, agent.reason) if agent.fail else [],
            *([(f"{swarm.name}: {in_full(swarm)}", "")] for swarm in agent.swarms),
            [(agent.enforcement, "p-quiet")],
            [(f"said last: {agent.status}" if agent.status else "", "p-quiet")],
        ]

    def _card(self, card: CardView, view: RoomView) -> list[list[Part]]:
        agent = next((other for other in view.agents if other.name == card.agent), None)
        owner: list[Part] = [(f"{agent.label} ", ""), *self.glyphs.state(agent.health)] if agent else []
        kind = (card.block or card.fail or "").replace("_", " ")
        return [
            [(card.title, "")],
            [(card.state, "p-strong"), (f" {kind}" if kind else "", "p-late" if card.block else "p-bad")],
            self.glyphs.why(card.fail, card.reason) if card.fail else [(card.reason, "p-late")],
            owner,
            [(f"after {', '.join(card.after)}" if card.after else "", "p-quiet")],
            [(f"{card.findings} found" if card.findings else "", "")],
            [(f"ledger entry {card.entry}" if card.entry is not None else "", "p-good")],
            [(f"{span(card.age_seconds)} here", "p-quiet")],
            [(f"attempt {card.attempt}" if card.attempt > 1 else "", "p-quiet")],
        ]
