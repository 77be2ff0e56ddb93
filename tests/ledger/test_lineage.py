"""Who may say what: every way to overstep has its own verdict, and leaves the state alone."""

from __future__ import annotations

import pytest

from council_tui.ledger.envelope import open_strict
from council_tui.ledger.keys import Key
from council_tui.ledger.lineage import Lineage, validity
from council_tui.ledger.signer import Signer
from council_tui.ledger.verdicts import BadEntry, Verdict
from tests.ledger.builders import (
    CHILD,
    CONTRACT,
    FOREVER,
    HERMES,
    NOW,
    OFFICE,
    SHARK,
    Fleet,
    grant,
    seen,
    work,
)

OTHER = "child:other.3c"
DAY = 86_400


@pytest.fixture
def fleet():
    """Hermes, an office, a child and a microshark, all accepted."""
    return Fleet().family()


def lineage_of(fleet: Fleet, raws: list[bytes] | None = None) -> Lineage:
    """The state after these entries, all of which must be legal."""
    lineage = Lineage(fleet.root.public, fleet.origin)
    for index, raw in enumerate(fleet.raws if raws is None else raws):
        opened = open_strict(raw)
        lineage.check(opened, index)
        lineage.apply(opened, index)
    return lineage


def verdict(lineage: Lineage, raw: bytes) -> Verdict:
    """The verdict on the next entry; VALID when it may stand."""
    try:
        lineage.check(open_strict(raw), 100)
    except BadEntry as error:
        return error.verdict
    return Verdict.VALID


def last(fleet: Fleet) -> Verdict:
    """The verdict on the fleet's last entry, after all those before it."""
    return verdict(lineage_of(fleet, fleet.raws[:-1]), fleet.raws[-1])


def test_a_family_is_valid_down_to_the_microshark(fleet):
    fleet.sign(SHARK, "ascension", work())
    lineage = lineage_of(fleet)
    shark = lineage.agent(SHARK)
    assert shark is not None
    assert shark.path() == (HERMES, OFFICE, CHILD, SHARK)
    assert (shark.granted_at, shark.accepted_at, shark.seq) == (4, 5, 2)
    assert len(lineage) == 4


def test_another_key_than_the_pinned_one_is_not_hermes(fleet):
    lineage = Lineage(Key.generate().public, fleet.origin)
    assert verdict(lineage, fleet.raws[0]) is Verdict.WRONG_SIGNER


def test_an_entry_signed_for_another_log_does_not_count(fleet):
    assert verdict(Lineage(fleet.root.public, "elsewhere"), fleet.raws[0]) is Verdict.WRONG_LOG


def test_a_name_that_nobody_granted_cannot_speak(fleet):
    stranger = Signer(OTHER, Key.generate(), fleet.origin)
    assert verdict(lineage_of(fleet), stranger.sign("acceptance", NOW, (), {"contract": CONTRACT})) is (
        Verdict.NO_DELEGATION
    )


def test_a_parent_cannot_sign_for_its_child(fleet):
    child = fleet.signers[CHILD]
    forged = Signer(CHILD, fleet.keys[OFFICE], fleet.origin, child.seq, child.prev)
    assert verdict(lineage_of(fleet), forged.sign("ascension", NOW, (), work())) is Verdict.WRONG_SIGNER


def test_a_borrowed_key_id_does_not_make_a_signature(fleet):
    child, liar = fleet.signers[CHILD], Key.generate()
    liar.key_id = fleet.keys[CHILD].key_id
    forged = Signer(CHILD, liar, fleet.origin, child.seq, child.prev)
    assert verdict(lineage_of(fleet), forged.sign("ascension", NOW, (), work())) is Verdict.BAD_SIGNATURE


def test_a_forged_delegation_grants_nothing(fleet):
    hermes, liar = fleet.signers[HERMES], Key.generate()
    forged = Signer(HERMES, liar, fleet.origin, hermes.seq, hermes.prev)
    raw = forged.sign("delegation", NOW, (), grant("openfang:office", liar.public, 2))
    assert verdict(lineage_of(fleet), raw) is Verdict.WRONG_SIGNER


