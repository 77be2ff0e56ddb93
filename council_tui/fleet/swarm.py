"""Hermes' side of a swarm: one question of a parent, one granted number, and a card for each member."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from council_tui.board.board import Draft
from council_tui.domain.card import OPEN_STATES, BlockKind
from council_tui.domain.errors import Refused
from council_tui.domain.events import EventKind
from council_tui.domain.swarm import Room, SwarmGrant, decide, member_id, members

if TYPE_CHECKING:
    from collections.abc import Iterable

    from council_tui.board.projection import Card
    from council_tui.domain.order import Order
    from council_tui.fleet.fleet import Fleet
    from council_tui.supervisor.seat import Seat

CARDS_AT_ONCE = 100
"""Made between two looks at everything else."""


def room(cards: Iterable[Card], limit: int, seconds: float | None) -> Room:
    """What a fleet leaves for more microsharks: `limit` is `limits.microsharks`, `seconds` is left of its budget."""
    taken = sum(
        1 for c in cards if c.kind == "microshark" and (c.state in OPEN_STATES or c.block == BlockKind.TRANSIENT)
    )
    return Room(limit, taken, seconds)


class Swarms:
    """Grants swarms to the parents of one fleet."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._sup = fleet.sup

    async def grant(self, parent: Seat, order: Order) -> dict[str, Any]:
        """Decide how many members a parent gets and make their cards. Raises `Refused` when it may not ask at all.

        Asked again after a change of the supervisor, the answer is the same, and no card is made twice.
        """
        if self._fleet.draining:
            raise Refused("swarm", "the fleet is ending")
        if order.count is None or self._fleet.orders.get(order.id) != order or parent.kind != "child":
            raise Refused("order", f"{parent.label} was not given a swarm {order.id} to ask for")
        granted = self._known(parent, order) or self._decide(parent, order)
        made = {c.plan_id for c in self._cards() if c.kind == "microshark" and c.parent_agent == parent.agent}
        if granted.granted:
            await self._make(parent, [one for one in members(order, granted) if one.id not in made])
        elif order.id not in made:
            card, draft = self._sup.draft_card(order, parent.agent, parent.card)
            facts = {"block": str(BlockKind.CAPABILITY), "reason": f"swarm: {granted.reason}"}
            await self._sup.board.append(draft, Draft(EventKind.CARD_BLOCKED, self._sup.hermes, card, None, facts))
        return {"granted": granted.granted, "reason": granted.reason}

    def _cards(self) -> list[Card]:
        return list(self._sup.board.tables.cards.values())

    def _known(self, parent: Seat, order: Order) -> SwarmGrant | None:
        """What was granted to this very agent before."""
        said = self._sup.board.tables.agents[parent.agent].swarms.get(order.id)
        return None if said is None else SwarmGrant(said["granted"], said["ttl_seconds"], said["reason"])

    def _decide(self, parent: Seat, order: Order) -> SwarmGrant:
        most = order.count or 0
        self._fleet.make_way(parent, {order.id, *(member_id(order.id, index) for index in range(1, most + 1))})
        free = room(self._cards(), self._fleet.limits.microsharks, self._fleet.seconds_left)
        granted = decide(order, free)
        self._sup.log(
            parent,
            EventKind.SWARM_GRANTED,
            {
                "swarm": order.id,
                "asked": most,
                "at_least": order.at_least,
                "granted": granted.granted,
                "ttl_seconds": granted.ttl_seconds,
                "reason": granted.reason,
            },
        )
        return granted

    async def _make(self, parent: Seat, orders: list[Order]) -> None:
        others = {card.plan_id for card in self._cards() if card.kind == "microshark"}
        if taken := next((order.id for order in orders if order.id in others), None):
            raise Refused("id", f"there is a card called {taken} already")
        for start in range(0, len(orders), CARDS_AT_ONCE):
            some = orders[start : start + CARDS_AT_ONCE]
            drafts = [self._sup.draft_card(order, parent.agent, parent.card)[1] for order in some]
            await self._sup.board.append(*drafts)
