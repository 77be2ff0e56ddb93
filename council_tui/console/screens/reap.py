"""Ask before a reap: the target is pinned by its id, and the key that opened this never confirms it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.containers import Horizontal, Vertical
from textual.widgets import Button, Input, Static

from council_tui.console import keymap
from council_tui.console.screens.dialog import Dialog
from council_tui.console.widgets.page import Page, wrapped
from council_tui.domain.text import counted

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from council_tui.console.glyphs import Part
    from council_tui.console.pulse import Picture
    from council_tui.control.views import AgentView, ReapPreview

WORD, KEY = "reap", "y"
UNANSWERING = frozenset({"held", "orphan", "failed"})
"""Healths for which a single `y` is enough: nothing alive is lost."""


class ReapScreen(Dialog):
    """What would end, and how to go on."""

    BINDINGS: ClassVar = keymap.bindings("reap")

    def __init__(self, agent: AgentView) -> None:
        super().__init__()
        self.target = agent.name
        self.label = agent.label
        self.health = agent.health
        self.by_word = agent.health not in UNANSWERING
        self.preview: ReapPreview | None = None
        self.disarmed = ""

    def compose(self) -> ComposeResult:
        """What it is, what ends with it, how to confirm."""
        with Vertical(id="reap", classes="dialog") as box:
            box.border_title = ""
            yield Page(empty="Looking at its processes.", id="reap-page")
            yield Static(self._why_the_word() if self.by_word else "", id="reap-note", markup=False)
            with Horizontal(classes="buttons"):
                if self.by_word:
                    yield Input(compact=True, id="reap-word", max_length=8, placeholder=f"type {WORD}")
                else:
                    yield Button("Reap it  y", id="reap-yes", compact=True, variant="error")
                yield Button("Keep it  esc", id="reap-no", compact=True, variant="primary")

    def _why_the_word(self) -> str:
        state = "has not acknowledged yet" if self.health == "offered" else f"is {self.health}"
        return f"It {state}, so {KEY} is not enough: type the word {WORD}, then enter."

    def on_mount(self) -> None:
        """Ask for the preview; the safe button has the keys unless a word is wanted."""
        from textual.content import Content

        self.query_one("#reap").border_title = Content(f"Reap {self.label}?")
        self.query_one("#reap-word" if self.by_word else "#reap-no").focus()
        door = self.council_app.door
        self.council_app.ask(lambda: door.preview_reap(self.target), self._take, group="reap", otherwise=self._trouble)

    def _take(self, preview: ReapPreview) -> None:
        self.preview = preview
        if preview.health != self.health:
            self._changed(preview.health)
        self.query_one("#reap-page", Page).write(self._lines(preview))

    def _trouble(self, error: Exception) -> None:
        self.query_one("#reap-page", Page).write([], f"could not be read: {error}")
        self._disarm("Its processes are not known, so it cannot be reaped from here.")

    def _lines(self, preview: ReapPreview) -> list[list[Part]]:
        glyphs = self.council_app.glyphs
        lines: list[list[Part]] = [
            [("It is ", ""), *glyphs.state(preview.health), (f"  {preview.agent}", "p-quiet")],
        ]
        what = preview.note or "SIGTERM now, SIGKILL after 5 s, until nothing is left of it."
        lines += [[(line, "p-late")] for line in wrapped(what, min(66, self.app.size.width - 6))]
        lines += [[], [(counted(len(preview.processes), "process", "processes"), "p-strong")]]
        pids = {process.pid for process in preview.processes}
        for process in preview.processes:
            inner = f"{glyphs.elbow} " if process.ppid in pids else ""
            lines.append([(f"{process.pid:>8}  ", "p-quiet"), (inner, "p-frame"), (process.command, "")])
        if preview.descendants:
            lines += [[], [(f"{counted(len(preview.descendants), 'agent')} below it end with it", "p-strong")]]
            lines += [[(f"{glyphs.elbow} ", "p-frame"), (label, "")] for label in preview.descendants]
        return lines

    def show_picture(self, picture: Picture, changed: bool) -> None:
        """A target that changed its state is another decision."""
        if picture.view is None or self.disarmed:
            return
        if picture.stale:
            self.query_one("#reap-page", Page).write([], f"What lives of {self.label} is unknown.")
            self._disarm(f"Nothing can be reaped now: {picture.trouble}.")
            return
        agent = next((a for a in picture.view.agents if a.name == self.target), None)
        now = agent.health if agent is not None else "gone"
        # these go to and fro; all of them mean that somebody is there
        if now != self.health and not {now, self.health} <= {"alive", "late", "stalled"}:
            self._changed(now)

    def _changed(self, now: str) -> None:
        self._disarm(f"It was {self.health} and is {now} now: close this and look again.")

    def _disarm(self, why: str) -> None:
        self.disarmed = why
        self.query_one("#reap-note", Static).update(self.disarmed)
        for widget in self.query("#reap-word, #reap-yes"):
            widget.disabled = True
        self.query_one("#reap-no").focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """The word, and nothing else, goes on."""
        if event.value.strip() == WORD:
            self._reap()
        else:
            self.query_one("#reap-note", Static).update(f"Type the word {WORD}, or esc to keep it.")

    def on_input_changed(self, event: Input.Changed) -> None:
        """A key that is not the word is answered, not swallowed."""
        typed = event.value.strip()
        if not self.disarmed:
            wrong = bool(typed) and not WORD.startswith(typed)
            note = f"{typed!r} does nothing here. {self._why_the_word()}" if wrong else self._why_the_word()
            self.query_one("#reap-note", Static).update(note)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Keep, or reap what no longer answers."""
        if event.button.id == "reap-yes":
            self._reap()
        else:
            self.dismiss()

    def action_confirm(self) -> None:
        """`y` confirms only what does not answer any more."""
        if not self.by_word:
            self._reap()

    def _reap(self) -> None:
        if self.disarmed:
            return
        app = self.council_app
        if self.preview is None:
            self.query_one("#reap-note", Static).update("Wait until its processes are shown.")
            return
        app.ask(lambda: app.door.reap(self.target), lambda _: app.say(f"reaping {self.label}"))
        self.dismiss()
