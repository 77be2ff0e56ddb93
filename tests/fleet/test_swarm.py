"""Swarms in real fleets: one question, one granted number, and every member an agent of its own."""

from __future__ import annotations

import os
import signal

import pytest
from supervisor.stage import Stage, child, plan_of, play, runs_of, short_home, until

from council_tui.board.projection import Card
from council_tui.domain.card import BlockKind, CardState
from council_tui.domain.errors import Refused
from council_tui.domain.events import EventKind as K
from council_tui.fleet import retries
from council_tui.fleet.dispatch import look
from council_tui.fleet.plan import Limits
from council_tui.fleet.swarm import Swarms, room

EACH_ITS_WAY = """
case $1 in
1) echo one of $2 ;;
2) exit 4 ;;
3) kill -KILL $PPID; exec sleep 600 ;;
4) exec sleep 600 ;;
*) echo other ;;
esac
"""
WAITS = "exec sleep 600"


def swarm(name, run, count, **more):
    return child(name, ["sh", "-c", run, "sh", "{index}", "{count}"], parent="keeper", count=count, **more)


@pytest.fixture(scope="module")
def played():
    """A swarm that gets less than it asked for, and whose members end in every way; one that wants too much."""
    plan = plan_of(
        child("keeper", "true"),
        swarm("probe", EACH_ITS_WAY, 9, at_least=2, policy={"run_ttl_seconds": 1.5}),
        limits={"microsharks": 6, "children_per_parent": 1},
    )
    with short_home() as home:
        yield play(home, plan)


def test_a_swarm_gets_what_the_limits_leave_and_the_journal_says_so_once(played):
    (told,) = [event for event in played.events if event.kind is K.SWARM_GRANTED]
    assert told.agent == played.cards["keeper"].agent
    assert told.data == {
        "swarm": "probe",
        "asked": 9,
        "at_least": 2,
        "granted": 6,
        "ttl_seconds": 1.5,
        "reason": "asked for 9; limits.microsharks is 6",
    }


def test_each_member_has_a_card_a_run_and_a_key_of_its_own_and_ends_its_own_way(played):
    cards = {name: card for name, card in played.cards.items() if card.kind == "microshark"}
    assert {name: str(card.fail or card.state) for name, card in cards.items()} == {
        "probe-1": "done",
        "probe-2": "error",
        "probe-3": "orphaned",
        "probe-4": "expired",
        "probe-5": "done",
        "probe-6": "done",
    }
    assert played.output("probe-1") == b"one of 6\n"
    assert len({card.run for card in cards.values()}) == 6
    granted = [
        said for kind, who, said in played.entries if kind == "delegation" and who == played.cards["keeper"].agent
    ]
    assert {said["child"] for said in granted} == {card.agent for card in cards.values()}
    assert len({said["public_key"] for said in granted}) == 6


def test_a_parent_reports_how_its_swarm_ended_in_one_line(played):
    keeper = played.cards["keeper"]
    assert keeper.state == "done", "a parent is not failed by its microsharks"
    assert keeper.result["evidence"][-1] == (
        "swarm probe: 6 of 9 microsharks granted: 3 done, 1 error, 1 expired, 1 orphaned"
        " (asked for 9; limits.microsharks is 6)"
    )
    assert played.ending.exit == 1
    assert not any(played.ending.audit.values())


async def test_what_is_too_little_is_refused_with_one_sentence_and_a_card_that_tells(home, tmp_path):
    mark = tmp_path / "mark"
    plan = plan_of(
        child("keeper", WAITS),
        swarm("first", f"touch {mark}; {WAITS}", 4),
        child("gate", f"while [ ! -e {mark} ]; do sleep 0.02; done"),
        child("other", "true", after=["gate"]),
        child("late", "true", parent="other", count=3, at_least=1),
        limits={"microsharks": 4},
    )
    async with Stage(home, plan) as stage:
        await stage.wait(K.CARD_DONE, "other")
        refused, other = stage.card("late"), stage.card("other")
    reason = "asked for 3; limits.microsharks is 4, of which 4 are taken; it needs at least 1"
    assert (refused.state, refused.block, refused.reason) == ("blocked", "capability", f"swarm: {reason}")
    assert other.result["evidence"][-1] == f"swarm late: 0 of 3 microsharks granted: none ({reason})"


async def test_nobody_of_a_swarm_outlives_the_budget_of_its_fleet(home):
    plan = plan_of(child("keeper", "true"), swarm("probe", "true", 2), minutes=1)
    async with Stage(home, plan) as stage:
        await stage.end()
        told = stage.find(K.SWARM_GRANTED)
        run = stage.sup.board.tables.runs[stage.card("probe-1").run]
    assert told.data["granted"] == 2
    assert 0 < told.data["ttl_seconds"] < 60
    assert told.data["reason"].startswith("the budget leaves ")
    assert run.contract["lifecycle_policy"]["run_ttl_seconds"] == told.data["ttl_seconds"]


