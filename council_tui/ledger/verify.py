"""The full audit of a log: everything is computed again from the raw entries, nothing derived is believed.

It streams: memory grows with the number of agents, not of entries. One file alone cannot show that its tail
was cut off and its head signed anew; that takes a head remembered elsewhere, see `remembered`.
"""

from __future__ import annotations

import multiprocessing
from collections import deque
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from council_tui.ledger import store
from council_tui.ledger.envelope import open_strict, pae
from council_tui.ledger.keys import verify_all
from council_tui.ledger.lineage import Lineage
from council_tui.ledger.merkle import EMPTY_ROOT, Tree, leaf_hash
from council_tui.ledger.remembered import Comparison, Remembered
from council_tui.ledger.trace import Check, EntryReport, verify_entry
from council_tui.ledger.verdicts import BadEntry, Verdict

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from pathlib import Path

    from council_tui.ledger.envelope import Opened

    Progress = Callable[[int, int], None]
    """(entries checked, entries in all)."""

__all__ = ["BadReport", "Check", "EntryReport", "Report", "verify_entry", "verify_log"]

PARALLEL_FROM = 5000
"""Entries from which further processes are worth their start."""

MAX_BAD = 100
"""Findings that are kept in full; the rest is counted."""

_STEP = 1000
_CHUNK = 500


@dataclass(frozen=True, slots=True)
class BadReport:
    """One finding: where, whose, what, and what to do."""

    index: int | None
    """Of the entry; None when the finding is about the log as a whole."""
    agent: str
    """Empty when the entry cannot be read or the finding is about the log."""
    verdict: Verdict
    detail: str
    next_step: str


@dataclass(frozen=True, slots=True)
class Report:
    """The answer of an audit. `verdict` is VALID, or that of the first finding."""

    verdict: Verdict
    checked: int
    """Entries found in the file."""
    size: int
    """Entries by the signed head; what was found when the head does not hold."""
    root: str
    """Hex root, computed from the entries."""
    bad: tuple[BadReport, ...] = ()
    """The first 100 findings: entries in order, then the log as a whole."""
    bad_total: int = 0


def verify_log(
    path: Path,
    *,
    root_public: bytes,
    log_public: bytes | None = None,
    remembered: Remembered | None = None,
    progress: Progress | None = None,
    processes: int = 1,
) -> Report:
    """Audit a log file. Raises `LedgerUnusable` when it cannot be read at all.

    `log_public` is needed for a log whose name is not derived from its key. A log that is shorter than what is
    `remembered`, or gone, was rolled back; one that does not lead from the remembered head is a fork. With
    `processes` above 1, large logs have their signatures checked in that many processes, which end before this
    returns.
    """
    known = remembered or Remembered()
    if known.size and not path.exists():
        detail = f"there is no ledger at {path}, it had {known.size} entries"
        gone = BadReport(None, "", Verdict.ROLLBACK, detail, Verdict.ROLLBACK.next_step)
        return Report(Verdict.ROLLBACK, 0, 0, EMPTY_ROOT.hex(), (gone,), 1)
    with store.snapshot(path) as db:
        if processes > 1 and store.count(db) > PARALLEL_FROM:
            context = multiprocessing.get_context("spawn")
            with ProcessPoolExecutor(processes, mp_context=context) as executor:
                signatures = _Signatures(executor, 4 * processes)
                report = _Audit(db, root_public, signatures, known).run(log_public, progress)
                if signatures.hold():
                    return report
            # Which entry it was, and what followed from it, only an audit in order can tell.
        return _Audit(db, root_public, None, known).run(log_public, progress)


class _Signatures:
    """Signatures handed to other processes in chunks, with a bounded number of chunks under way."""

    def __init__(self, executor: ProcessPoolExecutor, under_way: int) -> None:
        self._executor = executor
        self._limit = under_way
        self._chunk: list[tuple[bytes, bytes, bytes]] = []
        self._open: deque[Future[bool]] = deque()
        self._good = True

    def add(self, public: bytes, opened: Opened) -> None:
        self._chunk.append((public, pae(opened.body), opened.signature))
        if len(self._chunk) >= _CHUNK:
            self._send()
            if len(self._open) > self._limit:
                self._good &= self._open.popleft().result()

    def hold(self) -> bool:
        """Wait for all of them; False when any signature does not hold."""
        self._send()
        while self._open:
            self._good &= self._open.popleft().result()
        return self._good

    def _send(self) -> None:
        self._open.append(self._executor.submit(verify_all, self._chunk))
        self._chunk = []


