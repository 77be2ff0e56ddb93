"""What this machine can hold a program to; what it cannot is refused or said, never dropped."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from council_tui.containers.sandbox import ENFORCED, probe
from council_tui.domain.errors import Refused

if TYPE_CHECKING:
    from council_tui.domain.contract import SpawnContext

MAX_WORDS = 64
TIER_VARIABLE = "COUNCIL_TIER"


@dataclass(frozen=True)
class Tier:
    """What stands between a body and the machine."""

    name: str
    """`portable`: guardian, own home and environment, a slice that is accounted for. `strong`: namespaces too."""
    bwrap: str = ""
    """Path of bubblewrap; empty in portable mode."""
    why: str = ""
    """Why it is not strong."""

    @property
    def strong(self) -> bool:
        """Whether namespaces hold what the contract forbids."""
        return bool(self.bwrap)


def portable(why: str) -> Tier:
    """The tier of any Linux machine."""
    return Tier("portable", "", why)


def find_tier() -> Tier:
    """Try once what this machine can enforce; COUNCIL_TIER=portable asks for no more than that."""
    if os.environ.get(TIER_VARIABLE) == "portable":
        return portable(f"{TIER_VARIABLE} asks for it")
    program = shutil.which("bwrap")
    why = probe(program)
    return portable(why) if why or program is None else Tier("strong", program)


def enforcement(context: SpawnContext, tier: Tier) -> str:
    """The words for screens and reports, at most 64 characters.

    Raises `Refused` when the contract requires more than this tier has.
    """
    if context.memory_slice.ceiling == "hard" and not tier.strong:
        raise Refused(
            "memory_slice.ceiling",
            f"this machine can only stop a program after it passed the ceiling ({tier.why}); `any` accepts that",
        )
    enforced = ENFORCED if tier.strong else frozenset()
    missing = [name for name in context.inheritance.forbidden_capabilities if name not in enforced]
    held = [name for name in context.inheritance.forbidden_capabilities if name in enforced]
    if missing and context.enforcement == "required":
        raise Refused(
            "enforcement",
            f"this machine cannot keep a program from: {', '.join(missing)}"
            f"{f' ({tier.why})' if tier.why else ''}; `enforcement: declared-only` starts it all the same",
        )
    words = f"{tier.name}; {'hard' if tier.strong else 'soft'} slice"
    if held:
        words += f"; no {', no '.join(held)}"
    if missing:
        declared = f"; declared only: no {', no '.join(missing)}"
        words += declared if len(words + declared) <= MAX_WORDS else f"; declared only: {len(missing)} bans"
    return words
