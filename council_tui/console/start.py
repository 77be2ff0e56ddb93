"""What `council` does: own the home and open the room, or attach to whoever owns it."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from council_tui.board.home import Home
from council_tui.console.run import run_console
from council_tui.control.attach import Attached
from council_tui.control.council import Council, Options
from council_tui.domain.errors import HomeOwned
from council_tui.fleet.plan import load_plan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from council_tui.fleet.plan import Plan

DEMO_NOTE = "s spawns a child · g l shows the ledger, V verifies it · ? keys"
PATIENCE_SECONDS = 1.0
"""An opening that takes longer is announced."""


def start(home: Home, *, demo: bool, ascii: bool, read_only: bool) -> int:  # noqa: A002 - the flag's name
    """Open the control room; the exit status."""
    if not demo:
        return asyncio.run(_open(home, None, "", ascii=ascii, read_only=read_only))
    root = Path(tempfile.mkdtemp(prefix="council-demo-"))
    try:
        plan = load_plan("demo")
        return asyncio.run(_open(Home(root), plan, DEMO_NOTE, ascii=ascii, read_only=read_only))
    finally:
        shutil.rmtree(root, ignore_errors=True)


async def _open(home: Home, plan: Plan | None, note: str, *, ascii: bool, read_only: bool) -> int:  # noqa: A002
    council = Council(home, Options(plan=plan, note=note))
    try:
        with _announced("opening the council"):
            await council.open()
    except HomeOwned:
        return await _attach(home, ascii=ascii, read_only=read_only)
    council.dispatch()
    try:
        outcome = await run_console(council, demo=plan is not None, ascii=ascii, read_only=read_only)
        ended = outcome.ended if outcome is not None else (await council.drain()).ended
        end = await council.end()
    finally:
        await council.close()
    left = len(end.audit.get("descendants", ()))
    print(f"{ended} agent{'s' if ended != 1 else ''} ended, {left} left; ledger {end.ledger.get('verdict')}")
    return 0 if left == 0 and end.ledger.get("verdict") == "VALID" else end.exit


async def _attach(home: Home, *, ascii: bool, read_only: bool) -> int:  # noqa: A002
    with _announced("attaching to the council"):
        door = await Attached.open(home)
    try:
        await run_console(door, ascii=ascii, read_only=read_only)
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
