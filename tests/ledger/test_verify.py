"""The audit: what was done to a file, and what it is called."""

from __future__ import annotations

import contextlib
import sqlite3

import pytest

from council_tui.ledger import verify as audit
from council_tui.ledger.envelope import open_strict
from council_tui.ledger.keys import Key
from council_tui.ledger.signer import Signer
from council_tui.ledger.store import LedgerUnusable
from council_tui.ledger.verdicts import Verdict
from council_tui.ledger.verify import Report, verify_entry, verify_log
from tests.ledger.builders import CHILD, HERMES, NOW, OFFICE, SHARK, Fleet, grant, tamper, work, write


@pytest.fixture
def fleet():
    """A family of which the child and the microshark have reported: 9 entries."""
    fleet = Fleet().family()
    fleet.sign(SHARK, "ascension", work())
    fleet.sign(CHILD, "ascension", work())
    fleet.sign(CHILD, "ascension", work(findings=3))
    return fleet


@pytest.fixture
def path(tmp_path):
    """Where the log lies."""
    return tmp_path / "ledger.db"


def check(path, fleet: Fleet, **more) -> Report:
    """The audit with the right root key."""
    return verify_log(path, root_public=fleet.root.public, **more)


def verdicts(report: Report) -> list[tuple[int | None, Verdict]]:
    """Where and what, in order."""
    return [(bad.index, bad.verdict) for bad in report.bad]


def test_an_untouched_log_is_valid_and_reports_its_progress(path, fleet, monkeypatch):
    monkeypatch.setattr(audit, "_STEP", 4)
    write(path, fleet)
    steps: list[tuple[int, int]] = []
    report = check(path, fleet, progress=lambda done, total: steps.append((done, total)))
    assert (report.verdict, report.checked, report.size, report.bad) == (Verdict.VALID, 9, 9, ())
    assert steps == [(4, 9), (8, 9), (9, 9)]


def test_an_edited_byte_is_found_at_its_entry_and_under_the_root(path, fleet):
    write(path, fleet)
    raw = fleet.raws[7]
    flipped = raw[:-10] + bytes([raw[-10] ^ 1]) + raw[-9:]
    tamper(path, f"UPDATE entry SET raw = x'{flipped.hex()}' WHERE idx = 7")
    report = check(path, fleet)
    assert report.bad[0].index == 7
    assert report.verdict in (Verdict.BAD_SIGNATURE, Verdict.ENCODING)
    assert report.bad[-1].verdict is Verdict.ROOT_MISMATCH
    assert report.bad[0].next_step == report.verdict.next_step


def test_a_deleted_entry_leaves_a_hole(path, fleet):
    write(path, fleet)
    tamper(path, "DELETE FROM entry WHERE idx = 7")
    found = verdicts(check(path, fleet))
    assert found[0] == (7, Verdict.SIZE_MISMATCH)
    assert (8, Verdict.SEQ_GAP) in found
    assert found[-1] == (None, Verdict.SIZE_MISMATCH)


def test_a_truncated_tail_is_shorter_than_its_head(path, fleet):
    write(path, fleet)
    tamper(path, "DELETE FROM entry WHERE idx = 8")
    assert verdicts(check(path, fleet)) == [(None, Verdict.SIZE_MISMATCH)]


