"""After the end of an attempt: tried again, put off without being counted, or stopped by the crash-loop brake."""

from __future__ import annotations

import json

import pytest
from supervisor.stage import Stage, child, plan_of, until

from council_tui.board.projection import Card
from council_tui.domain.card import FailKind
from council_tui.domain.events import EventKind as K
from council_tui.domain.rate_limit import MOST_TIMES
from council_tui.fleet.brake import CRASHES, HOLDS, IN_WORDS, WINDOW_SECONDS
from council_tui.fleet.retries import may_retry, retry_delay, what_runs
from fleet.clocks import Ahead

KILL_THE_GUARD = "kill -KILL $PPID; exec sleep 600"


@pytest.fixture
def clock():
    return Ahead()


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    monkeypatch.setattr("council_tui.fleet.retries.RETRY_BASE_SECONDS", 0.01)


def stage_of(home, clock, plan):
    stage = Stage(home, plan)
    stage.sup.clock = clock
    return stage


def tried(**facts) -> Card:
    made = {"title": "a", "plan_id": "a", "kind": "child", "parent_agent": "zeroclaw:office.1", "parent_card": None}
    return Card(id="t_a", created="now", **made, **facts)


def test_the_pause_before_another_attempt_doubles_up_to_five_minutes(monkeypatch):
    monkeypatch.setattr("council_tui.fleet.retries.RETRY_BASE_SECONDS", 10.0)
    assert [retry_delay(attempt) for attempt in (1, 2, 3, 6, 60)] == [10, 20, 40, 300, 300]


@pytest.mark.parametrize("fail", list(FailKind))
def test_only_a_failed_attempt_is_tried_again_and_never_an_answer(fail):
    assert may_retry(tried(attempt=1, attempts=3), fail) == (fail in (FailKind.ORPHANED, FailKind.PROTOCOL_VIOLATION))
    assert not may_retry(tried(attempt=3, attempts=3), fail)


def test_what_runs_the_same_has_the_same_name():
    assert what_runs({"container": "command", "run": ["sh", "-c", "exit 1"]}) == "`sh -c 'exit 1'`"
    assert what_runs({"container": "drill", "run": [], "fault": "dies"}) == "drill dies"


async def test_a_card_that_crashes_after_each_acknowledgement_is_tried_five_times_and_no_more(home, clock):
    async with stage_of(home, clock, plan_of(child("loops", KILL_THE_GUARD, retries=10))) as stage:
        end = await stage.end()
        card = stage.card("loops")
    starts = [event.kind for event in stage.events if event.card == card.id].count(K.ACKNOWLEDGED)
    assert (end.exit, starts, card.attempt, card.fail) == (1, CRASHES, CRASHES, "orphaned")
    assert card.reason.startswith(f"{IN_WORDS}; the last one: its runner ended with signal 9")
    told = [event.data["of"] for event in stage.events if event.kind is K.CRASH_LOOP]
    assert told == ["loops", f"`sh -c '{KILL_THE_GUARD}'`"]


async def test_a_command_that_crashes_under_five_cards_holds_the_others_until_the_window_has_passed(home, clock):
    cards = [child(f"same-{number}", KILL_THE_GUARD) for number in range(7)]
    plan = plan_of(*cards, child("other", "echo fine"), limits={"concurrency": 1})
    async with stage_of(home, clock, plan) as stage:
        await stage.wait(K.CARD_DONE, "other")
        await stage.wait(K.CRASH_LOOP)
        await until(lambda: all(stage.card(f"same-{n}").block == "transient" for n in (5, 6)))
        assert stage.card("same-5").reason.startswith(f"{IN_WORDS} of `sh -c 'kill -KILL $PPID")
        assert not stage.running.done(), "they are tried again without a person"
        clock.by += WINDOW_SECONDS + 1
        end = await stage.end()
    assert end.cards == {"failed": 7, "done": 1}
    assert len([event for event in stage.events if event.kind is K.AGENT_STARTED and "same-" in event.agent]) == 7


