"""What every full screen shares: bars, panes, the filter, and actions that say why they cannot run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual.binding import Binding
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input

from council_tui.console import keymap
from council_tui.console.widgets.bars import KeyBar, LastEvents, NoteLine, TabStrip, TooSmall, TopBar
from council_tui.console.widgets.painted import Line
from council_tui.console.widgets.virtual_list import VirtualList

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult

    from council_tui.console.app import CouncilApp
    from council_tui.console.pulse import Picture

LEAST = (60, 16)


class FilterInput(Input):
    """The filter of the focused list."""

    BINDINGS: ClassVar = [Binding("escape", "app.act('back')", show=False)]


class CouncilScreen(Screen[None]):
    """A full screen with numbered panes."""

    # Textual's screens bind tab themselves, nearer than the app does
    BINDINGS: ClassVar = [*keymap.BY_ID["next-pane"].bindings(), *keymap.BY_ID["previous-pane"].bindings()]
    WHERE: ClassVar[str] = ""
    """The registry's name for this screen's own keys."""
    PANES: ClassVar[tuple[tuple[str, str], ...]] = ()
    """(widget id, title) in the order of their numbers."""
    AUTO_FOCUS: ClassVar[str | None] = ""

    def __init__(self) -> None:
        super().__init__()
        self.pane = self.PANES[0][0]
        self.zoomed = False
        self.place = ""
        """What the top bar calls this screen."""

    @property
    def council_app(self) -> CouncilApp:
        """The app, by its own type."""
        return cast("CouncilApp", self.app)

    def compose(self) -> ComposeResult:
        """Bars around the body."""
        yield TopBar(classes="bar")
        yield TabStrip(classes="bar")
        yield from self.body()
        yield FilterInput(id="filter", compact=True, placeholder="filter: enter keeps it, esc clears it")
        yield LastEvents(classes="bar")
        yield NoteLine(classes="bar")
        yield KeyBar(classes="bar")
        yield TooSmall(id="too-small")

    def body(self) -> ComposeResult:
        """The panes."""
        raise NotImplementedError

    def on_mount(self) -> None:
        """Start in the first pane, with the last picture."""
        self.query_one("#filter").display = False
        self.go_pane(self.pane)
        self.show_picture(self.council_app.picture, True)

    def on_resize(self, event: events.Resize) -> None:
        """Below the least size, one sentence instead of a screen."""
        self.set_class(event.size.width < LEAST[0] or event.size.height < LEAST[1], "-tiny")

    def on_screen_resume(self) -> None:
        """Catch up with what happened behind another screen."""
        if self.is_mounted and self.query("#filter"):
            self.show_picture(self.council_app.picture, True)

    # -- pictures

    def show_picture(self, picture: Picture, changed: bool) -> None:
        """Show a picture; `changed` is False when only clocks went on."""
        self.freshen_bars()

    def freshen_bars(self) -> None:
        """Repaint the bars that say something else now."""
        for line in self.query(Line):
            line.freshen()

    # -- panes

    def panes(self) -> tuple[str, ...]:
        """The ids of the panes, in the order of their numbers."""
        return tuple(pane for pane, _ in self.PANES)

    def pane_title(self, pane: str) -> str:
        """What the tab strip calls a pane."""
        return dict(self.PANES)[pane]

    def pane_list(self, pane: str) -> VirtualList[Any]:
        """The list that has the keys in a pane."""
        return cast("VirtualList[Any]", self.query_one(f"#{pane}"))

    @property
    def here(self) -> VirtualList[Any]:
        """The list that has the keys now."""
        return self.pane_list(self.pane)

    def go_pane(self, pane: str) -> None:
        """Give the keys to a pane; a pane that has no room here is zoomed."""
        self.pane = pane
        target = self.query_one(f"#{pane}")
        above = target.ancestors_with_self
        for widget in self.query(".pane, .panes"):
            widget.set_class(widget in above, "-current")
        if self.zoomed is False and not self._shown(target) and self.is_mounted and self.size.width >= 100:
            self.do_zoom()
        self.pane_list(pane).focus()
        self.freshen_bars()

    def _shown(self, widget: Widget) -> bool:
        return all(node.display for node in widget.ancestors_with_self if isinstance(node, Widget))

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """A click into a pane makes it the current one."""
        if self.focused is None:
            return
        # the focus may have moved on since this was sent
        above = {node.id for node in self.focused.ancestors_with_self}
        for pane in self.panes():
            if pane in above and pane != self.pane:
                self.go_pane(pane)
        self.freshen_bars()

    # -- the registry's side

    def places(self) -> tuple[str, ...]:
        """Where we are, for the footer and the help."""
        return (self.WHERE, "rows", "lists", "everywhere")

    def why_not(self, action: str) -> str:
        """Why an action cannot run now; empty when it can."""
        return ""

    def word_for(self, action: keymap.Action) -> str:
        """The footer's word for an action, which may depend on the state."""
        return action.short

    def do_help(self) -> None:
        """Keys for where we are."""
        from council_tui.console.screens.help import HelpScreen

        self.app.push_screen(HelpScreen(self.places()))

    def do_palette(self) -> None:
        """All actions by name."""
        self.app.action_command_palette()

    def do_go(self) -> None:
        """Show where one can go."""
        from council_tui.console.screens.go_to import GoToScreen

        self.app.push_screen(GoToScreen())

    def do_theme(self) -> None:
        """Dark or light."""
        self.council_app.switch_theme()

    def do_hold(self) -> None:
        """Hold the picture."""
        self.council_app.hold()

    def do_pane(self, number: str) -> None:
        """The pane with this number."""
        panes = self.panes()
        if int(number) <= len(panes):
            self.go_pane(panes[int(number) - 1])

    def do_next_pane(self) -> None:
        """The next pane."""
        self._cycle(1)

    def do_previous_pane(self) -> None:
        """The previous pane."""
        self._cycle(-1)

    def _cycle(self, by: int) -> None:
        panes = [pane for pane in self.panes() if self.zoomed or self._reachable(pane)]
        if panes:
            at = panes.index(self.pane) if self.pane in panes else -1
            self.go_pane(panes[(at + by) % len(panes)])

    def _reachable(self, pane: str) -> bool:
        return self.size.width < 100 or self._shown(self.query_one(f"#{pane}"))

    def do_zoom(self) -> None:
        """One pane for the whole screen, and back."""
        self.zoomed = not self.zoomed
        self.set_class(self.zoomed, "-zoomed")
        self.freshen_bars()

    def do_copy(self) -> None:
        """The id under the cursor goes to the terminal's clipboard (OSC 52)."""
        ident = self.here.cursor
        if ident:
            self.app.copy_to_clipboard(ident)
            self.council_app.say(f"copied {ident}")

    # -- lists

    def do_move(self, key: str) -> None:
        """One row."""
        self._focused_list().move(-1 if key in ("up", "k") else 1)

    def do_page(self, key: str) -> None:
        """One page."""
        self._focused_list().page(-1 if key == "pageup" else 1)

    def do_end(self, key: str) -> None:
        """First or last row."""
        self._focused_list().edge(key != "home")

    def _focused_list(self) -> VirtualList[Any]:
        return self.focused if isinstance(self.focused, VirtualList) else self.here

    def do_open(self) -> None:
        """Nothing to open on most lists."""

    def on_virtual_list_opened(self, event: VirtualList.Opened) -> None:
        """A double click is enter."""
        self.council_app.action_act("open")

    def on_virtual_list_chosen(self, event: VirtualList.Chosen) -> None:
        """Another selection allows other actions."""
        self.freshen_bars()

    # -- the filter

    def do_filter(self) -> None:
        """Open the filter of this pane."""
        field = self.query_one("#filter", FilterInput)
        with self.prevent(Input.Changed):
            field.value = self.here.needle
        field.display = True
        field.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while typing."""
        if event.input.id == "filter":
            self.narrow(event.value, self.here.only_bad)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter keeps the filter."""
        if event.input.id == "filter":
            self._close_filter()

    def _close_filter(self) -> None:
        self.query_one("#filter").display = False
        self.here.focus()

    def narrow(self, needle: str, only_bad: bool) -> None:
        """Apply a filter to the pane."""
        self.here.needle, self.here.only_bad = needle, only_bad
        self.here.regroup()
        self.here.refresh()

    def do_only_bad(self) -> None:
        """Only what is bad or waiting, and back."""
        self.narrow(self.here.needle, not self.here.only_bad)

    def do_back(self) -> None:
        """Close, clear, back; in this order, one step a key."""
        if self.query_one("#filter").display or self.here.needle:
            self.narrow("", self.here.only_bad)
            self._close_filter()
        elif self.here.only_bad:
            self.do_only_bad()
        elif self.zoomed:
            self.do_zoom()
        else:
            self.leave()

    def leave(self) -> None:
        """Back to the screen below."""
        self.app.pop_screen()