def test_a_report_before_the_acceptance_is_not_acknowledged(fleet):
    fleet.adopt(OFFICE, OTHER, 1, accept=False)
    fleet.sign(OTHER, "ascension", work())
    assert last(fleet) is Verdict.NOT_ACKNOWLEDGED


def test_an_acceptance_of_another_contract_is_none(fleet):
    fleet.adopt(OFFICE, OTHER, 1, accept=False)
    fleet.sign(OTHER, "acceptance", {"contract": "d" * 64})
    assert last(fleet) is Verdict.NOT_ACKNOWLEDGED


def test_a_child_reports_on_the_contract_that_it_accepted(fleet):
    fleet.sign(CHILD, "ascension", work(contract="d" * 64))
    assert last(fleet) is Verdict.NOT_ACKNOWLEDGED


@pytest.mark.parametrize("agent", [HERMES, CHILD])
def test_an_acceptance_is_an_agents_first_entry_or_none(fleet, agent):
    fleet.sign(agent, "acceptance", {"contract": CONTRACT})
    assert last(fleet) is Verdict.SCHEMA


def test_a_missing_entry_of_an_agent_is_a_gap(fleet):
    fleet.sign(CHILD, "ascension", work())
    fleet.sign(CHILD, "ascension", work())
    assert verdict(lineage_of(fleet, fleet.raws[:-2]), fleet.raws[-1]) is Verdict.SEQ_GAP


def test_an_entry_that_follows_another_one_is_a_mismatch(fleet):
    fork = Signer(CHILD, fleet.keys[CHILD], fleet.origin, 2, "0" * 64)
    assert verdict(lineage_of(fleet), fork.sign("ascension", NOW, (), work())) is Verdict.PREV_MISMATCH


def test_a_repeated_entry_and_a_second_one_for_its_place_are_told_apart(fleet):
    first = fleet.sign(CHILD, "ascension", work())
    fleet.sign(CHILD, "ascension", work(findings=3))
    lineage = lineage_of(fleet)
    assert verdict(lineage, first) is Verdict.REPLAY
    double = Signer(CHILD, fleet.keys[CHILD], fleet.origin, 2, fleet.signers[CHILD].prev)
    assert verdict(lineage, double.sign("ascension", NOW, (), work(findings=9))) is Verdict.EQUIVOCATION


@pytest.mark.parametrize("by", [HERMES, OFFICE])
def test_a_revocation_ends_the_whole_subtree_from_its_index_on(fleet, by):
    fleet.sign(SHARK, "ascension", work())
    fleet.sign(by, "revocation", {"of": CHILD, "reason": "run ended"})
    lineage = lineage_of(fleet)
    assert verdict(lineage, fleet.backdated(CHILD, "ascension", work(), NOW - 1)) is Verdict.REVOKED
    assert verdict(lineage, fleet.sign(SHARK, "ascension", work())) is Verdict.REVOKED
    assert verdict(lineage, fleet.sign(OFFICE, "ascension", work())) is Verdict.VALID


def test_a_second_revocation_changes_nothing(fleet):
    fleet.sign(OFFICE, "revocation", {"of": CHILD, "reason": "run ended"})
    fleet.sign(HERMES, "revocation", {"of": CHILD, "reason": "again"})
    agent = lineage_of(fleet).agent(CHILD)
    assert agent is not None
    assert agent.revoked_at == len(fleet.raws) - 2


@pytest.mark.parametrize("kind", ["revocation", "observation"])
@pytest.mark.parametrize(("by", "of"), [(CHILD, OFFICE), (CHILD, CHILD), (OFFICE, HERMES), (HERMES, HERMES)])
def test_only_an_ancestor_revokes_or_observes(fleet, kind, by, of):
    fleet.sign(by, kind, {"of": of, "reason": "spite"} if kind == "revocation" else seen(of))
    assert last(fleet) is Verdict.NOT_ANCESTOR


