"""Crash rounds: a fleet whose supervisor dies at chosen points, and what has to be true once one has run to the end.

`python -m faults.rounds 'disk claimed#2' ['got resume#1']` plays one such round again and keeps its home for a look.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from council_tui.board.board import load_tables, replay
from council_tui.board.home import Home
from council_tui.domain.card import OPEN_STATES, BlockKind, CardState
from council_tui.domain.heartbeat import SILENT_AFTER
from council_tui.domain.hierarchy import PARENTS
from council_tui.fleet.offices import HEARTBEAT_SECONDS
from council_tui.ledger.verify import verify_log
from council_tui.runner import guard
from faults.crash import MORTAL, NAMES, OUT, PARENT_OF, PATIENCE, RETRIED

if TYPE_CHECKING:
    from council_tui.board.projection import Tables

CRASH = Path(__file__).with_name("crash.py")
MIDDLE = "disk acknowledged#6"
"""Where the dry run of the second supervisor lets the first one die."""
MOST_SUPERVISORS = 6
ENDS_WITHIN = 60.0
"""Seconds that one supervisor may take on a machine that does other things too."""


@dataclass
class Round:
    """One home, its supervisors one after another, and what was wrong in the end."""

    points: tuple[str, ...]
    """Where the first supervisors die, one each."""
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="c-", dir="/tmp")))
    problems: list[str] = field(default_factory=list)
    passed: list[Counter[str]] = field(default_factory=list)
    """By supervisor: how often each place was passed, for those that ran to the end."""
    deaths: int = 0
    _lost: dict[str, tuple[str, float]] = field(default_factory=dict)
    """By run that was at work when a supervisor died and has not been taken back since: its card or office, when."""
    _seq: int = 0
    """The newest event at the last death."""

    @property
    def home(self) -> Path:
        """Of all its supervisors."""
        return self.folder / "h"

    @property
    def out(self) -> Path:
        """Where its bodies leave their marks."""
        return self.folder / OUT

    def told(self) -> str:
        """What was wrong, and the command that runs this round again."""
        points = " ".join(f"'{point}'" for point in self.points)
        return "\n".join(
            (f"PYTHONPATH=tests python -m faults.rounds {points}  (left in {self.folder})", *self.problems)
        )

    async def play(self) -> None:
        """Supervisors, until one runs to the end; then the checks."""
        for number in range(MOST_SUPERVISORS):
            point = self.points[number] if number < len(self.points) else ""
            if await self._supervisor(point):
                break
        else:
            self.problems.append(f"no supervisor of {MOST_SUPERVISORS} ran to the end")
        if not self.problems:
            await asyncio.to_thread(self._check)

    async def _supervisor(self, point: str) -> bool:
        """One supervisor; whether it ran to the end."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, str(CRASH), str(self.home), *([point] if point else [])),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "COUNCIL_TIER": "portable"},
        )
        try:
            async with asyncio.timeout(ENDS_WITHIN):
                told, errors = await process.communicate()
        except TimeoutError:
            process.kill()
            await process.wait()
            self.problems.append(f"the supervisor after {self.deaths} deaths did not come to an end")
            return True
        if process.returncode == -9:
            self._note_death()
            return False
        said = dict(json.loads(line) for line in told.splitlines())
        if process.returncode or "passed" not in said:
            self.problems.append(f"exit status {process.returncode}: {errors.decode()[-3000:]}")
            return True
        self.passed.append(Counter(said["passed"]))
        self._judge_return(said["open"])
        self._check_ending(said["ended"])
        return True

    # one death and what follows

    def _note_death(self) -> None:
        self.deaths += 1
        if not (self.home / "board.db").exists():
            return
        with closing(sqlite3.connect(self.home / "board.db")) as db:
            came = self._came_back(db)
            self._seq, working = _at_work(db)
        now = time.monotonic()
        # Whoever did not come back to this one has looked for a supervisor since an earlier one died.
        since = {run: lost for run, (_, lost) in self._lost.items() if run not in came}
        self._lost = {run: (name, since.get(run, now)) for run, name in working.items()}

    def _came_back(self, db: sqlite3.Connection) -> dict[str, str]:
        """What the last supervisor found of each run."""
        found = db.execute(
            "SELECT run, data ->> 'what' FROM journal WHERE kind = 'recovered' AND seq > ?", (self._seq,)
        )
        return dict(found.fetchall())

    def _judge_return(self, opened: float) -> None:
        """Who was at work when its supervisor died and still had patience must have been taken back."""
        if not self._lost:
            return
        with closing(sqlite3.connect(self.home / "board.db")) as db:
            found = self._came_back(db)
        fates = {name: found.get(run) for run, (name, _) in self._lost.items()}
        for run, (name, lost) in self._lost.items():
            # An office waits as long as its most patient child; beside opening there is the pause between two looks.
            patience = SILENT_AFTER * HEARTBEAT_SECONDS if name in PARENTS else PATIENCE
            late = opened - lost > patience - 2
            excused = name in MORTAL or fates.get(PARENT_OF.get(name, "")) == "quarantined"
            if not (late or excused) and found.get(run) not in ("taken_back", "quarantined", "closed"):
                self.problems.append(f"{name} ({run}) lived and was not taken back but {found.get(run)}")

    # the end

    def _check_ending(self, end: dict[str, Any]) -> None:
        if end["ledger"]["verdict"] != "VALID" or any(end["audit"].values()) or end["exit"] not in (0, 1, 3):
            self.problems.append(f"the ending is {end}")

    def _check(self) -> None:
        place = Home(self.home)
        with closing(sqlite3.connect(place.board)) as db:
            on_disk, told = load_tables(db, archived=True), replay(db)
            if vars_of(on_disk) != vars_of(told):
                self.problems.append("the tables are not what the journal tells")
            self._check_cards(told)
            self._check_claims(db)
            ended = db.execute("SELECT count(*) FROM journal WHERE kind = 'fleet_ended'").fetchone()[0]
            runners = db.execute("SELECT data ->> 'pid', data ->> 'start_time' FROM journal WHERE kind='agent_started'")
            self._check_processes([(int(pid), int(start)) for pid, start in runners], set(told.runs))
        self._check_marks(told, ended)
        pins = json.loads((place.keys / "pins.json").read_text())
        found = verify_log(place.ledger, root_public=bytes.fromhex(pins["root"]))
        if str(found.verdict) != "VALID":
            self.problems.append(f"the ledger is {found}")
        left = [*place.slices.iterdir(), *place.bodies.iterdir(), *(p for p in [self.out / "own"] if p.exists())]
        if left:
            self.problems.append(f"left on disk: {left}")

    def _check_cards(self, tables: Tables) -> None:
        own = [card for card in tables.cards.values() if card.kind != "office" and card.state != CardState.ARCHIVED]
        done = {card.plan_id for card in own if card.state is CardState.DONE}
        # Whose parent came to no good end may never have been asked for.
        due = sorted(NAMES - {name for name, parent in PARENT_OF.items() if parent not in done})
        names = sorted(card.plan_id for card in own)
        if [name for name in names if name in due or name not in PARENT_OF] != due or len(set(names)) != len(names):
            self.problems.append(f"the cards are {names}, not {due}")
        for card in tables.cards.values():
            told = f"{card.plan_id}: {card.state} {card.fail or card.block or ''} ({card.reason})"
            if card.state in OPEN_STATES or card.block == BlockKind.TRANSIENT:
                self.problems.append(f"not at an end: {told}")
            elif card.state in (CardState.FAILED, CardState.BLOCKED) and not card.reason:
                self.problems.append(f"without a reason: {told}")
            elif card.state is CardState.DONE and card.entry is None:
                self.problems.append(f"without an entry: {told}")
            elif card.claim is not None:
                self.problems.append(f"claimed for ever: {told}")
        open_runs = [run.id for run in tables.runs.values() if run.ended is None]
        if open_runs:
            self.problems.append(f"runs that never ended: {open_runs}")

    def _check_claims(self, db: sqlite3.Connection) -> None:
        holder: dict[str, str] = {}
        claimed: Counter[str] = Counter()
        for kind, card, run in db.execute("SELECT kind, card, run FROM journal WHERE card IS NOT NULL ORDER BY seq"):
            if kind == "claimed":
                claimed[run] += 1
                if card in holder or claimed[run] > 1:
                    self.problems.append(f"{card} was claimed by {run} while {holder.get(card)} held it")
                holder[card] = run
            elif kind in ("card_done", "card_failed", "card_blocked") and run and holder.get(card) == run:
                del holder[card]

    def _check_processes(self, runners: list[tuple[int, int]], runs: set[str]) -> None:
        left = [process.pid for process, run in guard.all_marked() if run in runs]
        for pid, start in runners:
            process = guard.read_process(pid)
            if process is not None and process.start_time == start and process.state not in "ZX":
                left.append(pid)
        left += nurseries_of(self.home)
        if left:
            self.problems.append(f"still alive: {[(pid, _command_line(pid)) for pid in sorted(set(left))]}")

    def _check_marks(self, tables: Tables, fleets: int) -> None:
        """What bodies left behind. `fleets` came to their end; who died only after that has begun another one."""
        marks = [line.split() for line in (self.out / "marks").read_text().splitlines()]
        if twice := [mark for mark in marks if mark[2] == "twice"]:
            self.problems.append(f"two bodies of one card at a time: {twice}")
        begun = Counter(name for name, _, what in marks if what == "begun")
        for name, times in begun.items():
            if times > fleets and name not in RETRIED:
                self.problems.append(f"{name} may be tried once, and its body began {times} times")
        known = [card for card in tables.cards.values() if card.state is CardState.DONE and card.kind != "office"]
        for card in known:
            if not begun[card.plan_id]:
                self.problems.append(f"{card.plan_id} is done and never began")

    def clear(self) -> None:
        """Remove its home, when nothing was wrong."""
        shutil.rmtree(self.folder, ignore_errors=True)


