"""What standard error shows while a fleet runs: a live display on a terminal, one line an event elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from typing import TYPE_CHECKING, Protocol

from rich.console import Console, Group
from rich.live import Live

from council_tui.control.telling import words
from council_tui.domain.events import Event, EventKind
from council_tui.domain.hierarchy import PARENTS
from council_tui.domain.ids import agent_type
from council_tui.headless import paint
from council_tui.headless.quiet_keys import quiet_keys
from council_tui.headless.signs import signs_for
from council_tui.headless.writer import PATIENCE, Output

if TYPE_CHECKING:
    from council_tui.control.council import Council

K = EventKind
REFRESH_SECONDS = 0.25
WORTH_A_LINE = frozenset(
    {
        K.FLEET_STARTED,
        K.BUDGET_WARNING,
        K.DISPATCH_PAUSED,
        K.DISPATCH_RESUMED,
        K.RECOVERED,
        K.COMMENT,
        K.ACKNOWLEDGED,
        K.BEAT_LATE,
        K.BEAT_BACK,
        K.STALLED,
        K.GOING_ON,
        K.UNKILLABLE,
        K.BIRTHS_HELD,
        K.BIRTHS_GO_ON,
        K.RATE_LIMITED,
        K.SWARM_GRANTED,
        K.CRASH_LOOP,
        K.MESSAGE_REFUSED,
        K.INHERITANCE_REJECTED,
        K.ORPHANED,
        K.HELD,
        K.EXPIRED,
        K.CANCELLED,
        K.SLICE_BREACHED,
        K.LIMIT_BREACHED,
        K.PROTOCOL_VIOLATION,
        K.CARD_DONE,
        K.CARD_FAILED,
        K.CARD_BLOCKED,
        K.CARD_RETRY,
        K.REPORT_WRITTEN,
    }
)
_OF_OFFICES = frozenset({K.ACKNOWLEDGED, K.CARD_DONE})
"""What every office does every time."""


class Progress(Protocol):
    """Tells a person how a fleet is doing. Nothing here waits for whoever reads."""

    def heard(self, event: Event) -> None:
        """One event of the journal."""

    def say(self, sentence: str) -> None:
        """One sentence of our own."""

    def start(self, council: Council) -> None:
        """The council is open; show it from now on."""

    async def stop(self) -> None:
        """Leave the last picture and write nothing more."""


class PlainProgress:
    """One line for each event that matters, for logs and pipes."""

    def __init__(self) -> None:
        self._out = Output(sys.stderr.fileno())
        self._titles: dict[str, str] = {}
        self._signs = signs_for(sys.stderr)

    def heard(self, event: Event) -> None:
        """A line, when it is worth one."""
        if event.kind is K.CARD_CREATED and event.card is not None:
            self._titles[event.card] = str(event.data["plan_id"])
        office = agent_type(event.agent or "") in PARENTS
        if event.kind not in WORTH_A_LINE or (office and event.kind in _OF_OFFICES):
            return
        tone, text = words(event, lambda card: self._titles.get(card, card))
        self._out.write(f"{event.at[11:19]} {self._signs.tone(tone)} {text}\n")

    def say(self, sentence: str) -> None:
        """A line."""
        self._out.write(f"council: {sentence}\n")

    def start(self, council: Council) -> None:
        """Events say it all."""

    async def stop(self) -> None:
        """Write what is queued."""
        await asyncio.to_thread(self._out.close, PATIENCE)


class LiveProgress:
    """The tree of the fleet, pulled four times a second. `keep`: leave the last picture on the screen."""

    def __init__(self, minutes: float | None, *, keep: bool) -> None:
        self._minutes = minutes
        self._console = Console(stderr=True, highlight=False, emoji=False, markup=False)
        self._live = Live(
            console=self._console,
            auto_refresh=False,
            transient=not keep,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._signs = signs_for(sys.stderr)
        self._began = time.monotonic()
        self._note = "Ctrl-C ends it in order"
        self._task: asyncio.Task[None] | None = None
        self._council: Council | None = None
        self._keys = contextlib.ExitStack()

    def heard(self, event: Event) -> None:
        """The picture is pulled instead."""

    def say(self, sentence: str) -> None:
        """A sentence in the last line, where it stays; a line of its own while there is no picture."""
        self._note = sentence
        if self._task is None:
            self._console.print(f"council: {sentence}", soft_wrap=True)

    def start(self, council: Council) -> None:
        """Begin to refresh."""
        self._council = council
        self._task = asyncio.create_task(self._follow(council))

    async def _show(self, council: Council) -> None:
        room = await council.room()
        size = self._console.size
        lines = paint.frame(
            room,
            width=size.width - 1,
            height=size.height - 1,
            elapsed=time.monotonic() - self._began,
            minutes=self._minutes,
            note=self._note,
            signs=self._signs,
        )
        # In a thread: a terminal that was stopped with Ctrl-S must not stop the supervisor.
        await asyncio.to_thread(self._live.update, Group(*lines), refresh=True)

    async def _follow(self, council: Council) -> None:
        self._keys.enter_context(quiet_keys(sys.stderr.fileno()))
        self._live.start()
        while True:
            await self._show(council)
            await asyncio.sleep(REFRESH_SECONDS)

    async def stop(self) -> None:
        """One last picture; a terminal that is gone is left alone. Raises what went wrong in the display."""
        task, self._task = self._task, None
        if task is None or self._council is None:
            return
        task.cancel()
        try:
            with contextlib.suppress(asyncio.CancelledError):
                await task
            self._note = "ended"
            await self._show(self._council)
            self._live.stop()
        except OSError:
            self._console.quiet = True
        finally:
            self._keys.close()


def progress_for(minutes: float | None, *, keep: bool) -> Progress:
    """The live display where standard error is a terminal that can move its cursor."""
    smart = os.environ.get("TERM", "dumb") not in ("dumb", "unknown")
    if sys.stderr.isatty() and smart:
        return LiveProgress(minutes, keep=keep)
    return PlainProgress()
