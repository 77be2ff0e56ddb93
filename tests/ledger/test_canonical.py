"""Canonical bytes: the same as RFC 8785 gives, and a refusal where a value has none."""

from __future__ import annotations

import json

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from council_tui.ledger.canonical import MAX_INT, NotCanonical, canonical

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
KEYS = st.text(st.characters(max_codepoint=127))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-MAX_INT + 1, MAX_INT - 1) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_the_bytes_equal_those_of_rfc_8785(value):
    assert canonical(value) == rfc8785.dumps(value)


@given(VALUES)
def test_the_bytes_read_back_as_the_same_value(value):
    assert json.loads(canonical(value)) == value


def test_sequences_of_both_kinds_have_one_form():
    assert canonical({"b": (1, 2), "a": [1, 2]}) == b'{"a":[1,2],"b":[1,2]}'


@pytest.mark.parametrize(
    "value",
    [1.5, {"a": 0.0}, [MAX_INT], [-MAX_INT], {"ü": 1}, {1: 1}, "\ud800", [b"x"], {"a": {1}}, float("nan")],
)
def test_what_has_no_canonical_form_is_refused(value):
    with pytest.raises(NotCanonical):
        canonical(value)


def test_deep_nesting_is_refused_before_it_can_exhaust_the_stack():
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(NotCanonical, match="deeper"):
        canonical(value)
