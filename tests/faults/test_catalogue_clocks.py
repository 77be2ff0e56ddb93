"""The failure catalogue: deadlines, stalls, clocks that jump, and what a look at all processes costs."""

from __future__ import annotations

import asyncio
import time

import pytest

from council_tui.domain.events import EventKind as K
from council_tui.domain.lifecycle import Phase
from council_tui.runner import guard
from council_tui.supervisor.sweep import Sweep
from faults.byhand import Clock, beat, beat_of, ended, standing


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
async def bare(home, clock, monkeypatch):
    async with standing(home, clock, monkeypatch) as bare:
        yield bare


async def test_row_43_who_never_acknowledges_is_an_orphan_at_its_deadline(bare, clock):
    office = await bare.office(child_timeout_seconds=60, parent_heartbeat_interval_seconds=5)
    await office.connect()
    await office.hello()
    await office.claim()
    await office.call("verified")
    await office.call("accept", entry=office.acceptance())
    clock.now = office.seat.opened + 60
    await bare.sup.tick()
    assert office.seat.state.phase is Phase.ACCEPTED
    clock.now += 0.2
    await bare.sup.tick()
    card = await ended(office)
    assert (card.fail, card.reason) == ("orphaned", "no acknowledgement within 60 s (it got as far as accepted)")
    gates = ["agent_started", "hello", "delegated", "claimed", "inheritance_verified", "accepted", "orphaned"]
    assert [kind for kind in bare.kinds(office.seat.agent) if kind in gates] == gates


async def test_row_44_a_long_stall_of_an_agent_that_beats_is_no_death(bare, clock):
    office = await (await bare.office(parent_heartbeat_interval_seconds=30, child_timeout_seconds=60)).begin()
    for _ in range(14):
        clock.now += 30
        await beat(office)
        await bare.sup.tick()
    assert office.seat.state.phase is Phase.RUNNING
    await office.returned()
    assert bare.find(K.ORPHANED) is None


@pytest.mark.parametrize("jump", [600.0, -600.0, 300 * 86400.0])
async def test_row_47_a_wall_clock_that_jumps_orphans_nobody(bare, clock, monkeypatch, jump):
    office = await (await bare.office(parent_heartbeat_interval_seconds=5)).begin()
    wall = time.time
    monkeypatch.setattr(time, "time", lambda: wall() + jump)
    monkeypatch.setattr(bare.sup.board, "now", lambda: "1999-12-31T23:59:59.000Z")
    clock.now += 5
    await bare.sup.tick()
    await beat(office)
    kid = await (await bare.child(office)).begin()
    await kid.returned()
    await kid.call("report", entry=kid.ascension())
    assert (office.seat.state.phase, kid.seat.state.phase) == (Phase.RUNNING, Phase.CLOSING)
    kid.leave()
    bare.sup.watch._gone(kid.seat.pid, 0)
    assert (await ended(kid)).state == "done"
    assert str((await bare.sup.authority.ledger.audit()).verdict) == "VALID"


async def test_row_48_after_a_sleep_beats_are_heard_first_and_everyone_has_time(bare, clock):
    policy = {"parent_heartbeat_interval_seconds": 20}
    heard, unheard = [await (await bare.office(kind, **policy)).begin() for kind in ("openclaw", "zeroclaw")]
    clock.now += 60
    fields = dict(line.split("=", 1) for line in beat_of(heard).decode().splitlines())
    # What came while nobody looked, and has not been handed on yet.
    bare.sup.beats._take(fields)
    await bare.sup.tick()
    assert heard.seat.state.phase is Phase.RUNNING
    assert (await ended(unheard)).fail == "orphaned"
    clock.now += 3600
    await bare.sup.tick(late=3600.0)
    clock.now += 40
    await bare.sup.tick()
    assert heard.seat.state.phase is Phase.RUNNING
    clock.now += 0.1
    await bare.sup.tick()
    assert (await ended(heard)).fail == "orphaned"


async def test_row_50_a_thousand_looks_at_once_are_one_and_read_each_process_once(monkeypatch):
    looks, read = [], []
    listing = [str(pid) for pid in range(1, 3001)]
    monkeypatch.setattr(guard.os, "listdir", lambda path: looks.append(path) or [*listing, "self", "meminfo"])
    monkeypatch.setattr(guard, "read_process", lambda pid: read.append(pid) or guard.Process(pid, 1, "S", 7, pid))
    monkeypatch.setattr(guard, "marker_of", lambda pid: f"r_{pid}")
    sweep = Sweep()
    asked = [asyncio.create_task(sweep.living(f"r_{pid}")) for pid in range(1, 501)]
    await asyncio.sleep(0)
    asked += [asyncio.create_task(sweep.living(f"r_{pid}")) for pid in range(501, 1001)]
    found = await asyncio.gather(*asked)
    assert [[process.pid for process in one] for one in found] == [[pid] for pid in range(1, 1001)]
    assert looks == ["/proc"]
    assert len(read) == 3000
