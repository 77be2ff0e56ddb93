"""A fleet from its plan to its end: offices open, cards are dispatched within limits, and the end is proved."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from council_tui.board.board import Draft
from council_tui.domain.card import OWNED_STATES, FailKind
from council_tui.domain.errors import CouncilError, Refused
from council_tui.domain.events import Event, EventKind
from council_tui.domain.hierarchy import PARENTS, child_kind
from council_tui.domain.restoring import CAN_BE_TAKEN_BACK
from council_tui.fleet.admission import Admission
from council_tui.fleet.budget import BUDGET_WARNING, Budget
from council_tui.fleet.closing import drain, finish, stop_all
from council_tui.fleet.dispatch import look, swarm_of, unfinished
from council_tui.fleet.holds import Holds
from council_tui.fleet.opening import CLOSED, ORDER_PATIENCE, begin, go_on, reopen
from council_tui.fleet.plan import Limits, Plan
from council_tui.fleet.retries import Retries
from council_tui.fleet.swarm import Swarms
from council_tui.runner import guard

if TYPE_CHECKING:
    from council_tui.domain.order import Order
    from council_tui.fleet.kept import Unfinished
    from council_tui.fleet.outcome import Ending
    from council_tui.supervisor.seat import Seat
    from council_tui.supervisor.supervisor import Supervisor

K = EventKind
_TURNS = frozenset(
    {
        K.CARD_CREATED,
        K.CARD_READY,
        K.CARD_BLOCKED,
        K.CARD_FAILED,
        K.CARD_DONE,
        K.CARD_RETRY,
        K.RATE_LIMITED,
        K.ACKNOWLEDGED,
        K.DISPATCH_PAUSED,
        K.DISPATCH_RESUMED,
    }
)
REST, LONGEST_REST = 4.0, 0.05
"""Times its own length that a look at the board is followed by a pause, and the longest such pause in seconds."""
LEAVING_SECONDS = 10.0
"""That births and reaps under way have to end before the fleet is left to the next supervisor."""


class Fleet:
    """Dispatches one plan, or what an operator asks for, on an open supervisor."""

    def __init__(self, supervisor: Supervisor, plan: Plan | None = None, timeout: float | None = None) -> None:
        self.sup = supervisor
        self.plan = plan
        self.limits = plan.limits if plan else Limits()
        self.paused = False
        self.interrupted = False
        self.waits: dict[str, str] = {}
        """Ready cards that do not start yet, each with the reason."""
        self.retries = Retries(supervisor, lambda: self.draining or self._budget.exhausted)
        self.holds = Holds(supervisor, self.limits)
        self.admission = Admission(self)
        self._budget = Budget(plan.budget_minutes if plan else None, timeout, supervisor.clock())
        self._changed = asyncio.Event()
        self._looked = 0.0
        """Seconds that the last look at the board took."""
        self.starting: set[str] = set()
        """Cards whose agents are being born."""
        self.draining = False
        """True once nothing may start any more."""
        self.keeps_offices = False
        """True from the opening of the offices to their closing: one that dies meanwhile is opened again."""
        self.reopening: set[str] = set()
        """Offices that died and are being opened again."""
        self._leaving = False
        self.orders: dict[str, Order] = {}
        """What the plan has to spawn, by id."""
        self.name = plan.name if plan else "council"
        supervisor.mbti = plan.mbti if plan else {}
        supervisor.board.listen(self._heard)
        supervisor.on_card = self._card
        supervisor.on_swarm = Swarms(self).grant
        supervisor.fleet_here.set()
        supervisor.on_settled = self._settled
        supervisor.will_retry = lambda seat, outcome: self.retries.delay(seat, outcome) is not None

    # beginning

    async def start(self) -> None:
        """Open the three offices and hand each its orders, within --timeout. Raises `CouncilError`."""
        try:
            async with asyncio.timeout(self._budget.left_to_open(self.sup.clock())) as opening:
                await begin(self)
        except TimeoutError:
            if not opening.expired():
                raise
            raise CouncilError(f"the fleet did not open within --timeout {self._budget.timeout:g}") from None

    async def resume(self, left: Unfinished) -> None:
        """Go on with a fleet that another supervisor began."""
        self.name, self.paused = left.name, left.paused
        self._budget.began -= left.seconds
        self.sup.workdir = left.workdir
        await go_on(self)

    async def leave(self) -> None:
        """Begin nothing more, so that the fleet can be left to the next supervisor."""
        self._leaving = True
        deadline = self.sup.clock() + LEAVING_SECONDS
        while self.sup.clock() < deadline and (
            self.starting or any(seat.state.phase not in CAN_BE_TAKEN_BACK for seat in self.sup.seats.values())
        ):
            await self.changed(0.05)

    def office(self, kind: str) -> Seat | None:
        """The living office of this kind."""
        return next((s for s in self.sup.seats.values() if s.kind == kind and s.can_parent), None)

    async def _card(self, parent: Seat, order: Order) -> str:
        """A card in the parent's name, if this parent may have such a child."""
        if self.draining:
            raise Refused("card", "the fleet is ending")
        if order.kind != child_kind(parent.kind):
            raise Refused("parent", f"a {parent.kind} may not spawn a {order.kind}")
        known = self.orders.get(order.id)
        if parent.kind not in PARENTS and known != order:
            raise Refused("order", f"{parent.label} was not given {order.id} to spawn")
        self.make_way(parent, {order.id})
        return await self.sup.make_card(parent, order)

    def make_way(self, parent: Seat, names: set[str]) -> None:
        """A parent that is tried again spawns anew: what its earlier attempt left of these names makes room."""
        tables = self.sup.board.tables
        if parent.attempt == 1 and not tables.cards[parent.card].limited:
            return
        for card in [c for c in tables.cards.values() if c.plan_id in names and c.parent_agent != parent.agent]:
            if card.state not in OWNED_STATES:
                if card.state not in CLOSED:
                    self.fail(card.id, FailKind.ORPHANED, "its parent is gone")
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

    def wake(self) -> None:
        """Have the board looked at soon: it may be someone's turn."""
        self._changed.set()

    async def changed(self, at_most: float) -> None:
        """Wait until it may be someone's turn, but no longer than so many seconds."""
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

    async def run(self, *, stays: bool = False) -> None:
        """Dispatch until nothing is left to do without a person; `stays`: until it is drained.

        Raises the supervisor's fault if it has one.
        """
        while True:
            self.turn()
            self._give_up_waiting()
            if self._over() and (self.draining or not stays):
                return
            await self._next_turn()
            self._check_time()
            failed = self.sup.failed
            if failed is not None and failed.done():
                failed.result()

    async def dispatch_forever(self) -> None:
        """Dispatch for as long as a console is open."""
        while not self.draining:
            self.turn()
            await self._next_turn()
            self._check_time()

    async def _next_turn(self) -> None:
        """Wait for news, and then a little in proportion: a large fleet is not looked at for each of its events."""
        await self.changed(self.retries.next_in(0.5))
        await asyncio.sleep(min(LONGEST_REST, REST * self._looked))

    def _over(self) -> bool:
        if self._busy():
            return False
        return self.draining or (not self.paused and not unfinished(self.sup.board.tables.cards.values()))

    def _busy(self) -> bool:
        # Nobody waits for what cannot be killed; the audit names it.
        busy = any(seat.kind not in PARENTS and not seat.stuck.is_set() for seat in self.sup.seats.values())
        return busy or bool(self.starting or self.reopening)

    def turn(self) -> None:
        """One look at the board, carried out."""
        began = time.perf_counter()
        self._turn()
        self._looked = time.perf_counter() - began

    def _turn(self) -> None:
        cards = self.sup.board.tables.cards
        for name in self.retries.due():
            self.sup.board.append(Draft(K.CARD_READY, self.sup.hermes, name))
        seats = [s for s in self.sup.seats.values() if s.kind not in PARENTS]
        seated = {s.card for s in seats}
        living = [(s.kind, s.parent, s.order.member.swarm if s.order.member else "") for s in seats]
        coming = (c for name in self.starting - seated if (c := cards.get(name)))
        living += [(c.kind, c.parent_agent, swarm_of(c)[0]) for c in coming]
        births = self.admission.births(self.sup.clock())
        turn = look(cards, living, self.starting | seated, self.limits, births=births, held=self._held())
        self.waits = turn.waits
        self.holds.births(turn.paced)
        for card, reason in turn.blocked:
            self.block(card, "dependency", reason)
            self.admission.tell_parent(cards[card], "dependency")
        for card in turn.ready:
            self.sup.board.append(Draft(K.CARD_READY, self.sup.hermes, card))
        for card in turn.start:
            self.admission.admit(cards[card])

    def _held(self) -> str:
        """Why nothing may start now. Reaping asks nobody."""
        short = self.holds.machine()
        if self.draining or self._leaving:
            return "the fleet is ending" if self.draining else "another supervisor takes over"
        return "dispatch is paused" if self.paused else short

    def _give_up_waiting(self) -> None:
        """Without a person nobody waits for ever for what nobody gives back."""
        reason = self.holds.hopeless()
        if reason and not (self._busy() or self.paused):
            for card in list(self.waits):
                self.fail(card, FailKind.ERROR, reason)
                self.admission.tell_parent(self.sup.board.tables.cards[card], "error")

    def block(self, card: str, kind: str, reason: str) -> None:
        """Journal that a card waits, and why."""
        self.sup.board.append(Draft(K.CARD_BLOCKED, self.sup.hermes, card, None, {"block": kind, "reason": reason}))

    def fail(self, card: str, kind: FailKind, reason: str) -> None:
        """Journal that a card has failed, and why."""
        self.sup.board.append(Draft(K.CARD_FAILED, self.sup.hermes, card, None, {"fail": str(kind), "reason": reason}))

    def _settled(self, seat: Seat) -> None:
        self.retries.settled(seat)
        if seat.kind in PARENTS and self.keeps_offices and not (self.draining or self._leaving):
            self.sup.background(reopen(self, seat.kind))
        self._changed.set()

    # time and money

    @property
    def _elapsed(self) -> float:
        """Seconds since the beginning in which this process could have done something."""
        return self.sup.clock() - self._budget.began - self.sup.frozen

    @property
    def seconds_left(self) -> float | None:
        """What is left of the budget; None where there is none."""
        minutes = self._budget.minutes
        return None if minutes is None else minutes * 60 - self._elapsed

    def budget(self) -> dict[str, Any]:
        """Minutes granted and used."""
        return self._budget.as_json(self._elapsed)

    def _check_time(self) -> None:
        if self._budget.exhausted or self.draining:
            return
        if self._budget.warns(self._elapsed):
            self.sup.board.append(Draft(K.BUDGET_WARNING, self.sup.hermes, data={"used": BUDGET_WARNING}))
        if (over := self._budget.overrun(self.sup.clock(), self._elapsed)) is not None:
            stop_all(self, *over)

    # ends

    async def drain(self, reason: str, *, interrupted: bool = False) -> int:
        """Reap every child, leaves first, and wait for the proof; how many there were."""
        return await drain(self, reason, interrupted=interrupted)

    async def stop_at_once(self, reason: str) -> int:
        """The emergency stop: SIGKILL to everything below the offices, no grace, nothing new; how many agents."""
        self.draining = True
        living = [seat for seat in self.sup.seats.values() if seat.kind not in PARENTS]
        for seat in living:
            seat.state = replace(seat.state, timing=replace(seat.state.timing, grace=0.0))
        pids = [seat.pid for seat in living if seat.pid is not None]
        # In a thread: a loop that walks through a thousand trees answers nobody meanwhile.
        await asyncio.to_thread(_kill_trees, pids)
        return await self.drain(reason, interrupted=True)

    async def finish(self, fault: str = "") -> Ending:
        """Report, close the offices, audit, verify the ledger, and weigh it all."""
        return await finish(self, fault)


def _kill_trees(pids: list[int]) -> None:
    """What cannot be looked at is left to the reaps that follow."""
    for pid in pids:
        with contextlib.suppress(OSError):
            guard.signal_tree(pid, signal.SIGKILL)
