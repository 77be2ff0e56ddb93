"""A log that was rolled back, begun anew or replaced does not pass for the one that is remembered."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from council_tui.domain.errors import HomeUnusable
from council_tui.ledger.checkpoint import Checkpoint
from council_tui.ledger.keys import Key
from council_tui.ledger.log import Ledger
from council_tui.ledger.merkle import leaf_hash, root_of
from council_tui.ledger.remembered import HEAD, PINS, Remembered, pin, read_pins, remember
from council_tui.ledger.signer import Signer
from council_tui.ledger.store import LedgerUnusable
from council_tui.ledger.trace import verify_entry
from council_tui.ledger.verdicts import Verdict
from council_tui.ledger.verify import Report, verify_log
from tests.ledger.builders import CHILD, HERMES, OFFICE, SHARK, Fleet, tamper, work, write

if TYPE_CHECKING:
    from pathlib import Path


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


@pytest.fixture
def keys(tmp_path):
    """The directory of the keys."""
    (tmp_path / "keys").mkdir()
    return tmp_path / "keys"


def known(fleet: Fleet, size: int) -> Remembered:
    """The head of the fleet's log when it had this size."""
    root = root_of(leaf_hash(raw) for raw in fleet.raws[:size])
    return Remembered(Checkpoint(fleet.origin, size, root))


def check(path: Path, fleet: Fleet, remembered: Remembered) -> Report:
    """The audit with the right root key."""
    return verify_log(path, root_public=fleet.root.public, remembered=remembered)


@pytest.mark.parametrize("size", range(10))
def test_a_log_that_goes_on_from_any_remembered_head_is_valid(path, fleet, size):
    write(path, fleet)
    assert check(path, fleet, known(fleet, size)).verdict is Verdict.VALID
    assert verify_entry(path, 3, fleet.root.public, remembered=known(fleet, size)).verdict is Verdict.VALID


@pytest.mark.parametrize("size", [0, 1, 6, 8])
def test_a_cut_tail_under_a_head_that_was_signed_anew_is_a_rollback(path, fleet, size):
    write(path, fleet, fleet.raws[:size])
    for remembered in (known(fleet, 9), Remembered(named=9)):
        report = check(path, fleet, remembered)
        assert (report.verdict, report.bad_total) == (Verdict.ROLLBACK, 1)
        assert f"holds {size} entries" in report.bad[0].detail
    if size:
        assert verify_entry(path, 0, fleet.root.public, remembered=known(fleet, 9)).verdict is Verdict.ROLLBACK


def test_a_log_that_is_gone_is_a_rollback_unless_nothing_is_known_of_it(path, fleet):
    assert check(path, fleet, known(fleet, 9)).verdict is Verdict.ROLLBACK
    assert check(path, fleet, Remembered(named=1)).verdict is Verdict.ROLLBACK
    with pytest.raises(LedgerUnusable, match="no ledger"):
        check(path, fleet, Remembered())


@pytest.mark.parametrize("more", [0, 3])
def test_another_log_of_the_same_keys_is_a_fork(path, fleet, more):
    other = Fleet()
    other.root, other.log_key, other.origin = fleet.root, fleet.log_key, fleet.origin
    other.signers[HERMES] = Signer(HERMES, fleet.root, fleet.origin)
    other.family()
    for _ in range(3 + more):
        other.sign(SHARK, "ascension", work())
    write(path, other)
    assert check(path, other, known(fleet, 9)).verdict is Verdict.FORK
    trace = verify_entry(path, 0, fleet.root.public, remembered=known(fleet, 9))
    assert [item.name for item in trace.checks if not item.ok] == ["memory"]
    assert trace.verdict is Verdict.FORK


def test_a_log_of_another_name_is_a_fork(path, fleet):
    write(path, fleet)
    head = known(fleet, 9).head
    assert head is not None
    assert check(path, fleet, Remembered(Checkpoint("elsewhere", 9, head.root))).verdict is Verdict.FORK


async def reopened(path: Path, fleet: Fleet, remembered: Remembered) -> Ledger:
    """The log, opened to be written."""
    return await Ledger.open(path, fleet.log_key, fleet.root.public, remembered=remembered)


async def test_a_log_that_goes_on_from_what_is_remembered_is_opened(path, fleet):
    for remembered in (Remembered(), known(fleet, 9), known(fleet, 4), Remembered(named=9)):
        path.unlink(missing_ok=True)
        write(path, fleet)
        await (await reopened(path, fleet, remembered)).close()


@pytest.mark.parametrize("how", ["cut", "gone", "other"])
async def test_a_log_that_does_not_is_not_opened_and_what_to_move_away_is_said(path, fleet, keys, how):
    remember(keys, Checkpoint(fleet.origin, 9, root_of(leaf_hash(raw) for raw in fleet.raws)))
    if how == "cut":
        write(path, fleet, fleet.raws[:6])
    elif how == "other":
        write(path, fleet, [*fleet.raws[:8], fleet.sign(SHARK, "ascension", work())])
    word = "FORK" if how == "other" else "ROLLBACK"
    with pytest.raises(LedgerUnusable, match=word) as caught:
        await reopened(path, fleet, Remembered.of(keys, path.with_name("board.db")))
    assert f"{keys / HEAD} away to begin anew" in str(caught.value)
    assert path.exists() is (how != "gone")


async def test_a_log_is_begun_anew_once_the_remembered_head_is_moved_away(path, fleet, keys):
    remember(keys, Checkpoint(fleet.origin, 9, b"\1" * 32))
    (keys / HEAD).unlink()
    await (await reopened(path, fleet, Remembered.of(keys, path.with_name("board.db")))).close()


