"""The fleet plan: a YAML file that says which children to spawn, under whom, and within which bounds.

Nothing starts from a plan with a mistake in it; every mistake is told at once, each with its line.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - the kept plan is read and written by its types
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from council_tui.domain.contract import MAX_SLICE_MB, Family
from council_tui.domain.envelope import Envelope
from council_tui.domain.errors import Mistake, PlanInvalid
from council_tui.domain.order import Label, Order
from council_tui.fleet.child import (
    ENVELOPE_KEYS,
    PLACEHOLDER_ENVELOPE,
    check_container,
    note_schema,
    read_child,
)
from council_tui.fleet.lacking import note_lacking
from council_tui.fleet.parents import check_types, read_parents
from council_tui.fleet.relations import check_relations, ordered
from council_tui.fleet.sizes import check_sizes
from council_tui.fleet.spawn_context import FAMILIES, PLACEHOLDERS, Defaults
from council_tui.fleet.swarm_rules import note_limits
from council_tui.fleet.words import check, mapping, nearest, show, unknown_keys
from council_tui.fleet.yaml_lines import Notes, Unreadable, read_yaml

MAX_BYTES = 1024 * 1024
"""Of a plan file."""

TOP_KEYS = ("council", "name", "description", "needs", "limits", "budget", "parents", "defaults", "children")
NOT_BUILT = {
    key: f"this version runs no {key}; take the section out"
    for key in ("roundtables", "councils", "topics", "hosts", "policy")
}
_DEFAULT_FAMILIES = ("lifecycle_policy", "inheritance", "memory_slice", "resource_limits")
_DEFAULT_SINGLE = ("enforcement", "retries", "container")
_NO_DOLLARS = "needs metered models, which this version does not run; expected minutes only"

_Count = Annotated[int, Field(ge=1, le=10_000)]


class _LimitsFile(Family):
    concurrency: _Count = 8
    children_per_parent: _Count = 5
    microsharks: _Count = 50
    births_per_minute: _Count = 1200
    births_per_parent: _Count = 300
    memory_floor_mb: Annotated[int, Field(ge=0, le=MAX_SLICE_MB)] = 256
    memory_pressure: Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)] = 25


class _BudgetFile(Family):
    minutes: Annotated[float, Field(gt=0, le=7 * 24 * 60, allow_inf_nan=False)] | None = None


class _TopFile(Family):
    name: Label
    description: Annotated[str, Field(max_length=8000)] = ""
    needs: tuple[Literal["git-repository"], ...] = ()


class _SingleFile(Family):
    enforcement: Literal["required", "declared-only"] = "required"
    retries: Annotated[int, Field(ge=0, le=10)] | None = None


@dataclass(frozen=True)
class Limits:
    """How much may live at once: children in all, agents below one parent, microsharks in all; and how fast."""

    concurrency: int = 8
    children_per_parent: int = 5
    microsharks: int = 50
    births_per_minute: int = 1200
    """In all. No limit of births keeps back the first agents, as many as may live at once."""
    births_per_parent: int = 300
    """Within a minute, below one parent."""
    memory_floor_mb: int = 256
    """MiB that this machine must have free for another agent to be born; 0 for no such floor."""
    memory_pressure: float = 25
    """Percent of the time in which something of this machine waited for memory, above which none is born."""


@dataclass(frozen=True)
class Plan:
    """A plan without mistakes."""

    name: str
    source: str
    """The file it came from, or the name of a shipped plan."""
    limits: Limits
    budget_minutes: float | None
    orders: tuple[Order, ...]
    """Each child followed by its microsharks."""
    description: str = ""
    needs: tuple[str, ...] = ()
    """What has to be where the plan is started, see `needs.check_needs`."""
    mbti: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By office: the base types that children below it may have; an office that is not here allows all."""


def shipped_plans() -> tuple[str, ...]:
    """Names of the plans in the package, sorted."""
    folder = resources.files("council_tui.plans")
    return tuple(sorted(item.name.removesuffix(".yaml") for item in folder.iterdir() if item.name.endswith(".yaml")))


def shipped_summary(name: str) -> str:
    """The first comment line of a shipped plan, or an empty text."""
    text = resources.files("council_tui.plans").joinpath(f"{name}.yaml").read_text("utf-8")
    first = text.partition("\n")[0]
    return first.lstrip("# ").strip() if first.startswith("#") else ""


def load_plan(source: str | Path) -> Plan:
    """Read a plan from a path, or a shipped one by its name. Raises `PlanInvalid` with every mistake."""
    path = Path(source)
    name = str(source)
    if name in shipped_plans() and not path.is_file():
        return parse_plan(resources.files("council_tui.plans").joinpath(f"{name}.yaml").read_text("utf-8"), name)
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise _invalid(name, f"is larger than {MAX_BYTES} bytes, which is the most that a plan may have")
        return parse_plan(raw.decode("utf-8-sig"), name)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise _invalid(name, "is not UTF-8 text; save it as UTF-8", line) from None
    except FileNotFoundError:
        guess = nearest(name, shipped_plans()) or f"; shipped plans: {', '.join(shipped_plans())}"
        raise _invalid(name, f"there is no such file and no shipped plan of this name{guess}") from None
    except IsADirectoryError:
        raise _invalid(name, "is a directory; expected a YAML file") from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise _invalid(name, f"cannot be read: {(why or 'unknown error').lower()}") from None


