"""How agents end and how soon that is known: a killed runner, a silent one, a tree that is deaf, a whole fleet."""

from __future__ import annotations

import asyncio
import signal
import time
from typing import TYPE_CHECKING, Any

from council_tui.bench.council import LOOK_SECONDS, idle_order, within
from council_tui.bench.facts import PROCESSES_PER_CHILD
from council_tui.bench.figures import milliseconds
from council_tui.domain.events import EventKind
from council_tui.domain.heartbeat import silent_at
from council_tui.domain.lifecycle import Signal
from council_tui.runner import guard

if TYPE_CHECKING:
    from council_tui.bench.council import BenchFleet
    from council_tui.domain.order import Order
    from council_tui.supervisor.seat import Seat

K = EventKind
_DEATHS, _SILENCES = 30, 10
DEEP = 50
"""Processes of the deep tree, each the parent of the next."""
_DEAF = 'trap "" TERM; [ "$1" -gt 1 ] || exec sleep 86400; sh -c "$2" sh "$(($1 - 1))" "$2"; :'
"""A shell script: ignore SIGTERM, start myself one level deeper, wait for it. The last one sleeps."""


def _runner(seat: Seat) -> guard.Process:
    return guard.Process(seat.pid or 0, 0, "?", seat.start_time, 0)


async def deaths(bench: BenchFleet) -> dict[str, Any]:
    """From SIGKILL of a runner to its `orphaned` in the journal, one after another."""
    living = bench.children()
    found: list[float] = []
    for seat in living[: min(_DEATHS, max(1, len(living) // 2))]:
        orphaned = bench.watch.moment(seat.run, K.ORPHANED)
        began = time.monotonic()
        guard.send(_runner(seat), signal.SIGKILL)
        found.append(await within("the orphan of a killed runner", orphaned) - began)
        await within("the end of an orphan", seat.ended.wait())
    return {"deaths": len(found), "death_to_orphaned_ms": milliseconds(found)}


async def silences(bench: BenchFleet, interval: float) -> dict[str, Any]:
    """From the moment at which silence makes an orphan to its `orphaned` in the journal, some stopped at once."""
    living = bench.children()
    stopped = living[: min(_SILENCES, len(living) // 2)]
    found = await asyncio.gather(*(_silence(bench, seat) for seat in stopped))
    return {
        "silences": len(found),
        "silence_seconds": 2 * interval,
        "silence_to_orphaned_late_ms": milliseconds(found),
    }


async def _silence(bench: BenchFleet, seat: Seat) -> float:
    """Seconds by which a runner that was stopped was told later than its contract allows."""
    orphaned = bench.watch.moment(seat.run, K.ORPHANED)
    guard.send(_runner(seat), signal.SIGSTOP)
    told = await within("the orphan of a silent runner", orphaned)
    last = seat.state.last_beat
    # Awake again it ends its own tree, which is not what is measured here.
    guard.send(_runner(seat), signal.SIGCONT)
    await within("the end of an orphan", seat.ended.wait())
    return told - silent_at(last, seat.state.timing.interval) if last is not None else 0.0


def _deep_order(grace: float) -> Order:
    return idle_order("deep", grace=grace, body=("sh", "-c", _DEAF, "sh", str(DEEP), _DEAF))


async def deep_reap(bench: BenchFleet, grace: float) -> dict[str, Any]:
    """Reap a chain of processes that ignore SIGTERM, while the fleet lives; seconds beyond the grace they are due."""
    seat = await bench.send_for(_deep_order(grace))
    # Between a runner and its body strong mode puts a wrapper and the first process of the namespace.
    between = PROCESSES_PER_CHILD[bench.sup.tier.name] - PROCESSES_PER_CHILD["portable"]
    tree = await within("the deep tree", _grown(seat, DEEP + between))
    reaped = bench.watch.moment(seat.run, K.REAPED)
    began = time.monotonic()
    await bench.sup.signal(seat, Signal.CANCELLED, {"reason": "the benchmark ends it"})
    proved = await within("the proof that the deep tree is dead", reaped) - began
    await within("the end of the deep tree's card", seat.ended.wait())
    left = [one for one in tree if (now := guard.read_process(one.pid)) and now.start_time == one.start_time]
    return {
        "processes": len(tree),
        "grace_seconds": grace,
        "proved_dead_beyond_grace_ms": round(1000 * (proved - grace), 1),
        "settled_beyond_grace_ms": round(1000 * (time.monotonic() - began - grace), 1),
        "survivors": len(left) + sum(run == seat.run for _, run in guard.all_marked()),
    }


async def _grown(seat: Seat, size: int) -> list[guard.Process]:
    while True:
        tree = guard.descendants(seat.pid or 0)
        if len(tree) >= size:
            return tree
        await asyncio.sleep(LOOK_SECONDS)


async def reap_all(bench: BenchFleet) -> dict[str, Any]:
    """End the whole fleet at once, in order, and look for whoever is left."""
    began, cpu = time.monotonic(), time.process_time()
    ended = await bench.fleet.drain("the benchmark is over")
    seconds = time.monotonic() - began
    runs = set(bench.watch.at)
    left = sum(run in runs for _, run in guard.all_marked())
    return {
        "reaped": ended,
        "reap_all_seconds": round(seconds, 3),
        "reap_all_supervisor_cpu_seconds": round(time.process_time() - cpu, 3),
        "survivors": left,
    }
