"""`g` and a letter: where one can go is shown, not remembered."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding

from council_tui.console import keymap
from council_tui.console.screens.dialog import Dialog
from council_tui.console.widgets.painted import Line

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from council_tui.console.glyphs import Part


class _Choices(Line):
    def parts(self, width: int) -> list[Part]:
        """Letters and places."""
        parts: list[Part] = [(" go to   ", "p-quiet")]
        for action in keymap.actions("go to"):
            parts += [(action.key, "p-key"), (f" {action.words}   ", "")]
        return [*parts, ("esc", "p-key"), (" stay", "")]


class GoToScreen(Dialog):
    """One line with the choices."""

    BINDINGS: ClassVar = [*keymap.bindings("go to"), Binding("g", "close", show=False)]

    def compose(self) -> ComposeResult:
        """The line."""
        yield _Choices(id="choices")

    def action_go(self, place: str) -> None:
        """Go there."""
        self.council_app.go(place)