def _invalid(source: str, message: str, line: int | None = None) -> PlanInvalid:
    return PlanInvalid(source, [Mistake("plan", message, line)])


def parse_plan(text: str, source: str) -> Plan:
    """Read a plan from its text. Raises `PlanInvalid` with every mistake, in the order of the file."""
    try:
        value, notes = read_yaml(text)
    except Unreadable as error:
        raise PlanInvalid(source, [error.mistake]) from None
    plan = _read(value, source, notes)
    if notes.found or plan is None:
        raise PlanInvalid(source, notes.sorted())
    return plan


def _read(value: object, source: str, notes: Notes) -> Plan | None:
    raw = mapping(value, (), notes, "a plan's keys, beginning with 'council: 1'")
    if not isinstance(value, dict):
        return None
    unknown_keys(raw, TOP_KEYS, (), notes, NOT_BUILT)
    if raw.get("council") != 1 or isinstance(raw["council"], (bool, float)):
        said = f"{show(raw['council'])} is no version we read" if "council" in raw else "is missing"
        notes.add(("council",), f"{said}; expected council: 1")
    top = check(_TopFile, raw, (), notes)
    limits = check(_LimitsFile, _section(raw, "limits", _LimitsFile, notes), ("limits",), notes)
    budget = check(_BudgetFile, _section(raw, "budget", _BudgetFile, notes, {"usd": _NO_DOLLARS}), ("budget",), notes)
    mbti = read_parents(raw, notes)
    orders = _read_children(raw.get("children"), _read_defaults(raw, notes), notes)
    check_types(orders, mbti, raw, notes)
    check_sizes(orders, raw, notes)
    if limits is not None:
        note_limits(orders, limits.microsharks, raw, notes)
    if notes.found or top is None or limits is None or budget is None:
        return None
    bounds = Limits(**limits.model_dump())
    return Plan(top.name, source, bounds, budget.minutes, orders, top.description, top.needs, mbti)


def _section(
    raw: dict[str, Any], name: str, model: type[Family], notes: Notes, hints: dict[str, str] | None = None
) -> dict[str, Any]:
    """An optional section with its unknown keys noted."""
    section = mapping(raw[name], (name,), notes) if name in raw else {}
    unknown_keys(section, model.model_fields, (name,), notes, hints)
    return section


def _read_defaults(raw: dict[str, Any], notes: Notes) -> Defaults:
    """The defaults, each checked where it is written, so that no child is blamed for them."""
    section = mapping(raw["defaults"], ("defaults",), notes) if "defaults" in raw else {}
    unknown_keys(section, (*_DEFAULT_FAMILIES, "envelope", *_DEFAULT_SINGLE), ("defaults",), notes)
    families: dict[str, dict[str, Any]] = {}
    for name in _DEFAULT_FAMILIES:
        path = ("defaults", name)
        written = mapping(section[name], path, notes) if name in section else {}
        unknown_keys(written, FAMILIES[name].model_fields, path, notes)
        if "shared_memory_path" in written:
            notes.add((*path, "shared_memory_path"), "cannot be shared; write it in one child's spawn_context")
        families[name] = {
            key: value
            for key, value in written.items()
            if key in FAMILIES[name].model_fields and key != "shared_memory_path"
        }
        check(FAMILIES[name], {**PLACEHOLDERS[name], **families[name]}, path, notes, whole=False)
    single = {key: section[key] for key in _DEFAULT_SINGLE if key in section}
    check(_SingleFile, single, ("defaults",), notes)
    if "container" in single:
        check_container(single["container"], ("defaults", "container"), notes)
    return Defaults(families, _envelope_defaults(section, notes), single)


def _envelope_defaults(section: dict[str, Any], notes: Notes) -> dict[str, Any]:
    path = ("defaults", "envelope")
    written = mapping(section["envelope"], path, notes) if "envelope" in section else {}
    unknown_keys(written, ENVELOPE_KEYS, path, notes)
    envelope = {key: value for key, value in written.items() if key in ENVELOPE_KEYS}
    check(Envelope, {**PLACEHOLDER_ENVELOPE, **envelope}, path, notes)
    if isinstance(envelope.get("output_schema"), dict):
        note_schema(envelope["output_schema"], (*path, "output_schema"), notes)
    return envelope


def _read_children(value: object, defaults: Defaults, notes: Notes) -> tuple[Order, ...]:
    if not isinstance(value, list) or not value:
        said = "is missing" if value is None else f"{show(value)} holds no child"
        notes.add(("children",), f"{said}; expected a list with at least one, like '- id: unit-tests'")
        return ()
    drafts = [read_child(item, ("children", index), defaults, notes) for index, item in enumerate(value)]
    note_lacking(value, defaults.envelope, notes)
    check_relations(drafts, notes)
    return () if notes.found else tuple(draft.order() for draft in ordered(drafts))
