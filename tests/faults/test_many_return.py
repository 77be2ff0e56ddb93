"""A supervisor dies above a large fleet, and all of its runners come to the next one at once."""

from __future__ import annotations

import time
from collections import Counter

import pytest
from supervisor.stage import until

from council_tui.domain.events import EventKind as K
from faults.killed import Owner
from faults.test_taken_back import after, times

OFFICES = 3
PATIENCE = 10.0
"""Seconds: two intervals of what `owner.py` starts when it is given a number."""


async def return_of(home, count):
    """So many children lose their supervisor; seconds from its death until all are with the next one."""
    async with Owner(home, count=count) as owner:
        await owner.wait("acknowledged", count=count + OFFICES, within=120)
        await owner.kill()
        began = time.monotonic()
        async with after(home) as following:
            await until(lambda: all(seat.back.is_set() for seat in following.sup.seats.values()), 4 * PATIENCE)
            took = time.monotonic() - began
            assert len(following.sup.seats) == count + OFFICES, "nobody gave up"
            recovered = [event for event in following.events if event.kind is K.RECOVERED]
            assert set(Counter(event.run for event in recovered).values()) == {1}, "nobody came twice"
            assert {event.data["what"] for event in recovered} == {"taken_back"}
            bad = {K.AGENT_STARTED, K.BEAT_LATE, K.ORPHANED, K.REAP_STARTED, K.MESSAGE_REFUSED}
            assert bad.isdisjoint(event.kind for event in following.events)
            assert {seat.state.phase for seat in following.sup.seats.values()} == {"running"}
            assert times(home) == (count + OFFICES, count + OFFICES)
    return took


async def test_thirty_runners_come_to_the_next_supervisor_at_once(home):
    assert await return_of(home, 30) < PATIENCE


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_a_thousand_runners_come_to_the_next_supervisor_at_once(home):
    took = await return_of(home, 1000)
    print(f"1,000 runners were back after {took:.1f} s")
    assert took < PATIENCE
