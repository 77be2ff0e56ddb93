"""One writer thread per SQLite file, with group commit; whoever reads opens the file read-only.

Why a thread of our own: a hop through a generic executor costs more than the insert, and one fsync can
carry everything that arrived while the last one ran. A disk that is full and a file that a backup tool has
locked pass by themselves, so the thread waits them out while the fleet goes on.
"""

from __future__ import annotations

import asyncio
import os
import queue
import sqlite3
import threading
import time
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import aiosqlite

from council_tui.domain.errors import HomeUnusable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

T = TypeVar("T")
_MAX_BATCH = 512
PATIENCE_SECONDS = 30.0
"""How long a full disk or somebody else's lock is waited out before what is queued fails."""
OPENING_SECONDS = 10.0
"""The same before the file is open: somebody waits in front of it."""
_PAUSES = (0.05, 1.0)
"""Shortest and longest pause between two attempts, in seconds."""
_BUSY_SECONDS = 0.2
"""That SQLite itself waits for a lock in one attempt."""
_PASSING = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY})
# A quota that is spent, and no room for the index that readers of a WAL share.
_PASSING_IN_FULL = frozenset({sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE})


class _Job:
    __slots__ = ("error", "future", "loop", "result", "work")

    def __init__(self, work: Callable[[sqlite3.Connection], Any], loop: asyncio.AbstractEventLoop) -> None:
        self.work = work
        self.loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()
        self.result: Any = None
        self.error: BaseException | None = None


