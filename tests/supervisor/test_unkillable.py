"""A process that SIGKILL does not end: its card keeps the claim, it is shown, tried again, and at last left behind."""

from __future__ import annotations

import asyncio

import pytest

from council_tui.domain.errors import Refused
from council_tui.domain.events import EventKind as K
from council_tui.domain.lifecycle import Phase, Signal
from council_tui.fleet.outcome import UNCLEAN
from council_tui.runner.guard import Process
from council_tui.supervisor import reaper
from council_tui.supervisor.unkillable import RETRY_SECONDS, Unkillable, over
from supervisor.stage import WITHIN, Stage, child, plan_of, until
from supervisor.test_reaper import Clock
from supervisor.wire import Bare

UNDYING = 4_194_304
"""No process has this pid: the kernel's highest is one below."""


class Machine:
    """What a look at all processes finds of any run, as a test says."""

    def __init__(self) -> None:
        self.left: list[int] = []
        self.looks = 0

    async def living(self, run: str) -> list[Process]:
        self.looks += 1
        return [Process(pid, 1, "D", 7, 1) for pid in self.left]


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def machine():
    return Machine()


@pytest.fixture
async def bare(home, clock, machine, monkeypatch):
    # An attempt is one look; how long a real one takes is another test's business.
    monkeypatch.setattr(reaper, "PROOF_SECONDS", 0.0)
    async with Bare(home, clock) as bare:
        bare.sup.reaper._sweep = machine
        yield bare
        machine.left = []


async def begun(bare):
    return await (await bare.office(grace_seconds=0)).begin()


async def reap(bare, one):
    await bare.sup.signal(one.seat, Signal.CANCELLED, {"reason": "reaped by the operator"})


async def stuck(bare, machine):
    """An agent of which one process will not die."""
    machine.left = [UNDYING]
    one = await begun(bare)
    await reap(bare, one)
    async with asyncio.timeout(WITHIN):
        assert not await over(one.seat)
    return one


async def settled(one):
    async with asyncio.timeout(WITHIN):
        await one.seat.ended.wait()


async def test_it_is_told_and_its_card_keeps_the_claim(bare, machine):
    one = await stuck(bare, machine)
    told = bare.find(K.UNKILLABLE, one.seat.agent)
    reason = f"1 process will not die (pid {UNDYING}); next try in 120 s"
    assert told.data == {"pids": [UNDYING], "reason": reason, "next_seconds": RETRY_SECONDS}
    card = bare.sup.board.tables.cards[one.seat.card]
    assert (one.seat.state.phase, str(card.state), card.claim) == (Phase.REAPING, "running", "c_hand")
    assert bare.sup.board.tables.agents[one.seat.agent].phase == "reaping"
    assert bare.sup.board.tables.runs[one.seat.run].reason == reason
    assert bare.find(K.REAPED, one.seat.agent) is None


async def test_no_second_run_of_its_card_is_started_meanwhile(bare, machine):
    one = await stuck(bare, machine)
    with pytest.raises(Refused, match="has a living run already"):
        await bare.sup.births.spawn(one.seat.card)


async def test_it_is_tried_again_after_two_minutes_and_not_before(bare, machine, clock):
    one = await stuck(bare, machine)
    looks = machine.looks
    clock.now += RETRY_SECONDS - 1
    await bare.sup.tick()
    assert one.seat.unkillable.reason(clock.now).endswith("next try in 1 s")
    assert machine.looks == looks
    clock.now += 1
    await bare.sup.tick()
    await until(lambda: sum(event.kind is K.UNKILLABLE for event in bare.events) == 2)
    machine.left = []
    clock.now += RETRY_SECONDS
    await bare.sup.tick()
    await settled(one)
    assert bare.kinds(one.seat.agent)[-3:] == ["slice_cleared", "revoked", "card_failed"]
    assert bare.find(K.REAPED, one.seat.agent).data["survivors"] == []


async def test_a_person_has_it_tried_again_at_once(bare, machine):
    one = await stuck(bare, machine)
    machine.left = []
    assert bare.sup.reaper.again(one.seat)
    await settled(one)
    assert not bare.sup.reaper.again(one.seat)


