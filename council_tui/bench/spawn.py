"""Handshakes with every gate real: how fast, where the time goes, what an idle agent costs, and how they end.

Floors: the same number of fsync'ed commits alone, and a bare fork and exec of the same body.
"""

from __future__ import annotations

import asyncio
import signal
import time
from statistics import mean
from typing import TYPE_CHECKING, Any

import psutil

from council_tui.bench import floors
from council_tui.bench.council import BODY, BenchFleet, folder, open_fleet
from council_tui.bench.facts import why_not
from council_tui.bench.figures import middle, milliseconds, rate, ratio
from council_tui.domain.events import EventKind
from council_tui.ledger import reading
from council_tui.runner import guard

if TYPE_CHECKING:
    import argparse

    from council_tui.supervisor.seat import Seat

K = EventKind
_STAGES: tuple[tuple[str, EventKind], ...] = (
    ("fork", K.AGENT_STARTED),
    ("hello", K.HELLO),
    ("delegate", K.DELEGATED),
    ("claim", K.CLAIMED),
    ("verify", K.INHERITANCE_VERIFIED),
    ("accept", K.ACCEPTED),
    ("ack", K.ACKNOWLEDGED),
)
"""Each stage by the event that ends it; `contract` comes before them and ends with the request to fork."""
_SETTLE_SECONDS = 1.5
"""Before beats are counted: every body has started and every runner beats."""
_SAMPLED = 100
_DEATHS = 30


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """One run for each size, and how the time per child grows from the second largest to the largest."""
    runs: list[dict[str, Any]] = []
    for count in options.children:
        reason = why_not(count)
        runs.append({"children": count, "refused": reason} if reason else asyncio.run(_run(count, options.beats)))
    done = sorted((run for run in runs if "refused" not in run), key=lambda run: run["children"])
    found: dict[str, Any] = {"runs": runs}
    if len(done) > 1:
        small, large = done[-2], done[-1]
        found["slope"] = {
            "from": small["children"],
            "to": large["children"],
            "seconds_per_child": ratio(large["seconds_per_child"], small["seconds_per_child"]),
        }
    return found


async def _run(count: int, beats: float) -> dict[str, Any]:
    async with open_fleet(count) as bench:
        entries = bench.sup.ledger.size
        began = time.monotonic()
        bench.dispatch()
        await bench.all_up(count)
        seconds = time.monotonic() - began
        sizes = [len(row.raw) for row in await reading.rows(bench.sup.home.ledger, entries, 10 * count)]
        alive = bench.children()
        found: dict[str, Any] = {
            "children": count,
            "alive": len(alive),
            "lost": dict(bench.watch.lost),
            "missing": count - bench.watch.acknowledged - bench.watch.lost.total(),
            "seconds": round(seconds, 3),
            "handshakes_per_second": rate(bench.watch.acknowledged, seconds),
            "seconds_per_child": round(seconds / count, 6),
            "start_to_acknowledged_ms": milliseconds([s.acknowledged_after for s in alive if s.acknowledged_after]),
            "stage_ms_p50": _stages(bench),
        }
        await asyncio.sleep(_SETTLE_SECONDS)
        found |= {"runner_pss_mb": _memory(alive), **await _beating(bench, beats), **await _deaths(bench)}
        found |= await _reap(bench)
    return {**found, "floors": await _floors(count, sizes, seconds)}


def _stages(bench: BenchFleet) -> dict[str, float | None]:
    """The median of each stage in milliseconds, over every child that was acknowledged."""
    spent: dict[str, list[float]] = {name: [] for name in ("contract", *(name for name, _ in _STAGES))}
    for seat in bench.children():
        at, last = bench.watch.at[seat.run], bench.host.asked[seat.run]
        spent["contract"].append(last - seat.opened)
        for name, kind in _STAGES:
            if kind in at:
                spent[name].append(at[kind] - last)
                last = at[kind]
    return {name: milliseconds(values, 50)["p50"] for name, values in spent.items()}


def _memory(seats: list[Seat]) -> float | None:
    """Median PSS of a runner in MiB; None where this user may not read it (the runners hide their memory)."""
    found: list[float] = []
    for seat in seats[:: max(1, len(seats) // _SAMPLED)]:
        try:
            with open(f"/proc/{seat.pid}/smaps_rollup", encoding="ascii") as file:
                found += [int(line.split()[1]) / 1024 for line in file if line.startswith("Pss:")]
        except OSError:
            continue
    value = middle(found)
    return None if value is None else round(value, 2)


async def _beating(bench: BenchFleet, seconds: float) -> dict[str, Any]:
    """What the supervisor spends while everything beats; this process does nothing else meanwhile."""
    before, heard, began = time.process_time(), bench.sup.beats_heard, time.monotonic()
    await asyncio.sleep(seconds)
    cpu, elapsed = time.process_time() - before, time.monotonic() - began
    return {
        "beats_per_second": rate(bench.sup.beats_heard - heard, elapsed),
        "supervisor_cpu_percent": round(100 * cpu / elapsed, 2),
        "supervisor_rss_mb": round(psutil.Process().memory_info().rss / 2**20, 1),
    }


async def _deaths(bench: BenchFleet) -> dict[str, Any]:
    """From SIGKILL of a runner to its `orphaned` in the journal, one after another."""
    found: list[float] = []
    for seat in bench.children()[: min(_DEATHS, max(1, len(bench.children()) // 2))]:
        if seat.pid is None:
            continue
        orphaned = bench.watch.moment(seat.run, K.ORPHANED)
        began = time.monotonic()
        guard.send(guard.Process(seat.pid, 0, "?", seat.start_time, 0), signal.SIGKILL)
        found.append(await orphaned - began)
        await seat.ended.wait()
    return {"deaths": len(found), "death_to_orphaned_ms": milliseconds(found)}


async def _reap(bench: BenchFleet) -> dict[str, Any]:
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


async def _floors(count: int, sizes: list[int], seconds: float) -> dict[str, Any]:
    """The two floors, and the fleet's start as a multiple of each and of both together."""
    with folder() as root:
        durable = floors.commits(root, floors.rows_like(sizes), synchronous="FULL")
    bare = await floors.processes(count, BODY)
    return {
        "fsynced_commits": len(sizes),
        "fsynced_commit_bytes": round(mean(sizes)) if sizes else 0,
        "fsynced_commits_seconds": round(durable, 3),
        "bare_processes_seconds": round(bare, 3),
        "ratio_to_commits": ratio(seconds, durable),
        "ratio_to_processes": ratio(seconds, bare),
        "ratio_to_both": ratio(seconds, durable + bare),
    }