def vars_of(tables: Tables) -> dict[str, Any]:
    """As plain values, to compare."""
    rows = (*tables.cards.values(), *tables.runs.values(), *tables.agents.values())
    return {"seq": tables.seq, **{f"{type(row).__name__} {getattr(row, 'id', '')}": vars(row) for row in rows}}


def nurseries_of(home: Path) -> list[int]:
    """Nurseries of a home and the runners that were forked there: they share a command line."""
    # Both: a sandbox of another council on this machine names the socket too, to cover it.
    words = {b"council_tui.hosts.nursery", os.fsencode(Home(home).nursery)}
    return [p.pid for p in guard.all_processes() if words <= {*_command_line(p.pid)} and p.state not in "ZX"]


def _command_line(pid: int) -> list[bytes]:
    """argv; empty when it is gone."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return []


def _at_work(db: sqlite3.Connection) -> tuple[int, dict[str, str]]:
    """(newest event, run to name) of the runs that work, as the journal and /proc have it at this moment."""
    tables = replay(db)
    ends = "('reap_started', 'quarantined', 'orphaned', 'expired', 'cancelled')"
    ending = {run for (run,) in db.execute(f"SELECT run FROM journal WHERE kind IN {ends}")}
    working = {}
    for run in tables.runs.values():
        agent = tables.agents[run.agent]
        process = guard.read_process(run.pid or 0)
        lives = process is not None and process.start_time == run.start_time and process.state not in "ZX"
        if run.ended is None and agent.phase in ("running", "returned") and lives and run.id not in ending:
            working[run.id] = agent.kind if agent.kind in PARENTS else agent.label
    return tables.seq, working


async def dry_run() -> tuple[Counter[str], Counter[str]]:
    """How often each place is passed by a supervisor that nothing happens to, and by one that comes after it."""
    undisturbed, second = Round(()), Round((MIDDLE,))
    await asyncio.gather(undisturbed.play(), second.play())
    for one in (undisturbed, second):
        assert not one.problems, one.told()
        one.clear()
    return undisturbed.passed[0], second.passed[0]


def choose(seed: int, first: Counter[str], second: Counter[str], rounds: int) -> list[tuple[str, ...]]:
    """Points for so many rounds, spread over all places; in every third one the second supervisor dies too."""
    chance = random.Random(seed)

    def spread(passed: Counter[str], count: int) -> list[str]:
        places: list[str] = []
        while len(places) < count:
            places += chance.sample(sorted(passed), len(passed))
        return [f"{place}#{chance.randint(1, passed[place])}" for place in places[:count]]

    then = spread(second, rounds)
    return [(at, *then[n : n + 1]) if n % 3 == 2 else (at,) for n, at in enumerate(spread(first, rounds))]


async def play(chosen: list[tuple[str, ...]], at_once: int) -> list[Round]:
    """Play rounds, a few at a time; those with problems, whose homes are kept."""
    turns = asyncio.Semaphore(at_once)
    bad: list[Round] = []

    async def one(points: tuple[str, ...]) -> None:
        async with turns:
            this = Round(points)
            await this.play()
            if this.problems:
                bad.append(this)
            else:
                this.clear()

    await asyncio.gather(*(one(points) for points in chosen))
    return bad


if __name__ == "__main__":
    again = Round(tuple(sys.argv[1:]))
    asyncio.run(again.play())
    print(again.told())
    sys.exit(bool(again.problems))
