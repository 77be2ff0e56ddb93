"""The arithmetic under every benchmark."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council_tui.bench import main
from council_tui.bench.figures import milliseconds, percentile, rate, ratio, table


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0, 100))
def test_a_percentile_is_one_of_the_values_and_enough_of_them_do_not_exceed_it(values, per_cent):
    found = percentile(values, per_cent)
    assert found in values
    assert sum(value <= found for value in values) >= per_cent / 100 * len(values)


def test_nothing_measured_is_said_as_nothing_and_not_as_zero():
    assert percentile([], 50) is None
    assert milliseconds([]) == {"p50": None, "p99": None}
    assert ratio(1, 0) is None
    assert "not measured" in table({"p50": None, "other": [{"a": 1}]})


def test_rates_and_ratios_are_rounded_for_reading():
    assert rate(10, 4) == 2.5
    assert rate(10, 0) == 0.0
    assert ratio(1, 3) == 0.333


def test_a_table_indents_groups_and_lists_sizes_one_after_another():
    sizes = [{"children": 1, "deep": {"a_b": 1.5}}, {"children": 2, "deep": {"a_b": 2}}]
    assert table({"bench": "x", "runs": sizes}).splitlines() == [
        "bench  x",
        "runs",
        "  children  1",
        "  deep      a_b 1.50",
        "runs",
        "  children  2",
        "  deep      a_b 2",
    ]


@pytest.mark.parametrize("argv", [[], ["spwan"], ["spawn", "--children", "0"], ["spawn", "--beats", "0"]])
def test_a_wrong_argument_is_refused_in_one_sentence(argv, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(argv)
    assert stopped.value.code == 2
    told = capsys.readouterr().err
    assert told.startswith("council: ")
    assert "see council bench" in told
    assert told.count("\n") == 1
