"""Births are limited by the minute: who runs away is held, it is told once, and it goes on by itself."""

from __future__ import annotations

from supervisor.stage import Stage, child, plan_of, until

from council_tui.domain.events import EventKind as K
from council_tui.fleet.pace import Pace
from fleet.clocks import Ahead

WORDS = "2 births below zeroclaw within a minute (limits.births_per_parent)"


def test_a_birth_counts_for_a_minute_and_not_longer():
    pace = Pace()
    for now, parent in ((0, "a"), (10, "a"), (30, "b")):
        pace.born(parent, now)
    assert dict(pace.last_minute(30)) == {"a": 2, "b": 1}
    assert dict(pace.last_minute(60)) == {"a": 1, "b": 1}
    assert dict(pace.last_minute(70)) == {"b": 1}
    assert dict(pace.last_minute(90)) == {}


async def test_a_parent_whose_children_are_born_too_fast_is_held_and_no_other(home):
    limits = {"births_per_parent": 2, "children_per_parent": 2}
    quick = [child(f"quick-{number}", "true") for number in range(5)]
    stage = Stage(home, plan_of(*quick, child("other", "true", parent="openclaw"), limits=limits))
    clock = stage.sup.clock = Ahead()
    async with stage:
        held = await stage.wait(K.BIRTHS_HELD)
        assert held.data == {"cause": "births", "reason": WORDS}
        await stage.wait(K.CARD_DONE, "other")
        await until(lambda: len(stage.fleet.waits) == 3)
        assert set(stage.fleet.waits.values()) == {WORDS}
        for _ in range(2):
            born = sum(event.kind is K.AGENT_STARTED for event in stage.events)
            clock.by += 61
            await until(lambda born=born: sum(event.kind is K.AGENT_STARTED for event in stage.events) > born)
            await until(lambda: not stage.sup.seats or all(seat.kind != "child" for seat in stage.sup.seats.values()))
        end = await stage.end()
    assert end.cards == {"done": 6}
    kinds = [event.kind for event in stage.events]
    assert kinds.count(K.BIRTHS_HELD) == kinds.count(K.BIRTHS_GO_ON)
    assert kinds.count(K.BIRTHS_HELD) <= 3
