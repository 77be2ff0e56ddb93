"""The log's head as a signed note (C2SP: tlog-checkpoint, signed-note), by a key that signs nothing else."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass

from council_tui.ledger.keys import SIGNATURE_BYTES, Key, key_id, verify
from council_tui.ledger.verdicts import BadEntry, Verdict

_ED25519 = b"\x01"
_SIZE = re.compile(r"(?:0|[1-9][0-9]{0,15})\Z")
MAX_NOTE = 16 * 1024


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A head that is trusted: its signature was checked, or it was remembered."""

    origin: str
    size: int
    root: bytes


def usable_origin(origin: str) -> bool:
    """Whether a log may have this name: a signed note allows no blanks and no plus sign in it."""
    return 0 < len(origin) <= 200 and not any(char.isspace() or char == "+" for char in origin)


def origin_of(public: bytes) -> str:
    """A log's name derived from its key: whoever signs for this log thereby names the key of its heads."""
    return f"council-tui/{key_id(public)}"


def pinned(origin: str, stored: str, log_public: bytes | None) -> bytes:
    """The key that heads of this log must be signed by, from what its file says (`stored`, in hex).

    Either the caller pins it, or the log's name must be derived from it. Raises `BadEntry`.
    """
    try:
        public = bytes.fromhex(stored)
    except ValueError:
        raise _bad("the key in the file is not hex") from None
    if log_public is not None and public != log_public:
        raise _bad("the file names another log key than the pinned one")
    if log_public is None and origin != origin_of(public):
        raise _bad("this log's name is not derived from its key, so its key must be given")
    return public


def _key_hash(name: str, public: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\n" + _ED25519 + public).digest()[:4]


def vkey(origin: str, public: bytes) -> str:
    """The verifier key line that other tools for signed notes take."""
    return f"{origin}+{_key_hash(origin, public).hex()}+{base64.b64encode(_ED25519 + public).decode()}"


def sign_checkpoint(key: Key, origin: str, size: int, root: bytes) -> bytes:
    """The signed note for a head."""
    text = f"{origin}\n{size}\n{base64.b64encode(root).decode()}\n"
    blob = _key_hash(origin, key.public) + key.sign(text.encode())
    return f"{text}\n— {origin} {base64.b64encode(blob).decode()}\n".encode()


def _bad(detail: str) -> BadEntry:
    return BadEntry(Verdict.BAD_CHECKPOINT, detail)


def _decode(text: str) -> bytes:
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise _bad("the head holds something that is not base64") from None
    if base64.b64encode(raw) != text.encode():
        raise _bad("the head holds base64 with stray bits")
    return raw


def _signature(lines: list[str], origin: str, public: bytes) -> bytes:
    """The log's own signature; lines of other keys are witnesses' and are passed over."""
    for line in lines:
        dash, _, rest = line.partition(" ")
        name, _, encoded = rest.partition(" ")
        if dash != "—" or not name or not encoded:
            raise _bad("a signature line of the head is malformed")
        blob = _decode(encoded)
        if name == origin and blob[:4] == _key_hash(origin, public):
            if len(blob) != 4 + SIGNATURE_BYTES:
                raise _bad("the log's signature has a wrong length")
            return blob[4:]
    raise _bad("the head has no signature by this log's key")


def open_checkpoint(note: bytes, origin: str, public: bytes) -> Checkpoint:
    """Read a head and check the log's signature. Raises `BadEntry` with BAD_CHECKPOINT."""
    if len(note) > MAX_NOTE:
        raise _bad("the head is too large")
    try:
        text, gap, tail = note.decode().rpartition("\n\n")
    except UnicodeDecodeError:
        raise _bad("the head is not UTF-8") from None
    lines = text.split("\n")
    if not gap or not tail.endswith("\n") or len(lines) != 3:
        raise _bad("the head is not three lines, an empty one and signatures")
    signature = _signature(tail[:-1].split("\n"), origin, public)
    if not verify(public, f"{text}\n".encode(), signature):
        raise _bad("the signature of the head does not hold")
    if lines[0] != origin:
        raise _bad("the head belongs to another log")
    if not _SIZE.match(lines[1]):
        raise _bad("the size in the head is no number")
    root = _decode(lines[2])
    if len(root) != 32:
        raise _bad("the root in the head is no SHA-256")
    return Checkpoint(origin, int(lines[1]), root)
