"""Lanes, names, the hierarchy and safe text."""

import itertools
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council_tui.domain import ids
from council_tui.domain.card import LANES, OPEN_STATES, OWNED_STATES, CardState, can_move, check_move
from council_tui.domain.errors import IllegalMove, Mistake, PlanInvalid
from council_tui.domain.hierarchy import KINDS, PARENTS, child_kind, dual_note
from council_tui.domain.text import safe, safe_bytes


@given(st.lists(st.sampled_from(CardState), max_size=30))
def test_no_walk_over_the_board_leaves_its_rules(wishes):
    here, seen = CardState.BACKLOG, [CardState.BACKLOG]
    for wish in wishes:
        if can_move(here, wish):
            check_move("t_x", here, wish)
            here = wish
            seen.append(here)
        else:
            with pytest.raises(IllegalMove):
                check_move("t_x", here, wish)
    for before, after in itertools.pairwise(seen):
        assert after is not CardState.DONE or before is CardState.REVIEW
        assert after is not CardState.REVIEW or before is CardState.RUNNING
        assert after is not CardState.RUNNING or before is CardState.CLAIMED
        assert after is not CardState.CLAIMED or before is CardState.READY
        assert before is not CardState.DONE or after is CardState.ARCHIVED
        assert before is not CardState.ARCHIVED


def test_every_lane_but_the_archive_is_shown_and_owned_cards_are_open():
    assert set(LANES) == set(CardState) - {CardState.ARCHIVED}
    assert OWNED_STATES < OPEN_STATES


@given(st.binary(min_size=7, max_size=7))
def test_an_agents_name_can_be_read_back(raw):
    run = ids.run_id(raw)
    name = ids.agent_name("child", "unit-tests", run)
    assert ids.agent_type(name) == "child"
    assert ids.agent_label(name) == "unit-tests"
    assert run[2:] in name


@given(st.binary(min_size=5, max_size=5), st.binary(min_size=5, max_size=5))
def test_different_bytes_make_different_cards(one, other):
    assert (ids.card_id(one) == ids.card_id(other)) == (one == other)
    assert set(ids.card_id(one)[2:]) <= set("0123456789abcdefghjkmnpqrstvwxyz")


@pytest.mark.parametrize("label", ["", "A", "-a", "a-", "a b", "a/b", "a" * 49, "a\n", "ä"])
def test_a_label_is_short_and_plain(label):
    assert not ids.LABEL.match(label)


def test_the_tree_is_four_deep_and_microsharks_spawn_nothing():
    assert [child_kind(kind) for kind in PARENTS] == ["child"] * 3
    assert child_kind("child") == "microshark"
    assert child_kind("microshark") is None
    assert child_kind("hermes") is None


def test_duals_name_each_other():
    assert dual_note("openfang") == "dual of ZeroClaw"
    assert dual_note("zeroclaw") == "dual of OpenFang"
    assert dual_note("hermes") == "dual of microshark"
    assert "second OpenClaw agent" in dual_note("openclaw")
    assert {office.layer for office in KINDS.values()} == {0, 1, 2, 3}


@given(st.text(), st.integers(1, 50))
def test_safe_text_is_one_line_without_anything_that_acts(text, limit):
    shown = safe(text, limit)
    assert all(unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") for char in shown)
    assert shown.endswith("…") or len(text) <= limit


def test_an_escape_sequence_is_seen_and_not_obeyed():
    assert safe("\x1b[31mred\x07") == "␛[31mred␇"
    assert safe("a\u202eb\x9bc") == "a⟨202E⟩b⟨009B⟩c"
    assert safe("one\ntwo\tthree") == "one␊two    three"


@given(st.binary(max_size=60), st.integers(1, 10))
def test_bytes_that_were_cut_say_so(raw, limit):
    shown = safe_bytes(raw, limit)
    assert shown.endswith("…") or len(raw.decode("utf-8", "replace")) <= limit


def test_four_byte_characters_are_not_cut_in_silence():
    assert safe_bytes("😀😀😀".encode(), 2) == "😀😀…"


def test_a_mistake_says_where_it_is():
    assert Mistake("children[2].id", "is taken", 7).render("plan.yaml") == "plan.yaml:7: children[2].id: is taken"
    assert Mistake("plan", "is empty").render("p") == "p: plan: is empty"
    assert str(PlanInvalid("p", [Mistake("a", "b"), Mistake("a", "c")])) == "p has 2 mistakes"