def test_an_older_head_put_back_is_noticed_by_its_size(path, fleet, tmp_path):
    write(path, fleet)
    write(tmp_path / "older.db", fleet, fleet.raws[:5])
    tamper(
        path,
        f"ATTACH '{tmp_path / 'older.db'}' AS older",
        "UPDATE head SET size = 5, note = (SELECT note FROM older.head)",
    )
    assert verdicts(check(path, fleet)) == [(None, Verdict.SIZE_MISMATCH)]


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ("UPDATE entry SET leaf = zeroblob(32) WHERE idx = 3", Verdict.CACHE_MISMATCH),
        ("UPDATE node SET hash = zeroblob(32) WHERE level = 2", Verdict.CACHE_MISMATCH),
        ("DELETE FROM node WHERE level = 1 AND idx = 0", Verdict.CACHE_MISMATCH),
        ("INSERT INTO node VALUES (9, 9, x'00')", Verdict.CACHE_MISMATCH),
        ("UPDATE head SET note = x'00'", Verdict.BAD_CHECKPOINT),
        ("DELETE FROM head", Verdict.BAD_CHECKPOINT),
        ("UPDATE meta SET value = 'x' WHERE name = 'key'", Verdict.BAD_CHECKPOINT),
        ("UPDATE meta SET value = 'x' WHERE name = 'origin'", Verdict.WRONG_LOG),
        ("UPDATE head SET size = 10", Verdict.CACHE_MISMATCH),
        ("UPDATE head SET size = 8", Verdict.CACHE_MISMATCH),
        ("INSERT INTO meta VALUES ('more', 'x')", Verdict.STORE_MISMATCH),
        ("INSERT INTO entry SELECT 5000000000000000000, leaf, raw FROM entry WHERE idx = 3", Verdict.SIZE_MISMATCH),
        ("INSERT INTO entry SELECT 9223372036854775807, leaf, raw FROM entry WHERE idx = 3", Verdict.SIZE_MISMATCH),
        ("INSERT INTO entry SELECT -9223372036854775808, leaf, raw FROM entry WHERE idx = 3", Verdict.SIZE_MISMATCH),
        ("INSERT INTO node SELECT 1, 5000000000000000000, hash FROM node LIMIT 1", Verdict.CACHE_MISMATCH),
        ("CREATE TABLE more (x)", Verdict.STORE_MISMATCH),
        ("CREATE VIEW more AS SELECT 1", Verdict.STORE_MISMATCH),
        ("CREATE INDEX more ON entry (raw)", Verdict.STORE_MISMATCH),
        ("CREATE TRIGGER more AFTER INSERT ON entry BEGIN SELECT 1; END", Verdict.STORE_MISMATCH),
        ("CREATE TRIGGER entry_stays BEFORE DELETE ON entry BEGIN SELECT 1; END", Verdict.STORE_MISMATCH),
        ("DROP INDEX entry_leaf; CREATE INDEX entry_leaf ON entry (idx)", Verdict.STORE_MISMATCH),
    ],
)
def test_a_changed_cache_or_head_is_named_for_what_it_is(path, fleet, change, verdict):
    write(path, fleet)
    tamper(path, change)
    assert check(path, fleet).verdict is verdict


@pytest.mark.parametrize("gone", ["TRIGGER entry_next", "TRIGGER head_grows", "INDEX entry_leaf"])
def test_a_seat_belt_that_was_taken_away_is_missed(path, fleet, gone):
    write(path, fleet)
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute(f"DROP {gone}")
    report = check(path, fleet)
    assert verdicts(report) == [(None, Verdict.STORE_MISMATCH)]
    assert gone.split()[1] in report.bad[0].detail


def test_a_second_head_is_told(path, fleet):
    write(path, fleet)
    tamper(path, "PRAGMA ignore_check_constraints = ON", "INSERT INTO head SELECT 2, size, note FROM head")
    assert verdicts(check(path, fleet)) == [(None, Verdict.STORE_MISMATCH)]


def test_another_log_key_cannot_sign_the_head_of_this_log(path, fleet):
    honest, fleet.log_key = fleet.log_key, Key.generate()
    write(path, fleet)
    assert check(path, fleet).verdict is Verdict.BAD_CHECKPOINT
    assert check(path, fleet, log_public=honest.public).verdict is Verdict.BAD_CHECKPOINT


def test_another_root_key_trusts_nothing_in_the_log(path, fleet):
    write(path, fleet)
    report = verify_log(path, root_public=Key.generate().public)
    assert verdicts(report)[:2] == [(0, Verdict.WRONG_SIGNER), (1, Verdict.NO_DELEGATION)]


