"""A late agent's runner is asked over its stream when it last beat, before anyone calls it silent.

Beats are datagrams, and whoever floods their socket drowns everybody's; a stream is one agent's alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from council_tui.domain.errors import CouncilError
from council_tui.domain.heartbeat import Standing, standing
from council_tui.domain.lifecycle import Phase

if TYPE_CHECKING:
    from collections.abc import Callable

    from council_tui.supervisor.seat import Seat

_BEATING = (Phase.RUNNING, Phase.RETURNED)


def due(seat: Seat, now: float) -> bool:
    """Whether its beat is late and nobody is asking yet."""
    state = seat.state
    if seat.asked or seat.peer is None or state.phase not in _BEATING or state.last_beat is None:
        return False
    return standing(now - state.last_beat, state.timing.interval) is not Standing.ALIVE


async def ask(seat: Seat, clock: Callable[[], float]) -> None:
    """Ask once, for one interval at most. What the runner says moves its last beat; it stays late, not silent."""
    if seat.peer is None:
        return
    seat.asked = True
    try:
        age = float((await seat.peer.call("ping", {}, seat.state.timing.interval))["age"])
    except (TimeoutError, CouncilError, KeyError, TypeError, ValueError):
        return
    finally:
        seat.asked = False
    beat = clock() - max(0.0, age)
    last = seat.state.last_beat
    if seat.state.phase in _BEATING and last is not None and beat > last:
        seat.state = replace(seat.state, last_beat=beat)
