"""A home read from its files alone: while another process runs a council there, and after it has ended."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from council_tui.board.board import load_tables
from council_tui.board.database import read_only_uri
from council_tui.board.home import OwnerLock
from council_tui.control.rows import agents_of, cards_of
from council_tui.control.views import LedgerView
from council_tui.domain.errors import CouncilError, Refused
from council_tui.domain.events import Event, EventKind
from council_tui.domain.text import safe
from council_tui.ledger import store
from council_tui.ledger.verdicts import BadEntry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Self

    from council_tui.board.home import Home
    from council_tui.board.projection import Card, Tables
    from council_tui.control.council import Council
    from council_tui.control.views import AgentView, CardView

WORTH_READING = ("HIGH", "MEDIUM")
"""Severities that a summary lists; the report has all."""
_PAGE = 1000


class NothingHere(CouncilError):
    """No council has ever run in this home."""


@dataclass(frozen=True)
class FleetView:
    """The newest fleet of a home."""

    name: str
    plan: str | None
    workdir: str
    began: str
    """RFC 3339 UTC."""
    seq: int
    """Of the event that began it."""
    budget_minutes: float | None = None
    ending: dict[str, Any] | None = None
    """The fields of the summary, once it has ended."""


@dataclass(frozen=True)
class FindingView:
    """One finding of a signed report; all text is safe to show."""

    child: str
    severity: str
    title: str
    where: str
    """`path:line`, as far as it is known."""


@dataclass(frozen=True)
class Snapshot:
    """A home at one moment. `seq` is that of the last event it includes."""

    seq: int
    home: str
    owner: int | None
    """The pid that runs a council there now."""
    fleet: FleetView | None
    agents: tuple[AgentView, ...]
    cards: tuple[CardView, ...]
    ledger: LedgerView
    findings: tuple[FindingView, ...] = ()
    """The serious ones, worst first."""

    def title(self, card: str) -> str:
        """What a person calls a card."""
        return next((c.label for c in self.cards if c.id == card), card)


@dataclass(frozen=True)
class CardPage:
    """A card in full, as it lies on the board: its row, its attempts and its history."""

    card: dict[str, Any]
    runs: tuple[dict[str, Any], ...]
    events: tuple[Event, ...]


def _event(row: tuple[Any, ...]) -> Event:
    seq, at, kind, agent, card, run, data = row
    return Event(seq, at, EventKind(kind), agent, card, run, json.loads(data))


def _where(finding: dict[str, Any]) -> str:
    path, line = str(finding.get("path", "")), finding.get("line")
    return safe(f"{path}:{line}" if path and line else path, 200)


def findings_of(cards: Iterator[Card]) -> tuple[FindingView, ...]:
    """What HIGH and MEDIUM reports say, worst first."""
    found = [
        FindingView(
            card.plan_id,
            str(item["severity"]),
            safe(str(item.get("title") or item.get("description") or "finding"), 160),
            _where(item),
        )
        for card in cards
        for item in card.result.get("findings", ())
        if isinstance(item, dict) and item.get("severity") in WORTH_READING
    ]
    return tuple(sorted(found, key=lambda f: WORTH_READING.index(f.severity)))


def _fleet(event: Event, ending: dict[str, Any] | None) -> FleetView:
    data = event.data
    minutes = data.get("budget", {}).get("minutes")
    return FleetView(data["name"], data.get("plan"), data.get("workdir", ""), event.at, event.seq, minutes, ending)


def _picture(
    home: Home, tables: Tables, hermes: str, owner: int | None, fleet: FleetView | None, ledger: LedgerView
) -> Snapshot:
    return Snapshot(
        seq=tables.seq,
        home=str(home.root),
        owner=owner,
        fleet=fleet,
        agents=agents_of(tables, hermes, alive=owner is not None),
        cards=cards_of(tables),
        ledger=ledger,
        findings=findings_of(c for c in tables.cards.values() if c.kind != "office"),
    )


def living(council: Council, began: Event) -> Snapshot:
    """The picture of a council in this process. `began`: the event with which its fleet started."""
    sup, ledger = council.sup, LedgerView(council.sup.authority.ledger.size, council.sup.authority.ledger.root)
    owner = OwnerLock(council.home).owner()
    return _picture(council.home, sup.board.tables, sup.hermes, owner, _fleet(began, None), ledger)


def _ledger(home: Home) -> LedgerView:
    """The head as it is written; whether all below it holds is `verify`'s to say."""
    if not home.ledger.exists():
        return LedgerView()
    with store.snapshot(home.ledger) as db:
        try:
            head = store.open_head(db, None)
        except BadEntry as error:
            return LedgerView(store.count(db), "", str(error.verdict))
        return LedgerView(head.size, head.root.hex())


