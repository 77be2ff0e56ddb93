"""What this machine can hold a program to; what it cannot is refused or said, never dropped."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from council_tui.containers.sandbox import ENFORCED, probe
from council_tui.domain.contract import ResourceLimits
from council_tui.domain.errors import Refused
from council_tui.runner import cgroup

if TYPE_CHECKING:
    from collections.abc import Mapping

    from council_tui.domain.contract import SpawnContext

MAX_WORDS = 64
TIER_VARIABLE = "COUNCIL_TIER"
BY_LOOKING = frozenset({"memory", "processes"})
"""Limits that a guardian can hold without a cgroup, softly; of processor time it could only tell."""


@dataclass(frozen=True)
class Tier:
    """What stands between a body and the machine."""

    name: str
    """`portable`: guardian, own home and environment, a slice that is accounted for. `strong`: namespaces too."""
    bwrap: str = ""
    """Path of bubblewrap; empty in portable mode."""
    why: str = ""
    """Why it is not strong."""
    groups: Mapping[str, str] = field(default_factory=dict)
    """By limit of a contract: where a cgroup that holds it can be made."""
    no_groups: Mapping[str, str] = field(default_factory=dict)
    """By limit: why there is no such place."""

    @property
    def strong(self) -> bool:
        """Whether namespaces hold what the contract forbids."""
        return bool(self.bwrap)

    def holds(self, limit: str) -> bool:
        """Whether nobody gets around this limit: a cgroup holds it, and its files are out of reach."""
        return self.strong and limit in self.groups


def portable(why: str) -> Tier:
    """The tier of any Linux machine."""
    return Tier("portable", "", why)


def find_tier() -> Tier:
    """Try once what this machine can enforce; COUNCIL_TIER=portable asks for no more than that."""
    if os.environ.get(TIER_VARIABLE) == "portable":
        return portable(f"{TIER_VARIABLE} asks for it")
    program = shutil.which("bwrap")
    why = probe(program)
    groups, no_groups = cgroup.find()
    if why or program is None:
        return Tier("portable", "", why, groups, no_groups)
    return Tier("strong", program, "", groups, no_groups)


def enforcement(context: SpawnContext, tier: Tier) -> str:
    """The words for screens and reports, at most 64 characters.

    Raises `Refused` when the contract requires more than this tier has.
    """
    if context.memory_slice.ceiling == "hard" and not tier.strong:
        raise Refused(
            "memory_slice.ceiling",
            f"this machine can only stop a program after it passed the ceiling ({tier.why}); `any` accepts that",
        )
    limits = context.resource_limits or ResourceLimits()
    unheld = _unheld(context, limits, tier)
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
    limited = [name for name in limits.names if name not in unheld]
    if limited:
        words += f"; {'hard' if all(map(tier.holds, limited)) else 'soft'} limits"
    if held:
        words += f"; no {', no '.join(held)}"
    return _with_declared(words, [*(f"no {name}" for name in missing), *(f"{name} limit" for name in unheld)])


def _unheld(context: SpawnContext, limits: ResourceLimits, tier: Tier) -> list[str]:
    """The limits that nothing here holds. Raises `Refused` when the contract requires more."""
    if limits.ceiling == "hard" and not all(map(tier.holds, limits.names)):
        reasons = [tier.no_groups[name] for name in limits.names if name in tier.no_groups]
        why = "; ".join(dict.fromkeys(reasons if tier.strong else [tier.why]))
        rule = f"a program could get past its limits on this machine ({why}); `any` accepts that"
        raise Refused("resource_limits.ceiling", rule)
    unheld = [name for name in limits.names if name not in tier.groups and name not in BY_LOOKING]
    if unheld and context.enforcement == "required":
        why = "; ".join(tier.no_groups.get(name) or tier.why for name in unheld)
        way_out = "`enforcement: declared-only` starts it all the same"
        raise Refused(f"resource_limits.{unheld[0]}", f"nothing on this machine holds it ({why}); {way_out}")
    return unheld


def _with_declared(words: str, declared: list[str]) -> str:
    """With what is only declared, named if there is room and counted if not."""
    if not declared:
        return words
    count = min(len(declared), 99)
    named, counted = f"{words}; declared only: {', '.join(declared)}", f"{words}; declared only: {count} bans"
    return next((form for form in (named, counted) if len(form) <= MAX_WORDS), f"{words}; {count} unheld")
