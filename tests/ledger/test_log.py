"""The log: decided before it is written, written as one, and only ever longer."""

from __future__ import annotations

import asyncio
import sqlite3
import sys

import pytest

from council_tui.ledger import reading, store
from council_tui.ledger.checkpoint import open_checkpoint, origin_of
from council_tui.ledger.envelope import open_strict
from council_tui.ledger.keys import Key, load_or_create
from council_tui.ledger.log import Ledger
from council_tui.ledger.merkle import leaf_hash, root_of
from council_tui.ledger.signer import Signer
from council_tui.ledger.store import LedgerUnusable
from council_tui.ledger.verdicts import BadEntry, Verdict
from council_tui.ledger.verify import verify_log
from tests.ledger.builders import CHILD, HERMES, NOW, OFFICE, Fleet, tamper, work, write


@pytest.fixture
def fleet():
    """Hermes, an office, a child and a microshark, all accepted."""
    return Fleet().family()


@pytest.fixture
def path(tmp_path):
    """Where the log lies."""
    return tmp_path / "ledger.db"


async def opened(path, fleet) -> Ledger:
    """The log of this fleet."""
    return await Ledger.open(path, fleet.log_key, fleet.root.public)


async def filled(path, fleet) -> Ledger:
    """The log of this fleet with all its entries."""
    ledger = await opened(path, fleet)
    for raw in fleet.raws:
        await ledger.append(raw)
    return ledger


async def test_an_appended_entry_is_on_disk_under_a_signed_head(path, fleet):
    ledger = await opened(path, fleet)
    for index, raw in enumerate(fleet.raws):
        done = await ledger.append(raw)
        assert (done.index, done.leaf, done.opened) == (index, leaf_hash(raw).hex(), open_strict(raw))
        rows = await reading.rows(path)
        assert [row.raw for row in rows] == fleet.raws[: index + 1]
        note = await reading.checkpoint(path)
        assert note is not None
        head = open_checkpoint(note, ledger.origin, fleet.log_key.public)
        assert (head.size, head.root.hex()) == (ledger.size, ledger.root)
        assert head.root == root_of(leaf_hash(row.raw) for row in rows)
    await ledger.close()
    assert path.stat().st_mode & 0o777 == 0o600


async def test_a_new_log_is_named_after_its_key_and_is_empty(path, fleet):
    ledger = await opened(path, fleet)
    assert ledger.origin == origin_of(fleet.log_key.public)
    assert (ledger.size, await reading.count(path), ledger.head_of(HERMES)) == (0, 0, (0, None))
    await ledger.close()
    assert verify_log(path, root_public=fleet.root.public).verdict is Verdict.VALID


async def test_a_log_goes_on_where_it_stopped(path, fleet):
    ledger = await filled(path, fleet)
    size, root, place = ledger.size, ledger.root, ledger.head_of(CHILD)
    await ledger.close()
    again = await opened(path, fleet)
    assert (again.size, again.root, again.head_of(CHILD)) == (size, root, place)
    assert again.head_of(CHILD) == (fleet.signers[CHILD].seq, fleet.signers[CHILD].prev)
    office = Signer(OFFICE, fleet.keys[OFFICE], again.origin, *again.head_of(OFFICE))
    await again.append(office.sign("ascension", NOW, (), work()))
    await again.close()
    assert verify_log(path, root_public=fleet.root.public).checked == size + 1


async def test_what_is_not_valid_is_not_written(path, fleet):
    ledger = await filled(path, fleet)
    size, root = ledger.size, ledger.root
    stranger = Signer("child:x", Key.generate(), fleet.origin)
    bad = [
        (fleet.raws[-1], Verdict.REPLAY),
        (b"{}", Verdict.SCHEMA),
        (stranger.sign("ascension", NOW, (), work()), Verdict.NO_DELEGATION),
    ]
    for raw, verdict in bad:
        with pytest.raises(BadEntry) as refusal:
            await ledger.append(raw)
        assert refusal.value.verdict is verdict
    assert (ledger.size, ledger.root, await reading.count(path)) == (size, root, size)
    await ledger.append(fleet.sign(CHILD, "ascension", work()))
    await ledger.close()


async def test_appends_at_once_are_decided_one_after_the_other(path, fleet):
    ledger = await filled(path, fleet)
    reports = [fleet.sign(CHILD, "ascension", work(findings=n)) for n in range(50)]
    done = await asyncio.gather(*(ledger.append(raw) for raw in [*reports, reports[7]]), return_exceptions=True)
    assert [item.index for item in done[:-1]] == list(range(6, 56))
    assert isinstance(done[-1], BadEntry)
    assert done[-1].verdict is Verdict.REPLAY
    await ledger.close()
    report = verify_log(path, root_public=fleet.root.public)
    assert (report.verdict, report.checked) == (Verdict.VALID, 56)


async def test_a_caller_who_gives_up_does_not_undo_the_append(path, fleet):
    ledger = await filled(path, fleet)
    task = asyncio.ensure_future(ledger.append(fleet.sign(CHILD, "ascension", work())))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await ledger.append(fleet.sign(CHILD, "ascension", work()))
    assert ledger.size == 8
    await ledger.close()


async def test_a_log_that_cannot_be_written_stops_and_says_so(path, fleet):
    ledger = await filled(path, fleet)
    tamper(path, "CREATE TRIGGER full BEFORE INSERT ON entry BEGIN SELECT raise(ABORT, 'disk full'); END")
    for _ in range(2):
        with pytest.raises(LedgerUnusable, match="disk full"):
            await ledger.append(fleet.sign(CHILD, "ascension", work()))
    assert ledger.size == 6
    await ledger.close()
    tamper(path)
    assert verify_log(path, root_public=fleet.root.public).verdict is Verdict.VALID


