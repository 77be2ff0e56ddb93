"""The board: decides in memory, on one loop, and answers once the journal and the tables are on disk."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from council_tui.board.database import Writer
from council_tui.board.projection import Agent, Card, Row, Run, Tables
from council_tui.domain.card import CardState
from council_tui.domain.errors import StaleRun
from council_tui.domain.events import Event, EventKind

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from pathlib import Path

SCHEMA = """
CREATE TABLE IF NOT EXISTS journal (
  seq INTEGER PRIMARY KEY, at TEXT NOT NULL, kind TEXT NOT NULL,
  agent TEXT, card TEXT, run TEXT, data TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS journal_card ON journal(card) WHERE card IS NOT NULL;
CREATE INDEX IF NOT EXISTS journal_agent ON journal(agent) WHERE agent IS NOT NULL;
CREATE TRIGGER IF NOT EXISTS journal_append BEFORE INSERT ON journal
  WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM journal)
  BEGIN SELECT raise(ABORT, 'the journal only grows at its end'); END;
CREATE TRIGGER IF NOT EXISTS journal_keep BEFORE UPDATE ON journal
  BEGIN SELECT raise(ABORT, 'the journal is append-only'); END;
CREATE TRIGGER IF NOT EXISTS journal_stay BEFORE DELETE ON journal
  BEGIN SELECT raise(ABORT, 'the journal is append-only'); END;
