"""A plan's word on its parents: which types the children below each office may have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from council_tui.domain.contract import MBTI, Inheritance
from council_tui.domain.hierarchy import PARENTS
from council_tui.fleet.words import mapping, show, unknown_keys

if TYPE_CHECKING:
    from council_tui.domain.order import Order
    from council_tui.fleet.yaml_lines import Notes


def read_parents(raw: dict[str, Any], notes: Notes) -> dict[str, frozenset[str]]:
    """The section `parents`: base types by office."""
    section = mapping(raw["parents"], ("parents",), notes) if "parents" in raw else {}
    unknown_keys(section, PARENTS, ("parents",), notes)
    found: dict[str, frozenset[str]] = {}
    for kind in PARENTS:
        if kind not in section:
            continue
        path = ("parents", kind)
        office = mapping(section[kind], path, notes)
        unknown_keys(office, ("mbti",), path, notes)
        types = office.get("mbti")
        if not isinstance(types, list) or not types:
            notes.add((*path, "mbti"), "expected a list of base types, like [ENFP, ENTP]")
            continue
        for index, name in enumerate(types):
            if not isinstance(name, str) or len(name) != 4 or not MBTI.match(name):
                notes.add((*path, "mbti", index), f"{show(name)} is not a base type like ENTP")
        found[kind] = frozenset(name for name in types if isinstance(name, str))
    return found


def office_of(order: Order, orders: dict[str, Order]) -> str:
    """The office at the top of an order's line."""
    return orders[order.parent].parent if order.parent in orders else order.parent


def check_types(orders: tuple[Order, ...], mbti: dict[str, frozenset[str]], raw: dict[str, Any], notes: Notes) -> None:
    """Note every child whose type its office does not allow."""
    by_id = {order.id: order for order in orders}
    written = raw.get("children") if orders else []
    places = {item["id"]: index for index, item in enumerate(written or ())}
    for order in orders:
        allowed = mbti.get(office_of(order, by_id))
        inherited = Inheritance.model_validate(order.context.get("inheritance") or {})
        if allowed is not None and inherited.mbti_type[:4] not in allowed:
            path = ("children", places.get(order.id, 0), "spawn_context", "inheritance", "mbti_type")
            notes.add(
                path, f"{inherited.mbti_type} is not one of {', '.join(sorted(allowed))}, which its office allows"
            )
