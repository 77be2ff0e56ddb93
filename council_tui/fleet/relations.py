"""What ties the children of a plan to each other: parents, dependencies, what is passed down, slices."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from council_tui.domain.contract import Inheritance, ResourceLimits, check_limits, check_narrowing
from council_tui.domain.hierarchy import KINDS, PARENTS
from council_tui.domain.ids import agent_type
from council_tui.fleet.swarm_rules import note_swarms
from council_tui.fleet.words import nearest, show

if TYPE_CHECKING:
    from collections.abc import Iterable

    from council_tui.domain.errors import Refused
    from council_tui.fleet.spawn_context import Draft
    from council_tui.fleet.yaml_lines import Notes


def check_relations(drafts: list[Draft], notes: Notes) -> None:
    """Every rule that needs more than one child to be seen."""
    by_id = _unique(drafts, notes)
    known = {*PARENTS, *by_id}
    for draft in drafts:
        _check_parent(draft, by_id, notes)
        _check_after(draft, by_id, known, notes)
        parent = by_id.get(draft.parent)
        if parent is not None and parent is not draft and draft.kind == "microshark":
            _check_passed_down(draft, parent, notes)
    _check_cycles(by_id, notes)
    _check_slices(drafts, notes)
    note_swarms(drafts, notes)


def ordered(drafts: Iterable[Draft]) -> list[Draft]:
    """The children in the order of the file, each followed by its microsharks."""
    drafts = list(drafts)
    below: dict[str, list[Draft]] = {}
    for draft in drafts:
        if draft.kind == "microshark":
            below.setdefault(draft.parent, []).append(draft)
    return [one for draft in drafts if draft.kind == "child" for one in (draft, *below.get(draft.id, ()))]


def _unique(drafts: list[Draft], notes: Notes) -> dict[str, Draft]:
    by_id: dict[str, Draft] = {}
    for draft in drafts:
        if draft.id in KINDS:
            notes.add((*draft.path, "id"), f"{show(draft.id)} is the name of an office; choose another")
        elif draft.id in by_id:
            line = notes.line((*by_id[draft.id].path, "id"))
            notes.add((*draft.path, "id"), f"{show(draft.id)} is taken by the child in line {line}")
        elif draft.id:
            by_id[draft.id] = draft
    return by_id


def _check_parent(draft: Draft, by_id: dict[str, Draft], notes: Notes) -> None:
    path = (*draft.path, "parent")
    if not draft.parent:
        return
    if draft.kind == "microshark":
        parent = by_id.get(draft.parent)
        if parent is draft:
            notes.add(path, "a child cannot be its own parent")
        elif parent is None:
            guess = nearest(draft.parent, [*PARENTS, *by_id]) or f"; expected {', '.join(PARENTS)} or a child's id"
            notes.add(path, f"{show(draft.parent)} is neither an office nor a child of this plan{guess}")
        elif parent.kind == "microshark":
            notes.add(path, f"{show(draft.parent)} is a microshark, and microsharks spawn nothing")
    named = draft.context.get("parent_id")
    expected = draft.parent if draft.kind == "child" else "child"
    if isinstance(named, str) and agent_type(named) != expected:
        notes.add(
            (*draft.context_path, "parent_id"),
            f"{show(named)} does not agree with parent {show(draft.parent)}; expected {expected}:NAME",
        )


def _check_after(draft: Draft, by_id: dict[str, Draft], known: set[str], notes: Notes) -> None:
    for index, name in enumerate(draft.after):
        path = (*draft.path, "after", index)
        other = by_id.get(name)
        if name in draft.after[:index]:
            notes.add(path, f"{show(name)} is named twice")
        elif other is None:
            guess = nearest(name, by_id) or "; expected the id of another child"
            notes.add(path, f"{show(name)} is no child of this plan{guess}")
        elif other is draft:
            notes.add(path, "a child cannot wait for itself")
        elif not {draft.parent, other.parent} <= known:
            continue  # a mistake about a parent is told; what follows from it is not one more
        elif draft.kind == "microshark" and (other.kind != "microshark" or other.parent != draft.parent):
            notes.add(path, f"a microshark waits only for microsharks of its own parent; {show(name)} is none")
        elif draft.kind == "microshark" and other.value.get("count") is not None:
            notes.add(path, f"{show(name)} is a swarm, and how many it gets is known only later; wait for its parent")
        elif draft.kind == "child" and other.kind == "microshark":
            hint = "" if other.parent == draft.id else f"; wait for its parent {show(other.parent)}"
            notes.add(path, f"{show(name)} is a microshark, and only its siblings may wait for it{hint}")


def _check_cycles(by_id: dict[str, Draft], notes: Notes) -> None:
    """Take away what can run, round by round; what is left waits for ever, and one cycle each is named."""
    waits = {draft.id: {name for name in draft.after if name in by_id and name != draft.id} for draft in by_id.values()}
    dependants: dict[str, list[str]] = {}
    for ident, names in waits.items():
        for name in names:
            dependants.setdefault(name, []).append(ident)
    free = [ident for ident, names in waits.items() if not names]
    while free:
        done = free.pop()
        del waits[done]
        for ident in dependants.get(done, ()):
            waits[ident].discard(done)
            if not waits[ident]:
                free.append(ident)
    seen: set[str] = set()
    for start in waits:
        trail: list[str] = []
        here = start
        while here not in seen:
            seen.add(here)
            trail.append(here)
            here = min(waits[here])
        if here in trail:
            cycle = trail[trail.index(here) :]
            notes.add(
                (*by_id[cycle[0]].path, "after"),
                f"waits for itself in a circle: {' > '.join([*cycle, cycle[0]])}",
            )


def _check_passed_down(draft: Draft, parent: Draft, notes: Notes) -> None:
    """Capabilities only shrink down the tree; what a microshark does not state it inherits."""
    own, above = draft.inheritance, parent.inheritance
    if own is None or above is None:
        return
    forbidden = own.forbidden_capabilities
    if "forbidden_capabilities" not in draft.stated:
        forbidden = above.forbidden_capabilities
    core = own.core_capabilities
    if "core_capabilities" not in draft.stated:
        core = tuple(name for name in above.core_capabilities if name not in forbidden)
    effective = Inheritance(
        mbti_type=own.mbti_type,
        style_guide=own.style_guide,
        core_capabilities=core,
        forbidden_capabilities=forbidden,
    )
    refusals = check_narrowing(above, effective)
    if not refusals and draft.stated >= {"core_capabilities"} and not own.problems():
        refusals = effective.problems()
    refusals += _limits_passed_down(draft, parent)
    for refusal in refusals:
        notes.add((*draft.context_path, *refusal.field.split(".")), refusal.rule)


def _limits_passed_down(draft: Draft, parent: Draft) -> list[Refused]:
    """The same for limits; what a microshark does not state it inherits."""
    above, own = parent.context.get("resource_limits"), draft.context.get("resource_limits", {})
    if above is None:
        return []
    return check_limits(ResourceLimits.model_validate(above), ResourceLimits.model_validate({**above, **own}))


def _check_slices(drafts: list[Draft], notes: Notes) -> None:
    """No memory slice lies inside another."""
    taken: dict[PurePosixPath, Draft] = {}
    inner: dict[PurePosixPath, Draft] = {}
    for draft in drafts:
        text = draft.context.get("memory_slice", {}).get("shared_memory_path")
        if text is None:
            continue
        slice_path = PurePosixPath(text)
        around = next((taken[one] for one in (slice_path, *slice_path.parents) if one in taken), None)
        other = around or inner.get(slice_path)
        if other is not None:
            notes.add(
                (*draft.context_path, "memory_slice", "shared_memory_path"),
                f"is the slice of {show(other.id)}, or lies around or inside it; expected a path of its own",
            )
        taken.setdefault(slice_path, draft)
        for above in slice_path.parents:
            inner.setdefault(above, draft)
