"""The supervisor: the only writer of board and ledger, the only one that starts a process. Hermes' office.

It holds a seat for each living run, drives each seat's state machine, and carries out what the machine
decides. Everything is judged on one monotonic clock that is passed in.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import sqlite3
import time
from typing import TYPE_CHECKING, Any

from council_tui.board.board import Board, Draft
from council_tui.board.home import Home, OwnerLock, cannot_use
from council_tui.domain import ids
from council_tui.domain.errors import CouncilError, HomeOwned, HomeUnusable, Refused
from council_tui.domain.events import EventKind
from council_tui.domain.lifecycle import Do, Effect, Outcome, Signal, shift, step
from council_tui.hosts import descriptors
from council_tui.hosts.local import LocalHost
from council_tui.supervisor import groups, inquiry, limits, slices, workers
from council_tui.supervisor.authority import Authority
from council_tui.supervisor.births import Births
from council_tui.supervisor.channel import Channel
from council_tui.supervisor.clearing import Clearing
from council_tui.supervisor.ending import end_everyone
from council_tui.supervisor.handshake import Handshake
from council_tui.supervisor.hearing import Hearing
from council_tui.supervisor.heartbeats import BeatListener
from council_tui.supervisor.leftovers import NURSERY, former_nurseries, note_nursery
from council_tui.supervisor.reaper import Reaper
from council_tui.supervisor.recovery import Recovery
from council_tui.supervisor.watch import Watch
from council_tui.supervisor.welcome import Welcome

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from council_tui.domain.order import Order
    from council_tui.domain.wire import Call
    from council_tui.hosts.local import Ward
    from council_tui.supervisor.seat import Seat

TICK_SECONDS = 0.2
CLOSING_PATIENCE = 10.0
HAND_OVER_SECONDS = 2.0
"""That what is under way has to come to its end before it is left to the next supervisor."""
RETURN_SECONDS = 5.0
"""That opening waits for the offices of an earlier supervisor to come back."""
FREEZE_SECONDS = 1.0
"""A tick that comes this much too late was a pause of ours: nobody is judged by it."""


class Left(CouncilError):
    """A person did not want what recovery was going to do."""


class Supervisor:
    """Owns a home while it is open."""

    def __init__(self, home: Home, clock: Callable[[], float] = time.monotonic) -> None:
        self.home = home
        self.clock = clock
        self.seats: dict[str, Seat] = {}
        """Living runs by run id."""
        self.by_agent: dict[str, Seat] = {}
        self._below: dict[str, dict[str, Seat]] = {}
        """The same by parent: hundreds that end at once each ask who is below them."""
        self.by_pid: dict[int, Seat] = {}
        self._lock = OwnerLock(home)
        self.board = Board(home.board)
        self.authority = Authority(home)
        self.host = LocalHost(home.logs / "runners.log", home.nursery)
        self.watch = Watch(self)
        self.welcome = Welcome(self)
        self.recovery = Recovery(self, None)
        self.births = Births(self)
        self.handshake = Handshake(self)
        self.reaper = Reaper(self)
        self.clearing = Clearing(self)
        self.hearing = Hearing(self)
        self.beats = BeatListener(home.beats, self.seats.get, self.hearing.beat)
        self.channel = Channel(
            home.socket,
            self.handshake.hello,
            self.welcome.resume,
            self.handshake.answer,
            self._operate,
            self.hearing.bad,
            self.watch.belongs_to_an_agent,
            self.heard_fault,
            self.hearing.shortage,
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
        self.on_swarm: Callable[[Seat, Order], Awaitable[dict[str, Any]]] | None = None
        """Hermes' grant to a parent that asks for many microsharks in one contract."""
        self.fleet_here = asyncio.Event()
        """Set once a fleet is here that grants swarms: a parent that was taken back may ask sooner."""
        self.on_operator: Callable[[Call], Awaitable[Any]] | None = None
        self.on_settled: Callable[[Seat], None] = lambda seat: None
        self.will_retry: Callable[[Seat, Outcome], bool] = lambda seat, outcome: False
        """Whether a card that ends like this is tried again; then its parent goes on waiting."""
        self.failed: asyncio.Future[None] | None = None
        """Resolves with the fault that this supervisor cannot go on with."""
        self.tier = limits.portable("not looked for yet")
        """What this machine can enforce."""
        self.closing = False
        """True once nothing may be born any more."""
        self.left_behind: list[str] = []
        """A sentence for each agent that could not be ended when this supervisor closed."""
        self.frozen = 0.0
        """Seconds in which this process stood still; no patience ran meanwhile."""
        self._handed_over = False
        self._tasks: set[asyncio.Task[Any]] = set()
        self._ticker: asyncio.Task[None] | None = None

    # opening and closing

    async def open(self, agree: Callable[[Recovery], Awaitable[bool]] | None = None) -> None:
        """Take the home, start the nursery or take over the one that is there, and put right what was left.

        `agree` sees what recovery is going to do; it is done once it says so. Raises `CouncilError`.
        """
        workers.hire()
        descriptors.make_room()
        self.home.prepare()
        if not self._lock.take():
            raise HomeOwned(f"process {self._lock.owner() or 'unknown'} already runs a council in {self.home.root}")
        wards: dict[int, Ward] | None = None
        try:
            # Again: whoever owned the home until now has tidied up, perhaps after our first look.
            self.home.prepare()
            self.failed = asyncio.get_running_loop().create_future()
            self.host.on_gone = self._fell
            former = former_nurseries(self.home)
            # The newest of them; a new one needs longest of all, it imports while we open our files.
            wards = await self.host.adopt(former[-1]) if former else None
            if wards is None:
                self.host.start()
            note_nursery(self.home, self.host.pid)
            self.tier = await asyncio.to_thread(limits.find_tier)
            groups.note(self.home, self.tier.groups.values())
            await self.board.open()
            await self.authority.open()
            self.hermes, self.root_public = self.authority.name, self.authority.root_public
            self.recovery = Recovery(self, wards)
            await self.recovery.look(nursery for nursery in former if nursery.pid != self.host.pid)
            note_nursery(self.home, self.host.pid, alone=True)
            if wards is not None:
                self.host.listen()
            self.beats.start()
            self.channel.start()
            self._ticker = asyncio.create_task(self._tick_forever())
            if agree is not None and not await agree(self.recovery):
                await self.hand_over()
                raise Left("nothing was done; who lives leaves by itself unless another supervisor comes")
            await self.recovery.carry_out()
            await self.recovery.returned(RETURN_SECONDS)
        except Exception as error:
            # Who lives is not to blame: the next start may have better luck, and without one they leave by themselves.
            await (self.close() if wards is None else self.hand_over())
            if isinstance(error, OSError):
                raise cannot_use(self.home.root, error) from None
            if workers.no_thread(error):
                raise CouncilError(workers.NO_THREAD) from None
            raise
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Reap what still lives, close every file and give the home back; nothing once it has been handed over."""
        if self._handed_over:
            return
        self.closing = True
        self.left_behind = await end_everyone(self)
        await self._stop_listening(CLOSING_PATIENCE)
        await self.host.close()
        slices.remove(self.home.runtime / NURSERY)
        await self.authority.close()
        await self.board.close()
        self.home.tidy()
        self._lock.release()

    async def hand_over(self) -> None:
        """Leave everyone who lives to the next supervisor, close every file and give the home back.

        Runners look for that next one for as long as their patience lasts.
        """
        if self._handed_over:
            return
        self.closing = self._handed_over = True
        self.host.release()
        await self._stop_listening(HAND_OVER_SECONDS)
        if self.hermes:
            with contextlib.suppress(CouncilError, OSError, sqlite3.Error):
                # The last entry of ours: who finds it there knows that nobody died.
                data = {"pid": os.getpid(), "living": len(self.seats)}
                await self.board.append(Draft(EventKind.HANDED_OVER, self.hermes, data=data))
        await self.authority.close()
        await self.board.close()
        self._lock.release()

    async def _stop_listening(self, patience: float) -> None:
        self.host.on_gone = lambda: None
        if self._ticker is not None:
            self._ticker.cancel()
            await asyncio.gather(self._ticker, return_exceptions=True)
            await self.channel.close()
            self.beats.close()
        if self._tasks:
            _, stuck = await asyncio.wait(self._tasks, timeout=patience)
            for task in stuck:
                # What still waits, waits for nobody: everyone is dead, or another's.
                task.cancel()
            await asyncio.gather(*stuck, return_exceptions=True)

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

    def heard_fault(self, error: Exception) -> None:
        """Something went wrong that should not: this supervisor cannot go on, and whoever runs it hears why."""
        self._fail(self.board.failure or error)

    def _fell(self) -> None:
        self._fail(HomeUnusable("the nursery has ended; nothing can be started any more"))

    # cards

    def new_card(self, order: Order, parent_agent: str, parent_card: str | None) -> tuple[str, Draft]:
        """An id and the event that creates the card in its parent's name. Raises `Refused` for a name that is taken."""
        if any(c.plan_id == order.id and c.kind == order.kind != "office" for c in self.board.tables.cards.values()):
            raise Refused("id", f"there is a card called {order.id} already")
        return self.draft_card(order, parent_agent, parent_card)

    @staticmethod
    def draft_card(order: Order, parent_agent: str, parent_card: str | None) -> tuple[str, Draft]:
        """The same for a name that is known to be free."""
        card = ids.card_id(secrets.token_bytes(5))
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
        # A disk that is full or slow must not come between a decision and its kill: wait for it last.
        for done in self._decide(seat, signal, data):
            await done
        return seat.state.phase is not before

    def _decide(self, seat: Seat, signal: Signal, data: dict[str, Any] | None = None) -> list[Awaitable[None]]:
        """One step of a seat's machine, with all that it asks for begun; what is left to wait for."""
        seat.state, effects = step(seat.state, signal, self.clock(), data)
        return [done for effect in effects if (done := self._carry_out(seat, effect)) is not None]

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
        return list(self._below.get(agent, {}).values())

    def take_in(self, seat: Seat) -> None:
        """Hold a run from now on."""
        self.seats[seat.run] = self.by_agent[seat.agent] = seat
        self._below.setdefault(seat.parent, {})[seat.run] = seat

    def forget(self, seat: Seat) -> None:
        """Give a seat up; its run is over."""
        self.seats.pop(seat.run, None)
        self.by_agent.pop(seat.agent, None)
        below = self._below.get(seat.parent, {})
        below.pop(seat.run, None)
        if not below:
            self._below.pop(seat.parent, None)
        self.handshake.microsharks.pop(seat.run, None)
        if seat.pid is not None and self.by_pid.get(seat.pid) is seat:
            del self.by_pid[seat.pid]
        for passed in (seat.born, seat.back, seat.ended):
            passed.set()

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
        self.channel.keep()
        self.beats.keep()
        self.clearing.look()
        for seat in [seat for seat in self.seats.values() if not seat.pending]:
            self.reaper.look(seat)
            if inquiry.due(seat, self.clock()):
                self.background(inquiry.ask(seat, self.clock))
            # What it journals is not waited for: nobody is judged later because a disk is slow, or full for a while.
            self._decide(seat, Signal.TICK)

    async def _operate(self, call: Call) -> Any:  # noqa: ANN401
        if self.on_operator is None:
            raise Refused("operator", "this council takes no orders from elsewhere")
        return await self.on_operator(call)
