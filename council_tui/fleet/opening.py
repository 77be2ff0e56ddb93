"""How a fleet comes to have its offices and its cards: it opens them, or goes on with those of another supervisor."""

from __future__ import annotations

import asyncio
import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from council_tui.board.board import Draft
from council_tui.domain import ids
from council_tui.domain.card import OPEN_STATES, OWNED_STATES, BlockKind, CardState, FailKind
from council_tui.domain.errors import CouncilError, HomeUnusable, Refused
from council_tui.domain.events import EventKind
from council_tui.domain.hierarchy import KINDS, PARENTS
from council_tui.domain.lifecycle import Phase, Signal
from council_tui.fleet.closing import OFFICE_PATIENCE
from council_tui.fleet.kept import keep
from council_tui.fleet.offices import OFFICES
from council_tui.fleet.sizes import messages
from council_tui.supervisor.unkillable import over

if TYPE_CHECKING:
    from council_tui.board.projection import Card
    from council_tui.domain.order import Order
    from council_tui.fleet.fleet import Fleet

K = EventKind
CLOSED = (CardState.DONE, CardState.FAILED, CardState.BLOCKED)
ORDER_PATIENCE = 60.0
"""Seconds an office has to make cards of one message of orders."""


async def begin(fleet: Fleet) -> None:
    """A new fleet: end what another one left, open the offices, hand out the orders. Raises `CouncilError`."""
    board, plan = fleet.sup.board, fleet.plan
    await _end_the_former(fleet)
    if plan is not None:
        old = [c for c in board.tables.cards.values() if c.state in CLOSED]
        board.append(*(Draft(K.CARD_ARCHIVED, None, card.id, None) for card in old))
        for card in old:
            board.tables.forget(card.id)
    digest = await asyncio.to_thread(keep, fleet.sup.home, plan) if plan else None
    board.append(Draft(K.FLEET_STARTED, fleet.sup.hermes, data={**_facts(fleet), "sha256": digest}))
    fleet.retries.resume()
    await asyncio.gather(*(_open_office(fleet, order) for order in OFFICES))
    fleet.keeps_offices = True
    if plan is not None:
        fleet.orders = {order.id: order for order in plan.orders}
        await _hand_out(fleet)


def _facts(fleet: Fleet) -> dict[str, Any]:
    """What the journal has to know of a fleet."""
    plan = fleet.plan
    return {
        "name": fleet.name,
        "plan": plan.source if plan else None,
        "pid": os.getpid(),
        "workdir": fleet.sup.workdir,
        "limits": asdict(fleet.limits),
        "budget": {"minutes": plan.budget_minutes if plan else None},
    }


async def go_on(fleet: Fleet) -> None:
    """Another supervisor's fleet: its offices are back, or others are opened; its cards go on where they stood."""
    sup = fleet.sup
    if fleet.plan is not None:
        fleet.orders = {order.id: order for order in fleet.plan.orders}
    sup.board.append(Draft(K.FLEET_RESUMED, sup.hermes, data={**_facts(fleet), "living": len(sup.seats)}))
    for seat in [s for s in sup.seats.values() if s.kind in PARENTS]:
        # Nobody waits long: whoever is silent is an orphan, and that ends the wait too.
        await seat.back.wait()
    await asyncio.gather(*(_open_again(fleet, order) for order in OFFICES if fleet.office(order.id) is None))
    fleet.keeps_offices = True
    fleet.retries.resume()
    await _hand_out(fleet)


async def reopen(fleet: Fleet, kind: str) -> None:
    """An office that died while its fleet runs comes back, under a new name and key; not for ever."""
    if fleet.sup.closing or not fleet.retries.may_reopen(kind):
        return
    fleet.reopening.add(kind)
    try:
        await _open_again(fleet, next(order for order in OFFICES if order.id == kind))
        await _hand_out(fleet)
    except CouncilError as error:
        words = {"of": KINDS[kind].title, "reason": f"its office does not open again: {error}", "held_seconds": 0}
        fleet.sup.board.append(Draft(K.CRASH_LOOP, fleet.sup.hermes, data=words))
    finally:
        fleet.reopening.discard(kind)
        fleet.wake()


