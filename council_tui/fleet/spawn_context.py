"""A child's spawn context as a plan may write it: whole like the seed's block, or any part of it.

Only shape is judged here, family by family; what the parent's office states at the spawn may be missing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from council_tui.domain.contract import (
    Family,
    Inheritance,
    KanbanHandoff,
    LifecyclePolicy,
    MemorySlice,
    ResourceLimits,
    SpawnContext,
)
from council_tui.domain.hierarchy import MICROSHARK_TTL_SECONDS, PARENTS
from council_tui.fleet.words import check, mapping, unknown_keys

if TYPE_CHECKING:
    from council_tui.domain.envelope import Envelope
    from council_tui.domain.order import Order
    from council_tui.fleet.yaml_lines import Notes, Path

FAMILIES: dict[str, type[Family]] = {
    "memory_slice": MemorySlice,
    "inheritance": Inheritance,
    "kanban_handoff": KanbanHandoff,
    "lifecycle_policy": LifecyclePolicy,
    "resource_limits": ResourceLimits,
}
PLACEHOLDERS: dict[str, dict[str, Any]] = {
    "memory_slice": {"shared_memory_path": "/placeholder"},
    "inheritance": {},
    "kanban_handoff": {"parent_task_id": "placeholder"},
    "lifecycle_policy": {},
    "resource_limits": {},
}
"""What only the parent's office can state at the spawn, so that a plan may leave it out."""

_IDENTITY = {
    "parent_id": "openclaw:placeholder",
    "spawn_ts": "2026-01-01T00:00:00Z",
    "task_reference": "placeholder",
}


@dataclass(frozen=True)
class Defaults:
    """The plan's `defaults`: what each child has unless it says otherwise."""

    families: dict[str, dict[str, Any]] = field(default_factory=dict)
    envelope: dict[str, Any] = field(default_factory=dict)
    single: dict[str, Any] = field(default_factory=dict)
    """enforcement, retries and container, as far as written."""


@dataclass
class Draft:
    """A child while it is being read."""

    path: Path
    value: dict[str, Any]
    id: str = ""
    parent: str = ""
    kind: str = "child"
    container: str = "command"
    run: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    context: dict[str, Any] = field(default_factory=dict)
    context_path: Path = ()
    stated: frozenset[str] = frozenset()
    """Which keys of the inheritance hold for this child by the plan's own words."""
    inheritance: Inheritance | None = None
    envelope: Envelope | None = None
    basics: Order | None = None

    def order(self) -> Order:
        """The finished order; only for a draft without mistakes."""
        if self.basics is None or self.envelope is None:
            raise ValueError(f"{self.id} was not read to its end")
        return self.basics.model_copy(
            update={
                "parent": self.parent,
                "kind": self.kind,
                "container": self.container,
                "run": self.run,
                "after": self.after,
                "context": self.context,
                "envelope": self.envelope,
            }
        )


def read_context(draft: Draft, defaults: Defaults, notes: Notes) -> None:
    """The spawn context's identity and handoff; the seed's block may keep its own outer key."""
    path = (*draft.path, "spawn_context")
    raw = mapping(draft.value["spawn_context"], path, notes) if "spawn_context" in draft.value else {}
    if set(raw) == {"spawn_context"}:
        path = (*path, "spawn_context")
        raw = mapping(raw["spawn_context"], path, notes)
    draft.context_path = path
    unknown_keys(raw, SpawnContext.model_fields, path, notes)
    draft.context = {key: value for key, value in raw.items() if key in SpawnContext.model_fields}
    origin: dict[str, Path] = {}
    if "enforcement" in defaults.single and "enforcement" not in raw:
        draft.context["enforcement"] = defaults.single["enforcement"]
        origin["enforcement"] = ("defaults", "enforcement")
    identity = {key: value for key, value in draft.context.items() if key not in FAMILIES}
    kind = identity.get("parent_type")
    if isinstance(kind, str) and "parent_id" not in identity and re.fullmatch("[a-z]+", kind):
        identity["parent_id"] = f"{kind}:placeholder"
    families = {
        "memory_slice": PLACEHOLDERS["memory_slice"],
        "kanban_handoff": PLACEHOLDERS["kanban_handoff"],
    }
    check(SpawnContext, {**_IDENTITY, **families, **identity}, path, notes, origin, strict=False)


def read_families(draft: Draft, defaults: Defaults, notes: Notes) -> None:
    """The families that hold more than names, each over the plan's defaults."""
    for name, model in FAMILIES.items():
        path = (*draft.context_path, name)
        own = mapping(draft.context[name], path, notes) if name in draft.context else {}
        unknown_keys(own, model.model_fields, path, notes)
        below = dict(defaults.families.get(name, {}))
        if name == "inheritance" and draft.kind == "microshark":
            below = {key: value for key, value in below.items() if not key.endswith("_capabilities")}
        elif name == "resource_limits" and draft.kind == "microshark":
            # Its parent's hold for it, and they may be narrower than the plan's defaults.
            below = {}
        merged = {key: value for key, value in {**below, **own}.items() if key in model.model_fields}
        origin: dict[str, Path] = {key: ("defaults", name, key) for key in below if key not in own}
        made = check(model, {**PLACEHOLDERS[name], **merged}, path if own else ("defaults", name), notes, origin)
        draft.context.pop(name, None)
        if made is not None and merged:
            dumped = made.model_dump(mode="json")
            draft.context[name] = {key: dumped[key] for key in merged}
        _family_rules(draft, made, own, merged, path, origin, notes)


def _family_rules(
    draft: Draft,
    made: Family | None,
    own: dict[str, Any],
    merged: dict[str, Any],
    path: Path,
    origin: dict[str, Path],
    notes: Notes,
) -> None:
    """The rules that shape alone does not hold."""
    if isinstance(made, Inheritance):
        draft.inheritance, draft.stated = made, frozenset(merged)
        for refusal in made.problems():
            key = refusal.field.rpartition(".")[2]
            notes.add(origin.get(key, (*path, key)), refusal.rule)
    elif isinstance(made, KanbanHandoff) and made.child_task_claim is not None:
        notes.add((*path, "child_task_claim"), "only the child makes its claim; expected null")
    elif isinstance(made, LifecyclePolicy) and draft.kind == "microshark":
        ttl = made.run_ttl_seconds if "run_ttl_seconds" in own else None
        if ttl is not None and ttl > MICROSHARK_TTL_SECONDS:
            notes.add(
                (*path, "run_ttl_seconds"),
                f"a microshark lives at most {MICROSHARK_TTL_SECONDS:g} seconds, not {ttl:g}",
            )


def parent_by_context(draft: Draft) -> str:
    """The office that the spawn context's own parent_id names, for a child that says no more."""
    kind = str(draft.context.get("parent_id", "")).partition(":")[0]
    return kind if kind in PARENTS else ""
