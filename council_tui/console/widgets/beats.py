"""Every heartbeat as a sparkline; one widget draws them all, what needs attention first."""

from __future__ import annotations

from typing import ClassVar

from council_tui.console.glyphs import ATTENTION, TONES, Part
from council_tui.console.widgets.painted import between
from council_tui.console.widgets.virtual_list import VirtualList
from council_tui.control.views import AgentView
from council_tui.domain.text import span

_ORDER = {"held": 0, "orphan": 1, "late": 2, "stalled": 3, "alive": 4, "offered": 5, "unknown": 6}


class Beats(VirtualList[AgentView]):
    """One row per agent that has or should have a heartbeat."""

    EMPTY: ClassVar[str] = "No heartbeats yet: they appear when an agent has started."

    def pick(self) -> list[AgentView]:
        """The living and the troubled, the troubled first."""
        living = [agent for agent in super().pick() if agent.health in _ORDER and not agent.ended]
        rows = [agent for agent in living if agent.beats or agent.pid]
        return sorted(rows, key=lambda agent: _ORDER[agent.health])

    def key(self, item: AgentView) -> str:
        """The agent's name."""
        return item.name

    def words(self, item: AgentView) -> str:
        """Name, card and state."""
        return f"{item.name} {item.card or ''} {item.health}"

    def is_bad(self, item: AgentView) -> bool:
        """Late, orphaned, failed, held or waiting."""
        return item.health in ATTENTION

    def caption(self) -> str:
        """Title and how many."""
        return f"{self.title} {len(self.rows):,}" if self.rows else self.title

    def line(self, item: AgentView, line: int, width: int) -> list[Part]:
        """Name, sparkline, state, age and the last lateness."""
        glyphs, tone = self.glyphs, TONES[item.health]
        label = max(10, min(28, width - (54 if width >= 64 else 40)))
        age = None if item.health in ("failed", "offered") else item.counted_seconds
        right: list[Part] = [(f" {glyphs.health[item.health]} {item.health:<7}", tone)]
        right.append((f"{span(age):>4}", tone))
        if width >= 64:
            late = item.beats[-1] if item.beats and item.beats[-1] >= 0 else None
            right.append((f"{'' if late is None else f'{late} ms':>8} ", "p-quiet"))
        spark = min(30, width - label - sum(len(text) for text, _ in right) - 2)
        left: list[Part] = [(f"{glyphs.fit_middle(item.label, label)} ", "")]
        if item.health == "offered" and not item.beats:
            left.append(("waiting to acknowledge", "p-quiet"))
        else:
            left.append((glyphs.sparkline(item.beats, spark).rjust(spark), tone))
        return between(left, right, width, glyphs)
