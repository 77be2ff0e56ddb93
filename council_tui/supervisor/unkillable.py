"""A process that SIGKILL does not end (it hangs in the kernel): it is shown, tried again, and nothing is forgotten.

Its card keeps its claim, so no second run of it is started while the first may still be alive.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from council_tui.domain.text import counted

if TYPE_CHECKING:
    from council_tui.supervisor.seat import Seat

RETRY_SECONDS = 120.0
"""Between two attempts at a process that will not die."""
_NAMED = 5


@dataclass
class Unkillable:
    """What is left of a run after a full attempt at its end."""

    pids: tuple[int, ...]
    """As far as they can be seen."""
    due: float
    """When it is tried again, on the supervisor's clock."""
    clean: bool
    """Whether the host had already proved that nothing is left; if not, its proof ends the wait."""
    why: str = ""
    """What the attempt broke off with, if it was not a process that kept it from its end."""
    again: asyncio.Event = field(default_factory=asyncio.Event)

    def reason(self, now: float) -> str:
        """One sentence for screens and the journal."""
        after = f"next try in {max(0.0, self.due - now):.0f} s"
        if self.why:
            return f"its reap broke off ({self.why}); {after}"
        if not self.pids:
            return f"its processes are not proved dead; {after}"
        pids = ", ".join(map(str, self.pids[:_NAMED]))
        more = f" and {len(self.pids) - _NAMED} more" if len(self.pids) > _NAMED else ""
        word = "pid" if len(self.pids) == 1 else "pids"
        return f"{counted(len(self.pids), 'process', 'processes')} will not die ({word} {pids}{more}); {after}"


async def over(seat: Seat) -> bool:
    """Wait until a seat is settled, or cannot be for the time being; whether it is settled."""
    waits = [asyncio.ensure_future(passed.wait()) for passed in (seat.ended, seat.stuck)]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waits:
            one.cancel()
    return seat.ended.is_set()
