"""Keys for where one is, from the registry; the key that opened it closes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding

from council_tui.console import keymap
from council_tui.console.glyphs import TONES, Part
from council_tui.console.screens.dialog import Dialog
from council_tui.console.widgets.page import Page

if TYPE_CHECKING:
    from textual.app import ComposeResult

_WORDS = {
    "alive": "its heartbeat comes in time",
    "late": "a beat is overdue",
    "stalled": "it beats, but nothing of it moves; a warning only",
    "offered": "started, has not acknowledged yet",
    "orphan": "silent, gone or without a parent: it is reaped",
    "failed": "rejected, expired, cancelled or wrong: the card says why",
    "held": "an orphan kept for you to decide",
    "frozen": "stopped by you; its clocks stand still",
    "waiting": "waits for an answer of yours",
    "ended": "done and gone",
    "unknown": "the council cannot be read",
}


class HelpScreen(Dialog):
    """The focused pane first, then the general keys, then what the signs mean."""

    BINDINGS: ClassVar = [
        Binding(key, call, show=False)
        for key, call in (
            ("?", "close"),
            ("f1", "close"),
            ("q", "close"),
            ("down", "move(1)"),
            ("j", "move(1)"),
            ("up", "move(-1)"),
            ("k", "move(-1)"),
            ("pagedown", "move(10)"),
            ("pageup", "move(-10)"),
        )
    ]

    def __init__(self, places: tuple[str, ...]) -> None:
        super().__init__()
        self.places = places

    def compose(self) -> ComposeResult:
        """One page."""
        page = Page("Keys", id="help")
        page.border_subtitle = "? or esc closes"
        yield page

    def on_mount(self) -> None:
        """Write the page."""
        page = self.query_one(Page)
        page.write(self._lines())
        page.focus()

    def _lines(self) -> list[list[Part]]:
        lines: list[list[Part]] = []
        order = dict.fromkeys(sorted(self.places, key=lambda place: place in ("rows", "lists", "everywhere")))
        for place in order:
            lines.append([(keymap.PLACES[place], "p-strong")])
            lines += [
                [(f"  {action.label:<22}", "p-key"), (action.words, "")]
                for action in keymap.actions(place)
                if action.keys
            ]
            lines.append([])
        lines.append([("Signs", "p-strong")])
        glyphs = self.council_app.glyphs
        for health, words in _WORDS.items():
            lines.append([(f"  {glyphs.health[health]} {health:<20}", TONES[health]), (words, "")])
        beats: Part = (f"  {glyphs.spark:<22}", "p-alive")
        lines.append([beats, (f"how late each beat came; {glyphs.missed} is one that never came", "")])
        return lines

    def action_move(self, by: int) -> None:
        """Scroll."""
        self.query_one(Page).move(by)
