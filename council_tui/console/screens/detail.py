"""One agent or card in full; read again while it is open."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.containers import Horizontal, Vertical

from council_tui.console.glyphs import TONES, Part
from council_tui.console.screens.base import CouncilScreen
from council_tui.console.widgets.page import Page
from council_tui.console.widgets.painted import Line, between, clip
from council_tui.control.views import AgentView, CardView, Detail
from council_tui.domain.text import span

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from council_tui.console.pulse import Picture

REREAD_SECONDS = 1.0


class Headline(Line):
    """Path, state and heartbeat of the subject."""

    def parts(self, width: int) -> list[Part]:
        """What the picture says of it now."""
        screen = self.screen
        assert isinstance(screen, DetailScreen)
        subject = screen.subject()
        if isinstance(subject, AgentView):
            right: list[Part] = [
                *self.glyphs.state(subject.health),
                (f" {span(None if subject.ended else subject.counted_seconds)}", TONES[subject.health]),
                (f"   {self._life(subject)} ", "p-quiet"),
            ]
            return between([(" ", ""), *screen.path(subject)], right, width, self.glyphs)
        if subject is not None:
            found = (subject.fail or subject.block or "").replace("_", " ")
            right = [(f"{subject.state} {found}".strip(), "p-strong"), (f"   {span(subject.age_seconds)} ", "p-quiet")]
            return between([(f" {subject.title}", "p-strong")], right, width, self.glyphs)
        return [(f" {screen.label} is no longer on the board", "p-late")]

    @staticmethod
    def _life(agent: AgentView) -> str:
        if not agent.ended:
            return f"up {span(agent.started_seconds)}" if agent.started_seconds else ""
        return f"lived {span(agent.lived_seconds)}" if agent.lived_seconds is not None else ""


class PulseLine(Line):
    """Why the subject failed, or the sparkline of a living agent, as wide as there are beats."""

    def parts(self, width: int) -> list[Part]:
        """The reason, else beats and their numbers."""
        screen = self.screen
        assert isinstance(screen, DetailScreen)
        subject = screen.subject()
        if subject is None:
            return []
        if subject.fail:
            return clip([(" ", ""), *self.glyphs.why(subject.fail, subject.reason)], width, self.glyphs)
        if isinstance(subject, CardView):
            return clip([(f" {subject.reason}", "p-late")], width, self.glyphs) if subject.reason else []
        if subject.reason:
            return clip([(f" {subject.reason}", "p-bad")], width, self.glyphs)
        if subject.ended:
            said = f" said last: {subject.status}" if subject.status else ""
            return clip([(said, "p-quiet")], width, self.glyphs) if said else []
        return self._beats(subject, width)

    def _beats(self, subject: AgentView, width: int) -> list[Part]:
        if not subject.beats:
            return [(" no heartbeat yet", "p-quiet")]
        came = sorted(ms for ms in subject.beats if ms >= 0)
        missed = sum(1 for ms in subject.beats if ms < 0)
        middle = f"{came[len(came) // 2]} ms" if came else "none"
        dot = self.glyphs.dot
        beat = f"beat {subject.beat_count:,} every {subject.beat_seconds:g} s"
        said = f"missed {missed} {dot} median late {middle} {dot} {beat}"
        spark = self.glyphs.sparkline(subject.beats, 30 if width >= 76 else 16)
        return clip([(f" {spark}", TONES[subject.health]), (f"  {said}", "p-quiet")], width, self.glyphs)

    def freshen(self) -> None:
        """Take no room when there is nothing to say."""
        self.display = bool(self.parts(max(1, self.size.width)))
        super().freshen()


class DetailScreen(CouncilScreen):
    """Facts, history, processes and the tail of the log."""

    PANES: ClassVar = (("facts", "Facts"), ("history", "History"), ("processes", "Processes"), ("log", "Log"))

    def __init__(self, ident: str, label: str, is_agent: bool) -> None:
        super().__init__()
        self.ident = ident
        self.label = label
        self.is_agent = is_agent
        self.asked = float("-inf")
        self.place = "agent" if is_agent else "card"

    def body(self) -> ComposeResult:
        """Two lines about it and four panes."""
        yield Headline(classes="bar headline")
        yield PulseLine(classes="bar")
        with Horizontal(id="upper", classes="panes"):
            yield Page("1 Facts", id="facts")
            with Vertical(id="right", classes="panes"):
                yield Page("2 History", empty="Nothing has happened yet.", id="history")
                yield Page("3 Processes", empty="No processes: none is running.", id="processes")
        yield Page("4 Log", empty="Nothing was written yet.", follow=True, id="log")

    def on_mount(self) -> None:
        """Mark the panes and read at once."""
        for pane in self.panes():
            self.query_one(f"#{pane}").add_class("pane")

    def show_picture(self, picture: Picture, changed: bool) -> None:
        """The headline at every beat, the rest once a second."""
        super().show_picture(picture, changed)
        now = self.council_app.pulse.clock()
        if now - self.asked >= REREAD_SECONDS:
            self.asked = now
            door = self.council_app.door
            self.council_app.ask(lambda: door.detail(self.ident), self._take, group="detail", otherwise=self._trouble)

    def _take(self, detail: Detail) -> None:
        if not self.is_mounted:
            return
        self.query_one("#facts", Page).write_facts(detail.facts)
        self.query_one("#history", Page).write([[(line, "")] for line in detail.history])
        self.query_one("#log", Page).write([[(line, "")] for line in detail.log])
        pids = {process.pid for process in detail.processes}
        lines: list[list[Part]] = [[("    pid state  command", "p-quiet")]] if detail.processes else []
        for process in detail.processes:
            inner = f"{self.council_app.glyphs.elbow} " if process.ppid in pids else ""
            lines.append(
                [
                    (f"{process.pid:>7} ", ""),
                    (f"{process.state:<6} ", "p-quiet"),
                    (inner, "p-frame"),
                    (process.command, ""),
                ]
            )
        self.query_one("#processes", Page).write(lines)

    def _trouble(self, error: Exception) -> None:
        if self.is_mounted:
            self.query_one("#facts", Page).write([], f"could not be read: {error}")

    def subject(self) -> AgentView | CardView | None:
        """What the picture says of it now."""
        view = self.council_app.picture.view
        if view is None:
            return None
        return next((a for a in view.agents if a.name == self.ident), None) or next(
            (c for c in view.cards if c.id == self.ident), None
        )

    def path(self, agent: AgentView) -> list[Part]:
        """Who spawned whom, down to this one."""
        view = self.council_app.picture.view
        by_name = {other.name: other for other in view.agents} if view is not None else {}
        above: list[str] = []
        parent = by_name.get(agent.parent or "")
        while parent is not None and len(above) < 8:
            above.insert(0, parent.label)
            parent = by_name.get(parent.parent or "")
        arrow = self.council_app.glyphs.arrow
        return [*((f"{label} {arrow} ", "p-quiet") for label in above), (agent.label, "p-strong")]

    def places(self) -> tuple[str, ...]:
        """Pages have no rows to open."""
        return ("lists", "everywhere")

    def do_copy(self) -> None:
        """The subject's id."""
        self.app.copy_to_clipboard(self.ident)
        self.council_app.say(f"copied {self.ident}")