def test_an_observation_of_nobody_has_no_delegation(fleet):
    fleet.sign(HERMES, "observation", seen("child:nobody.9z"))
    assert last(fleet) is Verdict.NO_DELEGATION


def test_hermes_observes_an_agent_that_was_revoked(fleet):
    fleet.sign(HERMES, "revocation", {"of": CHILD, "reason": "run ended"})
    fleet.sign(HERMES, "observation", seen(CHILD))
    assert last(fleet) is Verdict.VALID


@pytest.mark.parametrize("at", [NOW - 1, FOREVER + 1])
def test_an_entry_outside_its_grants_time_has_expired(fleet, at):
    fleet.backdated(CHILD, "ascension", work(), at)
    assert last(fleet) is Verdict.EXPIRED


@pytest.mark.parametrize("first", [0, -7200, 3 * DAY])
@pytest.mark.parametrize("then", [-5000 * DAY, -3 * 365 * DAY, -7200, 3 * DAY, 400 * DAY])
def test_no_clock_that_is_set_and_no_sleep_of_the_machine_ends_a_voice(first, then):
    fleet, clock = Fleet(), NOW
    within: dict[str, tuple[int, int]] = {HERMES: (0, 2**53 - 1)}

    def born(parent: str, child: str, depth: int) -> None:
        granted = within[child] = validity(fleet.signers[parent].time(clock), *within[parent])
        fleet.keys[child] = Key.generate()
        fields = grant(child, fleet.keys[child].public, depth, not_before=granted[0], not_after=granted[1])
        fleet.sign(parent, "delegation", fields, clock)
        fleet.signers[child] = Signer(child, fleet.keys[child], fleet.origin, since=granted[0])
        fleet.sign(child, "acceptance", {"contract": CONTRACT}, clock)

    born(HERMES, OFFICE, 2)
    clock = NOW + first
    born(OFFICE, CHILD, 1)
    clock += then
    born(CHILD, SHARK, 0)
    born(OFFICE, OTHER, 1)
    for agent in (SHARK, CHILD, OTHER):
        fleet.sign(agent, "ascension", work(), clock)
        fleet.sign(HERMES, "revocation", {"of": agent, "reason": "run ended"}, clock)
    lineage = lineage_of(fleet)
    assert verdict(lineage, fleet.sign(CHILD, "ascension", work(), clock)) is Verdict.REVOKED


def test_a_grant_is_wide_and_lies_inside_its_granters(fleet):
    week = validity(NOW)
    assert (NOW - week[0], week[1] - NOW) == (7 * DAY, 1000 * DAY)
    assert validity(NOW + DAY, *week) == (NOW - 6 * DAY, week[1])
    assert validity(NOW - DAY, *week) == (week[0], NOW + 999 * DAY)
    assert validity(5) == (0, 1000 * DAY + 5)


def test_a_signer_never_goes_back_in_time(fleet):
    times = [NOW + 5, NOW - 7200, NOW + 6]
    signed = [open_strict(fleet.sign(CHILD, "ascension", work(), at)).statement.at for at in times]
    assert signed == [NOW + 5, NOW + 5, NOW + 6]


