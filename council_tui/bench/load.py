"""What a fleet costs while it lives: memory of an agent, and processor time of the supervisor and of all else."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import psutil

from council_tui.bench.figures import middle, rate
from council_tui.runner import guard

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from council_tui.bench.council import BenchFleet
    from council_tui.supervisor.seat import Seat

_SAMPLED = 100


def pss(pids: Iterable[int]) -> float | None:
    """Proportional set size of these processes together in MiB; None where this user may not read one of them."""
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
                total += sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
        except OSError:
            return None
    return total / 1024


def _middle_pss(groups: Iterable[Sequence[int]]) -> float | None:
    value = middle([found for group in groups if (found := pss(group)) is not None])
    return None if value is None else round(value, 2)


def memory(seats: Sequence[Seat]) -> dict[str, float | None]:
    """The median runner, and the median agent: its runner with all that hangs below it."""
    sample = [seat.pid for seat in seats[:: max(1, len(seats) // _SAMPLED)] if seat.pid is not None]
    trees = [[pid, *(process.pid for process in guard.descendants(pid))] for pid in sample]
    return {"runner_pss_mb": _middle_pss([pid] for pid in sample), "agent_pss_mb": _middle_pss(trees)}


def _spent(root: int | None) -> float:
    """Seconds of processor time of a process and all below it that lives, as far as it can be read."""
    total = 0.0
    for pid in [] if root is None else [root, *(process.pid for process in guard.descendants(root))]:
        with suppress(psutil.Error):
            used = psutil.Process(pid).cpu_times()
            total += used.user + used.system
    return total


async def watch(bench: BenchFleet, seconds: float) -> dict[str, Any]:
    """What is spent while everything only beats; this process does nothing else meanwhile.

    `supervisor` is this process, `agents` is the nursery with every runner and body: per cent of one core.
    """
    below = await asyncio.to_thread(_spent, bench.sup.host.pid)
    before, heard, began = time.process_time(), bench.sup.hearing.beats, time.monotonic()
    await asyncio.sleep(seconds)
    cpu, beats, elapsed = time.process_time() - before, bench.sup.hearing.beats - heard, time.monotonic() - began
    below = await asyncio.to_thread(_spent, bench.sup.host.pid) - below
    return {
        "beats_per_second": rate(beats, elapsed),
        "supervisor_cpu_percent": round(100 * cpu / elapsed, 2),
        "agents_cpu_percent": round(100 * below / elapsed, 2),
    }
