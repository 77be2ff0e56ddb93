"""What the operator's side knows of a log without looking into it: its keys, and a head seen earlier.

One file alone cannot show that its tail was cut off and its head signed anew, nor that it is another log from
the beginning. Both files lie beside the keys: `pins.json` {root, log} and `head.json` {origin, size, root}.
"""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from council_tui.board.entries import entries_named
from council_tui.domain.errors import HomeUnusable
from council_tui.ledger.checkpoint import Checkpoint
from council_tui.ledger.verdicts import BadEntry, Verdict

if TYPE_CHECKING:
    from pathlib import Path

    from council_tui.ledger.merkle import Tree

PINS, HEAD = "pins.json", "head.json"
_MAX_FILE = 64 * 1024


def _read(path: Path) -> dict[str, Any] | None:
    """What the file holds; None when there is none. Raises `HomeUnusable`."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise _damaged(path, "it is no ordinary file")
            raw = json.loads(file.read(_MAX_FILE))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _damaged(path, str(error.strerror)) from None
    except (ValueError, RecursionError):
        raise _damaged(path, "it does not hold JSON") from None
    if not isinstance(raw, dict):
        raise _damaged(path, "it does not hold an object")
    return raw


def _damaged(path: Path, why: str) -> HomeUnusable:
    return HomeUnusable(f"{path} is damaged ({why}); restore it from a copy, or move it away if you cannot")


def _write(path: Path, value: dict[str, Any]) -> None:
    """Whole or not at all, also after power loss. Raises `HomeUnusable`."""
    draft = path.with_name(f".{path.name}")
    try:
        draft.unlink(missing_ok=True)
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w", encoding="ascii") as file:
            json.dump(value, file)
            file.flush()
            os.fsync(fd)
        draft.replace(path)
        parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(parent)
        finally:
            os.close(parent)
    except OSError as error:
        raise HomeUnusable(f"{path} cannot be written: {error.strerror}; make room or mend the folder") from None


def read_pins(keys: Path) -> tuple[bytes, bytes]:
    """(root, log): the public keys that a log is held against. Raises `HomeUnusable`, also when there are none."""
    path = keys / PINS
    raw = _read(path)
    if raw is None:
        raise HomeUnusable(f"{path} is missing; there is no key to hold the ledger against")
    try:
        return bytes.fromhex(raw["root"]), bytes.fromhex(raw["log"])
    except (KeyError, TypeError, ValueError):
        raise _damaged(path, "it does not hold two keys in hex") from None


def pin(keys: Path, root: bytes, log: bytes) -> None:
    """Write down which keys this home's ledger is held against; an existing pin is a person's to change."""
    path = keys / PINS
    if _read(path) is None:
        _write(path, {"root": root.hex(), "log": log.hex()})
    elif read_pins(keys) != (root, log):
        raise HomeUnusable(f"{path} names other keys than those in {keys}; put the right ones back")


def remember(keys: Path, head: Checkpoint) -> None:
    """Keep a log's head for the next one who opens or verifies it. Raises `HomeUnusable`."""
    _write(keys / HEAD, {"origin": head.origin, "size": head.size, "root": head.root.hex()})


def _head(keys: Path) -> Checkpoint | None:
    path = keys / HEAD
    raw = _read(path)
    if raw is None:
        return None
    try:
        head = Checkpoint(raw["origin"], raw["size"], bytes.fromhex(raw["root"]))
    except (KeyError, TypeError, ValueError):
        raise _damaged(path, "it does not hold a head") from None
    if type(head.origin) is not str or type(head.size) is not int or head.size < 0 or len(head.root) != 32:
        raise _damaged(path, "it does not hold a head")
    return head


@dataclass(frozen=True, slots=True)
class Remembered:
    """What is known of a log beforehand."""

    head: Checkpoint | None = None
    """None where none was kept: then only the journal tells of a cut tail."""
    named: int | None = 0
    """Entries that the board's journal knows of; None when it cannot be read."""
    files: tuple[Path, ...] = field(default=())
    """Where it is kept, and what has to go with a log that is begun anew."""

    @classmethod
    def of(cls, keys: Path, board: Path) -> Remembered:
        """What a home knows; read it before the log, which grows meanwhile. Raises `HomeUnusable`."""
        return cls(_head(keys), entries_named(board), (keys / HEAD, board))

    @property
    def size(self) -> int:
        """Entries that the log holds at least."""
        return max(self.head.size if self.head is not None else 0, self.named or 0)

    def lines(self) -> tuple[str, ...]:
        """For a log that holds: what it was compared with, and what not."""
        if self.head is None:
            said = "no remembered head: a log that was cut at its end or begun anew may pass for whole"
        else:
            said = f"the remembered head of {self.head.size} entries lies in it"
        return (said, *(("the board cannot be read, so its journal was not compared",) if self.named is None else ()))


class Comparison:
    """A log held against what is remembered of it while it is read from its beginning."""

    def __init__(self, remembered: Remembered) -> None:
        self._remembered = remembered
        self._root: bytes | None = None

    def step(self, tree: Tree) -> None:
        """Look at the tree; to be called when it is empty and after each leaf."""
        head = self._remembered.head
        if head is not None and tree.size == head.size:
            self._root = tree.root()

    def finding(self, origin: str, size: int) -> BadEntry | None:
        """What is wrong with the log of this name and size; None when it goes on from what is remembered."""
        known = self._remembered
        if size < known.size:
            by = "the board's journal" if size < (known.named or 0) else "the remembered head"
            return BadEntry(Verdict.ROLLBACK, f"the log holds {size} entries, by {by} it had {known.size}")
        if known.head is not None and known.head.origin != origin:
            return BadEntry(Verdict.FORK, f"the log is {origin}, the remembered head is of {known.head.origin}")
        if known.head is not None and self._root != known.head.root:
            return BadEntry(Verdict.FORK, f"its first {known.head.size} entries are not those of the remembered head")
        return None