CREATE TABLE IF NOT EXISTS cards (
  id TEXT PRIMARY KEY, version INTEGER NOT NULL, state TEXT NOT NULL, doc TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS cards_state ON cards(state);
CREATE TABLE IF NOT EXISTS runs (
  id TEXT PRIMARY KEY, version INTEGER NOT NULL, state TEXT NOT NULL, doc TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS agents (
  id TEXT PRIMARY KEY, version INTEGER NOT NULL, state TEXT NOT NULL, doc TEXT NOT NULL
);
"""


def utc_now() -> str:
    """RFC 3339 UTC with milliseconds, for the journal; never used to judge."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True)
class Draft:
    """An event before it has a number and a time."""

    kind: EventKind
    agent: str | None = None
    card: str | None = None
    run: str | None = None
    data: dict[str, Any] = field(default_factory=dict)


def _line(row: Row) -> tuple[str, str, str, str]:
    """(table, id, state, doc) of a row."""
    if isinstance(row, Card):
        return "cards", row.id, str(row.state), _doc(row)
    if isinstance(row, Run):
        return "runs", row.id, row.outcome or "open", _doc(row)
    return "agents", row.name, "ended" if row.ended else "living", _doc(row)


def _doc(row: Row) -> str:
    return json.dumps(vars(row), sort_keys=True, separators=(",", ":"))


def _write_row(connection: sqlite3.Connection, line: tuple[str, str, str, str], version: int) -> None:
    """Compare-and-set on the row's version: a second writer is found out, never overwritten."""
    table, ident, state, doc = line
    if version == 1:
        connection.execute(f"INSERT INTO {table} VALUES (?, 1, ?, ?)", (ident, state, doc))
        return
    done = connection.execute(
        f"UPDATE {table} SET version = ?, state = ?, doc = ? WHERE id = ? AND version = ?",
        (version, state, doc, ident, version - 1),
    )
    if done.rowcount != 1:
        raise StaleRun(f"{table} row {ident} was changed by someone else")


def load_tables(connection: sqlite3.Connection, *, archived: bool = False) -> Tables:
    """The tables as they stand on disk."""
    tables = Tables()
    where = "" if archived else f" WHERE state != '{CardState.ARCHIVED}'"
    for (doc,) in connection.execute(f"SELECT doc FROM cards{where}"):
        card = Card(**json.loads(doc))
        card.state = CardState(card.state)
        tables.cards[card.id] = card
    of_these = f" WHERE doc ->> 'card' IN (SELECT id FROM cards{where})"
    for (doc,) in connection.execute(f"SELECT doc FROM runs{of_these}"):
        run = Run(**json.loads(doc))
        tables.runs[run.id] = run
    for (doc,) in connection.execute(f"SELECT doc FROM agents{of_these}"):
        agent = Agent(**json.loads(doc))
        tables.agents[agent.name] = agent
    tables.seq = connection.execute("SELECT coalesce(max(seq), 0) FROM journal").fetchone()[0]
    return tables


def replay(connection: sqlite3.Connection) -> Tables:
    """The tables rebuilt from the journal alone."""
    tables = Tables()
    for seq, at, kind, agent, card, run, data in connection.execute("SELECT * FROM journal ORDER BY seq"):
        tables.apply(Event(seq, at, EventKind(kind), agent, card, run, json.loads(data)))
    return tables


class Board:
    """The single writer of `board.db`."""

    def __init__(self, path: Path, now: Callable[[], str] = utc_now) -> None:
        self._writer = Writer(path, SCHEMA)
        self.now = now
        """RFC 3339 UTC, for people."""
        self._listeners: list[Callable[[Event], None]] = []
        self.tables = Tables()
        self.failure: BaseException | None = None
        """The first write that did not reach the disk; nothing is written after it, and memory is ahead of it."""

    async def open(self) -> None:
        """Open the file and load its tables."""
        await self._writer.start()
        self.tables = await self._writer.submit(load_tables)

    async def story(self, agent: str) -> list[tuple[EventKind, dict[str, Any]]]:
        """What happened to one agent, in order, from the journal."""

        def read(connection: sqlite3.Connection) -> list[tuple[str, str]]:
            return connection.execute(
                "SELECT kind, data FROM journal WHERE agent = ? ORDER BY seq", (agent,)
            ).fetchall()

        return [(EventKind(kind), json.loads(data)) for kind, data in await self._writer.submit(read)]

    async def newest(self, *kinds: EventKind) -> Event | None:
        """The newest event of one of these kinds, or of any."""
        where = f" WHERE kind IN ({', '.join('?' * len(kinds))})" if kinds else ""

        def read(connection: sqlite3.Connection) -> tuple[Any, ...] | None:
            found = connection.execute(f"SELECT * FROM journal{where} ORDER BY seq DESC LIMIT 1", [*map(str, kinds)])
            row: tuple[Any, ...] | None = found.fetchone()
            return row

        row = await self._writer.submit(read)
        if row is None:
            return None
        seq, at, kind, agent, card, run, data = row
        return Event(seq, at, EventKind(kind), agent, card, run, json.loads(data))

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Call `listener` with every event, in order, as soon as it is decided."""
        self._listeners.append(listener)

    def append(self, *drafts: Draft) -> asyncio.Future[None]:
        """Decide now, in order; the future resolves when it is on disk, all of it in one transaction.

        Raises `StaleRun` or `IllegalMove` at once when one of the events may not happen; those before it stand.
        After a write that failed every future fails with that first error.
        """
        events: list[Event] = []
        lines: list[tuple[tuple[str, str, str, str], int]] = []
        try:
            for draft in drafts:
                event = Event(
                    self.tables.seq + 1, self.now(), draft.kind, draft.agent, draft.card, draft.run, draft.data
                )
                self.tables.check(event)
                lines += [(_line(row), row.version) for row in self.tables.apply(event)]
                events.append(event)
        finally:
            # What was decided before a refusal has happened and must reach the disk.
            written = self._write(events, lines)
        return written

    def _write(self, events: list[Event], lines: list[tuple[tuple[str, str, str, str], int]]) -> asyncio.Future[None]:
        rows = [(e.seq, e.at, str(e.kind), e.agent, e.card, e.run, json.dumps(e.data)) for e in events]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany("INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
            for line, version in lines:
                _write_row(connection, line, version)

        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self.failure is None:
            self._writer.submit(work).add_done_callback(lambda done: self._note(done, answer))
        else:
            self._refuse(answer, self.failure)
        for event in events:
            for listener in self._listeners:
                listener(event)
        return answer

    def _note(self, written: asyncio.Future[None], answer: asyncio.Future[None]) -> None:
        error = None if written.cancelled() else written.exception()
        if error is not None:
            # What was queued behind it failed for another reason; everyone is told the one that counts.
            self.failure = self.failure or error
            self._refuse(answer, self.failure)
        elif not answer.done():
            answer.set_result(None)

    @staticmethod
    def _refuse(answer: asyncio.Future[None], error: BaseException) -> None:
        if not answer.done():
            answer.set_exception(error)
            # Most of what is told is not waited for; `failure` keeps it.
            answer.exception()

    @property
    def trouble(self) -> str:
        """What keeps the journal from being written just now, in a sentence; empty while nothing does."""
        return self._writer.trouble

    async def close(self) -> None:
        """Write what is queued and close the file."""
        await self._writer.close()
