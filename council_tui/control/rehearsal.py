"""A plan held against the rules without starting anything: what each child would get, and who would be refused."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from council_tui.domain.authority import clearance
from council_tui.domain.contract import check_narrowing
from council_tui.domain.errors import Refused
from council_tui.domain.hierarchy import PARENTS
from council_tui.domain.order import materialise
from council_tui.supervisor import limits

if TYPE_CHECKING:
    from council_tui.domain.contract import Inheritance, SpawnContext
    from council_tui.domain.order import Order
    from council_tui.fleet.plan import Plan

SLICE = "/(made at the spawn)"
_LATER = "2000-01-01T00:00:00Z"
_FIELDS_OF_A_SPAWN = ("parent_id", "parent_type", "spawn_ts", "task_reference", "kanban_handoff")


@dataclass(frozen=True)
class Rehearsed:
    """One child as it would be spawned."""

    id: str
    title: str
    kind: str
    parent: str
    after: tuple[str, ...]
    container: str
    run: tuple[str, ...]
    attempts: int
    minutes: float
    declared_band: str
    band: str
    """The stricter of what is declared and what E7 grants."""
    hold: bool
    """True when the card would be parked for a person."""
    why: str
    """How the band came about."""
    enforcement: str
    """What this machine would hold it to; empty when it would be refused."""
    refused: str
    """Why the spawn would be refused here; empty when it would not."""
    notes: tuple[str, ...]
    envelope: dict[str, Any]
    """Each field as it would be sent; `derived` names those that the plan did not write."""
    contract: dict[str, Any]
    """The families that are known before the spawn."""


def _context(order: Order, parent: Inheritance | None) -> SpawnContext:
    return materialise(
        order,
        parent_id=f"{order.parent if order.parent in PARENTS else 'child'}:before-the-spawn",
        parent=parent,
        parent_task="(its parent's card)",
        task="(its card)",
        slice_path=SLICE,
        spawn_ts=_LATER,
    )


def _notes(order: Order, workdir: str) -> tuple[str, ...]:
    """What is no mistake of the plan and would still end badly."""
    if order.container != "command" or order.run[0] == "{python}":
        return ()
    program, folder = order.run[0], order.workdir or workdir
    if shutil.which(program) or os.access(os.path.join(folder, program), os.X_OK):
        return ()
    return (f"there is no program {program!r} on this machine's PATH",)


def _held_to(context: SpawnContext, parent: Inheritance | None, tier: limits.Tier) -> tuple[str, str]:
    """(enforcement, why it would be refused): one of them is empty."""
    problems = [*context.inheritance.problems(), *check_narrowing(parent, context.inheritance)]
    if problems:
        return "", str(problems[0])
    try:
        return limits.enforcement(context, tier), ""
    except Refused as error:
        return "", str(error)


def _one(order: Order, workdir: str, known: dict[str, Inheritance], tier: limits.Tier) -> Rehearsed:
    parent = known.get(order.parent)
    contract: dict[str, Any] = {}
    try:
        context = _context(order, parent)
    except Refused as error:
        words, refused = "", str(error)
    else:
        known[order.id] = context.inheritance
        words, refused = _held_to(context, parent, tier)
        contract = context.model_dump(mode="json", exclude_none=True, exclude=set(_FIELDS_OF_A_SPAWN))
        if contract["memory_slice"]["shared_memory_path"] == SLICE:
            del contract["memory_slice"]["shared_memory_path"]
    cleared = clearance(order.envelope)
    return Rehearsed(
        id=order.id,
        title=order.title,
        kind=order.kind,
        parent=order.parent,
        after=order.after,
        container=order.container,
        run=order.run or ((order.fault,) if order.fault else ()),
        attempts=order.attempts,
        minutes=order.envelope.time_budget_minutes,
        declared_band=order.envelope.autonomy_band,
        band=cleared.band,
        hold=cleared.hold,
        why=cleared.reason,
        enforcement=words,
        refused=refused,
        notes=_notes(order, workdir),
        envelope=order.envelope.model_dump(mode="json"),
        contract=contract,
    )


def rehearse(plan: Plan, workdir: str) -> tuple[Rehearsed, ...]:
    """Each child of the plan in its order, as it would be spawned from `workdir`; starts and writes nothing."""
    known: dict[str, Inheritance] = {}
    tier = limits.find_tier()
    return tuple(_one(order, workdir, known, tier) for order in plan.orders)