def test_an_owner_who_signs_everything_anew_cannot_drop_or_move_an_agents_entries(path, fleet, tmp_path):
    write(path, fleet, fleet.raws[:7] + fleet.raws[8:])
    assert verdicts(check(path, fleet)) == [(7, Verdict.SEQ_GAP)]
    moved = tmp_path / "moved.db"
    write(moved, fleet, [*fleet.raws[:7], fleet.raws[8], fleet.raws[7]])
    assert verdicts(check(moved, fleet)) == [(7, Verdict.SEQ_GAP)]


def test_an_owner_who_signs_everything_anew_cannot_repeat_forge_or_widen(path, fleet, tmp_path):
    liar = Key.generate()
    hermes = fleet.signers[HERMES]
    forged = Signer(HERMES, liar, fleet.origin, hermes.seq, hermes.prev)
    forged_raw = forged.sign("delegation", NOW, (), grant("openfang:office", liar.public, 2))
    wide = fleet.sign(CHILD, "delegation", grant("microshark:w", Key.generate().public, 0, capabilities=["all"]))
    for number, (raw, verdict) in enumerate(
        [
            (fleet.raws[3], Verdict.REPLAY),
            (forged_raw, Verdict.WRONG_SIGNER),
            (wide, Verdict.CAP_ESCALATION),
            (b"[" * 10_000, Verdict.SCHEMA),
            (b"x" * 70_000, Verdict.TOO_LARGE),
            (fleet.raws[0].replace(b",", b", ", 1), Verdict.NOT_CANONICAL),
        ]
    ):
        other = tmp_path / f"{number}.db"
        write(other, fleet, [*fleet.raws[:9], raw])
        assert verdicts(check(other, fleet)) == [(9, verdict)]


def test_an_agent_that_never_accepted_or_was_revoked_has_no_valid_report(path, fleet):
    fleet.adopt(OFFICE, "child:late.4d", 1, accept=False)
    fleet.sign("child:late.4d", "ascension", work())
    fleet.sign(OFFICE, "revocation", {"of": CHILD, "reason": "run ended"})
    fleet.sign(SHARK, "ascension", work())
    write(path, fleet)
    report = check(path, fleet)
    assert verdicts(report) == [(10, Verdict.NOT_ACKNOWLEDGED), (12, Verdict.REVOKED)]
    assert report.bad[1].agent == SHARK


def test_a_flood_of_findings_is_counted_and_not_kept(path, fleet):
    write(path, fleet, fleet.raws[:1] * 300)
    report = check(path, fleet)
    assert (len(report.bad), report.bad_total) == (audit.MAX_BAD, 299)


@pytest.mark.parametrize("process_count", [1, 2])
def test_several_processes_give_the_same_answer(path, fleet, monkeypatch, process_count):
    monkeypatch.setattr(audit, "PARALLEL_FROM", 5)
    monkeypatch.setattr(audit, "_CHUNK", 1)
    write(path, fleet)
    assert check(path, fleet, processes=process_count).verdict is Verdict.VALID
    liar = Key.generate()
    liar.key_id = fleet.keys[CHILD].key_id
    child = fleet.signers[CHILD]
    fleet.raws.append(Signer(CHILD, liar, fleet.origin, child.seq, child.prev).sign("ascension", NOW, (), work()))
    path.unlink()
    write(path, fleet)
    report = check(path, fleet, processes=process_count)
    assert verdicts(report) == [(9, Verdict.BAD_SIGNATURE)]


def test_a_file_with_rows_of_a_wrong_type_is_unusable(path, fleet):
    write(path, fleet)
    tamper(
        path,
        "ALTER TABLE entry RENAME TO old",
        "CREATE TABLE entry (idx, leaf, raw)",
        "INSERT INTO entry SELECT idx, leaf, 'text' FROM old",
    )
    with pytest.raises(LedgerUnusable, match="wrong type"):
        check(path, fleet)


