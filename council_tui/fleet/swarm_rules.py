"""What a plan may say of a swarm: who may ask for one, how its members are called, and what it can never get."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from council_tui.domain.order import Label
from council_tui.domain.swarm import member_id
from council_tui.domain.text import counted
from council_tui.fleet.words import show

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from council_tui.domain.order import Order
    from council_tui.fleet.spawn_context import Draft
    from council_tui.fleet.yaml_lines import Notes

_LABEL = TypeAdapter[str](Label)
_MEMBER = re.compile(r"(?P<swarm>.+)-(?P<index>[1-9][0-9]*)\Z")
_LONGEST_TITLE = 170
"""Leaves room for a member's number."""


def note_swarms(drafts: Iterable[Draft], notes: Notes) -> None:
    """Note what is wrong with the swarms of a plan, whatever its limits are."""
    counts: dict[str, int] = {}
    for draft in drafts:
        count, least = (draft.value.get("count"), draft.value.get("at_least"))
        if draft.kind == "child":
            for key in ("count", "at_least"):
                if key in draft.value:
                    rule = "is for microsharks, which a child asks for; children are written one by one"
                    notes.add((*draft.path, key), rule)
        elif draft.basics is not None and draft.basics.count is not None:
            counts[draft.id] = draft.basics.count
            _note_swarm(draft, draft.basics, notes)
        elif least is not None and count is None:
            notes.add((*draft.path, "at_least"), "is for a swarm; write in count how many there shall be")
    _note_names(drafts, counts, notes)


def _note_swarm(draft: Draft, order: Order, notes: Notes) -> None:
    count = order.count or 0
    if order.at_least is not None and order.at_least > count:
        notes.add((*draft.path, "at_least"), f"{order.at_least} is more than the count of {count}")
    if "shared_memory_path" in draft.context.get("memory_slice", {}):
        where = (*draft.context_path, "memory_slice", "shared_memory_path")
        notes.add(where, f"one path cannot be the slice of {counted(count, 'microshark')}; take it out")
    if len(order.title) > _LONGEST_TITLE:
        notes.add((*draft.path, "title"), f"is longer than {_LONGEST_TITLE} characters, which a swarm's may have")
    longest = member_id(order.id, count)
    try:
        _LABEL.validate_python(longest)
    except ValidationError:
        notes.add((*draft.path, "id"), f"is too long for a swarm of {count}: {show(longest)} would be no id any more")


def _note_names(drafts: Iterable[Draft], counts: dict[str, int], notes: Notes) -> None:
    for draft in drafts:
        found = _MEMBER.match(draft.id)
        if found is not None and int(found["index"]) <= counts.get(found["swarm"], 0):
            rule = f"{show(draft.id)} is what a member of the swarm {show(found['swarm'])} is called; choose another"
            notes.add((*draft.path, "id"), rule)


def note_limits(orders: Sequence[Order], most: int, raw: dict[str, Any], notes: Notes) -> None:
    """Note the swarms that these limits could never grant. `most`: `limits.microsharks`."""
    for order in orders:
        if order.count is None or (order.at_least or order.count) <= most:
            continue
        key = "count" if order.at_least is None else "at_least"
        way_out = ", or say with at_least how many are worth having" if order.at_least is None else ""
        index = next(i for i, item in enumerate(raw["children"]) if item.get("id") == order.id)
        needs = f"needs {order.at_least or order.count:,} microsharks, and limits.microsharks is {most:,}"
        notes.add(("children", index, key), f"{needs}; raise that limit, ask for fewer{way_out}")
