"""A real fleet on a short path in /tmp: runs plans to their end, or is watched while it runs."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import tempfile
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from council_tui.board.home import Home
from council_tui.domain.errors import PlanInvalid
from council_tui.fleet.fleet import Fleet
from council_tui.fleet.kept import unfinished_fleet
from council_tui.fleet.plan import Plan, parse_plan
from council_tui.ledger.envelope import open_strict
from council_tui.runner import guard
from council_tui.supervisor.supervisor import Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from council_tui.board.projection import Card
    from council_tui.domain.events import Event, EventKind
    from council_tui.fleet.outcome import Ending
    from council_tui.supervisor.seat import Seat

WITHIN = 30.0
"""Seconds after which an awaited event counts as never coming; nothing here takes that long."""

REPORT_SCHEMA = {"type": "object", "required": ["status", "findings", "evidence"]}


def python(code: str, *arguments: str) -> list[str]:
    """argv of a small Python program."""
    return ["{python}", "-I", "-S", "-c", code, *arguments]


def child(
    name: str,
    run: str | list[str],
    *,
    parent: str = "zeroclaw",
    policy: dict[str, Any] | None = None,
    context: dict[str, Any] | None = None,
    envelope: dict[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """One child of a plan; `run` is an argv, or a line for the shell."""
    item: dict[str, Any] = {"id": name, "parent": parent, "run": ["sh", "-c", run] if isinstance(run, str) else run}
    if policy or context:
        item["spawn_context"] = {**(context or {}), **({"lifecycle_policy": policy} if policy else {})}
    if envelope:
        item["envelope"] = envelope
    return {**item, **more}


def plan_of(*children: dict[str, Any], limits: dict[str, int] | None = None, minutes: float | None = None) -> Plan:
    """A plan whose contracts are short, so that nothing here waits long for what does not come."""
    plan: dict[str, Any] = {
        "council": 1,
        "name": "trial",
        "limits": {"concurrency": 30, "children_per_parent": 30, "microsharks": 30, **(limits or {})},
        "defaults": {
            "retries": 0,
            "enforcement": "declared-only",
            "lifecycle_policy": {
                "parent_heartbeat_interval_seconds": 2,
                "child_timeout_seconds": 30,
                "grace_seconds": 1,
            },
            "envelope": {
                "time_budget_minutes": 2,
                "evidence_required": False,
                "autonomy_band": "AUTONOMOUS",
                "tools_scope": ["exec"],
                "rollback_plan": "No changes",
            },
        },
        "children": list(children),
    }
    if minutes is not None:
        plan["budget"] = {"minutes": minutes}
    try:
        return parse_plan(json.dumps(plan), "trial.yaml")
    except PlanInvalid as error:
        raise AssertionError([mistake.render("trial.yaml") for mistake in error.mistakes]) from error


def runs_of(home: Path) -> set[str]:
    """Every run that this home's journal knows."""
    file = home / "board.db"
    if not file.exists():
        return set()
    with closing(sqlite3.connect(file)) as connection:
        return {run for (run,) in connection.execute("SELECT DISTINCT run FROM journal WHERE run IS NOT NULL")}


def alive(runs: set[str]) -> list[int]:
    """Processes that carry the marker of one of these runs."""
    return [process.pid for process, run in guard.all_marked() if run in runs]


def gone(pid: int) -> bool:
    """Whether no such process lives."""
    process = guard.read_process(pid)
    return process is None or process.state in "ZX"


@contextmanager
def short_home() -> Iterator[Path]:
    """A home in /tmp whose path leaves room for sockets; afterwards nothing of its runs may live."""
    folder = Path(tempfile.mkdtemp(prefix="c-", dir="/tmp"))
    try:
        yield folder / "h"
        left = alive(runs_of(folder / "h"))
        assert left == [], f"processes {left} outlived their council"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def until(condition: Callable[[], Any], within: float = WITHIN) -> None:
    """Look again, at short intervals, until it holds: for facts of the machine that send no event."""
    async with asyncio.timeout(within):
        while True:
            if condition():
                return
            await asyncio.sleep(0.01)