async def test_a_command_that_goes_on_crashing_is_given_up_after_the_third_time(home, clock):
    cards = [child(f"same-{number}", KILL_THE_GUARD) for number in range(2 * CRASHES + 1)]
    async with stage_of(home, clock, plan_of(*cards, limits={"concurrency": 1})) as stage:
        await until(lambda: stage.find(K.CRASH_LOOP) and stage.card(cards[-1]["id"]).block == "transient")
        closings = stage.fleet.retries._brake._closings
        assert list(closings.values()) == [1]
        closings.update(dict.fromkeys(closings, HOLDS - 1))
        clock.by += WINDOW_SECONDS + 1
        end = await stage.end()
    assert end.cards == {"failed": len(cards)}
    last = stage.card(cards[-1]["id"])
    assert (last.attempt, last.reason.rpartition(", ")[2]) == (0, "3 times over")


async def test_an_end_by_a_rate_limit_is_no_failure_and_no_attempt(home, clock, tmp_path):
    mark = tmp_path / "asked"
    asks = f"if [ -e {mark} ]; then echo fine; else touch {mark}; echo '%s'; exit %d; fi"
    busy = asks % ('{"status": "ERROR", "retry_after": 1800}', 75)
    plan = plan_of(
        child("busy", busy), child("small", "echo small", parent="busy"), child("after", "true", after=["busy"])
    )
    async with stage_of(home, clock, plan) as stage:
        put_off = await stage.wait(K.RATE_LIMITED)
        card = stage.card("busy")
        assert (card.block, card.fail, card.attempt, card.limited) == ("transient", None, 0, 1)
        assert card.reason == f"rate limited, next try at {put_off.data['until']}"
        assert put_off.data["delay_seconds"] == 1800
        clock.by += 1801
        end = await stage.end()
        assert (end.exit, card.attempt, card.limited) == (0, 1, 1)
        assert stage.card("small").state == "done", "a parent that is tried again spawns anew"
    assert K.CARD_RETRY not in {event.kind for event in stage.events}


async def test_a_card_that_is_turned_away_again_and_again_fails_in_the_end(home, clock):
    said = json.dumps({"status": "ERROR", "rate_limited": True, "findings": [], "evidence": []})
    async with stage_of(home, clock, plan_of(child("busy", f"echo '{said}'"))) as stage:
        await stage.wait(K.RATE_LIMITED)
        # As far as the board knows, it was turned away often before.
        stage.card("busy").limited = MOST_TIMES
        clock.by += 61
        end = await stage.end()
    assert (end.exit, stage.card("busy").fail) == (1, "error")
    assert stage.card("busy").reason == f"rate limited, and tried again {MOST_TIMES} times"


async def test_a_crash_long_after_the_acknowledgement_begins_a_new_count(home, clock):
    plan = plan_of(child("lasts", "trap 'kill -KILL $PPID' TERM; sleep 600 & wait", retries=10))
    async with stage_of(home, clock, plan) as stage:
        await stage.wait(K.ACKNOWLEDGED, "lasts")
        seat, retries = stage.seat("lasts"), stage.fleet.retries
        for _ in range(CRASHES - 1):
            retries._brake.failed(seat.card, clock())
        assert retries._loops(seat)
        clock.by += 700
        assert not retries._loops(seat)


async def test_another_supervisor_takes_up_what_waits_and_what_was_counted(home, clock):
    plan = plan_of(child("loops", KILL_THE_GUARD, retries=10))
    async with stage_of(home, clock, plan) as stage:
        await stage.wait(K.CARD_RETRY)
        retries, card = stage.fleet.retries, stage.card("loops")
        await until(lambda: retries._brake.would_close(card.id, clock()))
        retries._due.clear()
        retries._brake.__init__()
        assert not retries._brake.would_close(card.id, clock())
        retries.resume()
        assert retries._brake.would_close(card.id, clock())
