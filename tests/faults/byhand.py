"""A council whose clock stands still until it is moved, with runners that are played by hand."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from supervisor.stage import until
from supervisor.wire import Bare, ByHand

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import pytest

    from council_tui.board.projection import Card


class Clock:
    """Monotonic seconds."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def standing(home: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bare]:
    """A supervisor that judges only when the test calls `tick`."""
    # Its own ticks would take each step of this clock for a pause of the council.
    monkeypatch.setattr("council_tui.supervisor.supervisor.TICK_SECONDS", 3600)
    async with Bare(home, clock) as bare:
        yield bare


def beat_of(one: ByHand) -> bytes:
    """The datagram of one heartbeat."""
    return f"WATCHDOG=1\nX_COUNCIL_RUN={one.spec.run}\nX_COUNCIL_TOKEN={one.spec.beat_token}".encode()


async def beat(one: ByHand) -> None:
    """One heartbeat, until it was heard."""
    before = one.seat.beat_count
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
        link.sendto(beat_of(one), one.spec.notify)
    await until(lambda: one.seat.beat_count > before)


async def ended(one: ByHand) -> Card:
    """Its card, once its run is over."""
    async with asyncio.timeout(20):
        await one.seat.ended.wait()
    return one.sup.board.tables.cards[one.seat.card]
