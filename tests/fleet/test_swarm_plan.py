"""Swarms in a plan: how they are written, and every way to write them wrong."""

from __future__ import annotations

import pytest

from fleet.plans import plan_of, wrong_children

PARENT = "- {id: a, parent: zeroclaw, run: 'true'}\n"
LONG = "p" * 46


def test_a_swarm_is_one_order_of_its_parent_and_limits_stay_finite():
    plan = plan_of(PARENT + "- {id: probe, parent: a, run: [echo, '{index}'], count: 50, at_least: 10}")
    assert plan.limits.microsharks == 50
    swarm = plan.orders[1]
    assert (swarm.id, swarm.kind, swarm.count, swarm.at_least, swarm.member) == ("probe", "microshark", 50, 10, None)
    assert swarm.run == ("echo", "{index}")


def test_more_than_the_limit_may_be_asked_for_where_less_will_do():
    assert plan_of(PARENT + "- {id: p, parent: a, run: 'true', count: 5000, at_least: 50}").orders[1].count == 5000


@pytest.mark.parametrize(
    ("children", "field", "says"),
    [
        ("- {id: p, parent: a, run: 'true', count: 0}", "[1].count", "greater than or equal to 1"),
        ("- {id: p, parent: a, run: 'true', count: 10001}", "[1].count", "less than or equal to 10000"),
        ("- {id: p, parent: a, run: 'true', count: many}", "[1].count", 'expected a whole number, not "many"'),
        ("- {id: p, parent: a, run: 'true', count: 2.5}", "[1].count", "a whole number"),
        ("- {id: p, parent: a, run: 'true', at_least: 3}", "[1].at_least", "write in count how many"),
        ("- {id: p, parent: a, run: 'true', count: 3, at_least: 4}", "[1].at_least", "4 is more than the count of 3"),
        (
            "- {id: p, parent: a, run: 'true', count: 51}",
            "[1].count",
            "needs 51 microsharks, and limits.microsharks is 50; raise that limit, ask for fewer, or say with at_least",
        ),
        (
            "- {id: p, parent: a, run: 'true', count: 90, at_least: 60}",
            "[1].at_least",
            "needs 60 microsharks, and limits.microsharks is 50; raise that limit, ask for fewer",
        ),
        ("- {id: p, parent: zeroclaw, run: 'true', count: 3}", "[1].count", "is for microsharks"),
        (f"- {{id: {LONG}, parent: a, run: 'true', count: 10}}", "[1].id", "is too long for a swarm of 10"),
        (f"- {{id: p, title: {'t' * 171}, parent: a, run: 'true', count: 3}}", "[1].title", "longer than 170"),
        (
            "- {id: p, parent: a, run: 'true', count: 3}\n- {id: p-3, parent: a, run: 'true'}",
            "[2].id",
            '"p-3" is what a member of the swarm "p" is called',
        ),
        (
            "- {id: p, parent: a, run: 'true', count: 3}\n- {id: q, parent: a, run: 'true', after: [p]}",
            "[2].after[0]",
            '"p" is a swarm, and how many it gets is known only later; wait for its parent',
        ),
        (
            "- {id: p, parent: a, run: 'true', count: 3, spawn_context: {memory_slice: {shared_memory_path: /x/y}}}",
            "[1].spawn_context.memory_slice.shared_memory_path",
            "one path cannot be the slice of 3 microsharks",
        ),
    ],
)
def test_a_swarm_that_is_written_wrong_is_told_once_where_it_is_wrong(children, field, says):
    (found,) = wrong_children(PARENT + children)
    assert found[0] == f"children{field}"
    assert says in found[1]


@pytest.mark.parametrize("other", ["p-4", "p-03", "p-0", "p", "p-1-1"])
def test_a_name_that_no_member_has_is_free(other):
    children = "- {id: x, parent: a, run: 'true', count: 3}\n".replace("x", "p" if other != "p" else "q")
    assert wrong_children(PARENT + children + f"- {{id: {other}, parent: a, run: 'true'}}") == []


def test_a_whole_swarm_may_wait_for_a_sibling():
    children = "- {id: first, parent: a, run: 'true'}\n- {id: p, parent: a, run: 'true', count: 3, after: [first]}"
    assert plan_of(PARENT + children).orders[2].after == ("first",)
