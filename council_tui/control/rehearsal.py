"""A plan held against the rules without starting anything: what each child would get, and who would be refused."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from council_tui.domain.authority import clearance
from council_tui.domain.contract import check_limits, check_narrowing
from council_tui.domain.errors import Refused
from council_tui.domain.hierarchy import PARENTS
from council_tui.domain.order import materialise
from council_tui.domain.swarm import Room, SwarmGrant, decide
from council_tui.supervisor import limits

if TYPE_CHECKING:
    from council_tui.domain.contract import SpawnContext
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
    count: int | None
    """How many microsharks its parent asks for in one contract; None for a child of its own."""
    granted: int | None
    """How many Hermes would grant while no other microshark lives."""
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


def _context(order: Order, parent: SpawnContext | None) -> SpawnContext:
    return materialise(
        order,
        parent_id=f"{order.parent if order.parent in PARENTS else 'child'}:before-the-spawn",
        parent=parent.inheritance if parent else None,
        limits=parent.resource_limits if parent else None,
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


def _held_to(context: SpawnContext, parent: SpawnContext | None, tier: limits.Tier) -> tuple[str, str]:
    """(enforcement, why it would be refused): one of them is empty."""
    problems = context.inheritance.problems()
    if parent is not None:
        problems += check_narrowing(parent.inheritance, context.inheritance)
        problems += check_limits(parent.resource_limits, context.resource_limits)
    if problems:
        return "", str(problems[0])
    try:
        return limits.enforcement(context, tier), ""
    except Refused as error:
        return "", str(error)


def _granted(order: Order, plan: Plan) -> SwarmGrant | None:
    """What a parent would get of a swarm at the beginning of the fleet; None for a child of its own."""
    if order.count is None:
        return None
    seconds = None if plan.budget_minutes is None else plan.budget_minutes * 60
    return decide(order, Room(plan.limits.microsharks, seconds=seconds))


def _one(order: Order, workdir: str, known: dict[str, SpawnContext], tier: limits.Tier, plan: Plan) -> Rehearsed:
    parent = known.get(order.parent)
    swarm = _granted(order, plan)
    contract: dict[str, Any] = {}
    try:
        context = _context(order, parent)
    except Refused as error:
        words, refused = "", str(error)
    else:
        known[order.id] = context
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
        count=order.count,
        granted=swarm.granted if swarm is not None else None,
        declared_band=order.envelope.autonomy_band,
        band=cleared.band,
        hold=cleared.hold,
        why=cleared.reason,
        enforcement=words,
        refused=refused,
        notes=(*_notes(order, workdir), *((swarm.reason,) if swarm is not None and swarm.reason else ())),
        envelope=order.envelope.model_dump(mode="json"),
        contract=contract,
    )


def rehearse(plan: Plan, workdir: str) -> tuple[Rehearsed, ...]:
    """Each child of the plan in its order, as it would be spawned from `workdir`; starts and writes nothing."""
    known: dict[str, SpawnContext] = {}
    tier = limits.find_tier()
    return tuple(_one(order, workdir, known, tier, plan) for order in plan.orders)
