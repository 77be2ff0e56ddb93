"""What two who have never met sign to prove to each other who they are, before they speak of anything else.

A runner that lost its supervisor and a supervisor that takes a home over know each other only by keys: the
agent's stands in its delegation, Hermes' is pinned. Each signs the other's fresh nonce. The text can be
taken for no entry and no checkpoint: those begin otherwise.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Literal

from council_tui.ledger.keys import verify

if TYPE_CHECKING:
    from council_tui.ledger.keys import Key

Role = Literal["supervisor", "runner"]
NONCE_BYTES = 16


def nonce() -> str:
    """A fresh challenge, hex."""
    return secrets.token_hex(NONCE_BYTES)


def _text(role: Role, log: str, run: str, challenge: str, own: str) -> bytes:
    return "\n".join(("council introduction v1", role, log, run, challenge, own)).encode()


def prove(key: Key, role: Role, log: str, run: str, challenge: str, own: str) -> str:
    """Sign the other side's `challenge` beside one's `own`; the signature in hex."""
    return key.sign(_text(role, log, run, challenge, own)).hex()


def proved(public: bytes, proof: str, role: Role, log: str, run: str, challenge: str, own: str) -> bool:
    """Whether the holder of `public` signed our `challenge` in this role. Never raises."""
    try:
        return verify(public, _text(role, log, run, challenge, own), bytes.fromhex(proof))
    except ValueError:
        return False
