"""A spawn on our side of the socket: the contract is asked for, held against the rules, and a runner started."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from council_tui.board.board import Draft
from council_tui.domain import ids
from council_tui.domain.contract import SpawnContext, check_limits, check_narrowing
from council_tui.domain.errors import HomeUnusable, Refused
from council_tui.domain.events import EventKind
from council_tui.domain.hierarchy import KINDS, PARENTS
from council_tui.domain.lifecycle import RunState, Signal, Timing
from council_tui.domain.order import Order, check_size, materialise
from council_tui.runner import guard
from council_tui.runner.spec import RunnerSpec
from council_tui.supervisor import limits, slices
from council_tui.supervisor.leftovers import note_slice
from council_tui.supervisor.seat import Seat

if TYPE_CHECKING:
    from council_tui.board.projection import Card
    from council_tui.supervisor.supervisor import Supervisor

ROOT_DEPTH = 3
CONTRACT_PATIENCE = 10.0
"""Seconds a parent has to write a contract."""


class Births:
    """Starts runs for one supervisor."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._sup = supervisor

    async def spawn(self, card_id: str, orders: tuple[Order, ...] = ()) -> Seat:
        """Start one attempt at a ready card. `orders`: what this agent will spawn in its turn.

        Raises `Refused` with the field and the rule; then no process was started.
        """
        opened = self._sup.clock()
        card = self._sup.board.tables.cards[card_id]
        order = Order.model_validate(card.order)
        run = ids.run_id(secrets.token_bytes(7))
        kind = order.id if order.kind == "office" else order.kind
        label = "office" if kind in PARENTS else order.id
        agent = ids.agent_name(kind, label, run)
        parent = self._sup.by_agent.get(card.parent_agent)
        context = await self._contract(card, order, run, parent)
        check_size(order, orders, context)
        words = self._admit(context, parent, card.parent_agent)
        if self._sup.closing:
            raise Refused("council", "it is closing")
        if any(seat.card == card_id for seat in self._sup.seats.values()):
            raise Refused("card", f"{card_id} has a living run already")
        path = self._make_slice(run, context.memory_slice.shared_memory_path)
        budget = None if kind in PARENTS else order.envelope.time_budget_minutes * 60
        seat = Seat(
            run=run,
            agent=agent,
            label=KINDS[kind].title if kind in PARENTS else label,
            kind=kind,
            parent=card.parent_agent,
            card=card_id,
            attempt=card.attempt + 1,
            depth=(parent.depth if parent else ROOT_DEPTH) - 1,
            order=order,
            context=context,
            state=RunState(Timing.of(context.lifecycle_policy, budget), opened),
            token=secrets.token_urlsafe(24),
            beat_token=secrets.token_urlsafe(12),
            slice=path,
            enforcement=words,
            opened=opened,
        )
        self._sup.handshake.microsharks[run] = orders
        self._sup.take_in(seat)
        await self._start(seat)
        above = self._sup.by_agent.get(seat.parent)
        if seat.parent != self._sup.hermes and (above is None or not above.can_parent):
            # The parent ended while this one was born, so its cascade has not seen it.
            reason = f"its parent {above.label if above else ids.agent_label(seat.parent)} is gone"
            await self._sup.signal(seat, Signal.PARENT_GONE, {"reason": reason})
        return seat

    def _make_slice(self, run: str, wanted: str) -> str:
        """The slice of a run. Where a plan chose the place, it is noted: before the journal has it we may be gone."""
        home = self._sup.home
        taken = [seat.slice for seat in self._sup.seats.values()]
        if Path(wanted).parent == home.slices:
            return slices.make(wanted, taken)
        path = ""
        try:
            note_slice(home, run, wanted, made=False)
            path = slices.make(wanted, taken)
            note_slice(home, run, path, made=True)
        except HomeUnusable:
            if path:
                slices.remove(path)
            raise
        return path

    async def _contract(self, card: Card, order: Order, run: str, parent: Seat | None) -> SpawnContext:
        """The parent writes it; for an office the parent is Hermes, which is us."""
        path = str(self._sup.home.slices / run)
        if card.parent_agent == self._sup.hermes:
            return materialise(
                order,
                parent_id=self._sup.hermes,
                parent=None,
                parent_task="t_hermes",
                task=card.id,
                slice_path=path,
                spawn_ts=self._sup.board.now(),
            )
        if parent is None or not parent.can_parent or parent.peer is None:
            raise Refused("parent_id", f"{ids.agent_label(card.parent_agent)} is not alive to spawn anything")
        params = {"card": card.id, "run": run, "slice": path, "order": card.order}
        try:
            raw = await parent.peer.call("contract", params, CONTRACT_PATIENCE)
        except TimeoutError:
            raise Refused("parent_id", f"{parent.label} wrote no contract in {CONTRACT_PATIENCE:g} s") from None
        try:
            return SpawnContext.model_validate(raw["context"])
        except (KeyError, TypeError, ValueError):
            raise Refused("parent_id", f"{parent.label} wrote a contract that is none") from None

    def _admit(self, context: SpawnContext, parent: Seat | None, parent_agent: str) -> str:
        """Hold a contract against the rules once more, on our side; the words for what is enforced."""
        if context.parent_id != parent_agent:
            raise Refused("parent_id", f"{context.parent_id} is not the parent of this card")
        above = parent.context if parent is not None and parent.kind not in PARENTS else None
        inherited, bounds = (above.inheritance, above.resource_limits) if above is not None else (None, None)
        allowed = self.allowed_types(parent_agent)
        problems = [*context.inheritance.problems(allowed), *check_narrowing(inherited, context.inheritance)]
        problems += check_limits(bounds, context.resource_limits)
        problems += self._style_problems(context.inheritance.style_guide)
        if problems:
            raise problems[0]
        if parent_agent == self._sup.hermes:
            return "no body: an office is its runner"
        return limits.enforcement(context, self._sup.tier)

    def allowed_types(self, parent_agent: str) -> frozenset[str] | None:
        """The base types that a child of this agent may have; None for all."""
        kind = ids.agent_type(parent_agent)
        seat = self._sup.by_agent.get(parent_agent)
        if kind not in PARENTS and seat is not None:
            return self.allowed_types(seat.parent)
        return self._sup.mbti.get(kind)

    def _style_problems(self, guide: str) -> list[Refused]:
        """A style guide that points into the project must be there; anything else is passed on as a name."""
        path = Path(self._sup.workdir) / guide
        into_project = path.suffix and path.parent != Path(self._sup.workdir) and path.parent.is_dir()
        if not guide or not into_project or path.is_file():
            return []
        return [Refused("inheritance.style_guide", f"{guide} is not in the project")]

    async def _start(self, seat: Seat) -> None:
        spec = RunnerSpec(
            run=seat.run,
            agent=seat.agent,
            socket=str(self._sup.home.socket),
            notify=str(self._sup.home.beats),
            token=seat.token,
            beat_token=seat.beat_token,
            log_dir=str(self._sup.home.logs / seat.run),
            body_socket=str(self._sup.home.bodies / seat.run),
            grace=seat.state.timing.grace,
        )
        try:
            started = await self._sup.host.spawn(spec)
        except BaseException:
            # Whoever reaps it meanwhile must not wait for a process that never was.
            for passed in (seat.started, seat.exited, seat.clean):
                passed.set()
            self._sup.forget(seat)
            if not slices.remove(seat.slice):
                self._sup.clearing.note(seat, [seat.slice])
            raise
        seat.pid, seat.start_time = started.pid, started.start_time
        self._sup.by_pid[started.pid] = seat
        self._sup.board.append(
            Draft(
                EventKind.AGENT_STARTED,
                seat.agent,
                seat.card,
                seat.run,
                {
                    "label": seat.label,
                    "kind": seat.kind,
                    "parent": seat.parent,
                    "pid": started.pid,
                    "start_time": started.start_time,
                    "boot_id": guard.boot_id(),
                    "attempt": seat.attempt,
                    "slice": seat.slice,
                    "enforcement": seat.enforcement,
                    "contract": {**seat.context.model_dump(mode="json"), "sha256": seat.context.sha256()},
                },
            )
        )
        seat.started.set()
