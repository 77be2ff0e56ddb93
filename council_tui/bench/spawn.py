"""Handshakes with every gate real, in each tier: how fast, where the time goes, what agents cost, how they end.

Floors: the same number of fsync'ed commits alone, and a bare fork and exec of the same body.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from statistics import mean
from typing import TYPE_CHECKING, Any

import psutil

from council_tui.bench import ends, floors, load
from council_tui.bench.council import BODY, IDLE_BEAT_SECONDS, BenchFleet, folder, idle_orders, open_fleet
from council_tui.bench.facts import why_not
from council_tui.bench.figures import milliseconds, rate, ratio
from council_tui.domain.errors import CouncilError
from council_tui.domain.events import EventKind
from council_tui.ledger import reading
from council_tui.runner import guard
from council_tui.supervisor import limits

if TYPE_CHECKING:
    import argparse

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
_PARENT_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of prctl(2)."""
_SETTLE_INTERVALS = 1.5
"""Before beats are counted: every body has started and every runner beats."""


@dataclass(frozen=True)
class Trial:
    """One fleet to measure."""

    tier: str
    children: int
    watch: float
    """Seconds to look at it while nothing happens."""
    interval: float
    """Seconds between two beats."""
    grace: float
    """Seconds between SIGTERM and SIGKILL of the tree that is deaf to the first."""


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """One run for each tier and size, and how the cost per child grows from size to size."""
    runs: list[dict[str, Any]] = []
    for name in dict.fromkeys(options.tier):
        tier = _tier(name)
        for count in sorted(set(options.children)):
            trial = Trial(name, count, options.beats, options.interval, options.grace)
            refused = why_not(count, name) if tier.name == name else f"no strong mode here: {tier.why}"
            found = {"refused": refused} if refused else _apart(trial)
            runs.append({"tier": name, "children": count, **found})
    return {"runs": runs, "slope": slopes(runs)}


def _tier(name: str) -> limits.Tier:
    return limits.find_tier() if name == "strong" else limits.portable("the benchmark asks for it")


def _apart(trial: Trial) -> dict[str, Any]:
    """One run in a process of its own: what an earlier run left on the heap must not count as this one's.

    Raises `CouncilError` when it could not be measured.
    """
    what = f"{trial.tier}, {trial.children} children"
    print(f"council bench spawn: {what}", file=sys.stderr, flush=True)
    argv = [sys.executable, "-m", "council_tui.bench.spawn", json.dumps(asdict(trial))]
    # A session of its own: a terminal's interrupt comes to us, and from us once.
    with subprocess.Popen(argv, stdout=subprocess.PIPE, start_new_session=True) as process:
        try:
            out, _ = process.communicate()
        except KeyboardInterrupt:
            process.terminate()
            raise
    if process.returncode != 0:
        raise CouncilError(f"{what}: the run ended with {process.returncode}; what went wrong is told above")
    found: dict[str, Any] = json.loads(out)
    return found


def _main(trial: Trial) -> int:
    """That process: prints its figures as one line of JSON, and ends in order when it is told to or left alone."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    guard.prctl(_PARENT_DEATH_SIGNAL, signal.SIGTERM)
    try:
        print(json.dumps(asyncio.run(_run(trial))))
    except CouncilError as error:
        print(f"council bench spawn: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def slopes(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What each child costs at a size as a multiple of the size before it: 1 is linear, more grows faster."""
    found: list[dict[str, Any]] = []
    done = [run for run in runs if "refused" not in run]
    for small, large in itertools.pairwise(done):
        if small["tier"] == large["tier"]:
            step = {"tier": large["tier"], "from": small["children"], "to": large["children"]}
            before, after = small["per_child"], large["per_child"]
            found.append({**step, **{name: ratio(after[name], before[name]) for name in before}})
    return found


