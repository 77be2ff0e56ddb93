"""One look at the marker of every process, shared by all who ask for it at the same time."""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict

from council_tui.runner import guard

CALM_SECONDS, LONGEST_SECONDS = 0.02, 1.0
"""A look begins when nobody has asked for one so long, or when the first has waited so long: in the middle of hundreds
of deaths it would see much, tell little, and take the time in which they die."""
FEW = 300
"""Processes on a machine that are looked through at once, in about 10 ms: a thread asks for the interpreter at each
file, and while hundreds of ends are written down it waits for it each time."""
AGAIN_SECONDS = 0.2
"""After a look that could not be had, until the next one."""
Found = dict[str, list[guard.Process]]
"""By run, so that each of hundreds who wait for one look finds its own at once."""


class Sweep:
    """Looks through /proc; a thousand reaps at once cost a few looks, not a thousand."""

    def __init__(self) -> None:
        self._next: asyncio.Task[Found] | None = None
        """The look that has not begun."""
        self._asked = 0.0
        self._looking = asyncio.Lock()

    async def living(self, run: str) -> list[guard.Process]:
        """Every process that carries the run's marker, by a look that began after this call."""
        while True:
            found = await self._seen()
            if found is not None:
                return found.get(run, [])
            # Whoever could not look has proved nothing: no descriptor was free, or /proc was not to be read.
            await asyncio.sleep(AGAIN_SECONDS)

    async def _seen(self) -> Found | None:
        """One look, or None where it failed."""
        self._asked = asyncio.get_running_loop().time()
        if self._next is None:
            self._next = asyncio.create_task(self._look_soon(self._asked))
        try:
            return await asyncio.shield(self._next)
        except OSError:
            return None

    async def _look_soon(self, first: float) -> Found:
        clock = asyncio.get_running_loop().time
        while True:
            left = min(self._asked + CALM_SECONDS, first + LONGEST_SECONDS) - clock()
            if left <= 0:
                break
            await asyncio.sleep(left)
        async with self._looking:
            # Whoever asks from here on wants one that begins later.
            self._next = None
            # The kernel counts processes among the links of /proc, and telling that takes no descriptor.
            few = os.stat("/proc").st_nlink <= FEW
            return _by_run() if few else await asyncio.to_thread(_by_run)


def _by_run() -> Found:
    found: Found = defaultdict(list)
    for process, run in guard.all_marked():
        found[run].append(process)
    return found
