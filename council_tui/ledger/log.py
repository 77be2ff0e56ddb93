"""The log: decides on every entry before it is written, and writes entry, nodes and head as one."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from council_tui.board.database import Writer
from council_tui.domain.errors import HomeUnusable
from council_tui.ledger import store
from council_tui.ledger.checkpoint import Checkpoint, open_checkpoint, origin_of, sign_checkpoint, usable_origin
from council_tui.ledger.envelope import open_strict
from council_tui.ledger.lineage import Lineage
from council_tui.ledger.merkle import EMPTY_ROOT, Tree
from council_tui.ledger.remembered import Comparison, Remembered
from council_tui.ledger.store import LedgerUnusable
from council_tui.ledger.verdicts import BadEntry, Verdict
from council_tui.ledger.verify import BadReport, Report, verify_log

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from council_tui.ledger.envelope import Opened
    from council_tui.ledger.keys import Key


@dataclass(frozen=True, slots=True)
class Appended:
    """An entry that is on disk: its index, its leaf hash in hex, and what it says."""

    index: int
    leaf: str
    opened: Opened


class Ledger:
    """The only writer of one log. Readers use `reading` and `verify` on the file."""

    def __init__(self, path: Path, writer: Writer, log_key: Key, origin: str, lineage: Lineage, tree: Tree) -> None:
        self.path = path
        self.origin = origin
        self.lineage = lineage
        self._writer = writer
        self._key = log_key
        self._tree = tree
        self._size, self._root = tree.size, tree.root()
        self._failure: str | None = None

    @classmethod
    async def open(
        cls,
        path: Path,
        log_key: Key,
        root_public: bytes,
        origin: str | None = None,
        remembered: Remembered | None = None,
    ) -> Ledger:
        """Open the log, made on first use, and take up lineage and tree from its entries.

        `origin` is the log's name, by default derived from its key. Raises `LedgerUnusable` when the file
        belongs to another key or name, its entries are not those of its signed head, or it does not lead from
        what is `remembered` of it.
        """
        known = remembered or Remembered()
        if origin is not None and not usable_origin(origin):
            raise LedgerUnusable(f"{origin!r} cannot be a log's name: 1 to 200 characters, no blanks and no plus sign")
        new = _make(path, known)
        writer = Writer(path, store.SCHEMA, synchronous="FULL")
        await writer.start()
        try:
            name = origin or origin_of(log_key.public)
            await writer.submit(lambda db: _found(db, name, log_key))
            lineage, tree = await asyncio.to_thread(_resume, path, log_key, root_public, origin, known)
        except BaseException:
            await writer.close()
            raise
        if new:
            _sync_directory(path)
        return cls(path, writer, log_key, lineage.log, lineage, tree)

    @property
    def size(self) -> int:
        """Entries on disk."""
        return self._size

    @property
    def root(self) -> str:
        """Hex root over the entries on disk."""
        return self._root.hex()

    @property
    def head(self) -> Checkpoint:
        """The head over the entries on disk."""
        return Checkpoint(self.origin, self._size, self._root)

    async def audit(self) -> Report:
        """Audit the file, and hold it against what was written to it; a file that is gone or damaged is a finding."""
        root, log, known = self.lineage.root_public, self._key.public, Remembered(self.head)
        try:
            found = await asyncio.to_thread(verify_log, self.path, root_public=root, log_public=log, remembered=known)
        except LedgerUnusable as error:
            return _failed(Report(Verdict.VALID, 0, 0, EMPTY_ROOT.hex()), Verdict.STORE_MISMATCH, str(error))
        if found.verdict is Verdict.VALID and (found.size, found.root) != (self.size, self.root):
            return _failed(found, Verdict.ROOT_MISMATCH, f"someone else added to {self.path}")
        return found

    @property
    def trouble(self) -> str:
        """What keeps the log from being written just now, in a sentence; empty while nothing does."""
        return self._writer.trouble

    def head_of(self, agent: str) -> tuple[int, str | None]:
        """(seq, prev) that this agent's next entry must have."""
        known = self.lineage.agent(agent)
        return (0, None) if known is None or not known.last else (known.seq, known.last.hex())

    async def newest_of(self, agent: str) -> Appended | None:
        """An agent's newest entry, or None when it has none."""
        known = self.lineage.agent(agent)
        if known is None or not known.last:
            return None
        leaf = known.last
        found = await self._writer.submit(lambda db: store.by_leaf(db, leaf))
        return None if found is None else Appended(found[0], leaf.hex(), open_strict(found[1]))

    async def append(self, raw: bytes) -> Appended:
        """Decide on an entry and write it; returns once it would survive power loss.

        Raises `BadEntry` for anything but VALID, and `LedgerUnusable` when it cannot be written.
        """
        if self._failure is not None:
            raise LedgerUnusable(self._failure)
        opened = open_strict(raw)
        index = self._tree.size
        self.lineage.check(opened, index)
        # No await between the decision and the queue: two appends at once are decided one after the other.
        self.lineage.apply(opened, index)
        nodes = self._tree.append(opened.leaf)
        root = self._tree.root()
        written = self._writer.submit(lambda db: self._write(db, index, raw, nodes, root))
        written.add_done_callback(lambda done: self._settle(done, index, root))
        try:
            await asyncio.shield(written)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            raise LedgerUnusable(self._failure or str(error)) from error
        return Appended(index, opened.leaf.hex(), opened)

    async def close(self) -> None:
        """Write what is queued and close the file."""
        await self._writer.close()

    def _write(
        self, db: sqlite3.Connection, index: int, raw: bytes, nodes: list[tuple[int, int, bytes]], root: bytes
    ) -> None:
        db.execute("INSERT INTO entry (idx, leaf, raw) VALUES (?, ?, ?)", (index, nodes[0][2], raw))
        db.executemany("INSERT INTO node (level, idx, hash) VALUES (?, ?, ?)", nodes[1:])
        note = sign_checkpoint(self._key, self.origin, index + 1, root)
        db.execute("UPDATE head SET size = ?, note = ?", (index + 1, note))

    def _settle(self, done: asyncio.Future[None], index: int, root: bytes) -> None:
        error = done.exception()
        if error is None:
            self._size, self._root = index + 1, root
        elif self._failure is None:
            # The state in memory is ahead of the file from here on; only a new start brings them together.
            way_out = "make room or mend the disk, then start again"
            said = isinstance(error, HomeUnusable)
            self._failure = str(error) if said else f"{self.path} could not be written: {error}; {way_out}"


