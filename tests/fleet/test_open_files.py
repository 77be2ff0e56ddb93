"""Births wait while few files are left, and a plan that could not fit at all is refused before anything is made."""

from __future__ import annotations

import errno

import pytest
from faults.shortage import no_descriptors
from supervisor.stage import Stage, child, plan_of

from council_tui.domain.errors import PlanInvalid
from council_tui.domain.events import EventKind as K
from council_tui.fleet import gate
from council_tui.fleet.needs import check_needs
from council_tui.fleet.open_files import KEPT_BACK, OpenFilesGate
from council_tui.hosts import descriptors


class Process:
    """How many files a process has open, as a test says."""

    def __init__(self, limit=1000):
        self.limit, self.used = limit, 0
        self.gate = OpenFilesGate(lambda: self.limit, lambda: self.used)
        self._now = 0.0

    def look(self, used):
        """What the gate says, a second later."""
        self.used = used
        self._now += gate.LOOK_SECONDS
        return self.gate.look(self._now)


def test_it_closes_when_few_are_left_and_opens_only_when_some_more_are():
    process = Process()
    free = [KEPT_BACK, KEPT_BACK - 1, KEPT_BACK + 1, KEPT_BACK + 11, KEPT_BACK + 12, KEPT_BACK]
    assert [bool(process.look(1000 - one)) for one in free] == [False, True, True, True, False, False]


def test_its_reason_says_how_many_and_which_limit():
    assert Process().look(990) == "990 of the 1,000 files that this council may have open are open (ulimit -Hn)"


def test_where_there_are_few_at_all_fewer_are_kept_back():
    process = Process(limit=64)
    assert [bool(process.look(used)) for used in (48, 49)] == [False, True]


def test_no_limit_closes_nothing_and_what_cannot_be_counted_closes_it():
    assert Process(limit=None).look(10**6) == ""

    def short():
        raise OSError(errno.ENFILE, "Too many open files in system")

    assert OpenFilesGate(lambda: None, short).look(0) == "this council can open no file: Too many open files in system"


async def test_cards_wait_visibly_while_descriptors_are_short_and_go_on_afterwards(home, monkeypatch):
    monkeypatch.setattr(gate, "LOOK_SECONDS", 0.0)
    async with Stage(home, plan_of(child("first", "sleep 600"))) as stage:
        await stage.wait(K.BODY_STARTED)
        with no_descriptors(4):
            await stage.fleet.submit(plan_of(child("later", "echo later")).orders[0])
            held = await stage.wait(K.BIRTHS_HELD, cause="descriptors")
            assert held.data["reason"].endswith("that this council may have open are open (ulimit -Hn)")
            assert stage.fleet.holds.reason == held.data["reason"]
            assert stage.card("later").state == "ready"
        await stage.wait(K.CARD_DONE, "later")
    assert [event.data["cause"] for event in stage.events if event.kind is K.BIRTHS_GO_ON] == ["descriptors"]


@pytest.mark.parametrize(("files", "refused"), [(103, False), (102, True), (None, False)])
def test_a_plan_that_may_want_more_at_once_than_there_are_files_is_refused(tmp_path, monkeypatch, files, refused):
    monkeypatch.setattr(descriptors, "most", lambda: files)
    # Two of three at once, and one of the microsharks.
    shark = child("shark", "true", parent="a")
    plan = plan_of(*(child(name, "true") for name in "abc"), shark, limits={"concurrency": 2, "microsharks": 5})
    if not refused:
        check_needs(plan, tmp_path)
        return
    with pytest.raises(PlanInvalid) as caught:
        check_needs(plan, tmp_path)
    (mistake,) = caught.value.mistakes
    assert (mistake.field, mistake.message) == (
        "limits.concurrency",
        "for 3 agents at once a council needs 103 open files, and this machine lets it have 102 (ulimit -Hn); "
        "lower limits.concurrency or limits.microsharks, or raise that limit",
    )


def test_a_swarm_counts_with_as_many_as_may_live(tmp_path, monkeypatch):
    monkeypatch.setattr(descriptors, "most", lambda: 109)
    swarm = child("shark", "true", parent="a", count=50, at_least=1)
    check_needs(plan_of(child("a", "true"), swarm, limits={"microsharks": 8}), tmp_path)
    with pytest.raises(PlanInvalid):
        check_needs(plan_of(child("a", "true"), swarm, limits={"microsharks": 9}), tmp_path)
