"""The supervisor: the only writer of board and ledger, the only one that starts a process. Hermes' office.

It holds a seat for each living run, drives each seat's state machine, and carries out what the machine
decides. Everything is judged on one monotonic clock that is passed in.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import time
from typing import TYPE_CHECKING, Any

from council_tui.board.board import Board, Draft
from council_tui.board.home import Home, OwnerLock
from council_tui.domain import ids
from council_tui.domain.errors import HomeOwned, HomeUnusable, Refused
from council_tui.domain.events import EventKind
from council_tui.domain.lifecycle import Do, Effect, Outcome, Phase, Signal, shift, step
from council_tui.hosts.local import LocalHost
from council_tui.ledger.keys import load_or_create
from council_tui.ledger.log import Appended, Ledger
from council_tui.ledger.remembered import Remembered, pin, remember
from council_tui.ledger.signer import Signer
from council_tui.ledger.verdicts import BadEntry
from council_tui.runner import guard
from council_tui.supervisor import inquiry, limits, slices
from council_tui.supervisor.births import Births
from council_tui.supervisor.channel import Channel
from council_tui.supervisor.handshake import Handshake
from council_tui.supervisor.heartbeats import BeatListener
from council_tui.supervisor.reaper import Reaper
from council_tui.supervisor.recovery import NURSERY, former_nurseries, note_nursery, recover

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from council_tui.domain.order import Order
    from council_tui.domain.wire import Call
    from council_tui.supervisor.seat import Seat

TICK_SECONDS = 0.2
CLOSING_LOOK_SECONDS = 0.5
CLOSING_PATIENCE = 10.0
FREEZE_SECONDS = 1.0
"""A tick that comes this much too late was a pause of ours: nobody is judged by it."""


class Supervisor:
    """Owns a home while it is open."""

    def __init__(self, home: Home, clock: Callable[[], float] = time.monotonic) -> None:
        self.home = home
        self.clock = clock
        self.seats: dict[str, Seat] = {}
        """Living runs by run id."""
        self.by_agent: dict[str, Seat] = {}
        self.by_pid: dict[int, Seat] = {}
        self._lock = OwnerLock(home)
        self.board = Board(home.board)
        self.host = LocalHost(home.logs / "runners.log")
        self.births = Births(self)
        self.handshake = Handshake(self)
        self.reaper = Reaper(self)
        self.beats = BeatListener(home.beats, self.seats.get, self._heard_beat)
        self.channel = Channel(
            home.socket,
            self.handshake.hello,
            self.handshake.answer,
            self._operate,
            self._heard_bad,
            self._belongs_to_an_agent,
            self._heard_fault,
        )
        self.workdir = os.getcwd()
        self.mbti: Mapping[str, frozenset[str]] = {}
        """By office: the base types allowed below it; an office that is not here allows all sixteen."""
        self.root_public = b""
        self.hermes = ""
        """Hermes' name on the ledger."""
        self.started = clock()
        self.own_beats: list[int] = []
        """How late our own ticks were, in milliseconds: Hermes' heartbeat."""
        self.on_card: Callable[[Seat, Order], Awaitable[str]] = self.make_card
        self.on_operator: Callable[[Call], Awaitable[Any]] | None = None
        self.on_settled: Callable[[Seat], None] = lambda seat: None
        self.will_retry: Callable[[Seat, Outcome], bool] = lambda seat, outcome: False
        """Whether a card that ends like this is tried again; then its parent goes on waiting."""
        self.failed: asyncio.Future[None] | None = None
        """Resolves with the fault that this supervisor cannot go on with."""
        self.recovered: list[str] = []
        self.uncleared: set[str] = set()
        """Paths of runs that are over which could not be removed."""
        self.beats_heard = 0
        self.tier = limits.portable("not looked for yet")
        """What this machine can enforce."""
        self.closing = False
        """True once nothing may be born any more."""
        self.strangers = 0
        """Messages refused on connections that belong to no run."""
        self.frozen = 0.0
        """Seconds in which this process stood still; no patience ran meanwhile."""
        self._ledger: Ledger | None = None
        self._signer: Signer | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._ticker: asyncio.Task[None] | None = None

    # opening and closing

    async def open(self) -> None:
        """Take the home, start the nursery, and put right what a dead supervisor left. Raises `HomeUnusable`."""
        self.home.prepare()
        if not self._lock.take():
            raise HomeOwned(f"process {self._lock.owner() or 'unknown'} already runs a council in {self.home.root}")
        try:
            # Again: whoever owned the home until now has tidied up, perhaps after our first look.
            self.home.prepare()
            self.failed = asyncio.get_running_loop().create_future()
            # The nursery needs longest: it imports while we open our files.
            self.host.on_exit, self.host.on_clean, self.host.on_gone = self._runner_gone, self._runner_clean, self._fell
            former = former_nurseries(self.home)
            self.host.start()
            note_nursery(self.home, self.host.pid)
            self.tier = await asyncio.to_thread(limits.find_tier)
            root, log_key = load_or_create(self.home.keys / "hermes.key"), load_or_create(self.home.keys / "log.key")
            self.root_public = root.public
            pin(self.home.keys, root.public, log_key.public)
            await self.board.open()
            known = await asyncio.to_thread(Remembered.of, self.home.keys, self.home.board)
            self._ledger = await Ledger.open(self.home.ledger, log_key, root.public, remembered=known)
            self.hermes = f"hermes:{root.key_id[:8]}"
            self._signer = Signer(self.hermes, root, self._ledger.origin, *self._ledger.head_of(self.hermes))
            self.recovered = await recover(self.board, self.home, self.revoke, former)
            note_nursery(self.home, self.host.pid, alone=True)
            self.beats.start()
            await self.channel.start()
            self._ticker = asyncio.create_task(self._tick_forever())
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Reap what still lives, close every file and give the home back."""
        self.closing = True
        while self.seats:
            # From the top; and whoever was born while its parent was ending, which no cascade has seen.
            for seat in [s for s in self.seats.values() if s.parent not in self.by_agent]:
                # Not awaited: a disk that takes no more entries must not keep anyone alive.
                self.background(self.signal(seat, Signal.CANCELLED, {"reason": "the council closes"}))
            ends = [asyncio.ensure_future(seat.ended.wait()) for seat in self.seats.values()]
            await asyncio.wait(ends, timeout=CLOSING_LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            for end in ends:
                end.cancel()
        if self._ticker is not None:
            self._ticker.cancel()
            await asyncio.gather(self._ticker, return_exceptions=True)
            await self.channel.close()
            self.beats.close()
        if self._tasks:
            _, stuck = await asyncio.wait(self._tasks, timeout=CLOSING_PATIENCE)
            for task in stuck:
                # Everyone is dead: whatever still waits, waits for nobody.
                task.cancel()
        self.host.on_gone = lambda: None
        await self.host.close()
        slices.remove(self.home.runtime / NURSERY)
        if self._ledger is not None:
            await self._ledger.close()
            await self.remember()
        await self.board.close()
        self.home.tidy()
        self._lock.release()

    @property
    def ledger(self) -> Ledger:
        """The open ledger."""
        if self._ledger is None:
            raise RuntimeError("the supervisor is not open")
        return self._ledger

    async def remember(self) -> None:
        """Keep the ledger's head for whoever opens or verifies it next."""
        # Where it cannot be written, the head kept before still holds: a log only grows.
        with contextlib.suppress(HomeUnusable):
            await asyncio.to_thread(remember, self.home.keys, self.ledger.head)

    def background(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run something whose failure ends this supervisor rather than vanish."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._background_done)

    def _background_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if self.failed is not None and not self.failed.done():
            self.failed.set_exception(error)
            # Whoever runs the fleet looks at `failed`; a console that does not must not warn at exit.
            self.failed.exception()

    def _heard_fault(self, error: Exception) -> None:
        self._fail(self.board.failure or error)

    def _fell(self) -> None:
        self._fail(HomeUnusable("the nursery has ended; nothing can be started any more"))

    # the ledger

    async def sign(self, kind: str, fields: dict[str, Any], subjects: list[tuple[str, str]] | None = None) -> Appended:
        """Hermes' own entry, appended."""
        if self._signer is None:
            raise RuntimeError("the supervisor is not open")
        raw = self._signer.sign(kind, int(time.time()), subjects or (), fields)
        try:
            return await self.ledger.append(raw)
        except BadEntry:
            # A refused entry must not leave a hole in our own chain.
            self._signer.withdraw(raw)
            raise

    async def revoke(self, agent: str, reason: str) -> int | None:
        """End an agent's authority; the entry, or None when the log never gave it any or took it back before."""
        known = self.ledger.lineage.agent(agent)
        if known is None or known.revoked_at >= 0:
            return None
        return (await self.sign("revocation", {"of": agent, "reason": reason})).index

    # cards

    def new_card(self, order: Order, parent_agent: str, parent_card: str | None) -> tuple[str, Draft]:
        """An id and the event that creates the card in its parent's name."""
        card = ids.card_id(secrets.token_bytes(5))
        if any(c.plan_id == order.id and c.kind == order.kind != "office" for c in self.board.tables.cards.values()):
            raise Refused("id", f"there is a card called {order.id} already")
        data = {
            "title": order.title,
            "plan_id": order.id,
            "kind": order.kind,
            "parent_agent": parent_agent,
            "parent_card": parent_card,
            "after": list(order.after),
            "priority": order.priority,
            "labels": list(order.labels),
            "attempts": order.attempts,
            "order": order.model_dump(mode="json"),
        }
        return card, Draft(EventKind.CARD_CREATED, parent_agent, card, None, data)

    async def make_card(self, parent: Seat, order: Order) -> str:
        """A card in the name of a living parent; its id."""
        card, draft = self.new_card(order, parent.agent, parent.card)
        await self.board.append(draft)
        return card

    # the state machines

    def log(self, seat: Seat, kind: EventKind, data: dict[str, Any] | None = None) -> asyncio.Future[None]:
        """Journal something about a seat."""
        return self.board.append(Draft(kind, seat.agent, seat.card, seat.run, data or {}))

    async def signal(self, seat: Seat, signal: Signal, data: dict[str, Any] | None = None) -> bool:
        """Feed one signal to a seat's machine and carry out what it decides; whether the phase moved."""
        before = seat.state.phase
        seat.state, effects = step(seat.state, signal, self.clock(), data)
        # A disk that is full or slow must not come between a decision and its kill: wait for it last.
        written = [done for effect in effects if (done := self._carry_out(seat, effect)) is not None]
        for done in written:
            await done
        return seat.state.phase is not before

    def _carry_out(self, seat: Seat, effect: Effect) -> Awaitable[None] | None:
        """Begin what an effect asks for; what is left to wait for."""
        if effect.do is Do.LOG and effect.kind is not None:
            return self.log(seat, effect.kind, effect.data)
        if effect.do is Do.REAP:
            self.background(self.reaper.reap(seat, str(effect.data.get("cause", ""))))
        elif effect.do is Do.STOP and seat.peer is not None:
            self.background(self.reaper.freeze(seat))
        elif effect.do is Do.CONTINUE:
            self.background(self.reaper.resume(seat))
        elif effect.do is Do.SETTLE:
            return self.reaper.settle(seat)
        return None

    def children_of(self, agent: str) -> list[Seat]:
        """Living seats whose parent is this agent."""
        return [seat for seat in self.seats.values() if seat.parent == agent]

    def forget(self, seat: Seat) -> None:
        """Give a seat up; its run is over."""
        self.seats.pop(seat.run, None)
        self.by_agent.pop(seat.agent, None)
        self.handshake.microsharks.pop(seat.run, None)
        if seat.pid is not None and self.by_pid.get(seat.pid) is seat:
            del self.by_pid[seat.pid]
        seat.born.set()
        seat.ended.set()

    def _heard_beat(self, seat: Seat, late_ms: int) -> None:
        now = self.clock()
        self.beats_heard += 1
        if seat.state.last_beat is not None:
            seat.note_beat(late_ms, now - seat.state.last_beat)
        before = seat.state
        seat.state, effects = step(before, Signal.BEAT, now)
        for effect in effects:
            if effect.kind is not None:
                self.log(seat, effect.kind, effect.data)

    def _heard_bad(self, seat: Seat | None, reason: str) -> None:
        if seat is None:
            count = self.strangers = self.strangers + 1
        else:
            count = seat.refused = seat.refused + 1
        # A flood of nonsense is counted, but the journal hears of it at 1, 10, 100, ...
        if str(count).rstrip("0") != "1":
            return
        agent, card, run = (None, None, None) if seat is None else (seat.agent, seat.card, seat.run)
        self.board.append(Draft(EventKind.MESSAGE_REFUSED, agent, card, run, {"reason": reason, "count": count}))

    def _belongs_to_an_agent(self, pid: int) -> bool:
        # An agent may clear its marker, and one that lost its guard hangs elsewhere: either gives it away.
        nursery = self.host.pid
        return guard.marker_of(pid) in self.seats or (nursery is not None and guard.is_below(pid, nursery))

    def _runner_gone(self, pid: int, status: int | None) -> None:
        seat = self.by_pid.get(pid)
        if seat is None:
            return
        seat.runner_status = status
        seat.exited.set()
        by_signal = os.WTERMSIG(status) if status is not None and os.WIFSIGNALED(status) else None
        code = os.WEXITSTATUS(status) if status is not None and os.WIFEXITED(status) else None
        how = f"signal {by_signal}" if by_signal is not None else f"exit status {code}"
        reason = f"its runner ended with {how} before it had reported"
        self.background(self._after_exit(seat, reason, {"exit_status": code, "signal": by_signal}))

    async def _after_exit(self, seat: Seat, reason: str, data: dict[str, Any]) -> None:
        await seat.started.wait()
        self.log(seat, EventKind.AGENT_ENDED, data)
        if seat.state.phase is Phase.CLOSING:
            await seat.clean.wait()
            # Reaped meanwhile: then the reaper has the last word.
            if seat.state.phase is Phase.CLOSING:
                await self.signal(seat, Signal.DEAD)
        else:
            await self.signal(seat, Signal.PROCESS_GONE, {"reason": reason})

    def _runner_clean(self, pid: int) -> None:
        seat = self.by_pid.get(pid)
        if seat is not None:
            seat.clean.set()

    # the clock

    async def _tick_forever(self) -> None:
        last = self.clock()
        while True:
            await asyncio.sleep(TICK_SECONDS)
            now = self.clock()
            late = now - last - TICK_SECONDS
            last = now
            try:
                await self.tick(late)
            except Exception as error:
                self._fail(error)
                return

    async def tick(self, late: float = 0.0) -> None:
        """Drain, then judge. `late`: by how many seconds this tick missed its time."""
        self.beats.drain()
        self.own_beats = [*self.own_beats[-29:], max(0, int(late * 1000))]
        if self.board.failure is not None:
            self._fail(self.board.failure)
        if late > FREEZE_SECONDS:
            self.frozen += late
            for seat in self.seats.values():
                seat.state = shift(seat.state, late)
            return
        await self.channel.keep()
        self.beats.keep()
        for seat in list(self.seats.values()):
            if inquiry.due(seat, self.clock()):
                self.background(inquiry.ask(seat, self.clock))
            await self.signal(seat, Signal.TICK)

    async def _operate(self, call: Call) -> Any:  # noqa: ANN401
        if self.on_operator is None:
            raise Refused("operator", "this council takes no orders from elsewhere")
        return await self.on_operator(call)