@pytest.mark.parametrize(
    ("parent", "child", "depth", "changes", "expected"),
    [
        (OFFICE, OTHER, 1, {"capabilities": ["anything"]}, Verdict.VALID),
        (OFFICE, OTHER, 1, {"forbidden": ["exec2", "network"]}, Verdict.VALID),
        (CHILD, "microshark:x", 0, {"capabilities": []}, Verdict.VALID),
        (CHILD, "microshark:x", 0, {"capabilities": ["write"]}, Verdict.CAP_ESCALATION),
        (CHILD, "microshark:x", 0, {"forbidden": []}, Verdict.CAP_ESCALATION),
        (OFFICE, OTHER, 1, {"capabilities": ["network"]}, Verdict.CAP_ESCALATION),
        (OFFICE, OTHER, 1, {"not_after": FOREVER + 1}, Verdict.VALIDITY_ESCALATION),
        (OFFICE, OTHER, 1, {"not_before": NOW - 1}, Verdict.VALIDITY_ESCALATION),
        (OFFICE, OTHER, 1, {"not_before": FOREVER, "not_after": NOW}, Verdict.VALIDITY_ESCALATION),
        (OFFICE, "oracle:main", 2, {}, Verdict.DEPTH),
        (OFFICE, "microshark:x", 0, {}, Verdict.VALID),
        (OFFICE, OTHER, 0, {}, Verdict.DEPTH),
        (HERMES, "oracle:main", 2, {}, Verdict.VALID),
        (HERMES, "openfang:office", 1, {}, Verdict.DEPTH),
        (SHARK, "tool:x", 0, {}, Verdict.DEPTH),
        (OFFICE, CHILD, 1, {}, Verdict.DUPLICATE_AGENT),
        (HERMES, "hermes:second", 2, {}, Verdict.DUPLICATE_AGENT),
        (OFFICE, OTHER, 1, {"public_key": "00" * 32}, Verdict.BAD_KEY),
        (OFFICE, OTHER, 1, {"public_key": "01" + "00" * 31}, Verdict.BAD_KEY),
    ],
)
def test_a_grant_lies_inside_the_granters_own(fleet, parent, child, depth, changes, expected):
    fleet.sign(parent, "delegation", grant(child, Key.generate().public, depth, **changes))
    assert last(fleet) is expected


@pytest.mark.parametrize("owner", [HERMES, CHILD, "the log"])
def test_a_key_belongs_to_one_name_for_ever(fleet, owner):
    key = fleet.log_key if owner == "the log" else fleet.keys[owner]
    fleet.sign(OFFICE, "delegation", grant(OTHER, key.public, 1))
    assert last(fleet) is Verdict.KEY_REUSE


def test_below_the_offices_an_empty_list_grants_nothing(fleet):
    fleet.adopt(OFFICE, OTHER, 1, capabilities=[])
    fleet.sign(OTHER, "delegation", grant("microshark:y", Key.generate().public, 0, capabilities=["read"]))
    assert last(fleet) is Verdict.CAP_ESCALATION


def test_a_second_session_of_hermes_speaks_with_the_pinned_key_too(fleet):
    again = Signer("hermes:second", fleet.root, fleet.origin)
    fleet.raws.append(again.sign("revocation", NOW, (), {"of": CHILD, "reason": "run ended"}))
    assert last(fleet) is Verdict.VALID


def test_a_refused_entry_leaves_no_trace(fleet):
    lineage = lineage_of(fleet)
    before = lineage.agent(CHILD)
    assert before is not None
    seq, known = before.seq, len(lineage)
    fleet.sign(OFFICE, "delegation", grant(OTHER, Key.generate().public, 0))
    assert verdict(lineage, fleet.raws[-1]) is Verdict.DEPTH
    assert (before.seq, len(lineage), lineage.agent(OTHER)) == (seq, known, None)


def test_a_signer_that_was_refused_keeps_its_place(fleet):
    signer = fleet.signers[CHILD]
    place = signer.seq, signer.prev
    with pytest.raises(BadEntry):
        signer.sign("ascension", NOW, (), {"status": "DONE"})
    assert (signer.seq, signer.prev) == place


def test_a_signer_goes_back_to_the_place_of_an_entry_that_the_log_refused(fleet):
    lineage, signer = lineage_of(fleet), fleet.signers[CHILD]
    place = signer.seq, signer.prev
    refused = signer.sign("observation", NOW, (), seen("child:nobody.9z"))
    after = signer.sign("ascension", NOW, (), work())
    assert verdict(lineage, refused) is Verdict.NO_DELEGATION
    signer.withdraw(refused)
    signer.withdraw(after)
    assert (signer.seq, signer.prev) == place
    assert verdict(lineage, signer.sign("ascension", NOW, (), work())) is Verdict.VALID


def test_a_signer_does_not_go_back_for_another_agents_entry(fleet):
    signer = fleet.signers[CHILD]
    place = signer.seq, signer.prev
    signer.withdraw(fleet.raws[0])
    assert (signer.seq, signer.prev) == place
