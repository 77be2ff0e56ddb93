"""A fleet without a terminal: `council --run` from its plan to its end, `council serve` as long as it is wanted.

Whatever interrupts it, it ends in order, or is left to another process that asked for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import shlex
import signal
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from council_tui.control import reading
from council_tui.control.council import Council, Options
from council_tui.control.readiness import WAITING, Readiness
from council_tui.domain.errors import CouncilError, HomeOwned, HomeUnusable
from council_tui.domain.events import Event, EventKind
from council_tui.domain.text import counted
from council_tui.fleet.outcome import BAD_INPUT, DONE, INTERNAL, INTERRUPTED
from council_tui.headless.crash import crash_report
from council_tui.headless.lines import event_line, snapshot_line, summary_line, unfinished_line
from council_tui.headless.printing import rendered
from council_tui.headless.progress import progress_for
from council_tui.headless.signs import signs_for
from council_tui.headless.summary import summary
from council_tui.headless.writer import PATIENCE, Output
from council_tui.supervisor import workers

if TYPE_CHECKING:
    from council_tui.board.home import Home
    from council_tui.fleet.outcome import Ending
    from council_tui.fleet.plan import Plan

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
OPENING_SECONDS = 10.0
"""How long an interrupted start may go on before it is broken off."""


WAITING_SECONDS = 60.0
"""For the process that runs the council to leave."""


@dataclass(frozen=True)
class Request:
    """What the command line asked for."""

    plan: Plan | None
    """None: go on with the fleet that is there, or wait for orders."""
    home: Home
    json: bool = False
    timeout: float | None = None
    home_flag: str | None = None
    stays: bool = False
    """Go on when nothing is left to do, until somebody stops it."""
    waits: bool = False
    """Wait until the process that runs the council there has left."""


class Run:
    """One fleet without a terminal's owner: signals in, lines out."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._written = asyncio.Event()
        self._reason = ""
        self._seq = 0
        self._shown = -1
        """Seq up to which the snapshot tells everything; -1 before there is one."""
        self._out = Output(sys.stdout.fileno(), self._writer_ended)
        keep = request.json or not sys.stdout.isatty()
        self._progress = progress_for(request.plan.budget_minutes if request.plan else None, keep=keep)
        self._readiness = Readiness()
        self._leaves_to: int | None = None
        """Pid of the process that takes the fleet over."""
        self._council = Council(request.home, Options(request.plan, request.timeout, os.getcwd()))
        self._council.listen(self._heard)
        self._began = time.monotonic()

    # what interrupts it

    def _signalled(self, number: signal.Signals) -> None:
        if self._stop.is_set():
            self._progress.say("still ending the agents in order; none is left behind")
            return
        self._progress.say(f"{number.name}: ending every agent in order, please wait")
        self._interrupt(f"interrupted by {number.name}")

    def _writer_ended(self, gone: bool) -> None:
        with contextlib.suppress(RuntimeError):  # the loop may be over by then
            self._loop.call_soon_threadsafe(self._written.set)
            if gone:
                self._loop.call_soon_threadsafe(self._interrupt, "nobody reads the output any more")

    def _interrupt(self, reason: str) -> None:
        self._reason = self._reason or reason
        self._stop.set()

    def _asked_to_stop(self, reason: str) -> None:
        self._progress.say(f"{reason}: ending every agent in order")
        self._interrupt(reason)

    def _asked_to_leave(self, pid: int) -> None:
        """Another process takes the fleet over."""
        self._leaves_to = pid
        self._interrupt(f"process {pid} takes over")

    # what it tells

    def _heard(self, event: Event) -> None:
        self._seq = event.seq
        self._progress.heard(event)
        if not self._request.json:
            return
        if event.kind in (EventKind.FLEET_STARTED, EventKind.FLEET_RESUMED):
            picture = reading.living(self._council, event)
            self._shown = picture.seq
            self._out.write(snapshot_line(picture).line())
        elif 0 <= self._shown < event.seq:
            self._out.write(event_line(event).line())

    def _tell_ending(self, end: Ending) -> None:
        if self._request.json:
            self._out.write(summary_line(self._seq, end.as_json()).line())
            return
        with reading.Reader(self._request.home) as reader:
            picture = reader.snapshot()
        flag = self._request.home_flag
        command = "council" + (f" --home {shlex.quote(flag)}" if flag else "")
        elapsed = time.monotonic() - self._began
        self._out.write(rendered(summary(picture, elapsed, command, signs_for(sys.stdout))))

    def _tell_failure(self, code: int, sentence: str, report: str) -> None:
        sys.stderr.write(report or f"council: {sentence}\n")
        if self._request.json:
            self._out.write(unfinished_line(self._seq, {}, code, sentence).line())

    async def _end_display(self) -> None:
        try:
            await self._progress.stop()
        except Exception as error:
            # A fault of the picture is told, and is none of the fleet's.
            sys.stderr.write(crash_report(error))

    # its course

    async def go(self) -> int:
        """Run to the end; the exit code."""
        for number in SIGNALS:
            self._loop.add_signal_handler(number, self._signalled, number)
        end, code, sentence, report = None, INTERNAL, "", ""
        try:
            end = await self._fleet()
        except asyncio.CancelledError:
            code, sentence = INTERRUPTED, f"{self._reason or 'interrupted'} before anything was started"
        except HomeOwned as error:
            code, sentence = BAD_INPUT, f"{error}; `council` attaches to it"
        except HomeUnusable as error:
            code, sentence = BAD_INPUT, str(error)
        except CouncilError as error:
            sentence = str(error)
        except Exception as error:
            sentence, report = f"internal error: {type(error).__name__}", crash_report(error)
        await self._end_display()
        if end is not None:
            code = end.exit
            self._tell_ending(end)
        elif self._leaves_to is not None and not sentence:
            code = DONE
        else:
            self._tell_failure(code, sentence, report)
        await self._flush()
        return code

    async def _fleet(self) -> Ending | None:
        """Open, run and close; None when it was left to another process. Cancelled when it was interrupted before."""
        await self._open()
        self._progress.start(self._council)
        self._council.on_stop, self._council.on_leave = self._asked_to_stop, self._asked_to_leave
        self._readiness.tell(READY=1, MAINPID=os.getpid(), STATUS="the fleet is open")
        alive = asyncio.create_task(self._show_life())
        running = asyncio.create_task(self._council.run(stays=self._request.stays))
        try:
            await self._first(self._stop, task=running)
            if self._leaves_to is not None and not running.done():
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
                living = await self._council.hand_over()
                self._progress.say(f"process {self._leaves_to} takes the fleet over, {counted(living, 'agent')} alive")
                return None
            self._readiness.tell(STOPPING=1)
            if self._stop.is_set() and not running.done():
                await self._council.interrupt(self._reason)
            return await running
        finally:
            alive.cancel()
            await self._council.close()
            for sentence in self._council.left_behind:
                self._progress.say(sentence)

    async def _show_life(self) -> None:
        """Answer whoever started us and wants to know that this loop still turns."""
        while (every := self._readiness.watchdog) is not None:
            self._readiness.tell(WATCHDOG=1)
            await asyncio.sleep(every)

    async def _open(self) -> None:
        seconds = WAITING_SECONDS if self._request.waits else 0.0
        waits = functools.partial(self._readiness.tell, STATUS=WAITING)
        opening = asyncio.create_task(self._council.open_when_free(seconds, waits))
        await self._first(self._stop, task=opening)
        if not opening.done():
            # A start that is broken off has more to clean up than one that is through.
            await asyncio.wait({opening}, timeout=OPENING_SECONDS)
            opening.cancel()
        await opening

    async def _flush(self) -> None:
        """Let the reader have the rest; who wants out does not wait for a reader that sleeps."""
        self._out.finish()
        await self._first(self._written, self._stop)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await self._written.wait()

    @staticmethod
    async def _first(*events: asyncio.Event, task: asyncio.Task[Any] | None = None) -> None:
        """Wait until one of the events is set or the task is done."""
        waits = [asyncio.create_task(event.wait()) for event in events]
        await asyncio.wait([*waits, *([task] if task else [])], return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()


def run_plan(request: Request) -> int:
    """Run a plan to its end; the exit code."""

    async def go() -> int:
        return await Run(request).go()

    return workers.run(go())
