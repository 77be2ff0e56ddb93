"""What front ends read from a log: rows and the head, as they lie in the file; `verify` checks them."""

from __future__ import annotations

import sqlite3
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from council_tui.board.database import read_only
from council_tui.ledger.store import LedgerUnusable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import aiosqlite


@dataclass(frozen=True, slots=True)
class Row:
    """An entry as it lies in the file; `envelope.open_strict(row.raw)` says what is in it."""

    index: int
    raw: bytes
    leaf: str
    """Hex leaf hash."""


@asynccontextmanager
async def _reader(path: Path) -> AsyncIterator[aiosqlite.Connection]:
    try:
        async with read_only(path) as connection:
            yield connection
    except sqlite3.Error as error:
        raise LedgerUnusable(f"{path} cannot be read as a ledger: {error}") from error


async def count(path: Path) -> int:
    """How many entries the log holds. Raises `LedgerUnusable`."""
    async with _reader(path) as db, db.execute("SELECT count(*) FROM entry") as found:
        row = await found.fetchone()
    return 0 if row is None else int(row[0])


async def rows(path: Path, start: int = 0, limit: int = 500) -> tuple[Row, ...]:
    """At most `limit` entries from index `start` on, in order. Raises `LedgerUnusable`."""
    query = "SELECT idx, raw, leaf FROM entry WHERE idx >= ? ORDER BY idx LIMIT ?"
    async with _reader(path) as db, db.execute(query, (start, limit)) as found:
        return tuple([Row(index, raw, leaf.hex()) async for index, raw, leaf in found])


async def checkpoint(path: Path) -> bytes | None:
    """The signed head, or None in a file that was never completed. Raises `LedgerUnusable`."""
    async with _reader(path) as db, db.execute("SELECT note FROM head") as found:
        row = await found.fetchone()
    return None if row is None else bytes(row[0])