async def _run(trial: Trial) -> dict[str, Any]:
    """One size in one tier: a fleet that beats, and one that stands idle."""
    count = trial.children
    async with open_fleet(idle_orders(count, trial.interval), _tier(trial.tier)) as bench:
        at_rest = _rss()
        found, sizes = await _start(bench, count)
        await asyncio.sleep(_SETTLE_INTERVALS * trial.interval)
        rss = _rss()
        found |= load.memory(bench.children())
        found |= {"supervisor_rss_mb": round(rss, 1), "beating": await load.watch(bench, trial.watch)}
        found |= {**await ends.deaths(bench), **await ends.silences(bench, trial.interval)}
        found |= {"deep_reap": await ends.deep_reap(bench, trial.grace), **await ends.reap_all(bench)}
    found["idle"] = await _idle(trial)
    found["per_child"] = {
        "start_seconds": found["seconds_per_child"],
        "start_supervisor_cpu_seconds": round(found["start_supervisor_cpu_seconds"] / count, 6),
        "beating_cpu_percent": round(found["beating"]["supervisor_cpu_percent"] / count, 5),
        "reap_seconds": round(found["reap_all_seconds"] / max(1, found["reaped"]), 6),
        "supervisor_rss_kb": round(1024 * (rss - at_rest) / count, 1),
    }
    return {**found, "floors": await _floors(count, sizes, found["seconds"])}


def _rss() -> float:
    """Resident memory of this process in MiB."""
    return float(psutil.Process().memory_info().rss) / 2**20


async def _start(bench: BenchFleet, count: int) -> tuple[dict[str, Any], list[int]]:
    """Start all children; what that took, and the size of each ledger entry that it made."""
    entries, cpu = bench.sup.authority.ledger.size, time.process_time()
    began = time.monotonic()
    bench.dispatch()
    await bench.all_up(count)
    seconds, cpu = time.monotonic() - began, time.process_time() - cpu
    sizes = [len(row.raw) for row in await reading.rows(bench.sup.home.ledger, entries, 10 * count)]
    alive = bench.children()
    found: dict[str, Any] = {
        "alive": len(alive),
        "lost": dict(bench.watch.lost),
        "missing": count - bench.watch.acknowledged - bench.watch.lost.total(),
        "seconds": round(seconds, 3),
        "handshakes_per_second": rate(bench.watch.acknowledged, seconds),
        "seconds_per_child": round(seconds / count, 6),
        "start_supervisor_cpu_seconds": round(cpu, 3),
        "start_to_acknowledged_ms": milliseconds([s.acknowledged_after for s in alive if s.acknowledged_after]),
    }
    spent = _stages(bench)
    for name, per_cent in (("stage_ms_p50", 50), ("stage_ms_p99", 99)):
        found[name] = {stage: milliseconds(values, per_cent)[f"p{per_cent}"] for stage, values in spent.items()}
    return found, sizes


def _stages(bench: BenchFleet) -> dict[str, list[float]]:
    """Seconds of each stage of every child that was acknowledged."""
    spent: dict[str, list[float]] = {name: [] for name in ("contract", *(name for name, _ in _STAGES))}
    for seat in bench.children():
        at, last = bench.watch.at[seat.run], bench.asked[seat.run]
        spent["contract"].append(last - seat.opened)
        for name, kind in _STAGES:
            if kind in at:
                spent[name].append(at[kind] - last)
                last = at[kind]
    return spent


async def _idle(trial: Trial) -> dict[str, Any]:
    """A second fleet, whose contracts ask for a beat as seldom as they do by themselves."""
    async with open_fleet(idle_orders(trial.children, IDLE_BEAT_SECONDS), _tier(trial.tier)) as bench:
        bench.dispatch()
        await bench.all_up(trial.children)
        await asyncio.sleep(_SETTLE_INTERVALS * trial.interval)
        found = {"beat_seconds": IDLE_BEAT_SECONDS, **await load.watch(bench, trial.watch)}
        await bench.fleet.drain("the benchmark is over")
    return found


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


if __name__ == "__main__":
    sys.exit(_main(Trial(**json.loads(sys.argv[1]))))
