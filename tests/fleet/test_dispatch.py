"""Whose turn it is: limits are never exceeded, and nothing waits unseen for what will not come."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council_tui.board.projection import Card
from council_tui.domain.card import BlockKind, CardState, FailKind
from council_tui.fleet.dispatch import look, may_retry, retry_delay, unfinished
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


LIMITS = st.builds(Limits, st.integers(1, 4), st.integers(1, 3), st.integers(1, 3))


def living(cards, busy):
    return [(cards[name].kind, cards[name].parent_agent) for name in sorted(busy)]


@given(boards(), LIMITS, st.booleans())
def test_no_look_at_any_board_breaks_a_rule(found, limits, paused):
    cards, busy = found
    turn = look(cards, living(cards, busy), set(busy), limits, paused=paused)
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
    if paused:
        assert turn.start == []
    now = living(cards, busy)
    before, after = Counter(kind for kind, _ in now), Counter(cards[name].kind for name in turn.start)
    for kind, limit in (("child", limits.concurrency), ("microshark", limits.microsharks)):
        assert after[kind] <= max(0, limit - before[kind])
    below, more = Counter(parent for _, parent in now), Counter(cards[name].parent_agent for name in turn.start)
    for parent, number in more.items():
        assert number <= max(0, limits.children_per_parent - below[parent])


@given(boards(), LIMITS)
def test_what_could_start_and_does_not_is_kept_by_a_limit(found, limits):
    cards, busy = found
    turn = look(cards, living(cards, busy), set(busy), limits, paused=False)
    now = living(cards, busy) + [(cards[name].kind, cards[name].parent_agent) for name in turn.start]
    kinds, parents = Counter(kind for kind, _ in now), Counter(parent for _, parent in now)
    for name, one in cards.items():
        could = one.kind != "office" and name not in busy and (one.state is CardState.READY or name in turn.ready)
        if could and name not in turn.start:
            limit = limits.microsharks if one.kind == "microshark" else limits.concurrency
            assert kinds[one.kind] >= limit or parents[one.parent_agent] >= limits.children_per_parent


def turn_of(*cards, busy=(), paused=False):
    return look({one.id: one for one in cards}, [], set(busy), Limits(), paused=paused)


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
    turn = turn_of(card("a", CardState.DONE), card("b", after=["a"]), card("c", CardState.READY), paused=True)
    assert (turn.ready, turn.start) == (["t_b"], [])


def test_the_pause_before_another_attempt_doubles_up_to_five_minutes():
    assert [retry_delay(attempt) for attempt in (1, 2, 3, 6, 60)] == [10, 20, 40, 300, 300]


@pytest.mark.parametrize("fail", list(FailKind))
def test_only_a_failed_attempt_is_tried_again_and_never_an_answer(fail):
    tried = card(attempt=1, attempts=3)
    assert may_retry(tried, fail) == (fail in (FailKind.ORPHANED, FailKind.PROTOCOL_VIOLATION))
    assert not may_retry(card(attempt=3, attempts=3), fail)


def test_a_fleet_is_unfinished_while_anything_runs_or_is_to_be_tried_again():
    assert unfinished([card(state=CardState.RUNNING)])
    assert unfinished([card(state=CardState.BLOCKED, block=BlockKind.TRANSIENT)])
    assert not unfinished([card(state=CardState.BLOCKED, block=BlockKind.HOLD), card(state=CardState.DONE)])
    assert not unfinished([card(kind="office", state=CardState.RUNNING)])
