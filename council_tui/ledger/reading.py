"""What front ends read from a log: rows and the head, as they lie in the file; `verify` checks them.

Each read sees one committed state. They run in a worker thread, so no screen waits for a disk.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from council_tui.ledger import store

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Row:
    """An entry as it lies in the file; `envelope.open_strict(row.raw)` says what is in it."""

    index: int
    raw: bytes
    leaf: str
    """Hex leaf hash."""


def _count(path: Path) -> int:
    with store.snapshot(path) as db:
        return store.count(db)


def _rows(path: Path, start: int, limit: int) -> tuple[Row, ...]:
    with store.snapshot(path) as db:
        found = store.entries(db, start, start + limit)
        return tuple(Row(index, raw, leaf.hex()) for index, leaf, raw in found)


def _checkpoint(path: Path) -> bytes | None:
    with store.snapshot(path) as db:
        return store.head_note(db)


async def count(path: Path) -> int:
    """How many entries the log holds. Raises `LedgerUnusable`."""
    return await asyncio.to_thread(_count, path)


async def rows(path: Path, start: int = 0, limit: int = 500) -> tuple[Row, ...]:
    """At most `limit` entries from index `start` on, in order. Raises `LedgerUnusable`."""
    return await asyncio.to_thread(_rows, path, start, limit)


async def checkpoint(path: Path) -> bytes | None:
    """The signed head, or None in a file that was never completed. Raises `LedgerUnusable`."""
    return await asyncio.to_thread(_checkpoint, path)