async def test_a_swarm_dies_with_its_parent_and_is_asked_for_anew_by_the_next_attempt(home, monkeypatch):
    monkeypatch.setattr(retries, "RETRY_BASE_SECONDS", 0.05)
    plan = plan_of(child("keeper", WAITS, retries=1), swarm("probe", WAITS, 5))
    async with Stage(home, plan) as stage:
        await until(lambda: stage.kinds("probe-").count("body_started") == 5)
        first = {stage.seat(f"probe-{n}").agent for n in range(1, 6)}
        keeper = stage.seat("keeper")
        os.kill(keeper.pid, signal.SIGKILL)
        await keeper.ended.wait()
        ends = [event for event in stage.events if event.kind is K.ORPHANED and event.agent in first]
        assert {event.data["cause"] for event in ends} == {"parent_gone"}
        assert len(ends) == 5
        await until(lambda: stage.kinds("probe-").count("body_started") == 10)
        second = {stage.seat(f"probe-{n}").agent for n in range(1, 6)}
        assert not first & second
        assert stage.kinds("keeper").count("swarm_granted") == 2
        assert len(runs_of(home)) == 3 + 2 + 10


async def test_the_same_question_of_the_same_parent_has_one_answer_and_makes_no_card_twice(home):
    plan = plan_of(child("keeper", WAITS), swarm("probe", WAITS, 4, at_least=1), limits={"microsharks": 3})
    async with Stage(home, plan) as stage:
        await until(lambda: stage.kinds("probe-").count("body_started") == 3)
        keeper, before = stage.seat("keeper"), stage.sup.board.tables.seq
        again = await Swarms(stage.fleet).grant(keeper, stage.fleet.orders["probe"])
        assert again == {"granted": 3, "reason": "asked for 4; limits.microsharks is 3"}
        assert not [event for event in stage.events if event.seq > before and event.kind is K.CARD_CREATED]
        stranger = stage.fleet.orders["probe"].model_copy(update={"count": 3})
        for parent, order in ((keeper, stranger), (stage.fleet.office("zeroclaw"), stage.fleet.orders["probe"])):
            with pytest.raises(Refused, match="was not given a swarm probe"):
                await Swarms(stage.fleet).grant(parent, order)
        stage.fleet.draining = True
        with pytest.raises(Refused, match="the fleet is ending"):
            await Swarms(stage.fleet).grant(keeper, stage.fleet.orders["probe"])
        stage.fleet.draining = False


def card(name, state=CardState.READY, parent="child:keeper.r1", member=None, block=None, kind="microshark"):
    order = {"member": {"swarm": member[0], "index": 1, "of": member[1]}} if member else {}
    made = Card(f"t_{name}", name, name, kind, parent, None, "2026-01-01T00:00:00.000Z", order=order)
    made.state, made.block = state, block
    return made


def started(cards, living=(), limits=None, births=None):
    turn = look({one.id: one for one in cards}, living, set(), limits or Limits(), births=births or {})
    return len(turn.start), sorted(set(turn.waits.values()))


def test_below_its_parent_a_whole_swarm_counts_as_one():
    swarm_of_40 = [card(f"m{n}", member=("probe", 40)) for n in range(40)]
    assert started(swarm_of_40, limits=Limits(children_per_parent=1)) == (40, [])
    others = [card(f"x{n}") for n in range(3)]
    live = [("microshark", "child:keeper.r1", "probe")] * 40
    assert started(others, live, Limits(children_per_parent=2)) == (
        1,
        ["2 agents live below its parent (limits.children_per_parent)"],
    )


def test_a_swarm_is_held_by_the_limit_of_all_microsharks():
    swarm_of_40 = [card(f"m{n}", member=("probe", 40)) for n in range(40)]
    live = [("microshark", "child:other.r2")] * 5
    assert started(swarm_of_40, live, Limits(microsharks=30)) == (25, ["30 microsharks live (limits.microsharks)"])


def test_the_pace_of_births_does_not_hold_back_what_was_granted():
    swarm_of_400 = [card(f"m{n}", member=("probe", 400)) for n in range(400)]
    limits = Limits(microsharks=500, births_per_parent=10, births_per_minute=10)
    assert started(swarm_of_400, limits=limits) == (400, [])
    count, waits = started(swarm_of_400, limits=limits, births={"child:keeper.r1": 405})
    assert (count, len(waits)) == (0, 1)


def test_taken_is_every_microshark_that_is_not_over():
    cards = [
        card("a"),
        card("b", CardState.RUNNING),
        card("c", CardState.BLOCKED, block=BlockKind.TRANSIENT),
        card("d", CardState.BLOCKED, block=BlockKind.HOLD),
        card("e", CardState.DONE),
        card("f", CardState.FAILED),
        card("g", CardState.RUNNING, kind="child"),
    ]
    assert room(cards, 50, None).taken == 3
    assert room(cards, 2, None).free == 0
