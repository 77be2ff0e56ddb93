"""Everyone who lives when a supervisor closes: whose end can come is waited for, and the others are named."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from council_tui.domain.lifecycle import Signal
from council_tui.supervisor.unkillable import over

if TYPE_CHECKING:
    from council_tui.supervisor.seat import Seat
    from council_tui.supervisor.supervisor import Supervisor

LOOK_SECONDS = 0.5
LONGEST_SECONDS = 120.0
"""That ends which neither come nor are told to be stuck are waited for, beyond twice the longest grace."""


async def end_everyone(sup: Supervisor) -> list[str]:
    """Until nobody is left but whom nobody can end for the time being; a sentence for each of those.

    They keep their claims: the next start finds them.
    """
    for seat in sup.seats.values():
        sup.reaper.again(seat)
    clock = asyncio.get_running_loop().time
    longest = max((seat.state.timing.grace for seat in sup.seats.values()), default=0.0)
    deadline = clock() + LONGEST_SECONDS + 2 * longest
    while (ending := [seat for seat in sup.seats.values() if not seat.stuck.is_set()]) and clock() < deadline:
        # From the top; and whoever was born while its parent was ending, which no cascade has seen.
        for seat in [s for s in sup.seats.values() if s.parent not in sup.by_agent]:
            # Not awaited: a disk that takes no more entries must not keep anyone alive.
            sup.background(sup.signal(seat, Signal.CANCELLED, {"reason": "the council closes"}))
        ends = [asyncio.ensure_future(over(seat)) for seat in ending]
        await asyncio.wait(ends, timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        for end in ends:
            end.cancel()
    return [_left(seat, sup.clock()) for seat in sup.seats.values()]


def _left(seat: Seat, now: float) -> str:
    if seat.unkillable is not None:
        why = seat.unkillable.reason(now)
    else:
        why = "something below it does not end" if seat.stuck.is_set() else "its end did not come in time"
    return f"{seat.label} is left behind: {why}; the next start in this home ends it"
