"""Which ends are only "not now", and how long "now" is put off."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council_tui.domain.rate_limit import MOST_SECONDS, UNSAID_SECONDS, rate_limited


@pytest.mark.parametrize(
    ("result", "status", "wait"),
    [
        ({"status": "ERROR"}, 75, UNSAID_SECONDS),
        ({"status": "ERROR", "retry_after": 30}, 75, 30),
        ({"status": "ERROR", "retry_after": 30}, 1, 30),
        ({"status": "ERROR", "retry_after": 2.5}, 0, 2.5),
        ({"status": "ERROR", "rate_limited": True}, 0, UNSAID_SECONDS),
        ({"status": "ERROR", "rate_limited": True, "retry_after": 5}, 0, 5),
        ({"status": "ERROR", "retry_after": 0}, 75, 1),
        ({"status": "ERROR", "retry_after": 1e300}, 75, MOST_SECONDS),
        ({"status": "ERROR", "retry_after": float("nan")}, 75, UNSAID_SECONDS),
        ({"status": "ERROR", "retry_after": -5}, 75, UNSAID_SECONDS),
        ({"status": "ERROR", "retry_after": "soon"}, 75, UNSAID_SECONDS),
        ({"status": "ERROR", "retry_after": True}, 1, None),
        ({"status": "ERROR", "retry_after": float("inf")}, 1, None),
        ({"status": "ERROR", "rate_limited": "yes"}, 1, None),
        ({"status": "ERROR"}, 1, None),
        ({"status": "ERROR", "evidence": ["429 rate limited, retry_after: 5"]}, 1, None),
        ({"status": "DONE", "retry_after": 5}, 0, None),
        ({"status": "BLOCKED", "rate_limited": True}, 0, None),
        ({}, None, None),
    ],
)
def test_an_end_is_only_a_rate_limit_when_it_says_so_in_the_documented_way(result, status, wait):
    assert rate_limited(result, status) == wait


@given(st.dictionaries(st.sampled_from(["status", "retry_after", "rate_limited"]), st.floats() | st.text() | st.none()))
def test_the_wait_is_finite_whatever_a_program_asks_for(result):
    wait = rate_limited({**result, "status": "ERROR"}, 75)
    assert wait is not None
    assert 1 <= wait <= MOST_SECONDS