class Watcher:
    """Every event of a board, and a way to wait for one."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._more = asyncio.Event()

    def hear(self, event: Event) -> None:
        """The board's listener."""
        self.events.append(event)
        self._more.set()

    def find(self, kind: EventKind, who: str = "", **data: Any) -> Event | None:
        """The first event of this kind, of an agent whose name holds `who`, with these data."""
        for event in self.events:
            if event.kind is kind and who in (event.agent or "") and data.items() <= event.data.items():
                return event
        return None

    async def wait(self, kind: EventKind, who: str = "", **data: Any) -> Event:
        """Wait for it, whether it has happened yet or not."""
        async with asyncio.timeout(WITHIN):
            while (found := self.find(kind, who, **data)) is None:
                self._more.clear()
                await self._more.wait()
        return found

    def kinds(self, who: str) -> list[str]:
        """What happened to an agent, in order."""
        return [str(event.kind) for event in self.events if who in (event.agent or "")]


class Stage(Watcher):
    """A supervisor with a fleet on it, for `async with`; leaving it reaps what still lives."""

    def __init__(self, home: Path, plan: Plan | None = None, timeout: float | None = None) -> None:
        super().__init__()
        self.home = Home(home)
        self.sup = Supervisor(self.home)
        self._plan, self._timeout = plan, timeout
        self.running: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Stage:
        await self.sup.open()
        self.sup.board.listen(self.hear)
        left = await unfinished_fleet(self.sup, self._plan)
        goes_on = left is not None and self._plan == left.plan
        self.fleet = Fleet(self.sup, left.plan if goes_on else self._plan, self._timeout)
        await (self.fleet.resume(left) if goes_on else self.fleet.start())
        self.running = asyncio.create_task(self.fleet.run())
        return self

    async def __aexit__(self, *error: object) -> None:
        try:
            if self.running is not None and not self.running.done():
                await self.fleet.drain("the test is over")
        finally:
            if self.running is not None:
                await asyncio.gather(self.running, return_exceptions=True)
            async with asyncio.timeout(WITHIN):
                await self.sup.close()

    def seat(self, name: str) -> Seat:
        """The living seat of a child, by its name in the plan."""
        return next(seat for seat in self.sup.seats.values() if seat.order.id == name)

    def card(self, name: str) -> Card:
        """The card of a child, by its name in the plan."""
        return next(card for card in self.sup.board.tables.cards.values() if card.plan_id == name)

    async def end(self) -> Ending:
        """Wait until the fleet has nothing left to do, and close it."""
        if self.running is None:
            raise RuntimeError("the stage is not open")
        async with asyncio.timeout(WITHIN):
            await self.running
            return await self.fleet.finish()


@dataclass
class Played:
    """A fleet that is over."""

    home: Home
    events: list[Event]
    ending: Ending
    cards: dict[str, Card]
    entries: list[tuple[str, str, dict[str, Any]]]
    """(kind, agent, fields) of the ledger, in order."""

    def of(self, name: str) -> list[Event]:
        """What happened to a child's card, in order."""
        return [event for event in self.events if event.card == self.cards[name].id]

    def kinds(self, name: str) -> list[str]:
        """The kinds of `of`."""
        return [str(event.kind) for event in self.of(name)]

    def first(self, name: str, kind: EventKind) -> Event:
        """The first event of this kind in the life of a child."""
        return next(event for event in self.of(name) if event.kind is kind)

    def output(self, name: str) -> bytes:
        """What a child printed, as far as its log keeps it."""
        folder = self.home.logs / str(self.cards[name].run)
        return b"".join(
            (folder / part).read_bytes() for part in ("output.log.1", "output.log") if (folder / part).exists()
        )


def entries_of(ledger: Path) -> list[tuple[str, str, dict[str, Any]]]:
    """(kind, agent, fields) of every entry."""
    with closing(sqlite3.connect(ledger)) as connection:
        raw = [row[0] for row in connection.execute("SELECT raw FROM entry ORDER BY idx")]
    found = []
    for one in raw:
        said = open_strict(one).statement
        found.append((said.kind, said.agent, dict(said.fields)))
    return found


def play(home: Path, plan: Plan) -> Played:
    """Run a plan to its end in a loop of its own."""

    async def work() -> Played:
        async with Stage(home, plan) as stage:
            ending = await stage.end()
            cards = {card.plan_id: card for card in stage.sup.board.tables.cards.values()}
        return Played(stage.home, stage.events, ending, cards, entries_of(stage.home.ledger))

    return asyncio.run(work())