async def test_what_the_host_has_not_proved_dead_is_as_unkillable_and_its_proof_ends_the_wait(bare, clock):
    one = await begun(bare)
    one.answers["reap"] = lambda params: {"survivors": [1], "exit_status": None, "signal": None}
    await reap(bare, one)
    await bare.wait(K.UNKILLABLE, one.seat.agent, pids=[one.seat.pid])
    one.seat.exited.set()
    assert bare.sup.reaper.again(one.seat)
    told = await bare.wait(K.UNKILLABLE, one.seat.agent, pids=[])
    assert told.data["reason"] == "its processes are not proved dead; next try in 120 s"
    one.seat.clean.set()
    await bare.sup.tick()
    await settled(one)


async def test_its_parent_waits_for_it_and_so_does_whoever_waits_for_its_parent(bare, machine):
    office = await begun(bare)
    child = await (await bare.child(office)).begin()
    machine.left = [UNDYING]
    # Of the office itself nothing is left.
    bare.sup.reaper._sweep = PerRun(machine, child.seat.run)
    await reap(bare, office)
    async with asyncio.timeout(WITHIN):
        assert not await over(office.seat)
    assert office.seat.unkillable is None
    assert child.seat.unkillable is not None
    machine.left = []
    bare.sup.reaper.again(child.seat)
    await settled(office)


class PerRun:
    """A machine on which only one run has something left."""

    def __init__(self, machine: Machine, run: str) -> None:
        self._machine, self._run = machine, run

    async def living(self, run: str) -> list[Process]:
        return await self._machine.living(run) if run == self._run else []


async def test_closing_tries_once_more_and_then_leaves_it_behind_with_its_claim(bare, machine, monkeypatch):
    monkeypatch.setattr("council_tui.supervisor.supervisor.CLOSING_PATIENCE", 0.05)
    one = await stuck(bare, machine)
    looks = machine.looks
    async with asyncio.timeout(WITHIN):
        await bare.sup.close()
    assert machine.looks > looks
    card = bare.sup.board.tables.cards[one.seat.card]
    assert (str(card.state), card.claim) == ("running", "c_hand")
    assert list(bare.sup.seats.values()) == [one.seat]
    bare.sup.seats.clear()


@pytest.mark.parametrize(
    ("pids", "words"),
    [
        ((), "its processes are not proved dead; next try in 20 s"),
        ((7,), "1 process will not die (pid 7); next try in 20 s"),
        ((7, 8), "2 processes will not die (pids 7, 8); next try in 20 s"),
        (tuple(range(1, 8)), "7 processes will not die (pids 1, 2, 3, 4, 5 and 2 more); next try in 20 s"),
    ],
)
def test_it_is_said_in_a_sentence(pids, words):
    assert Unkillable(pids, 120.0, True).reason(100.0) == words


async def test_a_fleet_that_is_drained_leaves_it_behind_and_its_ending_names_the_claim(home, machine, monkeypatch):
    monkeypatch.setattr(reaper, "PROOF_SECONDS", 0.0)
    async with Stage(home, plan_of(child("one", "sleep 600"), child("two", "sleep 600"))) as stage:
        await stage.wait(K.BODY_STARTED, "one")
        await stage.wait(K.BODY_STARTED, "two")
        seat = stage.seat("one")
        stage.sup.reaper._sweep = PerRun(machine, seat.run)
        machine.left = [UNDYING]
        async with asyncio.timeout(WITHIN):
            assert await stage.fleet.drain("enough") == 2
            end = await stage.fleet.finish()
        assert (end.exit, end.audit["open_claims"]) == (UNCLEAN, [seat.card])
        assert end.cards == {"running": 1, "failed": 1}
        machine.left = []
        stage.sup.reaper.again(seat)
        async with asyncio.timeout(WITHIN):
            await seat.ended.wait()


async def test_an_interrupted_run_ends_though_something_will_not_die(home, monkeypatch):
    monkeypatch.setattr(reaper, "PROOF_SECONDS", 0.0)
    machine = Machine()
    async with Stage(home, plan_of(child("one", "sleep 600"))) as stage:
        await stage.wait(K.BODY_STARTED, "one")
        seat = stage.seat("one")
        stage.sup.reaper._sweep = PerRun(machine, seat.run)
        machine.left = [UNDYING]
        await stage.fleet.drain("interrupted", interrupted=True)
        try:
            async with asyncio.timeout(5):
                await asyncio.shield(stage.running)
        finally:
            machine.left = []
            stage.sup.reaper.again(seat)
