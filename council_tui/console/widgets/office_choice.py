"""One of the three offices; which one is a mark, not a colour."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding
from textual.message import Message

from council_tui.console.widgets.painted import Line
from council_tui.domain.hierarchy import KINDS, PARENTS

if TYPE_CHECKING:
    from textual import events

    from council_tui.console.glyphs import Part


class OfficeChoice(Line, can_focus=True):
    """`(x) OpenFang  ( ) OpenClaw  ( ) ZeroClaw`."""

    BINDINGS: ClassVar = [
        Binding("left,h", "step(-1)", show=False),
        Binding("right,l,space", "step(1)", show=False),
    ]

    class Changed(Message):
        """Another office was chosen."""

        def __init__(self, office: str) -> None:
            super().__init__()
            self.office = office

    def __init__(self, office: str) -> None:
        super().__init__(id="field-parent")
        self.office = office

    def _choice(self, office: str) -> str:
        return f"({'x' if office == self.office else ' '}) {KINDS[office].title}  "

    def parts(self, width: int) -> list[Part]:
        """The three, the chosen one marked."""
        chosen = "p-key" if self.has_focus else "p-strong"
        return [
            (" ", ""),
            *((self._choice(office), chosen if office == self.office else "p-quiet") for office in PARENTS),
        ]

    def choose(self, office: str) -> None:
        """Take an office."""
        if office != self.office:
            self.office = office
            self.refresh()
            self.post_message(self.Changed(office))

    def action_step(self, by: int) -> None:
        """The next one round."""
        self.choose(PARENTS[(PARENTS.index(self.office) + by) % len(PARENTS)])

    def on_click(self, event: events.Click) -> None:
        """The one under the mouse."""
        at = 1
        for office in PARENTS:
            size = len(self._choice(office))
            if at <= event.x < at + size:
                self.choose(office)
                return
            at += size

    def watch_has_focus(self, has_focus: bool) -> None:
        """The mark is brighter with the keys."""
        super().watch_has_focus(has_focus)
        self.refresh()
