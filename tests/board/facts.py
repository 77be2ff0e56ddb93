"""Events as a fleet would write them, with the data that the tables need."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from council_tui.board.board import Board, Draft
from council_tui.domain.events import EventKind

if TYPE_CHECKING:
    from pathlib import Path

    from council_tui.board.projection import Tables

K = EventKind
NOW = "2026-05-11T13:20:00.000Z"

_DATA: dict[EventKind, dict[str, Any]] = {
    K.CLAIMED: {"claim": "c_1"},
    K.RETURNED: {"status": "DONE", "findings": [{"severity": "LOW"}], "evidence": ["seen"], "exit_status": 0},
    K.REPORTED: {"entry": 7, "digest": "ab"},
    K.CARD_BLOCKED: {"block": "needs_input", "reason": "asks"},
    K.CARD_FAILED: {"fail": "orphaned", "reason": "silent"},
    K.CARD_RETRY: {"attempt": 1, "delay_seconds": 10.0},
    K.COMMENT: {"author": "hermes", "text": "a \x1b[31mremark\u2028"},
    K.BODY_STARTED: {"pid": 4242, "start_time": 7},
    K.REAPED: {"exit_status": None, "signal": 9, "survivors": []},
    K.STATUS: {"text": "at work"},
    K.HELLO: {"public_key": "00"},
}


def created(card: str, **more: Any) -> Draft:
    """A card in the backlog."""
    data = {"title": card, "plan_id": card, "kind": "child", "parent_agent": "openfang:office.0", "parent_card": None}
    return Draft(K.CARD_CREATED, "openfang:office.0", card, None, {**data, **more})


def started(card: str, run: str, attempt: int = 1) -> Draft:
    """A runner for an attempt at a card."""
    data = {
        "label": card,
        "kind": "child",
        "parent": "openfang:office.0",
        "pid": 4242,
        "start_time": 7,
        "boot_id": "b",
        "attempt": attempt,
        "slice": f"/tmp/{run}",
        "enforcement": "portable",
        "contract": {"sha256": "cd"},
    }
    return Draft(K.AGENT_STARTED, f"child:{card}.{run}", card, run, data)


def happened(kind: EventKind, card: str, run: str | None = None, **more: Any) -> Draft:
    """Anything else about a card and, when given, its run."""
    agent = f"child:{card}.{run}" if run else None
    return Draft(kind, agent, card, run, {**_DATA.get(kind, {}), **more})


def whole_life(card: str, run: str) -> list[Draft]:
    """From the backlog to done."""
    return [
        created(card),
        happened(K.CARD_READY, card),
        started(card, run),
        *(happened(kind, card, run) for kind in (K.HELLO, K.CLAIMED, K.ACKNOWLEDGED, K.RETURNED, K.REPORTED)),
        happened(K.CARD_DONE, card, run),
    ]


async def opened(path: Path) -> Board:
    """A board on this file."""
    board = Board(path, lambda: NOW)
    await board.open()
    return board


def plain(tables: Tables) -> dict[str, Any]:
    """Tables as plain values, to compare what is in memory with what is on disk."""
    return asdict(tables)


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    """What another connection reads."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()
