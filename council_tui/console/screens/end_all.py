"""End every agent, in order or at once: a word has to be typed, and the room stays open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.containers import Horizontal, Vertical
from textual.widgets import Button, Input, Static

from council_tui.console.screens.dialog import Dialog
from council_tui.domain.text import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from textual.app import ComposeResult

    from council_tui.control.views import QuitOutcome


@dataclass(frozen=True)
class Way:
    """One way to end all of them."""

    word: str
    title: str
    means: str


IN_ORDER = Way(
    "drain",
    "Drain the fleet",
    "Every agent is reaped in order, leaves first, with its grace. Cards that wait are cancelled and nothing new "
    "starts here. The room stays open.",
)
AT_ONCE = Way(
    "stop",
    "Emergency stop",
    "SIGKILL to every process of every agent, now and without grace: work that is not saved is lost. Nothing new "
    "starts here. The room stays open.",
)


class EndAllScreen(Dialog):
    """The word, and nothing else, goes on."""

    def __init__(self, way: Way, act: Callable[[], Coroutine[Any, Any, QuitOutcome]]) -> None:
        super().__init__()
        self.way = way
        self.act = act

    def compose(self) -> ComposeResult:
        """What it means, a field for the word, and the way back."""
        with Vertical(id="end-all", classes="dialog") as box:
            box.border_title = self.way.title
            yield Static(self.way.means, id="end-all-means", markup=False)
            yield Static(self._hint(), id="end-all-note", markup=False)
            with Horizontal(classes="buttons"):
                yield Input(compact=True, id="end-all-word", max_length=8, placeholder=f"type {self.way.word}")
                yield Button("Keep them  esc", id="end-all-no", compact=True, variant="primary")

    def _hint(self) -> str:
        return f"Type the word {self.way.word}, then enter; esc keeps everything."

    def on_mount(self) -> None:
        """The field has the keys."""
        self.query_one("#end-all-word").focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """A key that is not the word is answered, not swallowed."""
        typed = event.value.strip()
        wrong = bool(typed) and not self.way.word.startswith(typed)
        self.query_one("#end-all-note", Static).update(
            f"{typed!r} does nothing here. {self._hint()}" if wrong else self._hint()
        )

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go on, or say what is missing."""
        if event.value.strip() != self.way.word:
            return
        app = self.council_app
        app.ask(self.act, lambda outcome: app.say(f"{counted(outcome.ended, 'agent')} ended"), group="end-all")
        app.say(f"{self.way.title.lower()}: ending every agent")
        self.dismiss()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Keep them."""
        self.dismiss()
