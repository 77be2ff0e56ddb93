"""How an agent ends: the intent first, the proof last, leaves before their parents, and once only."""

from __future__ import annotations

import asyncio
import errno
import socket

import pytest

from council_tui.domain.events import EventKind as K
from council_tui.domain.lifecycle import Phase, Signal
from council_tui.runner.channel import RemoteRefusal
from council_tui.supervisor import slices
from council_tui.supervisor.audit import audit
from supervisor.stage import until
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
    await bare.sup.authority.ledger._writer.submit(lambda db: db.execute("PRAGMA query_only = 1"))
    await cancel(bare, office)
    await reaped(office)
    async with asyncio.timeout(20):
        with pytest.raises(Exception, match="could not be written"):
            await bare.sup.failed
    assert bare.sup.board.tables.cards[office.seat.card].state == "failed"


async def test_a_folder_in_the_place_of_a_bodys_socket_keeps_no_card_open(bare):
    office = await (await bare.office()).begin()
    there = bare.sup.home.bodies / office.seat.run
    (there / "x").mkdir(parents=True)
    await cancel(bare, office)
    await reaped(office)
    assert not there.exists()


async def test_whatever_goes_wrong_while_a_run_is_cleared_its_seat_is_given_up(bare, monkeypatch):
    def fail(path):
        raise RuntimeError("not today")

    office = await (await bare.office()).begin()
    with monkeypatch.context() as patch:
        patch.setattr("council_tui.supervisor.slices.remove", fail)
        await cancel(bare, office)
        await reaped(office)
    assert bare.sup.seats == {}
    async with asyncio.timeout(20):
        with pytest.raises(RuntimeError, match="not today"):
            await bare.sup.failed


async def test_a_slice_that_cannot_be_cleared_is_told_by_the_audit_until_it_is_gone(bare, monkeypatch):
    office = await (await bare.office()).begin()
    assert audit(bare.sup)["slices"] == [], "that of a living agent is none"
    with monkeypatch.context() as patch:
        patch.setattr("council_tui.supervisor.slices.remove", lambda path: False)
        await cancel(bare, office)
        await reaped(office)
    beside = bare.sup.home.slices / "moved"
    beside.mkdir()
    assert bare.find(K.SLICE_CLEARED, office.seat.agent, cleared=False) is not None
    assert audit(bare.sup)["slices"] == sorted([office.seat.slice, str(beside)])
    for path in (office.seat.slice, beside):
        assert slices.remove(path)
    assert audit(bare.sup)["slices"] == []


async def test_a_late_agent_whose_runner_vouches_for_it_over_the_stream_is_not_silent(bare, clock):
    office = await (await bare.office(parent_heartbeat_interval_seconds=20)).begin()
    office.answers["ping"] = lambda params: {"age": 1.0}
    for _ in range(4):
        office.told.clear()
        clock.now += 26
        before = office.seat.state.last_beat
        await bare.sup.tick()
        await until(lambda before=before: office.seat.state.last_beat != before)
        assert [method for method, _ in office.told] == ["ping"]
    assert office.seat.state.phase is Phase.RUNNING
    assert office.seat.state.late, "late, not silent"


async def test_an_agent_that_its_own_runner_has_not_heard_of_is_silent(bare, clock):
    office = await (await bare.office(parent_heartbeat_interval_seconds=20)).begin()
    office.answers["ping"] = lambda params: {"age": 1e6}
    clock.now += 26
    await bare.sup.tick()
    clock.now += 15
    await bare.sup.tick()
    await reaped(office)
    assert bare.sup.board.tables.cards[office.seat.card].fail == "orphaned"


@pytest.mark.parametrize("left", ["nothing", "a folder", "a file", "another socket"])
async def test_sockets_whose_files_somebody_took_away_are_bound_again(bare, left):
    office = await (await bare.office()).begin()
    for path in (bare.sup.home.socket, bare.sup.home.beats):
        path.unlink()
        if left == "a folder":
            (path / "x").mkdir(parents=True)
        elif left == "a file":
            path.touch()
        elif left == "another socket":
            with socket.socket(socket.AF_UNIX) as other:
                other.bind(str(path))
    await bare.sup.tick()
    late = await (await bare.office("zeroclaw")).begin()
    await office.call("status", text="still connected")
    for one in (office, late):
        beat = f"WATCHDOG=1\nX_COUNCIL_RUN={one.spec.run}\nX_COUNCIL_TOKEN={one.spec.beat_token}".encode()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
            link.sendto(beat, one.spec.notify)
    await until(lambda: office.seat.beat_count == late.seat.beat_count == 1)


async def test_a_council_whose_sockets_are_gone_still_closes(home):
    async with asyncio.timeout(20):
        async with Bare(home) as bare:
            bare.sup.home.socket.unlink()
            bare.sup.home.beats.unlink()


