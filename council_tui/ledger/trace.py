"""One entry, checked and explained: what was looked at, line by line, up to the root key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from council_tui.ledger import store
from council_tui.ledger.envelope import open_strict
from council_tui.ledger.lineage import Lineage
from council_tui.ledger.merkle import Tree, inclusion_proof, leaf_hash, verify_inclusion
from council_tui.ledger.remembered import Comparison, Remembered
from council_tui.ledger.store import LedgerUnusable
from council_tui.ledger.verdicts import BadEntry, Verdict

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from pathlib import Path

    from council_tui.ledger.envelope import Opened
    from council_tui.ledger.lineage import Agent


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    """envelope, signature, place, authority, kind, lineage, acknowledgement, inclusion or memory."""
    verdict: Verdict
    detail: str
    """What was found, in one sentence; may quote an agent, so it is made safe before it is shown."""

    @property
    def ok(self) -> bool:
        """Whether it holds."""
        return self.verdict is Verdict.VALID


@dataclass(frozen=True, slots=True)
class EntryReport:
    """What is known of one entry. `verdict` is VALID, or that of the first check that failed."""

    index: int
    agent: str
    """Empty when the entry cannot be read."""
    kind: str
    verdict: Verdict
    checks: tuple[Check, ...]
    next_step: str


def verify_entry(
    path: Path,
    index: int,
    root_public: bytes,
    log_public: bytes | None = None,
    remembered: Remembered | None = None,
) -> EntryReport:
    """Check one entry: form, signature, place, authority, its line of grants, and its place under the head.

    With what is `remembered` of the log, also that the head leads from there, as far as the stored nodes tell.

    Signatures are checked for this entry and for every grant and acceptance on the way to the root; whether
    all other entries hold is the audit's to say. Raises `LedgerUnusable` when there is no such entry.
    """
    with store.snapshot(path) as db:
        row = db.execute("SELECT raw FROM entry WHERE idx = ?", (index,)).fetchone()
        if row is None:
            raise LedgerUnusable(f"there is no entry {index}; the ledger at {path} has {store.count(db)}")
        return _Trace(db, index, row[0], root_public, log_public, remembered).run()


class _Trace:
    """The checks of one entry, in the order in which they lean on each other."""

    def __init__(
        self,
        db: sqlite3.Connection,
        index: int,
        raw: bytes,
        root_public: bytes,
        log_public: bytes | None,
        remembered: Remembered | None,
    ) -> None:
        self._db = db
        self._index = index
        self._raw = raw
        self._log_public = log_public
        self._remembered = remembered
        self._lineage = Lineage(root_public, store.meta(db).get("origin", ""))
        self._checks: list[Check] = []

    def run(self) -> EntryReport:
        try:
            opened = open_strict(self._raw)
        except BadEntry as error:
            self._checks.append(Check("envelope", error.verdict, error.detail))
            self._under_the_head()
            return self._report("", "")
        self._checks.append(Check("envelope", Verdict.VALID, f"{len(self._raw)} bytes in the one accepted spelling"))
        self._replay()
        self._claims(opened)
        self._under_the_head()
        return self._report(opened.statement.agent, opened.statement.kind)

    def _under_the_head(self) -> None:
        self._step("inclusion", self._inclusion)
        if self._remembered is not None:
            self._step("memory", self._memory)

    def _memory(self) -> str:
        known = self._remembered or Remembered()
        head, comparison = store.open_head(self._db, self._log_public), Comparison(known)
        if known.head is not None and known.head.size <= head.size:
            comparison.step(Tree.resume(known.head.size, lambda level, at: store.node(self._db, level, at)))
        if (finding := comparison.finding(head.origin, head.size)) is not None:
            raise finding
        return "; ".join(known.lines())

    def _report(self, agent: str, kind: str) -> EntryReport:
        verdict = next((check.verdict for check in self._checks if not check.ok), Verdict.VALID)
        return EntryReport(self._index, agent, kind, verdict, tuple(self._checks), verdict.next_step)

    def _step(self, name: str, look: Callable[[], str]) -> bool:
        try:
            self._checks.append(Check(name, Verdict.VALID, look()))
        except BadEntry as error:
            self._checks.append(Check(name, error.verdict, error.detail))
            return False
        return True

    def _replay(self) -> None:
        """What the entries before this one grant; one that breaks a rule grants nothing."""
        for index, _, raw in store.entries(self._db, end=self._index):
            try:
                opened = open_strict(raw)
                self._lineage.check(opened, index, signature=False)
            except BadEntry:
                continue
            self._lineage.apply(opened, index)

    def _claims(self, opened: Opened) -> None:
        """The checks that need a known signer; each leans on the one before it."""
        said, lineage = opened.statement, self._lineage

        def after(check: Callable[[Opened], None], words: str) -> Callable[[], str]:
            def look() -> str:
                check(opened)
                return words

            return look

        steps = [
            (
                "signature",
                after(lineage.check_signer, f"signed by {said.agent} with key {opened.key_id[:16]}"),
            ),
            ("place", after(lineage.check_place, f"entry {said.seq} of {said.agent}, after its last one")),
            ("authority", after(lineage.check_authority, "not revoked, and within the time of its grant")),
            ("kind", after(lineage.check_kind, f"{said.agent} may sign this {said.kind}")),
            ("lineage", lambda: self._path(opened)),
            ("acknowledgement", lambda: self._acknowledged(opened)),
        ]
        for name, look in steps:
            if not self._step(name, look):
                return

    def _signer(self, opened: Opened) -> Agent | None:
        return self._lineage.agent(opened.statement.agent)

    def _signed(self, index: int, public: bytes, what: str) -> None:
        row = self._db.execute("SELECT raw FROM entry WHERE idx = ?", (index,)).fetchone()
        if row is None or not open_strict(row[0]).signed_by(public):
            raise BadEntry(
                Verdict.BAD_SIGNATURE,
                f"entry {index}, {what}, has a signature that does not hold",
            )

    def _path(self, opened: Opened) -> str:
        agent = self._signer(opened)
        if agent is None or agent.is_root:
            return f"{opened.statement.agent} signs with the pinned root key"
        for at in agent.up():
            if at.parent is not None:
                self._signed(at.granted_at, at.parent.public, f"the grant to {at.name}")
                if at.accepted_at >= 0:
                    self._signed(at.accepted_at, at.public, f"the acceptance by {at.name}")
        return " > ".join(agent.path())

    def _acknowledged(self, opened: Opened) -> str:
        agent = self._signer(opened)
        if agent is None or agent.is_root:
            return "the root answers to nobody and accepts nothing"
        if opened.statement.kind == "acceptance":
            return f"this entry accepts the contract {agent.contract[:16]}"
        return f"entry {agent.accepted_at} accepts the contract {agent.contract[:16]}"

    def _inclusion(self) -> str:
        head = store.open_head(self._db, self._log_public)
        if self._index >= head.size:
            raise BadEntry(Verdict.SIZE_MISMATCH, f"the signed head counts {head.size} entries only")
        proof = inclusion_proof(self._index, head.size, lambda level, at: store.node(self._db, level, at))
        if not verify_inclusion(leaf_hash(self._raw), self._index, head.size, proof, head.root):
            raise BadEntry(Verdict.BAD_PROOF, "the entry does not lie under the root of the signed head")
        return f"{len(proof)} hashes lead to the signed head of {head.size} entries"