async def test_a_log_of_another_key_name_or_root_is_not_opened(path, fleet):
    await (await filled(path, fleet)).close()
    with pytest.raises(LedgerUnusable, match="another log key"):
        await Ledger.open(path, Key.generate(), fleet.root.public)
    with pytest.raises(LedgerUnusable, match="another log key or name"):
        await Ledger.open(path, fleet.log_key, fleet.root.public, "elsewhere")
    with pytest.raises(LedgerUnusable, match="WRONG_SIGNER"):
        await Ledger.open(path, fleet.log_key, Key.generate().public)


async def test_a_log_may_have_a_name_of_its_own_and_then_needs_its_key_pinned(path, fleet):
    ledger = await Ledger.open(path, fleet.log_key, fleet.root.public, "example.com/my-log")
    hermes = Signer(HERMES, fleet.root, ledger.origin)
    await ledger.append(hermes.sign("report", NOW, (), {"title": "t", "sha256": "0" * 64}))
    await ledger.close()
    public = fleet.root.public
    assert verify_log(path, root_public=public).verdict is Verdict.BAD_CHECKPOINT
    assert verify_log(path, root_public=public, log_public=fleet.log_key.public).verdict is Verdict.VALID


WRITES_FOR_EVER = """
import asyncio, sys
from pathlib import Path
from council_tui.ledger.keys import load_or_create
from council_tui.ledger.log import Ledger
from council_tui.ledger.signer import Signer

async def main(home):
    root = load_or_create(home / "keys" / "hermes")
    ledger = await Ledger.open(home / "ledger.db", load_or_create(home / "keys" / "log"), root.public)
    hermes = Signer("hermes:main", root, ledger.origin)
    while True:
        done = await ledger.append(hermes.sign("report", 1, (), {"title": "t", "sha256": "0" * 64}))
        print(done.index, flush=True)

asyncio.run(main(Path(sys.argv[1])))
"""


async def test_what_was_acknowledged_is_there_after_a_kill(tmp_path):
    writer = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITES_FOR_EVER, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    assert writer.stdout is not None
    for expected in range(40):
        assert int(await writer.stdout.readline()) == expected
    writer.kill()
    await writer.communicate()
    root, log_key = (load_or_create(tmp_path / "keys" / name) for name in ("hermes", "log"))
    path = tmp_path / "ledger.db"
    assert verify_log(path, root_public=root.public).verdict is Verdict.VALID
    ledger = await Ledger.open(path, log_key, root.public)
    assert ledger.size >= 40
    await ledger.close()


@pytest.mark.parametrize("name", ["", "my log", "a+b", "a\nb", "x" * 201])
async def test_a_name_that_no_signed_note_can_carry_is_refused(path, fleet, name):
    with pytest.raises(LedgerUnusable, match="cannot be a log's name"):
        await Ledger.open(path, fleet.log_key, fleet.root.public, name)
    assert not path.exists()


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM entry WHERE idx = 5",
        "UPDATE head SET note = x'00'",
        "UPDATE entry SET raw = x'7b7d' WHERE idx = 0",
    ],
)
async def test_a_log_that_was_changed_is_not_written_on(path, fleet, change):
    await (await filled(path, fleet)).close()
    tamper(path, change)
    with pytest.raises(LedgerUnusable, match=r"restore|Restore|rules"):
        await opened(path, fleet)


@pytest.mark.parametrize("where", ["missing/ledger.db", "folder"])
async def test_a_place_where_no_log_can_be_is_refused(tmp_path, fleet, where):
    (tmp_path / "folder").mkdir()
    with pytest.raises(Exception, match="cannot"):
        await opened(tmp_path / where, fleet)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entry SET raw = x'00'",
        "DELETE FROM entry WHERE idx = 5",
        "INSERT INTO entry VALUES (7, x'00', x'00')",
        "INSERT INTO entry VALUES (-1, x'00', x'00')",
        "INSERT INTO entry VALUES (NULL, x'00', x'00')",
        "INSERT OR REPLACE INTO entry VALUES (5, x'00', x'00')",
        "UPDATE node SET hash = x'00'",
        "DELETE FROM node",
        "INSERT OR REPLACE INTO node SELECT level, idx, x'00' FROM node",
        "DELETE FROM head",
        "UPDATE head SET size = 1",
        "INSERT OR REPLACE INTO head VALUES (1, 9, x'00')",
        "UPDATE meta SET value = ''",
        "DELETE FROM meta",
        "INSERT OR REPLACE INTO meta VALUES ('origin', 'x')",
    ],
)
def test_the_file_only_grows_at_its_end(path, fleet, statement):
    write(path, fleet)
    with sqlite3.connect(path) as db, pytest.raises(sqlite3.IntegrityError, match="ledger"):
        db.execute(statement)
    db.close()
    assert verify_log(path, root_public=fleet.root.public).verdict is Verdict.VALID


def test_a_log_on_read_only_media_can_be_read(path, fleet, monkeypatch):
    write(path, fleet)
    monkeypatch.setattr("os.access", lambda *_: False)
    with store.snapshot(path) as db:
        assert store.count(db) == 6


async def test_rows_are_read_in_pieces(path, fleet):
    write(path, fleet)
    assert [row.index for row in await reading.rows(path, 2, 3)] == [2, 3, 4]
    assert await reading.count(path) == 6


async def test_a_file_that_is_no_log_says_so(tmp_path):
    (tmp_path / "junk").write_bytes(b"junk" * 1000)
    for path in (tmp_path / "junk", tmp_path / "none"):
        for read in (reading.count, reading.rows, reading.checkpoint):
            with pytest.raises(LedgerUnusable, match=r"cannot be read|no ledger at"):
                await read(path)
        with pytest.raises(LedgerUnusable), store.snapshot(path):
            pass