class _Audit:
    """One pass over a snapshot."""

    def __init__(
        self, db: sqlite3.Connection, root_public: bytes, signatures: _Signatures | None, remembered: Remembered
    ) -> None:
        self._db = db
        self._signatures = signatures
        self._origin = store.meta(db).get("origin", "")
        self._known = Comparison(remembered)
        self._lineage = Lineage(root_public, self._origin)
        self._tree = Tree()
        self._bad: list[BadReport] = []
        self._total = 0

    def run(self, log_public: bytes | None, progress: Progress | None) -> Report:
        total, due = store.count(self._db), 0
        self._known.step(self._tree)
        for index, leaf, raw in store.entries(self._db):
            if index != due:
                self._found(due, "", Verdict.SIZE_MISMATCH, f"no entry before {index}")
            due = index + 1
            self._entry(index, raw)
            self._derived(index, leaf, raw)
            self._known.step(self._tree)
            if progress is not None and self._tree.size % _STEP == 0:
                progress(self._tree.size, total)
        self._nodes()
        if total != self._tree.size:
            self._found(None, "", Verdict.SIZE_MISMATCH, f"{total} entries are counted, {self._tree.size} are there")
        size = self._head(log_public)
        for oddity in store.oddities(self._db, size):
            self._found(None, "", oddity.verdict, oddity.detail)
        if (finding := self._known.finding(self._origin, self._tree.size)) is not None:
            self._found(None, "", finding.verdict, finding.detail)
        if progress is not None:
            progress(self._tree.size, total)
        verdict = self._bad[0].verdict if self._bad else Verdict.VALID
        return Report(verdict, self._tree.size, size, self._tree.root().hex(), tuple(self._bad), self._total)

    def _found(self, index: int | None, agent: str, verdict: Verdict, detail: str) -> None:
        self._total += 1
        if len(self._bad) < MAX_BAD:
            self._bad.append(BadReport(index, agent, verdict, detail, verdict.next_step))

    def _entry(self, index: int, raw: bytes) -> None:
        agent = ""
        try:
            opened = open_strict(raw)
            agent = opened.statement.agent
            self._lineage.check(opened, index, signature=self._signatures is None)
            if self._signatures is not None:
                self._signatures.add(self._lineage.public_of(opened), opened)
        except BadEntry as error:
            self._found(index, agent, error.verdict, error.detail)
        else:
            self._lineage.apply(opened, index)

    def _derived(self, index: int, leaf: bytes, raw: bytes) -> None:
        done = self._tree.append(leaf_hash(raw))
        if leaf != done[0][2]:
            self._found(index, "", Verdict.CACHE_MISMATCH, "the stored leaf hash is not that of the entry")
        for level, at, value in done[1:]:
            if store.node(self._db, level, at) != value:
                self._found(
                    index,
                    "",
                    Verdict.CACHE_MISMATCH,
                    f"node {at} of level {level} is not that of the entries",
                )

    def _nodes(self) -> None:
        stored = self._db.execute("SELECT count(*) FROM node").fetchone()[0]
        if stored > self._tree.size - self._tree.size.bit_count():
            self._found(None, "", Verdict.CACHE_MISMATCH, "there are nodes over entries that do not exist")

    def _head(self, log_public: bytes | None) -> int:
        """Compare with the signed head; returns its size."""
        size = self._tree.size
        try:
            head = store.open_head(self._db, log_public)
        except BadEntry as error:
            self._found(None, "", error.verdict, error.detail)
            return size
        if head.size != size:
            self._found(None, "", Verdict.SIZE_MISMATCH, f"the head counts {head.size} entries, the file holds {size}")
        elif head.root != self._tree.root():
            self._found(None, "", Verdict.ROOT_MISMATCH, "the entries do not add up to the root of the head")
        return head.size
