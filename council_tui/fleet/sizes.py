"""What fits into a message: orders travel in as many as it takes, but what one agent is told must fit into one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from council_tui.domain.errors import Refused
from council_tui.domain.order import check_size
from council_tui.domain.wire import MAX_MESSAGE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from council_tui.domain.order import Order
    from council_tui.fleet.yaml_lines import Notes

ORDERS_AT_ONCE = MAX_MESSAGE // 8
"""Bytes of orders that one message holds, unless a single one is longer."""


def check_sizes(orders: Sequence[Order], raw: dict[str, Any], notes: Notes) -> None:
    """Note every child that could not be told what it is to do."""
    below: dict[str, list[Order]] = {}
    for order in orders:
        if order.kind == "microshark":
            below.setdefault(order.parent, []).append(order)
    for order in orders:
        try:
            check_size(order, below.get(order.id, ()))
        except Refused as error:
            places = (i for i, item in enumerate(raw["children"]) if item.get("id") == order.id)
            notes.add(("children", next(places)), error.rule)


def messages(orders: Sequence[Order]) -> Iterator[list[dict[str, Any]]]:
    """Orders in their sequence, in as many messages as it takes."""
    some: list[dict[str, Any]] = []
    room = ORDERS_AT_ONCE
    for order in orders:
        size = len(order.model_dump_json().encode("utf-8", "replace"))
        if some and size > room:
            yield some
            some, room = [], ORDERS_AT_ONCE
        some.append(order.model_dump(mode="json"))
        room -= size
    if some:
        yield some
