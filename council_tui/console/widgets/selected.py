"""What the cursor is on, in a few lines; in a wide terminal in full."""

from __future__ import annotations

from council_tui.console.glyphs import Part, plural, span
from council_tui.console.widgets.page import Page, pairs, wrapped
from council_tui.control.views import AgentView, CardView, Detail, RoomView

MIB = 1024 * 1024


class Selected(Page, can_focus=False):
    """An agent or a card."""

    def __init__(self) -> None:
        super().__init__("Selected", empty="Nothing selected: move with the arrows.", id="selected")

    def show_subject(self, subject: AgentView | CardView | None, view: RoomView | None, detail: Detail | None) -> None:
        """Take a new subject; `detail` fills the pane where there is room."""
        self.heading = self._heading(subject)
        if subject is None or view is None:
            self.write([])
            return
        parts = self._agent(subject, view) if isinstance(subject, AgentView) else self._card(subject, view)
        if self.size.height <= 8:
            self.write([self._joined(*line) for line in parts])
            return
        lines = [part for line in parts for part in line if any(text for text, _ in part)]
        if detail is not None:
            lines += [[], *pairs(detail.facts, self.size.width)]
            if detail.log:
                lines += [[], [("Log", "p-strong")]]
                for line in detail.log[-20:]:
                    lines += [[(part, "p-quiet")] for part in wrapped(line, max(20, self.size.width))]
        self.write(lines)

    def _heading(self, subject: AgentView | CardView | None) -> str:
        if subject is None:
            return self.title
        card = subject.card or "" if isinstance(subject, AgentView) else subject.id
        return f"{self.title} {subject.label} {card}".rstrip()

    def _joined(self, *parts: list[Part]) -> list[Part]:
        line: list[Part] = []
        for part in parts:
            if part and any(text for text, _ in part):
                line += [(f" {self.glyphs.dot} ", "p-frame"), *part] if line else part
        return line

    def _agent(self, agent: AgentView, view: RoomView) -> list[list[list[Part]]]:
        parent = next((other.label for other in view.agents if other.name == agent.parent), "")
        used = f"{agent.slice_used // MIB}/{agent.slice_limit // MIB} MiB {agent.enforcement}".strip()
        return [
            [
                self.glyphs.state(agent.health),
                [(agent.phase, "")],
                [(f"under {parent}" if parent else "", "p-quiet")],
                [(f"up {span(agent.started_seconds)}", "p-quiet")],
            ],
            [
                [(f"memory {used}" if agent.slice_limit else "", "p-quiet")],
                [(f"beat {agent.beat_count:,} every {agent.beat_seconds:g} s" if agent.beat_count else "", "p-quiet")],
                [(f"ttl {span(agent.ttl_seconds)}" if agent.ttl_seconds is not None else "", "p-quiet")],
                [(plural(agent.children, "child", "children") if agent.children else "", "p-quiet")],
                [(f"pid {agent.pid}" if agent.pid else "", "p-quiet")],
            ],
            [[(agent.status, "")]],
        ]

    def _card(self, card: CardView, view: RoomView) -> list[list[list[Part]]]:
        agent = next((other for other in view.agents if other.name == card.agent), None)
        owner: list[Part] = [(f"{agent.label} ", ""), *self.glyphs.state(agent.health)] if agent else []
        kind = (card.block or card.fail or "").replace("_", " ")
        return [
            [[(card.title, "")]],
            [
                [(card.state, "p-strong"), (f" {kind}" if kind else "", "p-late" if card.block else "p-bad")],
                owner,
                [(f"{span(card.age_seconds)} here", "p-quiet")],
                [(f"attempt {card.attempt}" if card.attempt > 1 else "", "p-quiet")],
            ],
            [
                [(card.reason, "")],
                [(f"after {', '.join(card.after)}" if card.after else "", "p-quiet")],
                [(f"{card.findings} found" if card.findings else "", "")],
                [(f"ledger entry {card.entry}" if card.entry is not None else "", "p-good")],
            ],
        ]
