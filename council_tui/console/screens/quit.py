"""Leaving: living agents end in order and shown, or go on in the background, or one stays."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.containers import Horizontal, Vertical
from textual.widgets import Button, Static

from council_tui.console import keymap
from council_tui.console.glyphs import TONES, Part
from council_tui.console.screens.dialog import Dialog
from council_tui.console.widgets.page import Page
from council_tui.control.views import Left, QuitOutcome
from council_tui.domain.text import counted

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from council_tui.console.pulse import Picture

SHOWN_EVENTS = 6


class QuitScreen(Dialog):
    """End them, leave them running, or stay."""

    BINDINGS: ClassVar = keymap.bindings("quit")

    def __init__(self, living: int) -> None:
        super().__init__()
        self.living = living
        """-1 when it could not be counted."""
        self.ending = False
        self.since = 0

    def compose(self) -> ComposeResult:
        """One question and three answers; the keys are on the one that keeps everything."""
        with Vertical(id="quit", classes="dialog") as box:
            box.border_title = "Leave the council"
            yield Static(self._question(), id="quit-question", markup=False)
            yield Page(empty="", id="quit-page")
            with Horizontal(classes="buttons"):
                yield Button("End them  e", id="quit-end", compact=True, variant="error")
                yield Button("Leave running  l", id="quit-leave", compact=True)
                yield Button("Stay  esc", id="quit-stay", compact=True, variant="primary")

    def _question(self) -> str:
        if self.living < 0:
            return "The council does not answer, so nobody knows what lives. Ending reaps all that can be found."
        verb = "lives" if self.living == 1 else "live"
        return (
            f"{counted(self.living, 'agent')} {verb}. End them: each is reaped in order, unfinished cards say so. "
            "Leave running: a background process goes on with the fleet; `council` shows it again."
        )

    def on_mount(self) -> None:
        """The safe button has the keys."""
        self.query_one("#quit-stay").focus()
        self.query_one("#quit-page").display = False

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """End, leave or stay."""
        if event.button.id == "quit-end":
            self.action_end_them()
        elif event.button.id == "quit-leave":
            self.action_leave_running()
        else:
            self.action_close()

    def action_close(self) -> None:
        """Stay; once the end has begun there is nothing to stay for."""
        if not self.ending:
            self.dismiss()

    def action_leave_running(self) -> None:
        """Leave the fleet to a background process; the demo's home goes with its room."""
        if self.ending:
            return
        if self.council_app.demo:
            self.council_app.say("the demo's fleet lives in a directory that goes with it; end it, or stay")
            return
        self.council_app.left = Left(QuitOutcome(0, self.living), background=True)
        self.council_app.exit()

    def action_end_them(self) -> None:
        """Drain, and leave when nothing is left."""
        if self.ending:
            return
        self.ending = True
        view = self.council_app.picture.view
        self.since = view.events[-1].seq if view is not None and view.events else 0
        for button in self.query(Button):
            button.disabled = True
        self.query_one("#quit-page").display = True
        self.query_one("#quit-question", Static).update("Ending all agents, leaves first.")
        self.council_app.ask(self.council_app.door.drain, self._ended, group="quit", otherwise=self._trouble)

    def show_picture(self, picture: Picture, changed: bool) -> None:
        """While it ends: how many are left and what happened last."""
        view = picture.view
        if view is None or not self.ending or not changed:
            return
        left = sum(1 for agent in view.agents if agent.health not in ("ended", "failed"))
        lines: list[list[Part]] = [[(f"{counted(left, 'agent')} left", "p-strong")]]
        glyphs = self.council_app.glyphs
        newest = [event for event in view.events if event.seq > self.since][-SHOWN_EVENTS:]
        lines += [[(f"{glyphs.tone[event.tone]} {event.text}", TONES[event.tone])] for event in newest]
        self.query_one("#quit-page", Page).write(lines)

    def _ended(self, outcome: QuitOutcome) -> None:
        self.council_app.left = Left(outcome)
        self.council_app.exit()

    def _trouble(self, error: Exception) -> None:
        self.ending = False
        self.query_one("#quit-question", Static).update(f"It could not be ended: {error}")
        for button in self.query(Button):
            button.disabled = False
        self.query_one("#quit-stay").focus()