def _code(error: Exception) -> int:
    """SQLite's extended result code, or 0; an error of the module itself has none."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code


def _unusable(path: Path, error: Exception) -> str:
    # Of SQLite's errors only the bare DatabaseError is about what is in the file: no database, or malformed.
    if type(error) is sqlite3.DatabaseError:
        return f"{path} is damaged: {error}; restore it from a copy, or move it away to begin anew"
    if _code(error) & 0xFF == sqlite3.SQLITE_BUSY:
        return f"{path} is locked by another program, perhaps a backup; wait until it has ended, then start again"
    return f"cannot write {path}: {error}{'; make room there, then start again' if _passes(error) else ''}"


def _given_up(path: Path, error: Exception) -> str:
    what = "end what locks it" if _code(error) & 0xFF == sqlite3.SQLITE_BUSY else "make room there"
    return f"{path} could not be written for {PATIENCE_SECONDS:g} s: {error}; {what}, then start again"


def _passes(error: Exception) -> bool:
    """Whether it may be gone at the next attempt. A failed fsync is not: what it had to keep may be lost."""
    return _code(error) & 0xFF in _PASSING or _code(error) in _PASSING_IN_FULL


def _settle(jobs: list[_Job]) -> None:
    for job in jobs:
        if job.future.cancelled():
            continue
        if job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result(job.result)


class Writer:
    """The only writer of one SQLite file. Work handed in together commits together."""

    def __init__(self, path: Path, schema: str, synchronous: Literal["NORMAL", "FULL"] = "NORMAL") -> None:
        self._path = path
        self._schema = schema
        self._synchronous = synchronous
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"writer-{path.name}", daemon=True)
        self._ready: asyncio.Future[None] | None = None
        self._waited = 0.0
        """Seconds that were spent on pauses since something could be written last."""
        self.trouble = ""
        """What keeps it from writing just now, in a sentence; empty while nothing does."""

    async def start(self) -> None:
        """Open the file, create its tables and begin to take work."""
        loop = asyncio.get_running_loop()
        self._ready = loop.create_future()
        self._thread.start()
        await self._ready

    def submit(self, work: Callable[[sqlite3.Connection], T]) -> asyncio.Future[T]:
        """Queue work for the next transaction; the future resolves once it is committed.

        Work runs in the order of the calls. An exception undoes that work alone and is raised to its caller.
        """
        job = _Job(work, asyncio.get_running_loop())
        self._queue.put(job)
        return job.future

    async def close(self) -> None:
        """Commit what is queued and close the file."""
        if self._thread.is_alive():
            self._queue.put(None)
            await asyncio.get_running_loop().run_in_executor(None, self._thread.join)

    def _opened(self) -> sqlite3.Connection:
        while True:
            try:
                connection = self._open()
            except sqlite3.Error as error:
                if not self._another(error, OPENING_SECONDS):
                    raise
            else:
                self._waited, self.trouble = 0.0, ""
                return connection

    def _open(self) -> sqlite3.Connection:
        # SQLite gives its side files the mode of this one.
        os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o600))
        connection = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute(f"PRAGMA synchronous={self._synchronous}")
            connection.execute("PRAGMA foreign_keys=ON")
            connection.executescript(self._schema)
        except BaseException:
            connection.close()
            raise
        return connection

    def _run(self) -> None:
        ready = self._ready
        if ready is None:  # start() sets it before the thread exists
            return
        loop = ready.get_loop()
        try:
            connection = self._opened()
        except (sqlite3.Error, OSError) as error:
            failure = HomeUnusable(_unusable(self._path, error))
            loop.call_soon_threadsafe(ready.set_exception, failure)
            return
        loop.call_soon_threadsafe(ready.set_result, None)
        running = True
        while running:
            first = self._queue.get()
            jobs: list[_Job] = []
            while first is not None:
                jobs.append(first)
                if len(jobs) >= _MAX_BATCH or self._queue.empty():
                    break
                first = self._queue.get()
            running = first is not None
            if jobs:
                self._commit(connection, jobs)
                # A loop that is gone has nobody left who waits for the answer.
                if not jobs[0].loop.is_closed():
                    jobs[0].loop.call_soon_threadsafe(_settle, jobs)
        connection.close()

    def _another(self, error: Exception, patience: float) -> bool:
        """Whether to try again, by now after a pause: only what passes by itself, and not for ever."""
        if not _passes(error) or self._waited >= patience:
            return False
        self.trouble = f"{self._path} cannot be written: {error}"
        shortest, longest = _PAUSES
        pause = min(max(self._waited, shortest), longest)
        time.sleep(pause)
        self._waited += pause
        return True

    def _commit(self, connection: sqlite3.Connection, jobs: list[_Job]) -> None:
        """Commit these together, with patience; once that is over, the next ones get one attempt each."""
        while (error := self._try(connection, jobs)) is not None:
            if not self._another(error, PATIENCE_SECONDS):
                failure = HomeUnusable(_given_up(self._path, error)) if _passes(error) else error
                for job in jobs:
                    job.error = job.error or failure
                return
        self._waited, self.trouble = 0.0, ""

    @staticmethod
    def _try(connection: sqlite3.Connection, jobs: list[_Job]) -> sqlite3.Error | None:
        """One transaction; what kept it from being committed."""
        try:
            connection.execute("BEGIN IMMEDIATE")
            for job in jobs:
                job.error = None
                connection.execute("SAVEPOINT job")
                try:
                    job.result = job.work(connection)
                except Exception as error:
                    if _passes(error):
                        raise
                    connection.execute("ROLLBACK TO job")
                    job.error = error
                connection.execute("RELEASE job")
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            return error
        return None


def read_only_uri(path: Path) -> str:
    """The URI that opens a file for reading only, also where it lies on a medium that nobody can write to."""
    mode = "mode=ro"
    if not os.access(path.parent, os.W_OK) and not path.with_name(f"{path.name}-wal").exists():
        # SQLite cannot make the file that readers of a WAL share, and nobody can write either.
        mode = "mode=ro&immutable=1"
    return f"{path.absolute().as_uri()}?{mode}"


def read_only(path: Path) -> aiosqlite.Connection:
    """A connection that cannot write, for `async with`; it sees each commit as a whole."""
    return aiosqlite.connect(read_only_uri(path), uri=True)
