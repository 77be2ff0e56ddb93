"""What a new supervisor makes of the runs that another one left open: a plan, in words, and then the deeds."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager

import pytest
from board.facts import K, created, happened, opened, started

from council_tui.board.board import Draft
from council_tui.board.home import Home
from council_tui.domain.errors import HomeUnusable
from council_tui.domain.order import materialise
from council_tui.hosts.local import Ward
from council_tui.runner import guard
from council_tui.supervisor import recovery, supervisor
from council_tui.supervisor.leftovers import note_slice
from council_tui.supervisor.supervisor import Left, Supervisor
from supervisor.stage import child, plan_of
from supervisor.wire import HandHost

OFFICE = "openfang:office.0"
DEAD = 2**22 + 1
"""No process has this pid."""
GATES = [K.HELLO, K.DELEGATED, K.CLAIMED, K.INHERITANCE_VERIFIED, K.ACCEPTED, K.ACKNOWLEDGED]
AT_WORK = [*GATES, K.BODY_STARTED]
REPORTED = [*AT_WORK, K.RETURNED, K.VERIFIED, K.REPORTED]


class KeptHost(HandHost):
    """A nursery that a former supervisor left, with these runners; it is this process."""

    pid = os.getpid()

    def __init__(self, wards):
        super().__init__()
        self.wards = wards

    async def adopt(self, nursery):
        return self.wards

    def listen(self):
        """Nothing is told."""

    def release(self):
        """Nothing is held."""


def run_of(card, *kinds, run=None, pid=DEAD, start_time=7, boot=None, where=None, **more):
    """The journal of a run that came as far as this."""
    run = run or f"r_{card}"
    order = plan_of(child(card, ["true"], parent="openfang")).orders[0]
    path = where or f"/tmp/none-{run}"
    begins = started(card, run)
    context = materialise(
        order,
        parent_id=OFFICE,
        parent=None,
        parent_task="t_0",
        task=card,
        slice_path=path,
        spawn_ts="2026-05-11T13:20:00Z",
    )
    begins.data.update(pid=pid, start_time=start_time, boot_id=boot or guard.boot_id(), slice=path)
    begins.data["contract"] = context.model_dump(mode="json")
    begins.data.update(more)
    return [
        created(card, order=order.model_dump(mode="json")),
        happened(K.CARD_READY, card),
        begins,
        *(happened(kind, card, run) for kind in kinds),
    ]


@pytest.fixture
def written(home):
    """Writes a journal into the home, as a supervisor that then died would have."""
    place = Home(home)
    place.prepare()

    async def write(*drafts):
        board = await opened(place.board)
        await board.append(*drafts)
        await board.close()

    return write


@asynccontextmanager
async def after(home, monkeypatch, wards=None, agree=None):
    """The next supervisor, which finds these runners (run by pid) in a nursery, or none."""
    sup = Supervisor(Home(home))
    sup.host = HandHost() if wards is None else KeptHost(wards)
    if wards is not None:
        me = guard.read_process(os.getpid())
        monkeypatch.setattr(supervisor, "former_nurseries", lambda home: [me])
    sup.events = []
    sup.board.listen(sup.events.append)
    await sup.open(agree)
    try:
        yield sup
    finally:
        for seat in sup.seats.values():
            seat.exited.set()
            seat.clean.set()
        await sup.close()


def what(sup, kind=K.RECOVERED, key="what"):
    return {event.card: event.data[key] for event in sup.events if event.kind is kind}


def states(sup):
    cards = sup.board.tables.cards.values()
    return {card.id: (str(card.state), card.fail or card.block) for card in cards}


async def test_the_plan_says_in_words_what_becomes_of_every_run_and_nothing_is_done_before_it_is_agreed_to(
    home, written, monkeypatch
):
    me = os.getpid()
    await written(
        *run_of("lives", *AT_WORK, pid=me),
        *run_of("dead", *AT_WORK),
        *run_of("hardly", *GATES[:3]),
        *run_of("closing", *REPORTED),
        *run_of("dying", *AT_WORK),
        happened(K.REAP_STARTED, "dying", "r_dying", outcome={"fail": "cancelled", "reason": "by hand"}),
        *run_of("poison", *AT_WORK, pid=me + 1),
        happened(K.RECOVERED, "poison", "r_poison", what="taken_back", crash=True),
    )
    shown = []

    async def refuse(recovery):
        shown.extend(item.words for item in recovery.plan)
        assert recovery.crash
        assert recovery.ends_something
        return False

    wards = {me: Ward("r_lives", 7), me + 1: Ward("r_poison", 7)}
    with pytest.raises(Left, match="nothing was done"):
        async with after(home, monkeypatch, wards, refuse):
            pass
    assert sorted(shown) == [
        "closing: had reported; its card is closed",
        "dead: is gone; its card is told",
        "dying: was being reaped; that goes on",
        "hardly: had not begun its work; it begins again",
        "lives: lives and is taken back",
        "poison: was alive at two crashes; it is ended and waits for you",
    ]
    board = await opened(Home(home).board)
    assert str((await board.newest()).kind) == "handed_over"
    assert {run.ended for run in board.tables.runs.values()} == {None}
    await board.close()


async def test_every_open_run_of_the_dead_comes_to_its_end_and_the_cards_are_told(home, written, monkeypatch):
    await written(
        *run_of("dead", *AT_WORK),
        *run_of("hardly", *GATES[:3]),
        *run_of("accepted", *GATES[:5]),
        *run_of("closing", *REPORTED),
        *run_of("dying", *AT_WORK),
        happened(K.REAP_STARTED, "dying", "r_dying", outcome={"fail": "cancelled", "reason": "by hand"}),
        *run_of("expired", *AT_WORK),
        happened(K.EXPIRED, "expired", "r_expired", reason="too old"),
        *run_of("failed", *AT_WORK),
        happened(K.CARD_FAILED, "failed", None, fail="cancelled"),
    )
    async with after(home, monkeypatch) as sup:
        assert states(sup) == {
            "dead": ("failed", "orphaned"),
            "hardly": ("ready", None),
            "accepted": ("ready", None),
            "closing": ("done", None),
            "dying": ("failed", "cancelled"),
            "expired": ("failed", "expired"),
            "failed": ("failed", "orphaned"),
        }
        assert sup.seats == {}
        assert {run.ended is None for run in sup.board.tables.runs.values()} == {False}
        assert not [card for card in sup.board.tables.cards.values() if card.claim]
        assert {card.attempt for card in sup.board.tables.cards.values() if card.state == "ready"} == {0}
    async with after(home, monkeypatch) as sup:
        assert sup.recovery.plan == [], "recovering twice is the same as recovering once"
        assert states(sup)["hardly"] == ("ready", None)


async def test_pids_of_another_boot_and_reused_ones_are_nobodys(home, written, monkeypatch, sleepers):
    sleeper, mine = sleepers(), sleepers()
    born, mine_born = (guard.read_process(process.pid).start_time for process in (sleeper, mine))
    await written(
        *run_of("elsewhere", *AT_WORK, pid=sleeper.pid, start_time=born, boot="another"),
        *run_of("reused", *AT_WORK, pid=sleeper.pid, start_time=born - 1),
        *run_of("mine", *AT_WORK, pid=mine.pid, start_time=mine_born),
    )
    async with after(home, monkeypatch) as sup:
        assert set(states(sup).values()) == {("failed", "orphaned")}
        assert sleeper.poll() is None
        assert mine.wait() == -15


async def test_a_ward_of_the_same_pid_that_is_another_run_is_not_taken_for_it(home, written, monkeypatch):
    await written(*run_of("one", *AT_WORK, pid=DEAD))
    async with after(home, monkeypatch, {DEAD: Ward("r_other", 7)}) as sup:
        assert what(sup) == {"one": "ended"}


async def test_recovery_stops_after_three_failures_and_leaves_the_rest_as_it_is(home, written, monkeypatch):
    monkeypatch.setattr(recovery, "END_PATIENCE", 0.02)
    monkeypatch.setattr("council_tui.supervisor.reaper.Reaper._prove", lambda self, seat: seat.back.wait())
    names = ("one", "two", "three", "four", "five")
    await written(*(draft for name in names for draft in run_of(name, *AT_WORK)))
    with pytest.raises(HomeUnusable, match=r"stopped after 3 failures: one: it does not end; two: .*; three: "):
        async with after(home, monkeypatch, {}):
            pass
    board = await opened(Home(home).board)
    found = {run.card: run.ended for run in board.tables.runs.values()}
    assert set(found.values()) == {None}
    recovered = [(await board.story(f"child:{name}.r_{name}"))[-1][0] for name in ("four", "five")]
    assert K.RECOVERED not in recovered, "nobody touched them"
    await board.close()


@pytest.mark.parametrize("broken", ["contract", "order", "agent", "journal"])
async def test_what_another_version_wrote_and_this_one_cannot_read_ends_with_its_card_told(
    home, written, monkeypatch, sleepers, broken
):
    sleeper = sleepers()
    begun = guard.read_process(sleeper.pid).start_time
    drafts = run_of("odd", *AT_WORK, pid=sleeper.pid, start_time=begun)
    if broken == "contract":
        drafts[2].data["contract"] = {"sha256": "00", "families": 7}
    elif broken == "order":
        drafts[0].data["order"] = {"id": "odd", "shape": "round"}
    elif broken == "agent":
        drafts[2].data["kind"] = "leviathan"
    else:
        drafts.append(Draft(K.HELD, "child:odd.r_odd", "odd", "r_odd", {}))
    await written(*drafts, *run_of("plain", *AT_WORK))
    async with after(home, monkeypatch, {sleeper.pid: Ward("r_odd", begun)}) as sup:
        assert states(sup) == dict.fromkeys(("odd", "plain"), ("failed", "orphaned"))
        assert "cannot be read" in sup.board.tables.cards["odd"].reason
        assert sleeper.wait() == -15, "no run of its card may begin while it lives"


async def test_slices_of_the_living_stay_and_those_of_the_dead_go_wherever_they_are(
    home, written, monkeypatch, tmp_path
):
    place = Home(home)
    kept, gone = tmp_path / "kept", tmp_path / "gone"
    for run, path in (("r_lives", kept), ("r_dead", gone), ("r_never", tmp_path / "never")):
        path.mkdir()
        note_slice(place, run, str(path), made=True)
    (place.slices / "r_old").mkdir()
    await written(
        *run_of("lives", *AT_WORK, pid=os.getpid(), where=str(kept)), *run_of("dead", *AT_WORK, where=str(gone))
    )
    async with after(home, monkeypatch, {os.getpid(): Ward("r_lives", 7)}) as sup:
        assert what(sup) == {"dead": "ended"}
        assert list(tmp_path.iterdir()) == [kept]
        assert list(place.slices.iterdir()) == []
    assert list(tmp_path.iterdir()) == []


async def test_who_handed_over_did_not_crash_and_nobody_is_quarantined_for_it(home, written, monkeypatch):
    await written(
        *run_of("one", *AT_WORK, pid=os.getpid()),
        happened(K.RECOVERED, "one", "r_one", what="taken_back", crash=True),
        Draft(K.HANDED_OVER, None, data={}),
    )
    async with after(home, monkeypatch, {os.getpid(): Ward("r_one", 7)}) as sup:
        assert [str(item.what) for item in sup.recovery.plan] == ["taken_back"]
        assert not sup.recovery.crash
        assert not sup.recovery.ends_something


async def test_a_quarantined_card_waits_for_a_person_and_its_agent_is_gone(home, written, monkeypatch):
    await written(
        *run_of("one", *AT_WORK, pid=os.getpid(), start_time=1),
        happened(K.RECOVERED, "one", "r_one", what="taken_back", crash=True),
    )

    async def proved(self, seat):
        seat.exited.set()

    monkeypatch.setattr("council_tui.supervisor.reaper.Reaper._prove", proved)
    async with after(home, monkeypatch, {os.getpid(): Ward("r_one", 1)}) as sup:
        assert states(sup) == {"one": ("blocked", "hold")}
        assert "two crashes" in sup.board.tables.cards["one"].reason


@pytest.mark.parametrize("last", [K.RETURNED, K.REPORTED])
async def test_who_only_has_to_hand_in_its_report_is_taken_back_also_after_a_second_crash(
    home, written, monkeypatch, last
):
    await written(
        *run_of("one", *REPORTED[: REPORTED.index(last) + 1], pid=os.getpid()),
        happened(K.RECOVERED, "one", "r_one", what="taken_back", crash=True),
    )
    async with after(home, monkeypatch, {os.getpid(): Ward("r_one", 7)}) as sup:
        assert [str(item.what) for item in sup.recovery.plan] == ["taken_back"]
