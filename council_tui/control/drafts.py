"""What a person filled in, held against the same rules that a plan and a spawn are held against."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import ValidationError

from council_tui.control.views import DraftCheck, SpawnDraft
from council_tui.domain.envelope import Envelope
from council_tui.domain.errors import Refused
from council_tui.domain.hierarchy import PARENTS
from council_tui.domain.ids import LABEL
from council_tui.domain.order import Order, materialise
from council_tui.supervisor import limits

if TYPE_CHECKING:
    from council_tui.domain.contract import SpawnContext
    from council_tui.fleet.fleet import Fleet
    from council_tui.supervisor.supervisor import Supervisor


def order_of(draft: SpawnDraft) -> Order:
    """The order that a draft stands for. Raises pydantic's ValidationError."""
    description = draft.description or f"Run {' '.join(draft.run)}"
    context: dict[str, Any] = {
        "inheritance": {
            "mbti_type": draft.mbti_type,
            "core_capabilities": draft.core_capabilities,
            "forbidden_capabilities": draft.forbidden_capabilities,
        },
        "memory_slice": {"memory_limit_mb": draft.memory_limit_mb},
        "lifecycle_policy": {
            "parent_heartbeat_interval_seconds": draft.heartbeat_seconds,
            "child_timeout_seconds": draft.timeout_seconds,
        },
        "enforcement": draft.enforcement,
    }
    return Order(
        id=draft.label,
        title=draft.description.partition("\n")[0][:80] or draft.label,
        parent=draft.parent,
        run=draft.run,
        context=context,
        envelope=Envelope(
            task_name=draft.label,
            task_description=description,
            time_budget_minutes=draft.time_budget_minutes,
            autonomy_band="AUTONOMOUS",
            tools_scope=("exec",),
            rollback_plan=draft.rollback_plan,
            derived=("task_name", "output_schema", "autonomy_band", "tools_scope"),
        ),
    )


def _plain(error: ValidationError) -> list[tuple[str, str]]:
    return [
        (".".join(str(part) for part in item["loc"]) or "draft", item["msg"].removeprefix("Value error, "))
        for item in error.errors(include_url=False)
    ]


def _program(draft: SpawnDraft, workdir: str) -> list[tuple[str, str]]:
    if not draft.run or not draft.run[0].strip():
        return [("run", "say which program to run")]
    first = draft.run[0]
    if first == "{python}" or shutil.which(first) or os.access(os.path.join(workdir, first), os.X_OK):
        return []
    return [("run", f"there is no program {first!r} on the PATH")]


def check_draft(sup: Supervisor, fleet: Fleet, draft: SpawnDraft) -> DraftCheck:
    """Every rule that a draft breaks, and the contract as it would be sent."""
    problems = _program(draft, sup.workdir)
    if draft.parent not in PARENTS:
        problems.append(("parent", f"one of {', '.join(PARENTS)}"))
    elif fleet.office(draft.parent) is None:
        problems.append(("parent", f"{draft.parent} has no office open"))
    if any(card.plan_id == draft.label and card.kind != "office" for card in sup.board.tables.cards.values()):
        problems.append(("label", f"there is a card called {draft.label} already"))
    if not LABEL.match(draft.label):
        problems.append(("label", "lower-case letters, digits and dashes, at most 48, like unit-tests"))
        draft = replace(draft, label="unnamed")
    try:
        order = order_of(draft)
        context = materialise(
            order,
            parent_id=f"{draft.parent}:office",
            parent=None,
            parent_task="(the office's card)",
            task="(made when it is sent)",
            slice_path=str(sup.home.slices / "(new)"),
            spawn_ts="2000-01-01T00:00:00Z",
        )
    except ValidationError as error:
        return DraftCheck("", tuple(problems + _plain(error)))
    except Refused as error:
        return DraftCheck("", (*problems, (error.field, error.rule)))
    problems += [(found.field, found.rule) for found in context.inheritance.problems()]
    try:
        limits.enforcement(context, sup.tier)
    except Refused as error:
        problems.append((error.field, error.rule))
    return DraftCheck(_as_yaml(order, context), tuple(problems))


def _as_yaml(order: Order, context: SpawnContext) -> str:
    shown = context.model_dump(mode="json", exclude_none=True)
    shown["spawn_ts"] = "(when it is sent)"
    contract = {
        "spawn_context": shown,
        "envelope": order.envelope.model_dump(mode="json", exclude={"output_schema"}),
        "run": list(order.run),
    }
    return str(yaml.safe_dump(contract, sort_keys=False, allow_unicode=True, width=76))
