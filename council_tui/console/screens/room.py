"""The control room: hierarchy, board, heartbeats and events on one screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from textual.containers import Horizontal, Vertical

from council_tui.console import keymap
from council_tui.console.screens.base import CouncilScreen
from council_tui.console.widgets.agent_tree import AgentTree
from council_tui.console.widgets.beats import Beats
from council_tui.console.widgets.board import Board
from council_tui.console.widgets.selected import Selected
from council_tui.console.widgets.tail import Tail
from council_tui.control.views import AgentView, CardView, Detail
from council_tui.domain.hierarchy import PARENTS

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult

    from council_tui.console.pulse import Picture
    from council_tui.console.widgets.virtual_list import VirtualList

DETAIL_SECONDS = 1.0
"""How often the wide screen's fifth pane reads its subject again."""


class RoomScreen(CouncilScreen):
    """The whole fleet at a glance."""

    WHERE: ClassVar[str] = "room"
    BINDINGS: ClassVar = keymap.bindings("room")
    PANES: ClassVar = (("tree", "Hierarchy"), ("board", "Board"), ("beats", "Beats"), ("events", "Events"))

    def __init__(self) -> None:
        super().__init__()
        self.place = "room"
        self.board = Board(id="board")
        self.board.add_class("pane")
        self.detail: tuple[str, Detail] | None = None
        self.asked = ("", 0.0)
        self.left: int | None = None

    def body(self) -> ComposeResult:
        """Four panes and the selected one."""
        with Horizontal(id="upper", classes="panes"):
            yield AgentTree("1 Hierarchy", id="tree")
            with Vertical(id="middle", classes="panes"):
                yield self.board
                yield Selected()
        with Horizontal(id="lower", classes="panes"):
            yield Beats("3 Heartbeats", id="beats")
            yield Tail("4 Events", id="events")

    def on_mount(self) -> None:
        """Mark the panes that are lists."""
        for pane in ("tree", "beats", "events"):
            self.query_one(f"#{pane}").add_class("pane")

    # -- pictures

    def show_picture(self, picture: Picture, changed: bool) -> None:
        """Every pane takes the picture; each paints only what differs."""
        view = picture.view
        trouble = "" if view is not None else picture.trouble or "reading the council"
        agents = view.agents if view is not None else ()
        self.query_one(AgentTree).show_agents(agents, trouble)
        self.board.show_room(view, trouble)
        self.query_one(Beats).show(agents, trouble)
        if changed:
            self.query_one(Tail).show(view.events if view is not None else (), trouble)
        self._show_selected()
        super().show_picture(picture, changed)

    def pane_title(self, pane: str) -> str:
        """Titles with counts, shorter where there is little room."""
        view = self.council_app.picture.view
        if view is None or self.size.width < 76:
            return super().pane_title(pane)
        counts = {"tree": len(view.agents), "board": len(view.cards), "events": len(view.events)}
        return f"{super().pane_title(pane)} {counts.get(pane, len(self.query_one(Beats).rows))}"

    def pane_list(self, pane: str) -> VirtualList[Any]:
        """The board's list is its current lane."""
        return self.board.lane if pane == "board" else super().pane_list(pane)

    def narrow(self, needle: str, only_bad: bool) -> None:
        """The board filters all its lanes."""
        if self.pane == "board":
            self.board.narrow(needle, only_bad)
        else:
            super().narrow(needle, only_bad)

    # -- the selection

    def subject(self) -> AgentView | CardView | None:
        """The agent or card the cursor is on; for an event, what it is about."""
        view = self.council_app.picture.view
        if view is None:
            return None
        if self.pane == "tree":
            node = self.query_one(AgentTree).selected
            return node.agent if node is not None else None
        if self.pane == "board":
            return self.board.selected
        if self.pane == "beats":
            return self.query_one(Beats).selected
        event = self.query_one(Tail).selected
        if event is None:
            return None
        return next((a for a in view.agents if a.name == event.agent), None) or next(
            (c for c in view.cards if c.id == event.card), None
        )

    def agent(self) -> AgentView | None:
        """The agent of the selection."""
        subject, view = self.subject(), self.council_app.picture.view
        if isinstance(subject, CardView) and view is not None:
            return next((agent for agent in view.agents if agent.name == subject.agent), None)
        return subject if isinstance(subject, AgentView) else None

    def _ident(self) -> str:
        subject = self.subject()
        if subject is None:
            return ""
        return subject.name if isinstance(subject, AgentView) else subject.id

    def on_virtual_list_chosen(self, event: VirtualList.Chosen) -> None:
        """The selected pane follows the cursor."""
        self._show_selected()

    def go_pane(self, pane: str) -> None:
        """Another pane has another selection."""
        super().go_pane(pane)
        self._show_selected()

    def _show_selected(self) -> None:
        ident, picture = self._ident(), self.council_app.picture
        detail = self.detail[1] if self.detail is not None and self.detail[0] == ident else None
        self.query_one(Selected).show_subject(self.subject(), picture.view, detail)
        self._ask_detail(ident)

    def _ask_detail(self, ident: str) -> None:
        now = self.council_app.pulse.clock()
        fresh = self.asked[0] == ident and now - self.asked[1] < DETAIL_SECONDS
        if not ident or fresh or not self.has_class("-wide"):
            return
        self.asked = (ident, now)

        def take(detail: Detail) -> None:
            self.detail = (ident, detail)
            self._show_selected()

        door = self.council_app.door
        self.council_app.ask(lambda: door.detail(ident), take, group="selected", quiet=True, exclusive=True)

    # -- actions

    def places(self) -> tuple[str, ...]:
        """The room's keys, the pane's, the lists' and everyone's."""
        own = {"tree": "tree", "board": "board"}.get(self.pane)
        return ("room", *((own,) if own else ()), "rows", "lists", "everywhere")

    def word_for(self, action: keymap.Action) -> str:
        """Pause says resume while paused; back is named where there is something to go back from."""
        view = self.council_app.picture.view
        if action.id == "pause" and view is not None and view.paused:
            return "resume"
        if action.id == "back" and not (self.zoomed or self.here.needle or self.here.only_bad):
            return ""
        return action.short

    def why_not(self, action: str) -> str:
        """The reasons of the room."""
        if action in ("narrower", "wider") and (self.zoomed or self.size.width < 100):
            return f"{action}: one pane has the whole screen"
        if action in ("spawn", "reap", "pause", "freeze", "drain", "stop"):
            if self.council_app.picture.view is None:
                return f"{action}: the council has not been read yet"
            if self.council_app.picture.stale:
                return f"{action}: {self.council_app.picture.trouble}"
            if self.council_app.read_only:
                return f"{action}: this console is read-only"
        if action == "reap":
            return self._why_no_reap()
        if action == "freeze":
            return self._why_no_freeze()
        if action == "open" and self.subject() is None:
            return "open: nothing is selected"
        return ""

    def _why_no_reap(self) -> str:
        agent = self.agent()
        if agent is None:
            return "reap: no agent is selected"
        if agent.kind == "hermes":
            return "reap: Hermes is the council itself; q ends it"
        if agent.ended:
            return f"reap: {agent.label} has ended already"
        return ""

    def _why_no_freeze(self) -> str:
        agent = self.agent()
        if agent is None or agent.kind in ("hermes", *PARENTS):
            return "freeze: select a child or a microshark"
        if agent.health not in ("alive", "late", "stalled", "frozen"):
            return f"freeze: {agent.label} is {agent.health}"
        return ""

    def do_open(self) -> None:
        """The selection in full."""
        from council_tui.console.screens.detail import DetailScreen

        subject = self.subject()
        if subject is not None:
            self.app.push_screen(DetailScreen(self._ident(), subject.label, isinstance(subject, AgentView)))

    def do_copy(self) -> None:
        """Copy the id of what is selected, not of the event's row."""
        ident = self._ident()
        if ident:
            self.app.copy_to_clipboard(ident)
            self.council_app.say(f"copied {ident}")

    def do_spawn(self) -> None:
        """The spawn dialog, with the office of the selection."""
        from council_tui.console.screens.spawn import SpawnScreen

        self.app.push_screen(SpawnScreen(self._office()))

    def _office(self) -> str:
        view, agent = self.council_app.picture.view, self.agent()
        by_name = {other.name: other for other in view.agents} if view is not None else {}
        while agent is not None and agent.kind not in PARENTS:
            agent = by_name.get(agent.parent or "")
        return agent.kind if agent is not None else PARENTS[-1]

    def do_reap(self) -> None:
        """Ask before anything ends."""
        from council_tui.console.screens.reap import ReapScreen

        agent = self.agent()
        if agent is not None:
            self.app.push_screen(ReapScreen(agent))

    def do_freeze(self) -> None:
        """Freeze the selected agent and all below it, or let them go on."""
        agent = self.agent()
        if agent is None:
            return
        frozen, door = agent.health != "frozen", self.council_app.door
        said = f"{agent.label} is frozen: F lets it go on" if frozen else f"{agent.label} goes on"
        self.council_app.ask(lambda: door.freeze(agent.name, frozen), lambda _: self.council_app.say(said))

    def do_pause(self) -> None:
        """Hold back or go on with dispatch."""
        view = self.council_app.picture.view
        paused = not (view is not None and view.paused)
        said = "dispatch is paused: running agents go on" if paused else "dispatch goes on"
        door = self.council_app.door
        self.council_app.ask(lambda: door.pause(paused), lambda _: self.council_app.say(said))

    def do_drain(self) -> None:
        """Ask before everything ends in order."""
        from council_tui.console.screens.end_all import IN_ORDER, EndAllScreen

        self.app.push_screen(EndAllScreen(IN_ORDER, self.council_app.door.drain))

    def do_stop(self) -> None:
        """Ask before everything ends at once."""
        from council_tui.console.screens.end_all import AT_ONCE, EndAllScreen

        self.app.push_screen(EndAllScreen(AT_ONCE, self.council_app.door.stop_at_once))

    def do_fold(self) -> None:
        """Close a branch."""
        self.query_one(AgentTree).fold()

    def do_unfold(self) -> None:
        """Open a branch."""
        self.query_one(AgentTree).unfold()

    def do_lane_left(self) -> None:
        """The lane to the left."""
        self.board.step(-1)

    def do_lane_right(self) -> None:
        """The lane to the right."""
        self.board.step(1)

    def do_narrower(self) -> None:
        """Give the left pane less room."""
        self._resize(-2)

    def do_wider(self) -> None:
        """Give the left pane more room."""
        self._resize(2)

    def _resize(self, by: int) -> None:
        tree = self.query_one(AgentTree)
        self.left = min(max(30, tree.outer_size.width + by), max(30, self.size.width - 50))
        self._apply_left()

    def _apply_left(self) -> None:
        # a width of one's own must not hold where the tree has the whole screen
        tree = self.query_one(AgentTree)
        if self.left is None or self.zoomed or self.size.width < 100:
            tree.styles.clear_rule("width")
        else:
            tree.styles.width = self.left

    def do_zoom(self) -> None:
        """The left pane's own width waits while one pane has the screen."""
        super().do_zoom()
        self._apply_left()

    def on_resize(self, event: events.Resize) -> None:
        """So it does in a narrow terminal."""
        self._apply_left()

    def leave(self) -> None:
        """The room is the last screen; only q leaves it."""
