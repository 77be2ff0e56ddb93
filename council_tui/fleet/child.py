"""One child of a plan, read on its own: its command and its envelope; `spawn_context` reads the rest.

What ties children to each other (parents, dependencies, what is passed down) is in `relations`.
"""

from __future__ import annotations

import json
import re
import shlex
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from council_tui.domain.envelope import DERIVED_SCHEMA, Envelope
from council_tui.domain.evidence import schema_problem
from council_tui.domain.hierarchy import PARENTS
from council_tui.domain.ids import LABEL
from council_tui.domain.order import CONTAINERS, FAULTS, Order
from council_tui.domain.text import safe
from council_tui.fleet.lacking import SHARED
from council_tui.fleet.spawn_context import (
    FAMILIES,
    Defaults,
    Draft,
    parent_by_context,
    read_context,
    read_families,
)
from council_tui.fleet.words import EXPECTED, check, mapping, nearest, show, unknown_keys

if TYPE_CHECKING:
    from council_tui.fleet.yaml_lines import Notes, Path

CHILD_KEYS = (
    "id",
    "title",
    "parent",
    "container",
    "run",
    "fault",
    "after",
    "priority",
    "labels",
    "retries",
    "workdir",
    "count",
    "at_least",
    "spawn_context",
    "envelope",
)
_BASICS = ("id", "title", "priority", "labels", "retries", "workdir", "count", "at_least")
ENVELOPE_KEYS = tuple(key for key in Envelope.model_fields if key != "derived")
_MISPLACED = {
    **{key: f"belongs under envelope: write envelope: {{{key}: ...}}" for key in ENVELOPE_KEYS},
    **{key: f"belongs under spawn_context: write spawn_context: {{{key}: ...}}" for key in (*FAMILIES, "enforcement")},
}
_MAX_ARGUMENT = 100_000
"""Bytes; Linux takes no single argument above 128 KiB (execve(2))."""


def read_child(value: object, path: Path, defaults: Defaults, notes: Notes) -> Draft:
    """Read what a child says of itself; every mistake goes to the notes."""
    raw = mapping(value, path, notes, "a child's keys")
    draft = Draft(path, raw)
    if not isinstance(value, dict):
        return draft
    unknown_keys(raw, CHILD_KEYS, path, notes, _MISPLACED)
    draft.id = raw["id"] if isinstance(raw.get("id"), str) else ""
    draft.parent = raw["parent"] if isinstance(raw.get("parent"), str) else ""
    read_context(draft, defaults, notes)
    if not draft.parent and raw.get("parent") is None:
        draft.parent = parent_by_context(draft)
    if not draft.parent:
        said = "is missing" if raw.get("parent") is None else f"{show(raw['parent'])} is no name"
        notes.add((*path, "parent"), f"{said}; expected {', '.join(PARENTS)} or the id of a child of this plan")
    draft.kind = "microshark" if draft.parent and draft.parent not in PARENTS else "child"
    _read_container(draft, defaults, notes)
    draft.after = _texts(raw.get("after", []), (*path, "after"), notes, "ids of other children")
    _read_basics(draft, defaults, notes)
    _read_envelope(draft, defaults, notes)
    read_families(draft, defaults, notes)
    return draft