def _make(path: Path, known: Remembered) -> bool:
    """Create the file for its owner alone; False when it exists."""
    if known.size and not path.exists():
        raise _not_the_same(path, known, BadEntry(Verdict.ROLLBACK, f"it is gone, and had {known.size} entries"))
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return False
    except OSError as error:
        raise LedgerUnusable(f"{path} cannot be made: {error.strerror}") from None
    return True


def _sync_directory(path: Path) -> None:
    fd = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _found(db: sqlite3.Connection, origin: str, log_key: Key) -> None:
    """Write name, key and the empty head into a new file."""
    if db.execute("SELECT EXISTS (SELECT 1 FROM meta) OR EXISTS (SELECT 1 FROM entry)").fetchone()[0]:
        return
    db.executemany("INSERT INTO meta VALUES (?, ?)", [("origin", origin), ("key", log_key.public.hex())])
    note = sign_checkpoint(log_key, origin, 0, EMPTY_ROOT)
    db.execute("INSERT INTO head (one, size, note) VALUES (1, 0, ?)", (note,))


def _failed(found: Report, verdict: Verdict, detail: str) -> Report:
    """The report with this one finding about the log as a whole."""
    bad = BadReport(None, "", verdict, detail, verdict.next_step)
    return replace(found, verdict=verdict, bad=(bad,), bad_total=1)


def _not_the_same(path: Path, known: Remembered, finding: BadEntry) -> LedgerUnusable:
    files = ", ".join(str(file) for file in known.files if file.exists())
    away = f"{path} and with it {files}" if files else str(path)
    return LedgerUnusable(f"{path}: {finding}; restore it from a copy, or move {away} away to begin anew")


def _resume(
    path: Path, log_key: Key, root_public: bytes, origin: str | None, known: Remembered
) -> tuple[Lineage, Tree]:
    """Lineage and tree from the entries; their signatures are covered by the head that we signed."""
    with store.snapshot(path) as db:
        fixed = store.meta(db)
        stored = fixed.get("origin", "")
        if fixed.get("key") != log_key.public.hex() or (origin is not None and origin != stored):
            raise LedgerUnusable(f"{path} belongs to another log key or name; put its own key back")
        lineage, tree, comparison = Lineage(root_public, stored), Tree(), Comparison(known)
        comparison.step(tree)
        try:
            for index, _, raw in store.entries(db):
                opened = open_strict(raw)
                lineage.check(opened, index, signature=False)
                lineage.apply(opened, index)
                tree.append(opened.leaf)
                comparison.step(tree)
        except BadEntry as error:
            raise LedgerUnusable(f"{path}, entry {tree.size}: {error}. {error.verdict.next_step}") from error
        try:
            head = open_checkpoint(store.head_note(db) or b"", stored, log_key.public)
            for oddity in store.oddities(db, head.size):
                raise oddity
        except BadEntry as error:
            raise LedgerUnusable(f"{path}: {error}. {error.verdict.next_step}") from error
    if (head.size, head.root) != (tree.size, tree.root()):
        raise LedgerUnusable(
            f"{path}: its {tree.size} entries are not those of its signed head; restore it from a copy"
        )
    if (finding := comparison.finding(stored, tree.size)) is not None:
        raise _not_the_same(path, known, finding)
    return lineage, tree
