"""From a card whose turn it is to the birth of its agent: what keeps it, what clears it, and few births at once."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from council_tui.board.board import Draft
from council_tui.domain.authority import clearance
from council_tui.domain.card import CardState, FailKind
from council_tui.domain.errors import CouncilError, Refused
from council_tui.domain.events import EventKind
from council_tui.domain.ids import agent_type
from council_tui.domain.order import Order
from council_tui.fleet.pace import Pace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from council_tui.board.projection import Card
    from council_tui.fleet.fleet import Fleet
    from council_tui.supervisor.seat import Seat

BIRTHS_AT_ONCE = 3
"""Handshakes under way: more only wait for each other."""
BIRTH_PATIENCE = 0.25
"""Seconds after which a child that is slow to acknowledge no longer keeps others from being born."""


class Admission:
    """Lets the agents of one fleet be born."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._sup = fleet.sup
        self._pace = Pace()
        self._births = asyncio.Semaphore(BIRTHS_AT_ONCE)

    def births(self, now: float) -> Mapping[str, int]:
        """How many were born below each parent within the last minute."""
        return self._pace.last_minute(now)

    def admit(self, card: Card) -> None:
        """Begin the birth of a card's agent, unless something keeps it; then the card says what."""
        fleet, hermes = self._fleet, self._sup.hermes
        parent = self._sup.by_agent.get(card.parent_agent)
        if parent is None and agent_type(card.parent_agent) in fleet.reopening:
            return
        if parent is None:
            fleet.fail(card.id, FailKind.ORPHANED, "its parent is gone")
            return
        if parent.expected or self._kept(card):
            return
        cleared = clearance(Order.model_validate(card.order).envelope)
        if cleared.hold:
            fleet.block(card.id, "hold", cleared.reason)
            self.tell_parent(card, "hold")
            return
        if cleared.clamped and card.attempt == 0:
            words = {"author": hermes, "text": f"band clamped: {cleared.reason}"}
            self._sup.board.append(Draft(EventKind.COMMENT, hermes, card.id, None, words))
        fleet.starting.add(card.id)
        self._pace.born(card.parent_agent, self._sup.clock())
        self._sup.background(self._spawn(card))

    def _kept(self, card: Card) -> bool:
        """Whether the crash-loop brake keeps it."""
        kept = self._fleet.retries.kept(card)
        if kept is None:
            return False
        if kept.for_good:
            self._fleet.fail(card.id, FailKind.ERROR, kept.reason)
            self.tell_parent(card, "error")
        else:
            self._fleet.block(card.id, "transient", kept.reason)
        return True

    async def _spawn(self, card: Card) -> None:
        async with self._births:
            seat = await self._bear(card)
            if seat is not None:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(BIRTH_PATIENCE):
                        await seat.born.wait()

    async def _bear(self, card: Card) -> Seat | None:
        """One birth; a refusal is the card's to tell."""
        fleet = self._fleet
        below: tuple[Order, ...] = ()
        if card.kind == "child":
            below = tuple(o for o in fleet.orders.values() if o.kind == "microshark" and o.parent == card.plan_id)
        try:
            if not fleet.draining and card.state is CardState.READY:
                return await self._sup.births.spawn(card.id, below)
        except Refused as error:
            if card.state is CardState.READY:
                fleet.block(card.id, "capability", str(error))
                self.tell_parent(card, "capability")
        except CouncilError as error:
            if card.state is CardState.READY:
                fleet.fail(card.id, FailKind.ERROR, str(error))
                self.tell_parent(card, "error")
        finally:
            fleet.starting.discard(card.id)
            fleet.wake()
        return None

    def tell_parent(self, card: Card, state: str) -> None:
        """A parent that waits for its microshark hears that it will not come, and why."""
        parent = self._sup.by_agent.get(card.parent_agent)
        if card.kind == "microshark" and parent is not None and parent.peer is not None:
            parent.peer.notify("settled", {"order": card.plan_id, "state": state})