async def _open_again(fleet: Fleet, order: Order) -> None:
    """An office in place of one that is gone: it takes over the cards that were made in that one's name."""
    board, hermes = fleet.sup.board, fleet.sup.hermes
    seated = {seat.card for seat in fleet.sup.seats.values()}
    for card in list(board.tables.cards.values()):
        if card.kind == "office" and card.plan_id == order.id and card.id not in seated:
            _put_away(fleet, card)
    await _open_office(fleet, order)
    seat = fleet.office(order.id)
    if seat is None:
        raise Refused(order.id, "the office closed at once")
    for card in board.tables.cards.values():
        theirs = card.kind == "child" and ids.agent_type(card.parent_agent) == order.id
        if theirs and card.parent_agent != seat.agent and card.state is not CardState.DONE:
            data = {"parent_agent": seat.agent, "parent_card": seat.card}
            board.append(Draft(K.CARD_ADOPTED, hermes, card.id, None, data))


def _put_away(fleet: Fleet, card: Card) -> None:
    """An office's card whose agent is gone, or never was."""
    if card.state not in CLOSED:
        fleet.fail(card.id, FailKind.CANCELLED, "its office was opened anew")
    fleet.sup.board.append(Draft(K.CARD_ARCHIVED, None, card.id, None))
    fleet.sup.board.tables.forget(card.id)


async def _end_the_former(fleet: Fleet) -> None:
    """Whoever came over from a fleet that nobody goes on with is ended, and so are the cards that waited."""
    sup, reason = fleet.sup, "another fleet begins here"
    for seat in [s for s in sup.seats.values() if s.parent not in sup.by_agent]:
        sup.background(sup.signal(seat, Signal.CANCELLED, {"reason": reason}))
    for seat in list(sup.seats.values()):
        await over(seat)
    for card in list(sup.board.tables.cards.values()):
        waits = card.state in OPEN_STATES - OWNED_STATES or card.block == BlockKind.TRANSIENT
        if waits:
            data = {"fail": str(FailKind.CANCELLED), "reason": "its fleet ended before its turn came"}
            sup.board.append(Draft(K.CARD_FAILED, None, card.id, None, data))


async def _open_office(fleet: Fleet, order: Order) -> None:
    sup = fleet.sup
    card, draft = sup.new_card(order, sup.hermes, None)
    sup.board.append(draft, Draft(K.CARD_READY, sup.hermes, card))
    seat = await sup.births.spawn(card)
    deadline, trouble = sup.clock() + OFFICE_PATIENCE, ""
    while seat.state.phase is not Phase.RUNNING:
        # Its end may make the room that was lacking for its birth.
        trouble = sup.board.trouble or sup.authority.ledger.trouble or trouble
        if seat.ended.is_set() or sup.clock() > deadline:
            if trouble:
                raise HomeUnusable(f"{trouble}, so {order.id} could not open; make room there, then start again")
            raise Refused(order.id, f"the office did not open: {sup.board.tables.cards[card].reason}")
        await fleet.changed(0.5)


async def _hand_out(fleet: Fleet) -> None:
    """Give each office its orders, those that have no card yet."""
    known = {card.plan_id for card in fleet.sup.board.tables.cards.values() if card.kind != "office"}
    await asyncio.gather(*(_hand_to(fleet, kind, known) for kind in PARENTS))


async def _hand_to(fleet: Fleet, kind: str, known: set[str]) -> None:
    orders = [o for o in fleet.orders.values() if o.parent == kind and o.kind == "child" and o.id not in known]
    seat = fleet.office(kind)
    if not orders or seat is None or seat.peer is None:
        return
    for some in messages(orders):
        await seat.peer.call("order", {"orders": some}, ORDER_PATIENCE)
