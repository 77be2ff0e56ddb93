"""What `council` does: own the home and open the room, or attach to whoever owns it."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from council_tui.board.home import Home
from council_tui.console.agree import agree, is_asking
from council_tui.console.run import run_console
from council_tui.control.attach import Attached
from council_tui.control.background import Background, NotStarted, command
from council_tui.control.council import Council, Options
from council_tui.control.readiness import WAITING
from council_tui.domain.errors import HomeOwned
from council_tui.domain.text import counted, safe
from council_tui.fleet.plan import load_plan
from council_tui.supervisor import workers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from council_tui.control.views import Left, QuitOutcome

DEMO_NOTE = "s spawns a child · g l shows the ledger, V verifies it · ? keys"
LEAVING_SECONDS = 15.0
"""That a process which leaves its fleet to this one has to let go of the home."""
PATIENCE_SECONDS = 1.0
"""An opening that takes longer is announced."""


@dataclass(frozen=True)
class Look:
    """How the room is shown."""

    demo: bool = False
    ascii: bool = False
    read_only: bool = False


def start(home: Home, look: Look, *, take_over: bool = False) -> int:
    """Open the control room; the exit status."""
    if not look.demo:
        return workers.run(_open(home, Options(agree=agree), look, take_over=take_over))
    root = Path(tempfile.mkdtemp(prefix="council-demo-"))
    try:
        return workers.run(_open(Home(root), Options(load_plan("demo"), note=DEMO_NOTE), look))
    finally:
        shutil.rmtree(root, ignore_errors=True)


async def _open(home: Home, options: Options, look: Look, *, take_over: bool = False) -> int:
    if take_over:
        with _announced("taking the fleet over"):
            await _take_over(home)
    council = Council(home, options)
    try:
        with _announced("opening the council"):
            await council.open_when_free(LEAVING_SECONDS if take_over else 0.0)
    except HomeOwned:
        return await _attach(home, look)
    while True:
        council.dispatch()
        asked = _Asked(council)
        left = await _show(council, look, asked.event)
        if asked.successor is not None:
            return await _give_away(council, asked.successor)
        if asked.reason:
            print(asked.reason, file=sys.stderr)
        if left is None or not left.background:
            return await _end(council, left.outcome if left else None)
        try:
            return await _leave_running(council)
        except NotStarted as error:
            council = await _back(council, replace(options, note=f"not left running: {safe(str(error), 200)}"))


class _Asked:
    """What somebody elsewhere asked of the council in this process."""

    def __init__(self, council: Council) -> None:
        self.event = asyncio.Event()
        self.reason = ""
        self.successor: int | None = None
        """Pid of the process that takes the fleet over."""
        council.on_stop, council.on_leave = self._stop, self._leave

    def _stop(self, reason: str) -> None:
        self.reason = reason
        self.event.set()

    def _leave(self, pid: int) -> None:
        self.successor = pid
        self.event.set()


async def _show(council: Council, look: Look, asked: asyncio.Event) -> Left | None:
    """The room until the person leaves it; None when it was told to end."""
    try:
        return await run_console(council, demo=look.demo, ascii=look.ascii, read_only=look.read_only, asked=asked)
    except BaseException:
        await council.close()
        raise


async def _end(council: Council, outcome: QuitOutcome | None) -> int:
    """End what lives, close, and say what became of it."""
    try:
        ended = outcome.ended if outcome is not None else (await council.drain()).ended
        end = await council.end()
    finally:
        await council.close()
        for sentence in council.left_behind:
            print(sentence, file=sys.stderr)
    left = len(end.audit.get("descendants", ()))
    print(f"{counted(ended, 'agent')} ended, {left} left; ledger {end.ledger.get('verdict')}")
    return 0 if left == 0 and end.ledger.get("verdict") == "VALID" else end.exit


async def _leave_running(council: Council) -> int:
    """Start the next supervisor, wait until it is up, and leave the fleet to it. Raises `NotStarted`."""
    with Background(council.home, ["serve", "--until-done", "--wait"]) as following:
        with _announced("leaving the fleet to a background process"):
            await asyncio.to_thread(following.wait, "STATUS", WAITING)
            living = await council.hand_over()
            await asyncio.to_thread(following.wait, "READY", "1")
        verb = "goes" if living == 1 else "go"
        council_here = command(council.home)
        words = f"`{council_here}` shows the fleet, `{council_here} stop` ends it"
        print(f"{counted(living, 'agent')} {verb} on in process {following.pid}; {words}")
    return 0


async def _give_away(council: Council, successor: int) -> int:
    living = await council.hand_over()
    print(f"process {successor} takes the fleet over, {counted(living, 'agent')} alive")
    return 0


async def _back(council: Council, options: Options) -> Council:
    """The room again, after the fleet could not be left to anyone; taken back if it had been given away."""
    if not council.handed_over:
        council.pictures.note = options.note
        return council
    again = Council(council.home, options)
    await again.open()
    return again


async def _take_over(home: Home) -> None:
    door = await Attached.open(home)
    try:
        await door.take_over()
    finally:
        await door.close()


async def _attach(home: Home, look: Look) -> int:
    with _announced("attaching to the council"):
        door = await Attached.open(home)
    try:
        await run_console(door, ascii=look.ascii, read_only=look.read_only)
        ended = await door.ended()
    finally:
        await door.close()
    print(ended or f"the council goes on in process {door.owner}", file=sys.stderr)
    return 0


@contextmanager
def _announced(what: str) -> Iterator[None]:
    """One line while something takes long, gone when it is done; nothing where nobody looks."""
    shown = False

    def show() -> None:
        nonlocal shown
        if is_asking():
            return
        shown = True
        print(f"{what} ...", end="", file=sys.stderr, flush=True)

    timer = asyncio.get_running_loop().call_later(PATIENCE_SECONDS, show) if sys.stderr.isatty() else None
    try:
        yield
    finally:
        if timer is not None:
            timer.cancel()
        if shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
