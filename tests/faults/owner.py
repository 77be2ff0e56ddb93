"""A supervisor in a process of its own, to be killed: `python owner.py HOME [CHILDREN]` runs a fleet and tells of it.

CHILDREN: a JSON list of what `stage.child` makes; without it long-lived ones of several kinds.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from council_tui.domain.lifecycle import Signal

if TYPE_CHECKING:
    from supervisor.stage import Stage

TESTS = Path(__file__).resolve().parent.parent


def freeze(stage: Stage) -> None:
    """Stop every child where it stands."""
    for seat in stage.sup.seats.values():
        if seat.kind == "child":
            stage.sup.background(stage.sup.signal(seat, Signal.FREEZE))


async def main(home: Path, children: list[dict[str, object]]) -> None:
    """Run a fleet, or go on with it, and print every event as a line. SIGUSR1 freezes its children."""
    from supervisor.stage import Stage, child, plan_of

    plan = (
        plan_of(*children)
        if children
        else plan_of(
            child("steady", "sleep 600", policy={"parent_heartbeat_interval_seconds": 0.5}),
            child("deaf", "trap '' TERM; sleep 600; sleep 600", policy={"grace_seconds": 0.2}),
            child("keeper", "sleep 600", parent="openclaw"),
            child("shark", "setsid sleep 600 & sleep 600", parent="keeper"),
            child("waits", "echo waits", after=["steady"]),
        )
    )
    stage = Stage(home, plan)
    stage.sup.board.listen(
        lambda event: print(json.dumps([str(event.kind), event.agent or "", event.run or "", event.data]), flush=True)
    )
    judge = stage.sup.tick

    async def tick(late: float = 0.0) -> None:
        await judge(late)
        print(json.dumps(["tick", "", "", {}]), flush=True)

    stage.sup.tick = tick  # type: ignore[method-assign]
    async with stage:
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, freeze, stage)
        print(json.dumps(["nursery", "", "", {"pid": stage.sup.host.pid}]), flush=True)
        end = await stage.end()
    print(json.dumps(["ended", "", "", end.as_json()]), flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(TESTS))
    asyncio.run(main(Path(sys.argv[1]), json.loads(sys.argv[2]) if len(sys.argv) > 2 else []))
