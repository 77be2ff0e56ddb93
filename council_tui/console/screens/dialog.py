"""What every dialog shares: it lies over the screen, follows the pulse, and esc closes it without a change."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import Binding
from textual.screen import ModalScreen

if TYPE_CHECKING:
    from council_tui.console.app import CouncilApp
    from council_tui.console.pulse import Picture


class Dialog(ModalScreen[None]):
    """A dialog."""

    BINDINGS: ClassVar = [Binding("escape", "close", show=False)]

    @property
    def council_app(self) -> CouncilApp:
        """The app, by its own type."""
        return cast("CouncilApp", self.app)

    def show_picture(self, picture: Picture, changed: bool) -> None:
        """Take a new picture while open; most dialogs do not care."""

    def action_close(self) -> None:
        """Close without a change."""
        self.dismiss()
