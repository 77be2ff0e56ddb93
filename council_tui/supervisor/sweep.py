"""One look at the marker of every process, shared by all who ask for it at the same time."""

from __future__ import annotations

import asyncio
from collections import defaultdict

from council_tui.runner import guard

AGAIN_SECONDS = 0.2
"""After a look that could not be had, until the next one."""
Found = dict[str, list[guard.Process]]
"""By run, so that each of hundreds who wait for one look finds its own at once."""


class Sweep:
    """Looks through /proc in a thread; a thousand reaps at once cost a few looks, not a thousand."""

    def __init__(self) -> None:
        self._look: asyncio.Task[Found] | None = None

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
        earlier = self._look
        if earlier is not None and not earlier.done():
            await asyncio.wait({earlier})
        if self._look is None or self._look is earlier:
            self._look = asyncio.create_task(asyncio.to_thread(_by_run))
        try:
            return await asyncio.shield(self._look)
        except OSError:
            return None


def _by_run() -> Found:
    found: Found = defaultdict(list)
    for process, run in guard.all_marked():
        found[run].append(process)
    return found
