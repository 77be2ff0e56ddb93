"""One look at the marker of every process, shared by all who ask for it at the same time."""

from __future__ import annotations

import asyncio

from council_tui.runner import guard


class Sweep:
    """Looks through /proc in a thread; a thousand reaps at once cost a few looks, not a thousand."""

    def __init__(self) -> None:
        self._look: asyncio.Task[list[tuple[guard.Process, str]]] | None = None

    async def living(self, run: str) -> list[guard.Process]:
        """Every process that carries the run's marker, by a look that began after this call."""
        earlier = self._look
        if earlier is not None and not earlier.done():
            await asyncio.wait({earlier})
        if self._look is None or self._look is earlier:
            self._look = asyncio.create_task(asyncio.to_thread(guard.all_marked))
        return [process for process, name in await asyncio.shield(self._look) if name == run]
