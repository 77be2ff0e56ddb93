"""A small fleet that signs, and a log's owner who writes whatever it is told, legal or not."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from council_tui.ledger import store
from council_tui.ledger.checkpoint import origin_of, sign_checkpoint
from council_tui.ledger.keys import Key
from council_tui.ledger.merkle import Tree, leaf_hash
from council_tui.ledger.signer import Signer

if TYPE_CHECKING:
    from pathlib import Path

CONTRACT = "c" * 64
NOW = 1_800_000_000
FOREVER = NOW + 10**6
HERMES, OFFICE, CHILD, SHARK = "hermes:main", "zeroclaw:office", "child:tests.1a", "microshark:one.2b"


def grant(child: str, public: bytes, depth: int, **changes: Any) -> dict[str, Any]:
    """The fields of a delegation; `changes` overrides any of them."""
    fields = {
        "child": child,
        "public_key": public.hex(),
        "depth": depth,
        "capabilities": [] if depth == 2 else ["exec", "read"],
        "forbidden": ["network"],
        "not_before": NOW,
        "not_after": FOREVER,
        "contract": CONTRACT,
        "card": "t_1",
    }
    return fields | changes


def work(**changes: Any) -> dict[str, Any]:
    """The fields of an ascension."""
    fields = {
        "status": "DONE",
        "summary": "two tests pass — fine",
        "findings": 2,
        "artifacts": ["out.txt"],
        "contract": CONTRACT,
        "run": "r_1",
        "enforcement": "portable",
    }
    return fields | changes


def seen(of: str) -> dict[str, Any]:
    """The fields of an observation."""
    return {"of": of, "exit_status": 0, "signal": None, "wall_ms": 12, "result": None}


class Fleet:
    """Keys and signers by agent name, and the entries that they signed so far."""

    def __init__(self) -> None:
        self.root, self.log_key = Key.generate(), Key.generate()
        self.origin = origin_of(self.log_key.public)
        self.keys = {HERMES: self.root}
        self.signers = {HERMES: Signer(HERMES, self.root, self.origin)}
        self.raws: list[bytes] = []

    def sign(self, agent: str, kind: str, fields: dict[str, Any] | None = None, at: int = NOW) -> bytes:
        """The agent's next entry; it is remembered."""
        self.raws.append(self.signers[agent].sign(kind, at, (), fields or {}))
        return self.raws[-1]

    def backdated(self, agent: str, kind: str, fields: dict[str, Any], at: int) -> bytes:
        """An entry with whatever time a signer of its own making writes; it is remembered."""
        known = self.signers[agent]
        self.signers[agent] = Signer(agent, self.keys[agent], self.origin, known.seq, known.prev)
        return self.sign(agent, kind, fields, at)

    def adopt(self, parent: str, child: str, depth: int, *, accept: bool = True, **changes: Any) -> None:
        """A delegation with a new key, and the child's acceptance."""
        key = Key.generate()
        self.keys[child] = key
        self.signers[child] = Signer(child, key, self.origin)
        self.sign(parent, "delegation", grant(child, key.public, depth, **changes))
        if accept:
            self.sign(child, "acceptance", {"contract": CONTRACT})

    def family(self) -> Fleet:
        """Hermes, an office, a child and a microshark, all accepted: entries 0 to 5."""
        self.adopt(HERMES, OFFICE, 2)
        self.adopt(OFFICE, CHILD, 1)
        self.adopt(CHILD, SHARK, 0)
        return self


def write(path: Path, fleet: Fleet, raws: list[bytes] | None = None) -> None:
    """A log file with these entries, everything derived and signed anew, no rule checked."""
    tree = Tree()
    with sqlite3.connect(path, isolation_level=None) as db:
        db.execute("PRAGMA synchronous=OFF")
        db.executescript(store.SCHEMA)
        db.execute("BEGIN")
        db.executemany(
            "INSERT INTO meta VALUES (?, ?)", [("origin", fleet.origin), ("key", fleet.log_key.public.hex())]
        )
        for index, raw in enumerate(fleet.raws if raws is None else raws):
            nodes = tree.append(leaf_hash(raw))
            db.execute("INSERT INTO entry VALUES (?, ?, ?)", (index, nodes[0][2], raw))
            db.executemany("INSERT INTO node VALUES (?, ?, ?)", nodes[1:])
        note = sign_checkpoint(fleet.log_key, fleet.origin, tree.size, tree.root())
        db.execute("INSERT INTO head VALUES (1, ?, ?)", (tree.size, note))
        db.execute("COMMIT")
    db.close()


def tamper(path: Path, *statements: str) -> None:
    """Change a log file behind its triggers, which are there again afterwards, without the log's key."""
    with sqlite3.connect(path, isolation_level=None) as db:
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            db.executescript(statement)
        db.executescript(store.SCHEMA)
    db.close()
