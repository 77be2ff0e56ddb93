"""What a run leaves is removed; what cannot be removed for a moment is tried again, for a while, and then told."""

from __future__ import annotations

import asyncio
import errno
import os

import pytest
from faults.shortage import no_descriptors

from council_tui.domain.events import EventKind as K
from council_tui.domain.lifecycle import Signal
from council_tui.hosts.local import HostFailed
from council_tui.supervisor import audit, clearing, leftovers, slices
from supervisor.stage import WITHIN, until
from supervisor.test_reaper import Clock
from supervisor.wire import Bare


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
async def bare(home, clock):
    async with Bare(home, clock) as bare:
        yield bare


def exists(path):
    return os.path.lexists(path)


class Disk:
    """Whether anything can be removed, as a test says."""

    def __init__(self, monkeypatch):
        self.works, self.tries = False, 0
        remove = slices.remove

        def tried(path):
            self.tries += 1
            return self.works and remove(path)

        monkeypatch.setattr(slices, "remove", tried)


@pytest.fixture
def disk(monkeypatch):
    return Disk(monkeypatch)


async def reaped(bare):
    """An office that has been reaped."""
    office = await (await bare.office()).begin()
    await bare.sup.signal(office.seat, Signal.CANCELLED, {"reason": "enough"})
    async with asyncio.timeout(WITHIN):
        await office.seat.ended.wait()
    return office.seat


async def passed(bare, clock, seconds):
    clock.now += seconds
    await bare.sup.tick()
    await until(lambda: not any(left.busy for left in bare.sup.clearing._left.values()))


async def test_what_could_not_be_removed_is_tried_again_and_its_end_is_journalled(bare, clock, disk):
    seat = await reaped(bare)
    assert seat.slice in bare.sup.clearing.left
    await passed(bare, clock, 0.9)
    assert bare.sup.clearing.left, "not yet"
    disk.works = True
    await passed(bare, clock, 0.1)
    assert bare.sup.clearing.left == set()
    assert not exists(seat.slice)
    told = [event.data["cleared"] for event in bare.events if event.kind is K.SLICE_CLEARED]
    assert told == [False, True]


async def test_each_pause_is_longer_and_at_last_it_is_left_to_a_person(bare, clock, disk):
    seat = await reaped(bare)
    waited = 0
    for _ in range(400):
        before = disk.tries
        await passed(bare, clock, 1)
        waited += 1
        if bare.sup.clearing._left[seat.run].tries == clearing.MOST_TRIES:
            break
        assert disk.tries > before or waited > 1
    assert waited == sum(2**n for n in range(clearing.MOST_TRIES - 1))
    tries = disk.tries
    await passed(bare, clock, 1e6)
    assert disk.tries == tries
    assert seat.slice in audit.audit(bare.sup)["slices"]


async def test_a_shortage_that_has_passed_when_the_fleet_ends_is_not_in_its_audit(bare, disk):
    seat = await reaped(bare)
    assert audit.audit(bare.sup)["slices"] == [seat.slice]
    disk.works = True
    assert (await audit.audited(bare.sup))["slices"] == []


async def test_what_cannot_be_removed_at_all_is_in_the_audit(bare, disk, monkeypatch):
    monkeypatch.setattr(clearing, "AT_THE_END", (0.0, 0.0))
    seat = await reaped(bare)
    assert (await audit.audited(bare.sup))["slices"] == [seat.slice]


async def test_without_descriptors_nothing_is_concluded_and_the_slice_goes_later(bare, clock):
    office = await (await bare.office()).begin()
    with no_descriptors():
        await bare.sup.signal(office.seat, Signal.CANCELLED, {"reason": "enough"})
        async with asyncio.timeout(WITHIN):
            await office.seat.ended.wait()
        assert exists(office.seat.slice)
    await passed(bare, clock, 1)
    assert not exists(office.seat.slice)
    assert not bare.sup.failed.done()


async def test_the_slice_of_a_birth_that_failed_is_no_exception(bare, clock, disk):
    bare.host.fault = HostFailed("no process")
    with pytest.raises(HostFailed):
        await bare.office()
    (left,) = bare.sup.clearing.left
    disk.works = True
    await passed(bare, clock, 1)
    assert not exists(left)


async def test_a_card_that_has_been_archived_meanwhile_hears_nothing_more(bare, clock, disk):
    seat = await reaped(bare)
    bare.sup.board.tables.forget(seat.card)
    disk.works = True
    await passed(bare, clock, 1)
    assert bare.sup.clearing.left == set()
    assert not bare.sup.failed.done()


async def test_an_audit_waits_for_a_machine_that_has_no_room_to_look_but_not_for_ever(bare, monkeypatch):
    looks = []

    def short():
        looks.append(1)
        if len(looks) < 3:
            raise OSError(errno.ENFILE, "Too many open files in system")
        return []

    with monkeypatch.context() as patch:
        patch.setattr(audit.guard, "all_marked", short)
        assert (await audit.audited(bare.sup))["descendants"] == []
        looks.clear()
        patch.setattr(leftovers, "LOOK_SECONDS", 0)
        with pytest.raises(OSError, match="Too many"):
            await audit.audited(bare.sup)


async def test_what_a_later_run_has_in_the_same_place_is_not_touched(bare, clock, disk):
    seat = await reaped(bare)
    disk.works = True
    assert slices.remove(seat.slice)
    later = (await bare.office("zeroclaw")).seat
    slices.remove(later.slice)
    later.slice = slices.make(seat.slice, [])
    await passed(bare, clock, 1)
    assert exists(later.slice)
    assert bare.sup.clearing.left == set()


async def test_at_the_end_a_try_that_is_under_way_is_waited_for(bare, clock, disk, monkeypatch):
    seat = await reaped(bare)
    left = bare.sup.clearing._left[seat.run]
    left.busy = True
    disk.works = True
    asyncio.get_running_loop().call_later(0.01, setattr, left, "busy", False)
    assert (await audit.audited(bare.sup))["slices"] == []
