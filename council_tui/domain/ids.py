"""Names of things: short, sortable by nothing, safe in a path, a URL and a shell."""

from __future__ import annotations

import re

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford base 32 in lower case: no i, l, o, u."""

LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,46}[a-z0-9])?\Z")
"""What a plan may call a child: lower case, digits and dashes, at most 48 characters."""


def encode(raw: bytes) -> str:
    """Encode random bytes, five bits a character, dropping a last incomplete group."""
    number = int.from_bytes(raw, "big")
    length = len(raw) * 8 // 5
    return "".join(_ALPHABET[(number >> (5 * index)) & 31] for index in range(length))


def card_id(raw: bytes) -> str:
    """A card, e.g. `t_7kq2m9xz` from 5 random bytes."""
    return f"t_{encode(raw)}"


def run_id(raw: bytes) -> str:
    """One attempt at a card and its fencing token, e.g. `r_7kq2m9xzw4` from 7 random bytes."""
    return f"r_{encode(raw)}"


def agent_name(kind: str, label: str, run: str) -> str:
    """The ledger's name of an agent; it holds the run id, so that a retry is a new name.

    `child:unit-tests.7kq2m9xzw4`; the part before the colon is the agent's type.
    """
    return f"{kind}:{label}.{run.removeprefix('r_')}"


def agent_type(name: str) -> str:
    """The type in an agent's name: what stands before the colon."""
    return name.partition(":")[0]


def agent_label(name: str) -> str:
    """The short name a person reads: no type, no run."""
    rest = name.partition(":")[2] or name
    return rest.rpartition(".")[0] or rest
