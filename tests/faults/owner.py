"""A supervisor in a process of its own, to be killed: `python owner.py HOME` runs a fleet and tells of it."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent


async def main(home: Path) -> None:
    """Run a fleet of long children and print every event as a line."""
    from supervisor.stage import Stage, child, plan_of

    plan = plan_of(
        child("steady", "sleep 600", policy={"parent_heartbeat_interval_seconds": 0.5}),
        child("deaf", "trap '' TERM; sleep 600; sleep 600", policy={"grace_seconds": 0.2}),
        child("keeper", "sleep 600", parent="openclaw"),
        child("shark", "setsid sleep 600 & sleep 600", parent="keeper"),
        child("waits", "echo waits", after=["steady"]),
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
        print(json.dumps(["nursery", "", "", {"pid": stage.sup.host.pid}]), flush=True)
        await stage.end()


if __name__ == "__main__":
    sys.path.insert(0, str(TESTS))
    asyncio.run(main(Path(sys.argv[1])))
