"""The comparison's arithmetic: medians of rounds, ratios between peers, growth, and the tables."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from comparison.figures import (
    COMPARED,
    combine,
    containment_table,
    figures_table,
    growth,
    growth_table,
    ratio_table,
    ratios,
)


def figures(value: float, **other: Any) -> dict[str, Any]:
    """One round in which everything measured the same."""
    return {**dict.fromkeys(COMPARED, value), "left_after_kill": 0, "gone_after_kill_seconds": None, **other}


def run(peer: str, children: int, value: float, **other: Any) -> dict[str, Any]:
    return {"peer": peer, "children": children, **combine([figures(value, **other)])}


def test_rounds_become_medians_and_the_worst_of_what_is_left():
    found = combine([figures(1.0), figures(3.0, left_after_kill=7), figures(2.0), {"failed": "too slow"}])
    assert found["start_seconds"] == 2.0
    assert found["left_after_kill"] == 7
    assert found["gone_after_kill_seconds"] is None
    assert (found["rounds"], found["rounds_failed"]) == (3, 1)


def test_a_peer_that_failed_in_every_round_has_its_reason_and_no_figures():
    assert combine([{"failed": "first"}, {"failed": "second"}]) == {"failed": "second"}


@given(st.floats(0.01, 1e4), st.floats(0.01, 1e4))
def test_two_peers_are_compared_both_ways_and_never_across_sizes(mine, theirs):
    runs = [
        run("a", 100, mine),
        run("b", 100, theirs),
        run("a", 1000, theirs),
        {"peer": "c", "children": 100, "failed": "x"},
    ]
    found = ratios(runs)
    assert [(one["children"], one["peer"], one["to"]) for one in found] == [(100, "a", "b"), (100, "b", "a")]
    assert abs(found[0]["start_seconds"] - runs[0]["start_seconds"] / runs[1]["start_seconds"]) < 0.001


def test_what_nobody_could_measure_or_what_is_nothing_has_no_ratio():
    one, other = run("a", 10, 1.0, supervisor_pss_mb=None), run("b", 10, 2.0, idle_cpu_percent=0.0)
    found = ratios([one, other])[0]
    assert (found["start_seconds"], found["supervisor_pss_mb"], found["idle_cpu_percent"]) == (0.5, None, None)


def test_growth_tells_what_a_further_child_costs_and_leaves_the_beginning_out():
    runs = [run("a", 1000, 19.0), run("b", 100, 5.0), run("a", 100, 10.0)]
    (found,) = growth(runs)
    assert (found["peer"], found["from"], found["to"], found["start_seconds"]) == ("a", 100, 1000, 0.01)
    assert "10.00" in growth_table([found])


def test_the_tables_show_every_peer_and_say_why_one_is_not_there():
    failed = {"peer": "pm2", "children": 10, "failed": "slow"}
    runs = [run("floor", 10, 1.0, left_after_kill=10), run("council-portable", 10, 1500.0), failed]
    lines = figures_table(runs).splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["floor", "council-portable"]
    assert lines[1].endswith("10")
    assert "1,500.00" in lines[2]
    assert lines[3] == "pm2 at 10: slow"
    assert len({len(line) for line in lines[:3]}) == 1
    rows = ratio_table(ratios(runs), ["council-portable"]).splitlines()
    assert len(rows) == 2
    assert rows[1].startswith("council-portable / floor")


def test_a_peer_that_leaves_nothing_is_said_to_do_so():
    found = {"a": {"escaped_stop": "", "escaped_kill": "0ABCD"}, "b": {"failed": "slow"}}
    lines = containment_table(found).splitlines()
    assert lines[1].split() == ["a", "nothing", "0ABCD"]
    assert lines[2].split() == ["b", "slow", "slow"]
