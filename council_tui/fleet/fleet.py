"""A fleet from its plan to its end: offices open, cards are dispatched within limits, and the end is proved."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from council_tui.board.board import Draft
from council_tui.domain.authority import clearance
from council_tui.domain.card import OWNED_STATES, CardState, FailKind
from council_tui.domain.errors import CouncilError, Refused
from council_tui.domain.events import Event, EventKind
from council_tui.domain.hierarchy import PARENTS, child_kind
from council_tui.domain.lifecycle import Outcome, Phase, Signal
from council_tui.domain.order import Order
from council_tui.fleet.closing import OFFICE_PATIENCE, finish
from council_tui.fleet.dispatch import look, may_retry, retry_delay, unfinished
from council_tui.fleet.offices import OFFICES
from council_tui.fleet.plan import Limits, Plan
from council_tui.fleet.sizes import messages

if TYPE_CHECKING:
    from council_tui.board.projection import Card
    from council_tui.fleet.outcome import Ending
    from council_tui.supervisor.seat import Seat
    from council_tui.supervisor.supervisor import Supervisor

K = EventKind
BUDGET_WARNING = 0.8
ORDER_PATIENCE = 60.0
"""Seconds an office has to make cards of one message of orders."""


_TURNS = frozenset(
    {
        K.CARD_CREATED,
        K.CARD_READY,
        K.CARD_BLOCKED,
        K.CARD_FAILED,
        K.CARD_DONE,
        K.CARD_RETRY,
        K.ACKNOWLEDGED,
        K.DISPATCH_PAUSED,
        K.DISPATCH_RESUMED,
    }
)
BIRTHS_AT_ONCE = 3
"""Handshakes under way: more only wait for each other."""
BIRTH_PATIENCE = 0.25
"""Seconds after which a child that is slow to acknowledge no longer keeps others from being born."""


class Fleet:
    """Dispatches one plan, or what an operator asks for, on an open supervisor."""

    def __init__(self, supervisor: Supervisor, plan: Plan | None = None, timeout: float | None = None) -> None:
        self.sup = supervisor
        self.plan = plan
        self.limits = plan.limits if plan else Limits()
        self.paused = False
        self.interrupted = False
        self._timeout = timeout
        self._changed = asyncio.Event()
        self._starting: set[str] = set()
        self._births = asyncio.Semaphore(BIRTHS_AT_ONCE)
        self._began = supervisor.clock()
        self._spent = False
        self._warned = False
        self._draining = False
        self._orders: dict[str, Order] = {}
        self.name = plan.name if plan else "council"
        supervisor.mbti = plan.mbti if plan else {}
        supervisor.board.listen(self._heard)
        supervisor.on_card = self._card
        supervisor.on_settled = lambda seat: self._settled(seat)
        supervisor.will_retry = self._will_retry

    # beginning

    async def start(self) -> None:
        """Open the three offices and hand each its orders, within --timeout.

        Raises `CouncilError` when an office does not open.
        """
        left = None if self._timeout is None else max(0.0, self._timeout - (self.sup.clock() - self._began))
        try:
            async with asyncio.timeout(left) as opening:
                await self._open()
        except TimeoutError:
            if not opening.expired():
                raise
            raise CouncilError(f"the fleet did not open within --timeout {self._timeout:g}") from None

    async def _open(self) -> None:
        board = self.sup.board
        if self.plan is not None:
            old = [c for c in board.tables.cards.values() if c.state in _CLOSED]
            board.append(*(Draft(K.CARD_ARCHIVED, None, card.id, None) for card in old))
            for card in old:
                board.tables.forget(card.id)
        board.append(
            Draft(
                K.FLEET_STARTED,
                self.sup.hermes,
                data={
                    "name": self.name,
                    "plan": self.plan.source if self.plan else None,
                    "workdir": self.sup.workdir,
                    "limits": asdict(self.limits),
                    "budget": {"minutes": self.plan.budget_minutes if self.plan else None},
                },
            )
        )
        await asyncio.gather(*(self._open_office(order) for order in OFFICES))
        if self.plan is not None:
            self._orders = {order.id: order for order in self.plan.orders}
            await asyncio.gather(*(self._hand_out(kind) for kind in PARENTS))

    async def _open_office(self, order: Order) -> None:
        card, draft = self.sup.new_card(order, self.sup.hermes, None)
        self.sup.board.append(draft, Draft(K.CARD_READY, self.sup.hermes, card))
        seat = await self.sup.births.spawn(card)
        deadline = self.sup.clock() + OFFICE_PATIENCE
        while seat.state.phase is not Phase.RUNNING:
            if seat.ended.is_set() or self.sup.clock() > deadline:
                raise Refused(order.id, f"the office did not open: {self.sup.board.tables.cards[card].reason}")
            await self._wait(0.5)

    async def _hand_out(self, kind: str) -> None:
        orders = [o for o in self._orders.values() if o.parent == kind and o.kind == "child"]
        seat = self.office(kind)
        if not orders or seat is None or seat.peer is None:
            return
        for some in messages(orders):
            await seat.peer.call("order", {"orders": some}, ORDER_PATIENCE)

    def office(self, kind: str) -> Seat | None:
        """The living office of this kind."""
        return next((s for s in self.sup.seats.values() if s.kind == kind and s.can_parent), None)

    async def _card(self, parent: Seat, order: Order) -> str:
        """A card in the parent's name, if this parent may have such a child."""
        if self._draining:
            raise Refused("card", "the fleet is ending")
        if order.kind != child_kind(parent.kind):
            raise Refused("parent", f"a {parent.kind} may not spawn a {order.kind}")
        known = self._orders.get(order.id)
        if parent.kind not in PARENTS and known != order:
            raise Refused("order", f"{parent.label} was not given {order.id} to spawn")
        if parent.attempt > 1:
            self._make_way(parent, order)
        return await self.sup.make_card(parent, order)

    def _make_way(self, parent: Seat, order: Order) -> None:
        """A parent that is tried again spawns anew: what its earlier attempt left makes room."""
        tables = self.sup.board.tables
        for card in [c for c in tables.cards.values() if c.plan_id == order.id and c.parent_agent != parent.agent]:
            if card.state not in OWNED_STATES:
                if card.state not in _CLOSED:
                    self._fail(card.id, FailKind.ORPHANED, "its parent is gone")
                self.sup.board.append(Draft(K.CARD_ARCHIVED, None, card.id, None))
                tables.forget(card.id)

    async def submit(self, order: Order) -> str:
        """Send one more order through its office; the card's id."""
        seat = self.office(order.parent)
        if seat is None or seat.peer is None:
            raise Refused("parent", f"{order.parent} has no office open")
        answer = await seat.peer.call("order", {"orders": [order.model_dump(mode="json")]}, ORDER_PATIENCE)
        return str(answer["cards"][0])

    # dispatch

    def _heard(self, event: Event) -> None:
        # Whatever may make it someone's turn; a look at the board for each event would cost more than the event.
        if event.kind in _TURNS:
            self._changed.set()

    async def _wait(self, at_most: float) -> None:
        self._changed.clear()
        # Not wait_for: up to Python 3.11 it drops a cancellation that comes together with the event.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(at_most):
                await self._changed.wait()

    def pause(self, paused: bool) -> None:
        """Hold dispatch back, or go on."""
        if paused is not self.paused:
            self.paused = paused
            self.sup.board.append(Draft(K.DISPATCH_PAUSED if paused else K.DISPATCH_RESUMED, self.sup.hermes))

    async def run(self) -> None:
        """Dispatch until nothing is left to do without a person. Raises the supervisor's fault if it has one."""
        while True:
            self.turn()
            if self._over():
                return
            await self._wait(0.5)
            self._check_time()
            failed = self.sup.failed
            if failed is not None and failed.done():
                failed.result()

    async def dispatch_forever(self) -> None:
        """Dispatch for as long as a console is open."""
        while not self._draining:
            self.turn()
            await self._wait(0.5)
            self._check_time()

    def _over(self) -> bool:
        busy = any(seat.kind not in PARENTS for seat in self.sup.seats.values())
        if busy or self._starting:
            return False
        return self._draining or (not self.paused and not unfinished(self.sup.board.tables.cards.values()))

    def turn(self) -> None:
        """One look at the board, carried out."""
        cards = self.sup.board.tables.cards
        seats = [s for s in self.sup.seats.values() if s.kind not in PARENTS]
        seated = {s.card for s in seats}
        living = [(s.kind, s.parent) for s in seats]
        living += [(c.kind, c.parent_agent) for name in self._starting - seated if (c := cards.get(name))]
        turn = look(cards, living, self._starting | seated, self.limits, paused=self.paused or self._draining)
        for card, reason in turn.blocked:
            self._block(card, "dependency", reason)
            self._tell_parent(cards[card], "dependency")
        for card in turn.ready:
            self.sup.board.append(Draft(K.CARD_READY, self.sup.hermes, card))
        for card in turn.start:
            self._admit(cards[card])

    def _block(self, card: str, kind: str, reason: str) -> None:
        self.sup.board.append(Draft(K.CARD_BLOCKED, self.sup.hermes, card, None, {"block": kind, "reason": reason}))

    def _fail(self, card: str, kind: FailKind, reason: str) -> None:
        self.sup.board.append(Draft(K.CARD_FAILED, self.sup.hermes, card, None, {"fail": str(kind), "reason": reason}))

    def _admit(self, card: Card) -> None:
        if card.parent_agent not in self.sup.by_agent:
            self._fail(card.id, FailKind.ORPHANED, "its parent is gone")
            return
        cleared = clearance(Order.model_validate(card.order).envelope)
        if cleared.hold:
            self._block(card.id, "hold", cleared.reason)
            self._tell_parent(card, "hold")
            return
        if cleared.clamped and card.attempt == 0:
            words = {"author": self.sup.hermes, "text": f"band clamped: {cleared.reason}"}
            self.sup.board.append(Draft(K.COMMENT, self.sup.hermes, card.id, None, words))
        self._starting.add(card.id)
        self.sup.background(self._spawn(card))

    async def _spawn(self, card: Card) -> None:
        async with self._births:
            seat = await self._bear(card)
            if seat is not None:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(BIRTH_PATIENCE):
                        await seat.born.wait()

    async def _bear(self, card: Card) -> Seat | None:
        """One birth; a refusal is the card's to tell."""
        below = tuple(o for o in self._orders.values() if o.kind == "microshark" and o.parent == card.plan_id)
        try:
            if not self._draining and card.state is CardState.READY:
                return await self.sup.births.spawn(card.id, below if card.kind == "child" else ())
        except Refused as error:
            if card.state is CardState.READY:
                self._block(card.id, "capability", str(error))
                self._tell_parent(card, "capability")
        except CouncilError as error:
            if card.state is CardState.READY:
                self._fail(card.id, FailKind.ERROR, str(error))
                self._tell_parent(card, "error")
        finally:
            self._starting.discard(card.id)
            self._changed.set()
        return None

    def _tell_parent(self, card: Card, state: str) -> None:
        parent = self.sup.by_agent.get(card.parent_agent)
        if card.kind == "microshark" and parent is not None and parent.peer is not None:
            parent.peer.notify("settled", {"order": card.plan_id, "state": state})

    def _will_retry(self, seat: Seat, outcome: Outcome) -> bool:
        card = self.sup.board.tables.cards.get(seat.card)
        fail = str(outcome.fail) if outcome.fail else None
        parent_lives = seat.parent in self.sup.by_agent
        return not self._draining and not self._spent and parent_lives and card is not None and may_retry(card, fail)

    def _settled(self, seat: Seat) -> None:
        self._changed.set()
        card = self.sup.board.tables.cards.get(seat.card)
        outcome = seat.state.outcome
        if card is None or outcome is None or not self._will_retry(seat, outcome):
            return
        delay = retry_delay(card.attempt)
        data = {"attempt": card.attempt, "delay_seconds": delay}
        self.sup.board.append(Draft(K.CARD_RETRY, self.sup.hermes, card.id, None, data))
        asyncio.get_running_loop().call_later(delay, self._again, card.id)

    def _again(self, card_id: str) -> None:
        card = self.sup.board.tables.cards.get(card_id)
        if card is not None and card.block == "transient" and not self._draining:
            self.sup.board.append(Draft(K.CARD_READY, self.sup.hermes, card_id))

    # time and money

    @property
    def _minutes(self) -> float | None:
        return self.plan.budget_minutes if self.plan else None

    @property
    def _elapsed(self) -> float:
        """Seconds since the beginning in which this process could have done something."""
        return self.sup.clock() - self._began - self.sup.frozen

    def budget(self) -> dict[str, Any]:
        """Minutes granted and used."""
        used = self._elapsed / 60
        return {"minutes": self._minutes, "used_minutes": round(used, 3), "exhausted": self._spent}

    def _check_time(self) -> None:
        if self._spent or self._draining:
            return
        elapsed = self._elapsed
        minutes = self._minutes
        if minutes is not None and not self._warned and elapsed > BUDGET_WARNING * minutes * 60:
            self._warned = True
            self.sup.board.append(Draft(K.BUDGET_WARNING, self.sup.hermes, data={"used": BUDGET_WARNING}))
        # Whoever gave a timeout waits by the clock: a pause of ours is no excuse before them.
        if self._timeout is not None and self.sup.clock() - self._began > self._timeout:
            self._stop_all(f"the fleet ran longer than --timeout {self._timeout:g}", None)
        elif minutes is not None and elapsed > minutes * 60:
            self._spent = True
            self._stop_all(f"the budget of {minutes:g} minutes is spent", "budget")

    def _stop_all(self, reason: str, block: str | None) -> None:
        """End what runs and close what waits."""
        self._draining = self._draining or block is None
        for card in list(self.sup.board.tables.cards.values()):
            waits = card.state in (CardState.BACKLOG, CardState.READY) or card.block == "transient"
            if card.kind == "office" or not waits or card.id in self._starting:
                continue
            if block is not None and card.state is not CardState.BLOCKED:
                self._block(card.id, block, reason)
            else:
                self._fail(card.id, FailKind.CANCELLED, reason)
        for seat in self.sup.seats.values():
            if seat.kind not in PARENTS:
                self.sup.background(self.sup.signal(seat, Signal.CANCELLED, {"reason": reason}))
        self._changed.set()

    # ends

    async def drain(self, reason: str, *, interrupted: bool = False) -> int:
        """Reap every child, leaves first, and wait for the proof; how many were ended."""
        self.interrupted = self.interrupted or interrupted
        self._draining = True
        living = [seat for seat in self.sup.seats.values() if seat.kind not in PARENTS]
        self._stop_all(reason, None)
        while self._starting:
            await self._wait(0.2)
        for seat in [s for s in self.sup.seats.values() if s.kind not in PARENTS]:
            self.sup.background(self.sup.signal(seat, Signal.CANCELLED, {"reason": reason}))
        for seat in [s for s in self.sup.seats.values() if s.kind not in PARENTS]:
            await seat.ended.wait()
        # A card that a parent made while it was being ended waits for nobody.
        self._stop_all(reason, None)
        return len(living)

    async def finish(self, fault: str = "") -> Ending:
        """Report, close the offices, audit, verify the ledger, and weigh it all."""
        return await finish(self, fault)


_CLOSED = (CardState.DONE, CardState.FAILED, CardState.BLOCKED)
