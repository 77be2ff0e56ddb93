"""What this machine can hold a program to; what it cannot is refused or said, never dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from council_tui.domain.errors import Refused

if TYPE_CHECKING:
    from council_tui.domain.contract import SpawnContext

TIER = "portable"
"""Subreaper and guardian per agent, a private home and environment, a slice that is accounted for."""


MAX_WORDS = 64


def enforcement(context: SpawnContext) -> str:
    """The words for screens and reports, at most 64 characters.

    Raises `Refused` when the contract requires more than this tier has.
    """
    forbidden = context.inheritance.forbidden_capabilities
    if context.memory_slice.ceiling == "hard":
        raise Refused(
            "memory_slice.ceiling",
            "this machine can only stop a program after it passed the ceiling; `any` accepts that",
        )
    if not forbidden:
        return f"{TIER}; soft slice"
    if context.enforcement == "required":
        raise Refused(
            "enforcement",
            f"this machine cannot keep a program from: {', '.join(forbidden)}; "
            "`enforcement: declared-only` starts it all the same",
        )
    words = f"{TIER}; soft slice; declared only: no {', no '.join(forbidden)}"
    return words if len(words) <= MAX_WORDS else f"{TIER}; soft slice; declared only: {len(forbidden)} bans"
