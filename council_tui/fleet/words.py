"""Plain words for what is wrong with a value: pydantic's findings, with an example of what was expected."""

from __future__ import annotations

import json
from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from council_tui.domain.text import safe

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic_core import ErrorDetails

    from council_tui.fleet.yaml_lines import Notes, Path

ModelT = TypeVar("ModelT", bound=BaseModel)

EXPECTED: dict[str, str] = {
    "id": "lower-case letters, digits and dashes, at most 48 characters, like unit-tests",
    "name": "lower-case letters, digits and dashes, at most 48 characters, like release-readiness",
    "title": "a few words of text",
    "after": "a list of ids of other children, like [unit-tests]",
    "labels": "a list of short texts, like [nightly]",
    "retries": "a whole number from 0 to 10",
    "priority": "a whole number from -100 to 100",
    "count": "a whole number of microsharks, like 50",
    "at_least": "a whole number of microsharks, like 20",
    "task_name": "lower-case words joined by dashes, like run-unit-tests",
    "task_description": "what to do, within which scope, and what not to touch",
    "output_schema": "a JSON Schema of an object, like {type: object, required: [status]}",
    "time_budget_minutes": "minutes, like 10",
    "autonomy_band": "AUTONOMOUS, PROPOSE_ONLY or NEVER",
    "tools_scope": "a list with at least one tool, like [exec, read]",
    "rollback_plan": 'one command that reverses all changes, or "No changes - read-only"',
    "parent_id": "a name like openclaw:gateway-8x7Yz",
    "spawn_ts": "a time in UTC, like 2026-05-11T13:20:00Z",
    "core_capabilities": "a list of lower-case words, like [terminal, file]",
    "forbidden_capabilities": "a list of lower-case words, like [network]",
    "shared_memory_path": "an absolute path, like /run/user/1000/council/slice",
    "memory_limit_mb": "a whole number of MiB, like 64",
    "memory_mb": "a whole number of MiB from 4 on, like 512",
    "processes": "a whole number, like 64",
    "cpus": "a number of cores, like 0.5",
}
"""What belongs into a field, with an example; shown when it is missing or has the wrong shape."""

EXPECTED_ITEM: dict[str, str] = {
    "core_capabilities": "a lower-case word, like terminal",
    "forbidden_capabilities": "a lower-case word, like network",
    "tools_scope": "the name of a tool, like read",
    "labels": "a short text, like nightly",
}
"""The same for one item of a list."""


_SHAPES = ("string_pattern_mismatch", "string_too_short", "too_short", "tuple_type", "dict_type")
"""Findings that an example explains better than pydantic's own words."""


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the nearest known word, or nothing."""
    # Comparing is slow, and a plan may hold thousands of names: past a few hundred nobody needs a guess.
    close = get_close_matches(word[:80], islice(known, 300), n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


def show(value: object) -> str:
    """A value as it may stand in a message: short and harmless."""
    return safe(json.dumps(value, ensure_ascii=False), 40)


def check(
    model: type[ModelT],
    data: Mapping[str, Any],
    path: Path,
    notes: Notes,
    origin: Mapping[str, Path] | None = None,
    whole: bool = True,
    strict: bool = True,
) -> ModelT | None:
    """Validate plain values strictly and note every mistake; None when there was one.

    `origin` says for a key where it was written, when that was not below `path`. Keys that the model
    does not have are the caller's to note. `whole` False leaves out rules that join several fields;
    `strict` False lets a text stand for a time.
    """
    places = origin or {}
    good = data = {key: value for key, value in data.items() if key in model.model_fields}
    for attempt in range(2):
        try:
            made = model.model_validate_json(json.dumps(good), strict=strict)
            return made if attempt == 0 else None
        except ValidationError as error:
            details = error.errors(include_url=False)
        for detail in details:
            loc = detail["loc"]
            if (whole and not loc) or (loc and attempt == 0):
                first = str(loc[0]) if loc else ""
                base = places.get(first, (*path, first)) if loc else path
                notes.add((*base, *loc[1:]), plain(detail))
        # Rules that join several fields run only once each field is right by itself: try again
        # with what is right, so that they are told in the same breath.
        wrong = {detail["loc"][0] for detail in details if detail["loc"]}
        good = {key: value for key, value in good.items() if key not in wrong}
        if len(good) == len(data):
            break
    return None


def plain(detail: ErrorDetails) -> str:
    """One of pydantic's findings as a sentence that says what was expected."""
    kind, loc, value = detail["type"], detail["loc"], detail["input"]
    name = next((str(step) for step in reversed(loc) if isinstance(step, str)), "")
    in_list = bool(loc) and isinstance(loc[-1], int)
    hint = (EXPECTED_ITEM if in_list else EXPECTED).get(name)
    if kind == "missing":
        return f"is missing; expected {hint}" if hint else "is missing"
    if kind == "value_error":
        return str(detail["ctx"]["error"])
    if value is None:
        return "is empty; " + (f"expected {hint}" if hint else "write a value or take the key out")
    if kind == "string_type" and isinstance(value, (bool, int, float)):
        return f"expected text, not {show(value)}; put it in quotes"
    if hint and (kind in _SHAPES or kind.startswith("datetime")):
        return f"expected {hint}, not {show(value)}"
    return f"{_reworded(detail['msg'])}, not {show(value)}"


def _reworded(message: str) -> str:
    for theirs, ours in (
        ("Input should be greater", "expected a number greater"),
        ("Input should be less", "expected a number less"),
        ("Input should be", "expected"),
        ("a valid integer", "a whole number"),
        ("a valid number", "a number"),
        ("a valid boolean", "true or false"),
        ("a valid string", "text"),
        ("a valid tuple", "a list"),
        ("a valid array", "a list"),
        ("a valid dictionary", "a mapping"),
        ("an object", "a mapping"),
    ):
        message = message.replace(theirs, ours)
    return message[:1].lower() + message[1:]


def unknown_keys(
    value: Mapping[str, Any],
    known: Iterable[str],
    path: Path,
    notes: Notes,
    hints: Mapping[str, str] | None = None,
) -> None:
    """Note every key that nobody reads, with the nearest one that somebody does."""
    names = list(known)
    for key in value:
        if key in names:
            continue
        if hints and key in hints:
            notes.add((*path, key), hints[key])
        else:
            guess = nearest(key, names) or f"; known here: {', '.join(names)}"
            notes.add((*path, key), f"unknown key{guess}")


def mapping(value: object, path: Path, notes: Notes, what: str = "keys and values") -> dict[str, Any]:
    """The value when it is a mapping; else a note and an empty one."""
    if isinstance(value, dict):
        return value
    notes.add(path, f"expected a mapping of {what}, not {show(value)}")
    return {}
