"""Whose turn it is: limits are never exceeded, and nothing waits unseen for what will not come."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council_tui.board.projection import Card
from council_tui.domain.card import BlockKind, CardState
from council_tui.fleet.dispatch import look, unfinished
from council_tui.fleet.plan import Limits

NAMES = ["a", "b", "c", "d", "e", "f", "g", "h"]
PARENTS = ["openfang:office.1", "openclaw:office.2", "zeroclaw:office.3"]


def card(name="a", state=CardState.BACKLOG, **more):
    facts = {"kind": "child", "parent_agent": PARENTS[0], "parent_card": None, "created": name, **more}
    return Card(id=f"t_{name}", title=name, plan_id=name, state=state, **facts)


@st.composite
def boards(draw):
    """Cards in any state, some of which have a living run."""
    found = {}
    for index, name in enumerate(NAMES[: draw(st.integers(0, len(NAMES)))]):
        state = draw(st.sampled_from([s for s in CardState if s is not CardState.ARCHIVED]))
        made = card(
            name,
            state,
            kind=draw(st.sampled_from(["child", "child", "microshark", "office"])),
            parent_agent=draw(st.sampled_from(PARENTS)),
            after=draw(st.lists(st.sampled_from(NAMES[:index]), max_size=2, unique=True)) if index else [],
            priority=draw(st.integers(-2, 2)),
            block=draw(st.sampled_from(list(BlockKind))) if state is CardState.BLOCKED else None,
        )
        found[made.id] = made
    busy = {name for name, one in found.items() if one.kind != "office" and draw(st.booleans())}
    return found, busy


LIMITS = st.builds(Limits, *(st.integers(1, most) for most in (4, 3, 3, 12, 6)))
BIRTHS = st.dictionaries(st.sampled_from(PARENTS), st.integers(1, 8))
HELD = st.sampled_from(["", "dispatch is paused"])


def living(cards, busy):
    return [(cards[name].kind, cards[name].parent_agent) for name in sorted(busy)]


def most_births(limits):
    """In all and below one parent, within a minute."""
    return (
        max(limits.births_per_minute, limits.concurrency + limits.microsharks),
        max(limits.births_per_parent, limits.children_per_parent),
    )


@given(boards(), LIMITS, BIRTHS, HELD)
def test_no_look_at_any_board_breaks_a_rule(found, limits, births, held):
    cards, busy = found
    turn = look(cards, living(cards, busy), set(busy), limits, births=births, held=held)
    by_name = {one.plan_id: one for one in cards.values() if one.kind != "office"}
    blocked = [name for name, _ in turn.blocked]
    for name in (*turn.ready, *turn.start, *blocked):
        assert cards[name].kind != "office"
        assert name not in busy, "a card has one run at a time"
    assert len(set(turn.start)) == len(turn.start)
    for name in turn.ready:
        assert cards[name].state is CardState.BACKLOG
        assert all(other in by_name and by_name[other].state is CardState.DONE for other in cards[name].after)
    for name in turn.start:
        assert cards[name].state is CardState.READY or name in turn.ready
    assert not set(blocked) & set(turn.ready)
    if held:
        assert turn.start == []
        assert set(turn.waits.values()) <= {held}
    now = living(cards, busy)
    before, after = Counter(kind for kind, _ in now), Counter(cards[name].kind for name in turn.start)
    for kind, limit in (("child", limits.concurrency), ("microshark", limits.microsharks)):
        assert after[kind] <= max(0, limit - before[kind])
    below, more = Counter(parent for _, parent in now), Counter(cards[name].parent_agent for name in turn.start)
    in_all, below_one = most_births(limits)
    assert len(turn.start) <= max(0, in_all - sum(births.values()))
    for parent, number in more.items():
        assert number <= max(0, limits.children_per_parent - below[parent])
        assert number <= max(0, below_one - births.get(parent, 0))


@given(boards(), LIMITS, BIRTHS)
def test_what_could_start_and_does_not_is_kept_by_a_limit_that_is_named(found, limits, births):
    cards, busy = found
    turn = look(cards, living(cards, busy), set(busy), limits, births=births)
    in_all, below_one = most_births(limits)
    now = living(cards, busy) + [(cards[name].kind, cards[name].parent_agent) for name in turn.start]
    kinds, parents = Counter(kind for kind, _ in now), Counter(parent for _, parent in now)
    for name, one in cards.items():
        could = one.kind != "office" and name not in busy and (one.state is CardState.READY or name in turn.ready)
        assert could == (name in turn.start or name in turn.waits)
        if name in turn.waits:
            limit = limits.microsharks if one.kind == "microshark" else limits.concurrency
            born = sum(births.values()) + len(turn.start)
            more = sum(cards[other].parent_agent == one.parent_agent for other in turn.start)
            full = {
                "limits.children_per_parent": parents[one.parent_agent] >= limits.children_per_parent,
                "limits.microsharks": one.kind == "microshark" and kinds[one.kind] >= limit,
                "limits.concurrency": one.kind == "child" and kinds[one.kind] >= limit,
                "limits.births_per_parent": births.get(one.parent_agent, 0) + more >= below_one,
                "limits.births_per_minute": born >= in_all,
            }
            assert full[turn.waits[name].partition("(")[2].rstrip(")")]
    assert bool(turn.paced) == any("births_per" in why for why in turn.waits.values())


def turn_of(*cards, busy=(), held=""):
    return look({one.id: one for one in cards}, [], set(busy), Limits(), held=held)


def test_a_card_is_held_until_everything_before_it_is_done():
    first, second = card("a", CardState.RUNNING), card("b", after=["a"])
    assert turn_of(first, second, busy=["t_a"]).ready == []
    first.state = CardState.DONE
    assert turn_of(first, second).start == ["t_b"]


@pytest.mark.parametrize(
    ("state", "block", "reason"),
    [
        (CardState.FAILED, None, "needs a, which failed"),
        (CardState.BLOCKED, BlockKind.HOLD, "needs a, which is blocked"),
        (CardState.BLOCKED, BlockKind.DEPENDENCY, "needs a, which is blocked"),
    ],
)
def test_a_card_that_waits_for_what_will_not_come_says_so(state, block, reason):
    assert turn_of(card("a", state, block=block), card("b", after=["a"])).blocked == [("t_b", reason)]


def test_a_card_waits_for_one_that_is_tried_again():
    waiting = card("b", after=["a"])
    assert turn_of(card("a", CardState.BLOCKED, block=BlockKind.TRANSIENT), waiting).blocked == []


def test_a_card_waits_for_one_whose_failed_run_is_not_settled_yet():
    # Between the failure and the decision to try again lies a write to the disk.
    assert turn_of(card("a", CardState.FAILED), card("b", after=["a"]), busy=["t_a"]).blocked == []


def test_a_higher_priority_starts_first_and_age_decides_between_equals():
    cards = [card("b", CardState.READY), card("a", CardState.READY), card("z", CardState.READY, priority=1)]
    assert turn_of(*cards).start == ["t_z", "t_a", "t_b"]


def test_paused_releases_dependencies_and_starts_nothing():
    turn = turn_of(card("a", CardState.DONE), card("b", after=["a"]), card("c", CardState.READY), held="paused")
    assert (turn.ready, turn.start) == (["t_b"], [])
    assert turn.waits == {"t_b": "paused", "t_c": "paused"}


@pytest.mark.parametrize(
    ("births", "words"),
    [
        ({PARENTS[0]: 12}, "12 births below openfang within a minute (limits.births_per_parent)"),
        ({PARENTS[1]: 20}, "20 births within a minute (limits.births_per_minute)"),
        ({PARENTS[0]: 11, PARENTS[1]: 8}, ""),
    ],
)
def test_whoever_gives_birth_too_fast_is_held_and_told_by_which_limit(births, words):
    limits = Limits(births_per_minute=20, births_per_parent=12, concurrency=2, children_per_parent=2, microsharks=2)
    turn = look({"t_a": card("a", CardState.READY)}, [], set(), limits, births=births)
    assert (turn.waits.get("t_a", ""), turn.paced) == (words, words)


def test_no_limit_of_births_keeps_back_as_many_as_may_live_at_once():
    cards = [card(f"n{number}", CardState.READY) for number in range(9)]
    limits = Limits(7, 7, 1, births_per_minute=1, births_per_parent=1)
    assert len(look({one.id: one for one in cards}, [], set(), limits).start) == 7


def test_a_fleet_is_unfinished_while_anything_runs_or_is_to_be_tried_again():
    assert unfinished([card(state=CardState.RUNNING)])
    assert unfinished([card(state=CardState.BLOCKED, block=BlockKind.TRANSIENT)])
    assert not unfinished([card(state=CardState.BLOCKED, block=BlockKind.HOLD), card(state=CardState.DONE)])
    assert not unfinished([card(kind="office", state=CardState.RUNNING)])