async def test_a_disk_that_fails_is_answered_to_the_runner_and_is_the_councils_fault(bare):
    office = await bare.office()
    await office.connect()
    await office.hello()
    await bare.sup.board._writer.submit(lambda db: db.execute("PRAGMA query_only = 1"))
    with pytest.raises(RemoteRefusal, match="internal error: OperationalError"):
        await office.claim()
    with pytest.raises(Exception, match="readonly"):
        bare.sup.failed.result()


def broken(patch, times=None, error=None):
    """Looking for what lives breaks off, so many times or always; how often it has."""
    looked = []

    def look():
        looked.append(1)
        if times is None or len(looked) <= times:
            raise error or RuntimeError("not today")
        return {}

    patch.setattr("council_tui.supervisor.sweep._by_run", look)
    return looked


@pytest.fixture
def hurried(monkeypatch):
    """A reaper that does not rest for long."""
    monkeypatch.setattr("council_tui.supervisor.reaper.AGAIN_SECONDS", 0.001)


async def test_a_reap_that_breaks_off_is_begun_anew_and_its_fault_is_told(bare, hurried, monkeypatch):
    office = await (await bare.office()).begin()
    with monkeypatch.context() as patch:
        broken(patch, 2)
        await cancel(bare, office)
        await reaped(office)
    kinds = bare.kinds(office.seat.agent)
    assert (kinds.count("reap_started"), kinds.count("reaped"), kinds.count("unkillable")) == (1, 1, 0)
    assert bare.find(K.REAPED, office.seat.agent).data["exit_status"] == 0, "what its runner said is not forgotten"
    with pytest.raises(RuntimeError, match="not today"):
        bare.sup.failed.result()


async def test_a_shortage_in_the_middle_of_a_reap_is_nobodys_fault(bare, hurried, monkeypatch):
    office = await (await bare.office()).begin()
    with monkeypatch.context() as patch:
        patch.setattr(bare.sup.reaper, "_prove", short_of_memory(bare.sup.reaper._prove))
        await cancel(bare, office)
        await reaped(office)
    assert not bare.sup.failed.done()


def short_of_memory(prove):
    """The same, after two times in which there was no memory for it."""
    tries = iter((1, 2))

    async def proved(seat):
        if next(tries, None) is not None:
            raise OSError(errno.ENOMEM, "Cannot allocate memory")
        await prove(seat)

    return proved


async def test_one_that_breaks_off_again_and_again_is_shown_tried_less_often_and_not_waited_for(
    bare, hurried, monkeypatch
):
    office = await (await bare.office()).begin()
    with monkeypatch.context() as patch:
        broken(patch)
        await cancel(bare, office)
        async with asyncio.timeout(20):
            await office.seat.stuck.wait()
        assert office.seat.unkillable.reason(1000.0) == "its reap broke off (RuntimeError: not today); next try in 0 s"
        told = bare.find(K.UNKILLABLE, office.seat.agent)
        assert "RuntimeError: not today" in told.data["reason"]
    await reaped(office)
    assert office.seat.unkillable is None


async def test_closing_leaves_behind_whom_it_cannot_reap_and_says_so(home, hurried, monkeypatch):
    monkeypatch.setattr("council_tui.supervisor.supervisor.CLOSING_PATIENCE", 0.01)
    bare = Bare(home)
    async with asyncio.timeout(20):
        with monkeypatch.context() as patch:
            broken(patch)
            async with bare:
                office = await (await bare.office()).begin()
    (said,) = bare.sup.left_behind
    assert said.startswith("OpenClaw is left behind: its reap broke off (RuntimeError: not today); next try in ")
    assert said.endswith("; the next start in this home ends it")
    assert bare.sup.board.tables.cards[office.seat.card].claim == "c_hand"


async def test_closing_does_not_wait_for_ever_for_an_end_that_neither_comes_nor_is_told_to_be_stuck(home, monkeypatch):
    for name in ("ending.LONGEST_SECONDS", "ending.LOOK_SECONDS", "supervisor.CLOSING_PATIENCE"):
        monkeypatch.setattr(f"council_tui.supervisor.{name}", 0.01)
    bare = Bare(home)
    async with asyncio.timeout(20):
        async with bare:
            await (await bare.office(grace_seconds=0)).begin()
            monkeypatch.setattr(bare.sup.clearing, "clear", lambda seat: asyncio.Event().wait())
    assert bare.sup.left_behind == [
        "OpenClaw is left behind: its end did not come in time; the next start in this home ends it"
    ]


@pytest.mark.parametrize("said", [None, [], "gone", {"exit_status": 3}])
async def test_whatever_a_runner_answers_to_its_reap_the_reap_goes_on(bare, said):
    office = await (await bare.office()).begin()

    def answer(params):
        office.leave()
        return said

    office.answers["reap"] = answer
    await cancel(bare, office)
    await reaped(office)
    assert not bare.sup.failed.done()
    told = bare.find(K.REAPED, office.seat.agent).data
    assert told["exit_status"] == (3 if isinstance(said, dict) else None)
