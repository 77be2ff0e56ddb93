"""The log's SQLite file: its tables, the triggers that make it append-only, and plain readers."""

from __future__ import annotations

import contextlib
import functools
import os
import sqlite3
from typing import TYPE_CHECKING

from council_tui.domain.errors import HomeUnusable
from council_tui.ledger.checkpoint import Checkpoint, open_checkpoint, pinned
from council_tui.ledger.verdicts import BadEntry, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS entry (idx INTEGER PRIMARY KEY, leaf BLOB NOT NULL, raw BLOB NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS entry_leaf ON entry (leaf);
CREATE TABLE IF NOT EXISTS node (
  level INTEGER NOT NULL, idx INTEGER NOT NULL, hash BLOB NOT NULL, PRIMARY KEY (level, idx)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS head (
  one INTEGER PRIMARY KEY CHECK (one = 1), size INTEGER NOT NULL, note BLOB NOT NULL
) STRICT;

CREATE TRIGGER IF NOT EXISTS entry_next BEFORE INSERT ON entry
  WHEN NEW.idx IS NOT (SELECT coalesce(max(idx), -1) + 1 FROM entry)
  BEGIN SELECT raise(ABORT, 'the ledger only grows at its end'); END;
CREATE TRIGGER IF NOT EXISTS entry_kept BEFORE UPDATE ON entry
  BEGIN SELECT raise(ABORT, 'an entry of the ledger never changes'); END;
CREATE TRIGGER IF NOT EXISTS entry_stays BEFORE DELETE ON entry
  BEGIN SELECT raise(ABORT, 'an entry of the ledger is never deleted'); END;
CREATE TRIGGER IF NOT EXISTS node_new BEFORE INSERT ON node
  WHEN EXISTS (SELECT 1 FROM node WHERE level = NEW.level AND idx = NEW.idx)
  BEGIN SELECT raise(ABORT, 'a node of the ledger never changes'); END;
CREATE TRIGGER IF NOT EXISTS node_kept BEFORE UPDATE ON node
  BEGIN SELECT raise(ABORT, 'a node of the ledger never changes'); END;
CREATE TRIGGER IF NOT EXISTS node_stays BEFORE DELETE ON node
  BEGIN SELECT raise(ABORT, 'a node of the ledger is never deleted'); END;
CREATE TRIGGER IF NOT EXISTS head_new BEFORE INSERT ON head WHEN EXISTS (SELECT 1 FROM head)
  BEGIN SELECT raise(ABORT, 'the ledger has one head'); END;
CREATE TRIGGER IF NOT EXISTS head_grows BEFORE UPDATE ON head WHEN NEW.size <= OLD.size
  BEGIN SELECT raise(ABORT, 'the head of the ledger only grows'); END;
CREATE TRIGGER IF NOT EXISTS head_stays BEFORE DELETE ON head
  BEGIN SELECT raise(ABORT, 'the head of the ledger is never deleted'); END;
CREATE TRIGGER IF NOT EXISTS meta_new BEFORE INSERT ON meta
  WHEN EXISTS (SELECT 1 FROM meta WHERE name = NEW.name)
  BEGIN SELECT raise(ABORT, 'the name and key of the ledger never change'); END;
CREATE TRIGGER IF NOT EXISTS meta_kept BEFORE UPDATE ON meta
  BEGIN SELECT raise(ABORT, 'the name and key of the ledger never change'); END;
CREATE TRIGGER IF NOT EXISTS meta_stays BEFORE DELETE ON meta
  BEGIN SELECT raise(ABORT, 'the name and key of the ledger never change'); END;
"""
# REPLACE deletes the old row past the delete triggers; hence the checks before every insert, and hence no
# unique index on leaf, which would let a new row at the end replace an old one.


class LedgerUnusable(HomeUnusable):
    """The ledger file cannot be read, written or trusted; the text says what to do."""


@contextlib.contextmanager
def snapshot(path: Path) -> Iterator[sqlite3.Connection]:
    """A read-only connection that sees one state of the file throughout. Raises `LedgerUnusable`."""
    if not path.is_file():
        raise LedgerUnusable(f"there is no ledger at {path}")
    mode = "mode=ro"
    if not os.access(path.parent, os.W_OK) and not path.with_name(f"{path.name}-wal").exists():
        # On read-only media SQLite cannot make the file that readers share, and nobody can write either.
        mode = "mode=ro&immutable=1"
    try:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True, isolation_level=None)
        with contextlib.closing(connection):
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM meta").fetchone()
            yield connection
    except sqlite3.Error as error:
        raise LedgerUnusable(f"{path} cannot be read as a ledger: {error}; restore it from a copy") from error


def meta(connection: sqlite3.Connection) -> dict[str, str]:
    """What was fixed when the file was made: `origin`, and `key`, the log's public key in hex."""
    return {str(name): str(value) for name, value in connection.execute("SELECT name, value FROM meta")}


def count(connection: sqlite3.Connection) -> int:
    """How many entries the file holds."""
    return int(connection.execute("SELECT count(*) FROM entry").fetchone()[0])


def open_head(connection: sqlite3.Connection, log_public: bytes | None) -> Checkpoint:
    """The head, its signature checked by the pinned key or the one that the log's name stands for.

    Raises `BadEntry` with BAD_CHECKPOINT.
    """
    fixed = meta(connection)
    origin = fixed.get("origin", "")
    return open_checkpoint(head_note(connection) or b"", origin, pinned(origin, fixed.get("key", ""), log_public))


def head_note(connection: sqlite3.Connection) -> bytes | None:
    """The signed head, or None in a file that was never completed."""
    row = connection.execute("SELECT note FROM head").fetchone()
    return None if row is None or not isinstance(row[0], bytes) else row[0]


def entries(
    connection: sqlite3.Connection, start: int | None = None, end: int | None = None
) -> Iterator[tuple[int, bytes, bytes]]:
    """(index, leaf, raw) in order, from `start` and before `end`.

    Raises `LedgerUnusable` for rows of types that no ledger holds.
    """
    # Without a bound there is none: a row at the far end of the integers is one that someone put there.
    bounds = {"idx >= ?": start, "idx < ?": end}
    where = " AND ".join(bound for bound, value in bounds.items() if value is not None) or "true"
    values = [value for value in bounds.values() if value is not None]
    for row in connection.execute(f"SELECT idx, leaf, raw FROM entry WHERE {where} ORDER BY idx", values):
        if not (isinstance(row[0], int) and isinstance(row[1], bytes) and isinstance(row[2], bytes)):
            raise LedgerUnusable("a row of the ledger has a wrong type; restore the file from a copy")
        yield row


def by_leaf(connection: sqlite3.Connection, leaf: bytes) -> tuple[int, bytes] | None:
    """(index, raw) of the entry with this leaf hash."""
    row = connection.execute("SELECT idx, raw FROM entry WHERE leaf = ?", (leaf,)).fetchone()
    return None if row is None else (int(row[0]), bytes(row[1]))


@functools.cache
def _schema() -> frozenset[tuple[str, str, str | None]]:
    with contextlib.closing(sqlite3.connect(":memory:")) as made:
        made.executescript(SCHEMA)
        return _objects(made)


def _objects(connection: sqlite3.Connection) -> frozenset[tuple[str, str, str | None]]:
    return frozenset(connection.execute("SELECT type, name, sql FROM sqlite_master"))


def oddities(connection: sqlite3.Connection, size: int) -> Iterator[BadEntry]:
    """Whatever the file holds besides entries, nodes and a signed head, or lacks: all that no signature covers.

    `size` is what the row of the head must count.
    """
    found, due = _objects(connection), _schema()
    for kind, name in sorted({item[:2] for item in found ^ due}):
        here, made = ((kind, name) in {item[:2] for item in objects} for objects in (found, due))
        how = "is not as it was made" if here and made else "is missing" if made else "does not belong there"
        yield BadEntry(Verdict.STORE_MISMATCH, f"the {kind} {name} {how}")
    if (names := sorted(meta(connection))) != ["key", "origin"]:
        yield BadEntry(Verdict.STORE_MISMATCH, f"the table meta holds {', '.join(names)}, not key and origin")
    sizes = [row[0] for row in connection.execute("SELECT size FROM head")]
    if len(sizes) > 1:
        yield BadEntry(Verdict.STORE_MISMATCH, f"there are {len(sizes)} heads")
    elif sizes and sizes != [size]:
        yield BadEntry(Verdict.CACHE_MISMATCH, f"the row of the head counts {sizes[0]} entries, the log {size}")


def node(connection: sqlite3.Connection, level: int, index: int) -> bytes:
    """The stored hash of a complete node; a leaf's comes from its entry. Empty when it is missing."""
    if level == 0:
        row = connection.execute("SELECT leaf FROM entry WHERE idx = ?", (index,)).fetchone()
    else:
        row = connection.execute("SELECT hash FROM node WHERE level = ? AND idx = ?", (level, index)).fetchone()
    return b"" if row is None or not isinstance(row[0], bytes) else row[0]