def test_a_damaged_or_missing_file_is_unusable(path, fleet, tmp_path):
    write(path, fleet)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    for broken in (path, tmp_path / "none.db"):
        with pytest.raises(LedgerUnusable):
            check(broken, fleet)


@pytest.mark.parametrize("index", range(9))
def test_each_entry_is_traced_up_to_the_root_and_the_head(path, fleet, index):
    write(path, fleet)
    report = verify_entry(path, index, fleet.root.public)
    assert report.verdict is Verdict.VALID
    assert report.kind == open_strict(fleet.raws[index]).statement.kind
    assert [item.name for item in report.checks] == [
        "envelope", "signature", "place", "authority", "kind", "lineage", "acknowledgement", "inclusion",
    ]  # fmt: skip
    assert all(item.ok for item in report.checks)


def test_the_trace_of_a_microshark_names_its_whole_line(path, fleet):
    write(path, fleet)
    lines = {item.name: item.detail for item in verify_entry(path, 6, fleet.root.public).checks}
    assert lines["lineage"] == f"{HERMES} > {OFFICE} > {CHILD} > {SHARK}"
    assert lines["acknowledgement"].startswith("entry 5 accepts")
    assert lines["inclusion"].endswith("signed head of 9 entries")


def trace(path, fleet: Fleet, index: int) -> list[tuple[str, Verdict]]:
    """The checks of one entry that failed."""
    checks = verify_entry(path, index, fleet.root.public).checks
    return [(item.name, item.verdict) for item in checks if not item.ok]


def test_a_trace_stops_where_the_next_check_would_lean_on_nothing(path, fleet):
    stranger = Signer("child:x", Key.generate(), fleet.origin)
    write(path, fleet, [*fleet.raws, stranger.sign("ascension", NOW, (), work()), fleet.raws[0], b"{}"])
    assert trace(path, fleet, 9) == [("signature", Verdict.NO_DELEGATION)]
    assert trace(path, fleet, 10) == [("place", Verdict.REPLAY)]
    assert trace(path, fleet, 11) == [("envelope", Verdict.SCHEMA)]


@pytest.mark.parametrize(
    ("change", "failed"),
    [
        ("UPDATE node SET hash = zeroblob(32) WHERE level = 3", ("inclusion", Verdict.BAD_PROOF)),
        ("DELETE FROM head", ("inclusion", Verdict.BAD_CHECKPOINT)),
    ],
)
def test_a_trace_needs_a_proof_under_a_signed_head(path, fleet, change, failed):
    write(path, fleet)
    tamper(path, change)
    assert trace(path, fleet, 8) == [failed]


def test_a_trace_checks_the_signatures_of_the_grants_it_stands_on(path, fleet):
    liar, office = Key.generate(), fleet.signers[OFFICE]
    liar.key_id = fleet.keys[OFFICE].key_id
    fleet.signers[OFFICE] = Signer(OFFICE, liar, fleet.origin, office.seq, office.prev)
    fleet.adopt(OFFICE, "child:false.5e", 1)
    write(path, fleet)
    assert trace(path, fleet, 10) == [("lineage", Verdict.BAD_SIGNATURE)]


def test_an_entry_beyond_the_signed_head_is_not_covered(path, fleet, tmp_path):
    write(path, fleet)
    write(tmp_path / "older.db", fleet, fleet.raws[:5])
    tamper(
        path,
        f"ATTACH '{tmp_path / 'older.db'}' AS older",
        "UPDATE head SET size = 5, note = (SELECT note FROM older.head)",
    )
    assert trace(path, fleet, 7) == [("inclusion", Verdict.SIZE_MISMATCH)]


def test_an_entry_that_does_not_exist_is_no_entry(path, fleet):
    write(path, fleet)
    with pytest.raises(LedgerUnusable, match="no entry 9"):
        verify_entry(path, 9, fleet.root.public)
