"""A council with three idle children, one of which will go silent and be held."""

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from council_tui.board.home import Home
from council_tui.control.council import Council, Options
from council_tui.control.views import RoomView
from council_tui.fleet.plan import parse_plan

PLAN = """\
council: 1
name: room
defaults:
  lifecycle_policy: {parent_heartbeat_interval_seconds: 0.2, child_timeout_seconds: 10, grace_seconds: 0.5}
  envelope: {time_budget_minutes: 5, autonomy_band: AUTONOMOUS, tools_scope: [exec], rollback_plan: No changes}
  retries: 0
children:
  - {id: idle, parent: zeroclaw, run: [sleep, "600"], title: "[bold]Idle[/bold]"}
  - id: silent
    parent: openclaw
    run: [sleep, "600"]
    spawn_context: {lifecycle_policy: {beat_source: body, orphan_policy: hold}}
  - {id: risky, parent: openfang, run: ["true"], envelope: {autonomy_band: NEVER}}
  - {id: later, parent: openfang, run: ["true"], after: [idle]}
"""


@pytest.fixture
def home() -> Iterator[Home]:
    """A home with a path that is short enough for sockets."""
    root = Path(tempfile.mkdtemp(prefix="ctl-"))
    yield Home(root / "home")
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
async def council(home: Home) -> AsyncIterator[Council]:
    """An open council that dispatches the plan above."""
    opened = Council(home, Options(plan=parse_plan(PLAN, "room.yaml"), note="a note"))
    await opened.open()
    opened.dispatch()
    yield opened
    await opened.close()


async def until(council: Council, wanted) -> RoomView:
    """Look at the room after every event until `wanted(room)` holds; a seat goes only after its last event."""
    heard = asyncio.Event()
    council.listen(lambda event: heard.set())
    async with asyncio.timeout(20):
        while not wanted(room := await council.room()):
            heard.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(heard.wait(), 0.1)
    return room