def _texts(value: object, path: Path, notes: Notes, what: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        notes.add(path, f"expected a list of {what}, like [first, second], not {show(value)}")
        return ()
    for index, item in enumerate(value):
        if not isinstance(item, str):
            notes.add((*path, index), f"expected text, not {show(item)}; put it in quotes")
    return tuple(item for item in value if isinstance(item, str))


def _read_container(draft: Draft, defaults: Defaults, notes: Notes) -> None:
    inherited = "container" not in draft.value and "container" in defaults.single
    name = defaults.single["container"] if inherited else draft.value.get("container", "command")
    path: Path = ("defaults", "container") if inherited else (*draft.path, "container")
    if not check_container(name, path, notes):
        return
    draft.container = str(name)
    run, fault = draft.value.get("run"), draft.value.get("fault")
    if name == "command":
        if fault is not None:
            notes.add((*draft.path, "fault"), "is for a drill only; take it out or write container: drill")
        draft.run = _read_run(run, (*draft.path, "run"), notes)
        return
    if run is not None:
        notes.add((*draft.path, "run"), "a drill runs nothing; take it out or write container: command")
    if fault not in FAULTS:
        what = "is missing" if fault is None else f"{show(fault)} is no fault that a drill knows"
        guess = nearest(str(fault), FAULTS)
        notes.add((*draft.path, "fault"), f"{what}; expected one of {', '.join(FAULTS)}{guess}")


def check_container(name: object, path: Path, notes: Notes) -> bool:
    """Whether this version runs such a container; a note when it does not."""
    if name in CONTAINERS:
        return True
    guess = nearest(str(name), CONTAINERS)
    notes.add(path, f"{show(name)} is not built in; this version runs: {', '.join(CONTAINERS)}{guess}")
    return False


def _read_run(value: object, path: Path, notes: Notes) -> tuple[str, ...]:
    if value is None:
        notes.add(path, 'is missing; expected the command as a list, like ["python3", "-m", "pytest"], or as text')
        return ()
    if isinstance(value, str):
        try:
            value = shlex.split(value)
        except ValueError as error:
            notes.add(path, f"cannot be split into words: {str(error).lower()}; write it as a list")
            return ()
    words = _texts(value, path, notes, "texts")
    if isinstance(value, list) and (not value or value[0] == ""):
        notes.add(path, "names no program; expected at least one word")
    for index, word in enumerate(words):
        if len(word.encode()) > _MAX_ARGUMENT:
            notes.add((*path, index), f"is longer than {_MAX_ARGUMENT} bytes; put it into a file")
    return words


def _read_basics(draft: Draft, defaults: Defaults, notes: Notes) -> None:
    """Id, title, priority, labels, retries, workdir, count and fault: fields that stand for themselves."""
    raw = draft.value
    plain: dict[str, Any] = {key: raw[key] for key in _BASICS if key in raw}
    plain.setdefault("title", draft.id or "untitled")
    origin: dict[str, Path] = {}
    if "retries" not in raw and "retries" in defaults.single:
        plain["retries"] = defaults.single["retries"]
        origin["retries"] = ("defaults", "retries")
    if raw.get("fault") in FAULTS:
        plain["fault"] = raw["fault"]
    plain |= {"parent": "placeholder", "envelope": PLACEHOLDER_ENVELOPE}
    draft.basics = check(Order, plain, draft.path, notes, origin)


PLACEHOLDER_ENVELOPE: dict[str, Any] = {
    "task_name": "placeholder",
    "task_description": "placeholder",
    "output_schema": DERIVED_SCHEMA,
    "time_budget_minutes": 1,
    "autonomy_band": "NEVER",
    "tools_scope": ["placeholder"],
    "rollback_plan": "No changes",
}


def _read_envelope(draft: Draft, defaults: Defaults, notes: Notes) -> None:
    path = (*draft.path, "envelope")
    own = mapping(draft.value["envelope"], path, notes) if "envelope" in draft.value else {}
    unknown_keys(own, ENVELOPE_KEYS, path, notes)
    merged = {key: value for key, value in {**defaults.envelope, **own}.items() if key in ENVELOPE_KEYS}
    origin = {key: ("defaults", "envelope", key) for key in defaults.envelope if key not in own}
    derived = {key: value for key, value in _derivable(draft).items() if key not in merged}
    # What neither envelope has is told by `lacking`, once for all children.
    stand_in = {key: value for key, value in PLACEHOLDER_ENVELOPE.items() if key in SHARED}
    filled = {**stand_in, **merged, **derived, "derived": list(derived)}
    if "output_schema" not in filled:
        notes.add((*path, "output_schema"), f"is missing; expected {EXPECTED['output_schema']}")
    draft.envelope = check(Envelope, filled, path, notes, origin)
    schema = filled.get("output_schema")
    if isinstance(schema, dict):
        note_schema(schema, origin.get("output_schema", (*path, "output_schema")), notes)


def note_schema(schema: dict[str, Any], path: Path, notes: Notes) -> None:
    """Note why a declared output schema is no JSON Schema."""
    if schema is not DERIVED_SCHEMA and (problem := _schema_problem(json.dumps(schema))):
        notes.add(path, f"is no JSON Schema: {safe(problem, 200)}")


@lru_cache(maxsize=256)
def _schema_problem(schema: str) -> str | None:
    """By its text, since children often share one schema through the defaults."""
    return schema_problem(json.loads(schema))


def _derivable(draft: Draft) -> dict[str, Any]:
    """What the envelope may take from the child's id, title and command."""
    # An id that is no label has a mistake of its own; its task name is not to add a second one.
    name = re.sub("-+", "-", draft.id) if LABEL.match(draft.id) else "unnamed"
    out: dict[str, Any] = {"task_name": name}
    if draft.container == "command":
        title = draft.value.get("title")
        command = f"Run: {shlex.join(draft.run)}"
        out["task_description"] = (f"{title}. {command}" if isinstance(title, str) and title else command)[:8000]
        out["output_schema"] = DERIVED_SCHEMA
    return out
