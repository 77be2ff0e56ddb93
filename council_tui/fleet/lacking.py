"""Envelope fields that nothing can stand in for: told once for all children that lack the same ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from council_tui.domain.envelope import Envelope
from council_tui.domain.text import safe
from council_tui.fleet.words import EXPECTED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from council_tui.fleet.yaml_lines import Notes

SHARED = tuple(
    name
    for name, field in Envelope.model_fields.items()
    if field.is_required() and name not in ("task_name", "task_description")
)
"""What every child has to have, in its own envelope or in `defaults.envelope`."""
_NAMED = 20
"""Children that a message names; of more it tells how many."""


def note_lacking(children: Sequence[object], defaults: Mapping[str, Any], notes: Notes) -> None:
    """Note what is in neither envelope, at the first child of each group that lacks the same."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for index, child in enumerate(children):
        if lacks := _lacks(child, defaults):
            groups.setdefault(lacks, []).append(index)
    for lacks, indexes in groups.items():
        path = ("children", indexes[0], "envelope")
        others = [_name(children[index], index) for index in indexes[1:]]
        if len(lacks) == 1:
            notes.add((*path, lacks[0]), f"is missing; expected {EXPECTED[lacks[0]]}{_same(others, 'it')}")
        else:
            told = ", ".join(f"{name} ({EXPECTED[name]})" for name in lacks)
            where = _same(others, "them") or "; write them here or in defaults.envelope"
            notes.add(path, f"lacks {told}{where}")


def _lacks(child: object, defaults: Mapping[str, Any]) -> tuple[str, ...]:
    if not isinstance(child, dict):
        return ()
    own = child.get("envelope", {})
    # An envelope that is none has a mistake of its own.
    return tuple(name for name in SHARED if name not in own and name not in defaults) if isinstance(own, dict) else ()


def _same(others: list[str], what: str) -> str:
    if not others:
        return ""
    more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
    named = ", ".join(others[:_NAMED])
    return (
        f"; the same for children: {named}{more}; write {what} once in defaults.envelope, or in each child's envelope"
    )


def _name(child: object, index: int) -> str:
    known = child.get("id") if isinstance(child, dict) else None
    return safe(known, 48) if isinstance(known, str) and known else f"children[{index}]"
