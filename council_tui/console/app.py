"""The app: themes, the pulse, and one dispatch for every key; it knows a `CouncilDoor` and nothing behind it."""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from textual.app import App
from textual.binding import Binding

from council_tui.console import keymap, sheets, theme
from council_tui.console.commands import RegistryCommands
from council_tui.console.glyphs import ASCII, UNICODE
from council_tui.console.pulse import Picture, Pulse
from council_tui.console.screens.base import CouncilScreen
from council_tui.console.screens.dialog import Dialog
from council_tui.console.screens.room import RoomScreen
from council_tui.control.views import Left, QuitOutcome
from council_tui.domain.errors import CouncilError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from textual.worker import Worker

    from council_tui.control.views import CouncilDoor

T = TypeVar("T")

TOAST_SECONDS = 4.0
ERROR_SECONDS = 3600.0
"""An error stays until it is clicked away."""


class CouncilApp(App[None]):
    """The control room."""

    TITLE = "council"
    CSS_PATH: ClassVar = sheets.paths()
    BINDINGS: ClassVar = [
        *keymap.bindings("everywhere"),
        # Textual quits on ctrl+q; here nothing but q and ctrl+c does, and both ask
        Binding("ctrl+q", "nothing", show=False, priority=True),
    ]
    COMMANDS: ClassVar = {RegistryCommands}
    COMMAND_PALETTE_BINDING: ClassVar = "ctrl+p"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-normal"), (160, "-wide")]  # noqa: RUF012 - Textual's own type
    VERTICAL_BREAKPOINTS = [(0, "-short"), (32, "-tall")]  # noqa: RUF012 - Textual's own type
    PULSE_SECONDS: ClassVar[float] = 0.25

    def __init__(
        self,
        door: CouncilDoor,
        *,
        demo: bool = False,
        ascii: bool = False,  # noqa: A002 - the flag's name
        read_only: bool = False,
    ) -> None:
        # Textual's own NO_COLOR still paints greys; its native mode leaves the terminal's colours alone
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        self.door = door
        self.demo = demo
        self.read_only = read_only
        self.glyphs = ASCII if ascii else UNICODE
        self.pulse = Pulse(door)
        self.picture = Picture()
        self.held = False
        self.left: Left | None = None
        """How the person left; None while they have not, or when somebody else ended it."""
        self.register_theme(theme.COUNCIL_DARK)
        self.register_theme(theme.COUNCIL_LIGHT)
        self.theme = theme.DARK
        self.set_class(ascii, "-ascii")

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """State colours for themes that do not name them."""
        return theme.STATE_COLOURS

    def get_default_screen(self) -> RoomScreen:
        """The room is the first screen and the last."""
        return RoomScreen()

    def on_mount(self) -> None:
        """Start the pulse."""
        self.beat()
        if self.PULSE_SECONDS:
            self.set_interval(self.PULSE_SECONDS, self.beat)
        self.call_after_refresh(self._settle)

    def _settle(self) -> None:
        # what exists now stays: full collections need not walk it (console p99 83 ms > 46-66 ms)
        if not self.is_headless:
            gc.collect()
            gc.freeze()

    # -- the pulse

    def beat(self) -> None:
        """Start a pull unless one is running."""
        if self.pulse.busy:
            if self.pulse.overdue():
                self.show(self.pulse.picture)
            return
        self._work(self._pull, "pulse")

    async def _pull(self) -> None:
        picture = await self.pulse.pull()
        if not self.held:
            self.show(picture)

    def show(self, picture: Picture) -> None:
        """Hand a picture to the screens that can be seen, unless it looks the same."""
        before, after = self.picture.view, picture.view
        same = before is not None and after is not None and before.version == after.version
        same = same and self.picture.stale == picture.stale
        if before and after and same and before.clock == after.clock and picture.trouble == self.picture.trouble:
            return
        self.picture = picture
        self._hand_out(changed=not same)

    def _hand_out(self, changed: bool) -> None:
        for screen in reversed(self.screen_stack):
            if isinstance(screen, (CouncilScreen, Dialog)) and screen.is_mounted:
                screen.show_picture(self.picture, changed)
            if not screen.is_modal:
                break

    def hold(self) -> None:
        """Hold the picture still, or let it go on."""
        self.held = not self.held
        if not self.held:
            self.picture = self.pulse.picture
        self._hand_out(changed=True)

    # -- keys

    def action_act(self, ident: str, argument: str = "") -> None:
        """Run an action of the registry, or say why not."""
        if ident == "quit":
            self.ask_to_quit()
            return
        screen = self.screen
        if not isinstance(screen, CouncilScreen):
            return
        if reason := screen.why_not(ident):
            self.notify(reason, severity="warning", timeout=TOAST_SECONDS, markup=False)
            return
        method: Callable[..., None] = getattr(screen, f"do_{ident.replace('-', '_')}")
        method(*((argument,) if argument else ()))

    def action_nothing(self) -> None:
        """Swallow a key."""

    def say(self, text: str) -> None:
        """A toast about something the person just did."""
        self.notify(text, timeout=TOAST_SECONDS, markup=False)

    def fail(self, error: Exception) -> None:
        """A toast that stays: one sentence about what was refused."""
        self.notify(str(error), severity="error", timeout=ERROR_SECONDS, markup=False)

    def ask(
        self,
        question: Callable[[], Coroutine[Any, Any, T]],
        then: Callable[[T], None],
        *,
        group: str = "ask",
        quiet: bool = False,
        exclusive: bool = False,
        otherwise: Callable[[Exception], None] | None = None,
    ) -> None:
        """Ask the door without blocking; a refusal becomes a toast unless `otherwise` takes it or `quiet` drops it."""

        async def run() -> None:
            try:
                answer = await question()
            except (CouncilError, OSError) as error:
                if otherwise is not None:
                    otherwise(error)
                elif not quiet:
                    self.fail(error)
                return
            then(answer)

        self._work(run, group, exclusive)

    def _work(
        self, run: Callable[[], Coroutine[None, None, None]], group: str, exclusive: bool = False
    ) -> Worker[None]:
        # given as a function: a coroutine that is never started would be a warning at exit
        return self.run_worker(run, group=group, exclusive=exclusive)

    def switch_theme(self) -> None:
        """Dark or light."""
        self.theme = theme.LIGHT if self.theme == theme.DARK else theme.DARK

    def go(self, place: str) -> None:
        """Close what is open and show a place."""
        from council_tui.console.screens.ledger import LedgerScreen

        while len(self.screen_stack) > 1:
            self.pop_screen()
        if place == "ledger":
            self.push_screen(LedgerScreen())

    # -- leaving

    def ask_to_quit(self) -> None:
        """Leave at once if nothing lives or the council is somebody else's, else ask."""
        from council_tui.console.screens.quit import QuitScreen

        view = self.pulse.picture.view
        if view is not None and view.attached:
            self.exit()
        elif not isinstance(self.screen, QuitScreen):
            self.ask(self.door.living, self._quit_or_ask, group="quit", otherwise=lambda _: self._quit_or_ask(-1))

    def _quit_or_ask(self, living: int) -> None:
        from council_tui.console.screens.quit import QuitScreen

        if living == 0:
            self.left = Left(QuitOutcome(0, 0))
            self.exit()
        else:
            self.push_screen(QuitScreen(living))
