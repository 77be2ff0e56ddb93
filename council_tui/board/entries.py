"""What the journal knows of the ledger: an entry that it names was on disk before the journal named it."""

from __future__ import annotations

import contextlib
import sqlite3
from typing import TYPE_CHECKING

from council_tui.board.database import read_only_uri
from council_tui.domain.events import EventKind as K

if TYPE_CHECKING:
    from pathlib import Path

_NAMING = (K.DELEGATED, K.ACCEPTED, K.VERIFIED, K.REVOKED, K.REPORT_WRITTEN)
"""Kinds whose `entry` is our own; what else is in the journal may hold words of an agent."""
_NEWEST = 256
"""Entries that were appended at once may be journalled in another order; never in one so different."""


def entries_named(path: Path) -> int | None:
    """How many entries the ledger holds at least, by this board's journal; None when the board cannot be read."""
    if not path.exists():
        return 0
    kinds = ", ".join(f"'{kind}'" for kind in _NAMING)
    newest = f"SELECT data ->> 'entry' AS entry FROM journal WHERE kind IN ({kinds}) ORDER BY seq DESC LIMIT {_NEWEST}"
    try:
        with contextlib.closing(sqlite3.connect(read_only_uri(path), uri=True)) as db:
            found = db.execute(f"SELECT max(CAST(entry AS INTEGER)) FROM ({newest})").fetchone()[0]
    except sqlite3.Error:
        return None
    return 0 if found is None else int(found) + 1
