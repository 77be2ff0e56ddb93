"""The journal bears witness of the ledger, and a damaged board says so."""

from __future__ import annotations

import json
import sqlite3

import pytest

from council_tui.board.board import SCHEMA, Board
from council_tui.board.entries import entries_named
from council_tui.domain.errors import HomeUnusable


def journal(path, *events: tuple[str, dict[str, object]]) -> None:
    """A board whose journal holds these events."""
    with sqlite3.connect(path) as db:
        db.executescript(SCHEMA)
        for seq, (kind, data) in enumerate(events, 1):
            row = (seq, "", kind, None, None, None, json.dumps(data))
            db.execute("INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    db.close()


def test_the_newest_entry_that_the_journal_names_counts_whatever_the_order(tmp_path):
    named = [("delegated", {"entry": 0}), ("verified", {"entry": 7}), ("accepted", {"entry": 6}), ("status", {})]
    journal(tmp_path / "board.db", *named, *[("status", {"text": "x"})] * 500)
    assert entries_named(tmp_path / "board.db") == 8


def test_an_entry_in_the_words_of_an_agent_is_not_believed(tmp_path):
    journal(tmp_path / "board.db", ("returned", {"entry": 10**9}), ("status", {"entry": 5}), ("revoked", {"entry": 2}))
    assert entries_named(tmp_path / "board.db") == 3


def test_a_board_that_is_missing_or_new_names_nothing_and_a_damaged_one_is_unknown(tmp_path):
    assert entries_named(tmp_path / "none.db") == 0
    journal(tmp_path / "board.db")
    assert entries_named(tmp_path / "board.db") == 0
    (tmp_path / "board.db").write_bytes(b"no database" * 1000)
    assert entries_named(tmp_path / "board.db") is None


async def test_a_damaged_board_is_called_damaged_and_says_what_to_do(tmp_path):
    (tmp_path / "board.db").write_bytes(b"no database" * 1000)
    with pytest.raises(HomeUnusable, match=r"board\.db is damaged: .*; restore it from a copy, or move it away"):
        await Board(tmp_path / "board.db", str).open()


async def test_a_board_that_cannot_be_written_is_not_called_damaged(tmp_path):
    (tmp_path / "board.db").mkdir()
    with pytest.raises(HomeUnusable, match="cannot write"):
        await Board(tmp_path / "board.db", str).open()
