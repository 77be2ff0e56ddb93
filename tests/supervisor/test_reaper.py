"""How an agent ends: the intent first, the proof last, leaves before their parents, and once only."""

from __future__ import annotations

import asyncio

import pytest

from council_tui.domain.events import EventKind as K
from council_tui.domain.lifecycle import Phase, Signal
from supervisor.wire import Bare


class Clock:
    """A monotonic clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
async def bare(home, clock):
    async with Bare(home, clock) as bare:
        yield bare


async def reaped(*ones):
    async with asyncio.timeout(20):
        for one in ones:
            await one.seat.ended.wait()


def cancel(bare, one):
    return bare.sup.signal(one.seat, Signal.CANCELLED, {"reason": "reaped by the operator"})


async def test_the_intent_is_journalled_before_the_first_signal_and_the_proof_before_the_card(bare):
    office = await (await bare.office()).begin()
    await cancel(bare, office)
    await reaped(office)
    kinds = bare.kinds(office.seat.agent)
    wanted = ["cancelled", "reap_started", "signalled", "reaped", "slice_cleared", "revoked", "card_failed"]
    assert [kind for kind in kinds if kind in wanted] == wanted


async def test_reaping_twice_is_the_same_as_reaping_once(bare):
    office = await (await bare.office()).begin()
    await asyncio.gather(*(cancel(bare, office) for _ in range(3)), bare.sup.tick())
    await reaped(office)
    await cancel(bare, office)
    kinds = bare.kinds(office.seat.agent)
    for kind in ("cancelled", "reap_started", "reaped", "slice_cleared", "revoked", "card_failed"):
        assert kinds.count(kind) == 1


async def test_what_is_below_an_agent_ends_before_its_card_does(bare):
    office = await (await bare.office()).begin()
    child = await (await bare.child(office)).begin()
    shark = bare.order().model_copy(update={"id": "shark", "kind": "microshark", "parent": "kid"})
    below = await (await bare.child(child, shark)).begin()
    await cancel(bare, office)
    await reaped(office, child, below)
    ends = [event.card for event in bare.events if event.kind is K.CARD_FAILED]
    assert ends == [below.seat.card, child.seat.card, office.seat.card]
    causes = [event.data["cause"] for event in bare.events if event.kind is K.ORPHANED]
    assert causes == ["parent_gone", "parent_gone"]


async def test_a_runner_that_does_not_answer_is_not_waited_for_for_ever(bare, monkeypatch):
    monkeypatch.setattr("council_tui.supervisor.reaper.ANSWER_SLACK", 0.05)
    office = await (await bare.office(grace_seconds=0.05)).begin()

    async def deaf(params):
        await asyncio.sleep(60)

    office.answers["reap"] = deaf
    await cancel(bare, office)
    killed = await bare.wait(K.SIGNALLED, office.seat.agent, signal="SIGKILL")
    assert killed.data["pids"] == [office.seat.pid]
    office.leave()
    await reaped(office)


async def test_no_card_ends_before_the_death_is_proved(bare):
    office = await (await bare.office()).begin()
    office.answers["reap"] = lambda params: {"survivors": [], "exit_status": 0, "signal": None}
    await cancel(bare, office)
    office.seat.exited.set()
    for _ in range(20):
        await asyncio.sleep(0)
    assert office.seat.state.phase is Phase.REAPING
    assert bare.find(K.REAPED, office.seat.agent) is None
    office.seat.clean.set()
    await reaped(office)


async def test_silence_is_judged_on_the_clock_that_was_passed_in(bare, clock):
    office = await (await bare.office(parent_heartbeat_interval_seconds=20)).begin()
    clock.now += 40
    await bare.sup.tick()
    assert office.seat.state.phase is Phase.RUNNING
    clock.now += 0.1
    await bare.sup.tick()
    await reaped(office)
    assert bare.sup.board.tables.cards[office.seat.card].fail == "orphaned"


async def test_a_tick_that_comes_far_too_late_judges_nobody_and_moves_every_deadline(bare, clock):
    office = await (await bare.office(parent_heartbeat_interval_seconds=20)).begin()
    clock.now += 3600
    await bare.sup.tick(late=3599.0)
    await bare.sup.tick()
    assert office.seat.state.phase is Phase.RUNNING
    assert bare.sup.frozen == 3599.0


async def test_a_held_orphan_is_stopped_kept_and_then_reaped(bare, clock):
    policy = {"parent_heartbeat_interval_seconds": 5, "orphan_policy": "hold", "hold_seconds": 60}
    office = await (await bare.office(**policy)).begin()
    stopped = asyncio.Event()
    office.answers["stop"] = lambda params: stopped.set()
    clock.now += 11
    await bare.sup.tick()
    async with asyncio.timeout(20):
        await stopped.wait()
    assert office.seat.state.phase is Phase.HELD
    clock.now += 60
    await bare.sup.tick()
    assert office.seat.state.phase is Phase.HELD
    clock.now += 1
    await bare.sup.tick()
    await reaped(office)
    assert bare.sup.board.tables.cards[office.seat.card].fail == "orphaned"


async def test_an_orphan_that_cannot_be_held_is_reaped(bare, clock):
    policy = {"parent_heartbeat_interval_seconds": 5, "orphan_policy": "hold", "hold_seconds": 60}
    office = await (await bare.office(**policy)).begin()
    office.answers["stop"] = lambda params: {}["no such key"]
    clock.now += 11
    await bare.sup.tick()
    await reaped(office)


async def test_a_disk_that_fails_keeps_nobody_alive(bare):
    office = await (await bare.office()).begin()
    child = await (await bare.child(office)).begin()
    await bare.sup.board._writer.submit(lambda db: db.execute("PRAGMA query_only = 1"))
    with pytest.raises(Exception, match="readonly"):
        await cancel(bare, office)
    await reaped(office, child)
    assert "readonly" in str(bare.sup.board.failure)
    await bare.sup.tick()
    with pytest.raises(Exception, match="readonly"):
        bare.sup.failed.result()


async def test_a_ledger_that_fails_keeps_nobody_alive(bare):
    office = await (await bare.office()).begin()
    await bare.sup.ledger._writer.submit(lambda db: db.execute("PRAGMA query_only = 1"))
    await cancel(bare, office)
    await reaped(office)
    async with asyncio.timeout(20):
        with pytest.raises(Exception, match="could not be written"):
            await bare.sup.failed
    assert bare.sup.board.tables.cards[office.seat.card].state == "failed"
