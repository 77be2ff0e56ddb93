"""A supervisor in a process of its own, to be killed: `python owner.py HOME [CHILDREN]` runs a fleet and tells of it.

CHILDREN: a JSON list of what `stage.child` makes; a number of them that only sleep, of which no more is told than
that they have begun; without it long-lived ones of several kinds.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from council_tui.domain.lifecycle import Signal

if TYPE_CHECKING:
    from supervisor.stage import Stage

    from council_tui.domain.events import Event
    from council_tui.fleet.plan import Plan

TESTS = Path(__file__).resolve().parent.parent


def freeze(stage: Stage) -> None:
    """Stop every child where it stands."""
    for seat in stage.sup.seats.values():
        if seat.kind == "child":
            stage.sup.background(stage.sup.signal(seat, Signal.FREEZE))


def plan(children: list[dict[str, Any]] | int) -> Plan:
    """The fleet's plan."""
    from supervisor.stage import child, plan_of

    if isinstance(children, int):
        policy = {"parent_heartbeat_interval_seconds": 5, "child_timeout_seconds": 200}
        limits = {"concurrency": children, "children_per_parent": children}
        return plan_of(*(child(f"c{n}", "exec sleep 600", policy=policy) for n in range(children)), limits=limits)
    return plan_of(
        *children
        or (
            child("steady", "sleep 600", policy={"parent_heartbeat_interval_seconds": 0.5}),
            child("deaf", "trap '' TERM; sleep 600; sleep 600", policy={"grace_seconds": 0.2}),
            child("keeper", "sleep 600", parent="openclaw"),
            child("shark", "setsid sleep 600 & sleep 600", parent="keeper"),
            child("waits", "echo waits", after=["steady"]),
        )
    )


async def main(home: Path, children: list[dict[str, Any]] | int) -> None:
    """Run a fleet, or go on with it, and print every event as a line. SIGUSR1 freezes its children."""
    from supervisor.stage import Stage

    stage = Stage(home, plan(children))
    few = isinstance(children, int)

    def tell(event: Event) -> None:
        if not few or event.kind == "acknowledged":
            print(json.dumps([str(event.kind), event.agent or "", event.run or "", event.data]), flush=True)

    stage.sup.board.listen(tell)
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
