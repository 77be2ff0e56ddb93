"""The exit code: of several truths the gravest is told."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council_tui.board.projection import Card
from council_tui.domain.card import BlockKind, CardState
from council_tui.fleet.outcome import ending

CLEAN = {"descendants": [], "open_claims": [], "unsigned_reports": [], "slices": []}
VALID = {"verdict": "VALID"}


def card(state=CardState.DONE, kind="child", **more):
    return Card(
        id="t_1",
        title="one",
        plan_id="one",
        kind=kind,
        parent_agent="openfang:office.1",
        parent_card=None,
        created="",
        state=state,
        **more,
    )


TRUTHS = {
    130: {"interrupted": True},
    70: {"fault": "the disk is full"},
    5: {"audit": {**CLEAN, "descendants": [42]}},
    4: {"cards": [card(CardState.BLOCKED, block="budget")]},
    1: {"cards": [card(CardState.FAILED, fail="error")]},
    3: {"cards": [card(CardState.BLOCKED, block="needs_input")]},
}
"""Exit codes from the gravest on, each with what brings it about."""


def weigh(*codes):
    facts = {"cards": [card()], "audit": CLEAN, "ledger": VALID, "budget": {}}
    for code in codes:
        told = dict(TRUTHS[code])
        facts["cards"] = [*facts["cards"], *told.pop("cards", [])]
        facts |= told
    return ending(facts.pop("cards"), **facts)


def test_a_fleet_whose_cards_are_all_done_exits_0():
    assert weigh().exit == 0


@pytest.mark.parametrize("codes", [c for n in (1, 2, 3) for c in combinations(TRUTHS, n)])
def test_of_several_exit_codes_the_first_in_order_wins(codes):
    order = list(TRUTHS)
    assert weigh(*codes).exit == min(codes, key=order.index)


@pytest.mark.parametrize("key", ["descendants", "open_claims", "unsigned_reports", "slices"])
def test_anything_left_behind_exits_5(key):
    assert ending([], audit={**CLEAN, key: [1]}, ledger=VALID, budget={}).exit == 5


def test_a_ledger_that_does_not_verify_exits_5():
    assert ending([], audit=CLEAN, ledger={"verdict": "BAD_SIGNATURE"}, budget={}).exit == 5


def test_a_refused_capability_counts_as_failed_and_a_person_to_ask_as_waiting():
    end = ending(
        [card(CardState.BLOCKED, block="capability"), card(CardState.BLOCKED, block="hold")],
        audit=CLEAN,
        ledger=VALID,
        budget={},
    )
    assert [line["kind"] for line in end.failed] == ["capability"]
    assert [line["kind"] for line in end.waiting] == ["hold"]


def test_offices_are_not_counted():
    assert ending([card(CardState.RUNNING, kind="office")], audit=CLEAN, ledger=VALID, budget={}).exit == 0


@given(st.sampled_from([s for s in CardState if s is not CardState.DONE]), st.none() | st.sampled_from(list(BlockKind)))
def test_a_card_that_is_not_done_never_exits_0(state, block):
    assert ending([card(state, block=block)], audit=CLEAN, ledger=VALID, budget={}).exit != 0
