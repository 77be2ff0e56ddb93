"""The grant of a swarm: never above a limit, the same for the same question, and all of its members alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council_tui.domain.hierarchy import MICROSHARK_TTL_SECONDS
from council_tui.domain.order import Member, Order
from council_tui.domain.swarm import Room, SwarmGrant, asked_ttl, decide, member_id, members
from domain.samples import envelope


def swarm(count=10, at_least=None, ttl=None, **more):
    fields = {"id": "probe", "title": "probe", "parent": "keeper", "kind": "microshark", "run": ("true",)}
    context = {} if ttl is None else {"lifecycle_policy": {"run_ttl_seconds": ttl}}
    return Order(**{**fields, "count": count, "at_least": at_least, "context": context, "envelope": envelope(), **more})


COUNTS = st.integers(1, 10_000)
SWARMS = st.builds(
    lambda count, least, ttl: swarm(count, min(least, count) if least else None, ttl),
    COUNTS,
    st.none() | COUNTS,
    st.none() | st.floats(0.5, 1000, allow_nan=False),
)
ROOMS = st.builds(
    Room,
    limit=COUNTS,
    taken=st.integers(0, 12_000),
    seconds=st.none() | st.floats(-100, 100_000, allow_nan=False),
)


@given(SWARMS, ROOMS)
def test_a_grant_is_never_above_any_limit(order, room):
    found = decide(order, room)
    assert 0 <= found.granted <= order.count
    assert found.granted == 0 or found.granted + room.taken <= room.limit
    assert found.ttl_seconds <= min(asked_ttl(order), MICROSHARK_TTL_SECONDS)
    assert room.seconds is None or found.ttl_seconds <= max(0.0, room.seconds)
    assert (found.ttl_seconds > 0) == (found.granted > 0)


@given(SWARMS, ROOMS)
def test_a_grant_is_all_that_was_asked_for_or_enough_or_nothing_and_says_why(order, room):
    found = decide(order, room)
    assert found.granted in (0, order.count) or found.granted >= (order.at_least or order.count)
    less = found.granted < order.count or found.ttl_seconds < asked_ttl(order)
    assert bool(found.reason) == less
    if not found.granted:
        # Nothing is refused that there would have been room for.
        short_of_time = room.seconds is not None and room.seconds < 1
        assert short_of_time or room.free < (order.at_least or order.count)


@given(SWARMS, ROOMS)
def test_the_same_question_gets_the_same_answer(order, room):
    assert decide(order, room) == decide(order.model_copy(deep=True), Room(room.limit, room.taken, room.seconds))


@given(SWARMS, ROOMS, st.integers(1, 100))
def test_more_room_never_grants_less(order, room, more):
    roomier = Room(room.limit + more, room.taken, room.seconds)
    assert decide(order, roomier).granted >= decide(order, room).granted


@given(st.lists(st.tuples(COUNTS, st.booleans()), max_size=8), st.integers(1, 500))
def test_however_many_ask_together_they_get_no_more_than_the_limit(asked, limit):
    taken = 0
    for count, some_will_do in asked:
        taken += decide(swarm(count, 1 if some_will_do else None), Room(limit, taken)).granted
        assert taken <= limit


@pytest.mark.parametrize(
    ("order", "room", "granted", "reason"),
    [
        (swarm(50), Room(50), 50, ""),
        (swarm(50, 20), Room(50, 20), 30, "asked for 50; limits.microsharks is 50, of which 20 are taken"),
        (swarm(50), Room(50, 1), 0, "asked for 50; limits.microsharks is 50, of which 1 is taken"),
        (swarm(50, 40), Room(30), 0, "asked for 50; limits.microsharks is 30; it needs at least 40"),
        (swarm(5), Room(50, seconds=60), 5, "the budget leaves 60 s of the 300 s that each may live"),
        (swarm(5, ttl=10), Room(50, seconds=60), 5, ""),
        (swarm(5), Room(50, seconds=0.5), 0, "the budget leaves 0.5 s of the 300 s that each may live"),
        (swarm(5), Room(50, seconds=-3), 0, "the budget leaves 0 s of the 300 s that each may live"),
    ],
)
def test_what_is_granted_and_the_sentence_that_goes_with_less(order, room, granted, reason):
    found = decide(order, room)
    assert (found.granted, found.reason) == (granted, reason)


def test_the_members_of_a_swarm_have_a_number_a_name_and_the_granted_time():
    order = swarm(
        9,
        ttl=100,
        run=("count", "{index}/{count}", "{python}", "{index} {index}"),
        title="Part {index}",
        envelope=envelope(task_description="Look at {index}."),
        retries=1,
    )
    made = members(order, SwarmGrant(3, 42.5))
    assert [one.id for one in made] == ["probe-1", "probe-2", "probe-3"] == [member_id("probe", n) for n in (1, 2, 3)]
    second = made[1]
    assert second.run == ("count", "2/3", "{python}", "2 2")
    assert (second.title, second.envelope.task_description) == ("Part 2", "Look at 2.")
    assert second.member == Member(swarm="probe", index=2, of=3)
    assert second.context["lifecycle_policy"] == {"run_ttl_seconds": 42.5}
    assert (second.count, second.at_least, second.retries, second.parent) == (None, None, 1, "keeper")
    assert order.context["lifecycle_policy"] == {"run_ttl_seconds": 100}, "the order itself stays as it was"


@pytest.mark.parametrize(
    ("title", "shown"), [("probe", "probe-2"), ("A probe", "A probe (2 of 3)"), ("{index} of {count}", "2 of 3")]
)
def test_members_can_be_told_apart_by_their_titles(title, shown):
    assert members(swarm(title=title), SwarmGrant(3, 1.0))[1].title == shown


@given(st.text(max_size=20), st.integers(1, 50))
def test_a_number_goes_into_an_argument_as_digits_and_nothing_else_of_it_changes(word, count):
    for index, one in enumerate(members(swarm(run=("x", word, f"{word}{{index}}{word}")), SwarmGrant(count, 1.0)), 1):
        before, after = word.replace("{index}", str(index)), one.run[2]
        assert len(one.run) == 3
        assert after == f"{before}{index}{before}".replace("{count}", str(count))