class Reader:
    """The board of a home, opened for reading. Raises `NothingHere` when nothing ever ran there."""

    def __init__(self, home: Home) -> None:
        self.home = home
        if not home.board.is_file():
            raise NothingHere(f"no council here yet (looked in {home.root}); start one: council --run repo-audit")
        try:
            self._db = sqlite3.connect(read_only_uri(home.board), uri=True, isolation_level=None)
            self._db.execute("SELECT count(*) FROM agents")
        except sqlite3.Error as error:
            raise CouncilError(f"{home.board} cannot be read: {error}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._db.close()

    @contextlib.contextmanager
    def _at_once(self) -> Iterator[sqlite3.Connection]:
        """One state of the file throughout."""
        self._db.execute("BEGIN")
        try:
            yield self._db
        finally:
            self._db.execute("ROLLBACK")

    def snapshot(self) -> Snapshot:
        """The present picture."""
        with self._at_once() as db:
            tables = load_tables(db)
            began = db.execute(
                "SELECT * FROM journal WHERE kind = ? ORDER BY seq DESC LIMIT 1", (EventKind.FLEET_STARTED,)
            ).fetchone()
            ended = db.execute(
                "SELECT data FROM journal WHERE kind = ? AND seq > ? ORDER BY seq DESC LIMIT 1",
                (EventKind.FLEET_ENDED, began[0] if began else 0),
            ).fetchone()
        event = _event(began) if began else None
        fleet = _fleet(event, json.loads(ended[0]) if ended else None) if event else None
        hermes = (event.agent if event else None) or "hermes:?"
        return _picture(self.home, tables, hermes, OwnerLock(self.home).held(), fleet, _ledger(self.home))

    def events(self, after: int) -> Iterator[Event]:
        """Every event after that seq, in order, as far as the journal goes now."""
        while True:
            rows = self._db.execute(
                "SELECT * FROM journal WHERE seq > ? ORDER BY seq LIMIT ?", (after, _PAGE)
            ).fetchall()
            yield from (_event(row) for row in rows)
            if len(rows) < _PAGE:
                return
            after = rows[-1][0]

    def card(self, ident: str) -> CardPage:
        """A card by its id, or by what its plan calls it. Raises `Refused`."""
        with self._at_once() as db:
            tables = load_tables(db, archived=ident.startswith("t_"))
            card = tables.cards.get(ident) or next(
                (c for c in reversed(tables.cards.values()) if c.plan_id == ident and c.kind != "office"), None
            )
            if card is None:
                raise Refused("card", f"there is no card {safe(ident, 80)} here; `council board` lists them")
            rows = db.execute("SELECT * FROM journal WHERE card = ? ORDER BY seq", (card.id,)).fetchall()
        runs = [asdict(run) for run in tables.runs.values() if run.card == card.id]
        return CardPage(asdict(card), tuple(runs), tuple(_event(row) for row in rows))


def newest_report(home: Home) -> Path:
    """The Markdown report that was written last. Raises `NothingHere`."""
    found = sorted(home.reports.glob("*.md"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise NothingHere(f"no report here yet (looked in {home.reports}); start a fleet: council --run repo-audit")
    return found[-1]