async def test_a_log_with_more_in_its_file_than_belongs_there_is_not_opened(path, fleet):
    for change, word in (
        ("INSERT INTO meta VALUES ('more', 'x')", "STORE_MISMATCH"),
        ("UPDATE head SET size = 10", "CACHE_MISMATCH"),
        ("CREATE TRIGGER more AFTER INSERT ON entry BEGIN SELECT 1; END", "STORE_MISMATCH"),
    ):
        path.unlink(missing_ok=True)
        write(path, fleet)
        tamper(path, change)
        with pytest.raises(LedgerUnusable, match=word):
            await reopened(path, fleet, Remembered())


async def opened(path: Path, fleet: Fleet) -> Ledger:
    """An open log with the fleet's first 6 entries in it."""
    ledger = await reopened(path, fleet, Remembered())
    for raw in fleet.raws[:6]:
        await ledger.append(raw)
    return ledger


async def test_an_open_log_finds_its_own_file_valid(path, fleet):
    ledger = await opened(path, fleet)
    report = await ledger.audit()
    assert (report.verdict, report.size, report.root) == (Verdict.VALID, 6, ledger.root)
    await ledger.close()


@pytest.mark.parametrize(
    ("how", "verdict"),
    [
        ("earlier", Verdict.ROLLBACK),
        ("gone", Verdict.ROLLBACK),
        ("other", Verdict.FORK),
        ("longer", Verdict.ROOT_MISMATCH),
        ("damaged", Verdict.STORE_MISMATCH),
    ],
)
async def test_an_open_log_notices_that_its_file_was_replaced(path, fleet, how, verdict):
    ledger = await opened(path, fleet)
    for name in (path, path.with_name("ledger.db-wal"), path.with_name("ledger.db-shm")):
        name.unlink()
    if how == "earlier":
        write(path, fleet, fleet.raws[:4])
    elif how == "longer":
        write(path, fleet)
    elif how == "other":
        report = fleet.sign(OFFICE, "report", {"title": "t", "sha256": "0" * 64})
        write(path, fleet, [*fleet.raws[:5], report])
    elif how == "damaged":
        path.write_bytes(b"no database" * 1000)
    assert (await ledger.audit()).verdict is verdict
    await ledger.close()


def test_what_was_compared_and_what_not_is_said():
    head = Checkpoint("log", 9, b"\1" * 32)
    assert Remembered(head).lines() == ("the remembered head of 9 entries lies in it",)
    said = Remembered(None, None).lines()
    assert said[0].startswith("no remembered head")
    assert "board" in said[1]


def test_a_remembered_head_comes_back_and_is_its_owners_alone(keys):
    head = Checkpoint("log", 9, b"\1" * 32)
    for size in (8, 9):
        remember(keys, Checkpoint("log", size, head.root))
    assert Remembered.of(keys, keys / "board.db").head == head
    assert (keys / HEAD).stat().st_mode & 0o777 == 0o600
    assert os.listdir(keys) == [HEAD]


def test_keys_are_pinned_once(keys):
    root, log = Key.generate().public, Key.generate().public
    with pytest.raises(HomeUnusable, match="is missing"):
        read_pins(keys)
    for _ in range(2):
        pin(keys, root, log)
        assert read_pins(keys) == (root, log)
    with pytest.raises(HomeUnusable, match="names other keys"):
        pin(keys, log, root)


DAMAGE = [b"", b"{", b"\xff", b"[]", b"7", b"{}", b"[" * 60_000, b'{"root": 1, "log": 2}', b'{"root": "x", "log": "y"}']
HEADS = [
    b'{"origin": 1, "size": 1, "root": "%s"}' % (b"00" * 32),
    b'{"origin": "x", "size": true, "root": "%s"}' % (b"00" * 32),
    b'{"origin": "x", "size": -1, "root": "%s"}' % (b"00" * 32),
    b'{"origin": "x", "size": 1, "root": "00"}',
]


@pytest.mark.parametrize(
    ("name", "raw"), [*((n, d) for n in (PINS, HEAD) for d in DAMAGE), *((HEAD, h) for h in HEADS)]
)
def test_a_damaged_file_of_the_operators_is_one_sentence(keys, name, raw):
    (keys / name).write_bytes(raw)
    refused(keys, name)


@pytest.mark.parametrize("name", [PINS, HEAD])
@pytest.mark.parametrize("what", ["directory", "fifo", "link"])
def test_something_else_in_place_of_the_operators_file_is_one_sentence(keys, name, what):
    if what == "directory":
        (keys / name).mkdir()
    elif what == "fifo":
        os.mkfifo(keys / name)
    else:
        (keys / name).symlink_to(keys / "elsewhere")
    refused(keys, name)


def refused(keys: Path, name: str) -> None:
    """Every use of this file says so in one sentence."""
    uses = [lambda: read_pins(keys), lambda: pin(keys, b"", b"")]
    for use in uses if name == PINS else [lambda: Remembered.of(keys, keys / "board.db")]:
        with pytest.raises(HomeUnusable, match="is damaged") as caught:
            use()
        assert str(keys / name) in str(caught.value)


def test_a_head_that_cannot_be_kept_says_so(keys):
    (keys / HEAD).mkdir()
    with pytest.raises(HomeUnusable, match="cannot be written"):
        remember(keys, Checkpoint("log", 1, b"\1" * 32))
