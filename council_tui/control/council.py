"""A council in this process: the supervisor, its fleet, and the door for front ends."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from council_tui.control.comment import draft_of
from council_tui.control.drafts import check_draft, order_of
from council_tui.control.pictures import Pictures
from council_tui.control.proof import entries, pins_of, verify
from council_tui.control.views import (
    Detail,
    DraftCheck,
    EntryView,
    QuitOutcome,
    ReapPreview,
    RecoveryView,
    RoomView,
    SpawnDraft,
    VerifyView,
    as_plain,
)
from council_tui.domain.errors import CouncilError, HomeOwned, Refused
from council_tui.domain.hierarchy import PARENTS
from council_tui.domain.lifecycle import Signal
from council_tui.domain.text import safe
from council_tui.fleet.fleet import Fleet
from council_tui.fleet.kept import unfinished_fleet
from council_tui.supervisor.supervisor import Supervisor

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from council_tui.board.home import Home
    from council_tui.domain.events import Event
    from council_tui.domain.wire import Call
    from council_tui.fleet.outcome import Ending
    from council_tui.fleet.plan import Plan
    from council_tui.supervisor.recovery import Recovery
    from council_tui.supervisor.seat import Seat


FREE_LOOK_SECONDS = 0.02
EVERYONE = "all"
"""Names every child at once where an agent is to be named."""


@dataclass(frozen=True)
class Options:
    """How a council is opened."""

    plan: Plan | None = None
    timeout: float | None = None
    """Seconds after which a headless fleet is stopped."""
    workdir: str = ""
    """Where bodies start; empty for the current directory."""
    note: str = ""
    """One line for the console, above its footer."""
    agree: Callable[[RecoveryView], Awaitable[bool]] | None = None
    """Shown what recovery is going to do before it is done; whether to go on. None where no person is there."""


class Council:
    """Owns a home from `open` to `close`. Also a `CouncilDoor`."""

    def __init__(self, home: Home, options: Options | None = None) -> None:
        self.home = home
        self.options = options or Options()
        self.sup = Supervisor(home)
        self.sup.workdir = self.options.workdir or os.getcwd()
        self.fleet: Fleet | None = None
        self.pictures = Pictures(self.sup)
        self.on_stop: Callable[[str], None] | None = None
        """Ends this process in order because somebody elsewhere asked for it; None where that is not offered."""
        self.on_leave: Callable[[int], None] | None = None
        """Leaves the fleet to the process with this pid; None where that is not offered."""
        self.handed_over = False
        self._dispatch: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Take the home; go on with the fleet that is there, or open a new one's offices.

        An unfinished fleet is gone on with unless another plan is given. Raises `CouncilError`; then nothing is
        left behind.
        """
        await self.sup.open(self._agreed)
        try:
            await self.pictures.load()
            self.sup.board.listen(self.pictures.heard)
            self.sup.on_operator = self._operate
            plan, left = self.options.plan, await unfinished_fleet(self.sup, self.options.plan)
            goes_on = left is not None and plan in (None, left.plan)
            self.fleet = Fleet(self.sup, left.plan if left is not None and goes_on else plan, self.options.timeout)
            self.pictures.fleet = self.fleet
            self.pictures.note = self.options.note
            if left is not None and goes_on:
                await self.fleet.resume(left)
            else:
                await self.fleet.start()
        except BaseException:
            await self.sup.close()
            raise

    async def open_when_free(self, seconds: float, waits: Callable[[], None] = lambda: None) -> None:
        """`open`, as soon as the process that runs the council here has left; `waits` is called while it has not.

        Raises `HomeOwned` when it is still there after so many seconds.
        """
        deadline = self.sup.clock() + seconds
        while True:
            try:
                await self.open()
            except HomeOwned:
                if self.sup.clock() > deadline:
                    raise
                waits()
                await asyncio.sleep(FREE_LOOK_SECONDS)
            else:
                return

    async def _agreed(self, recovery: Recovery) -> bool:
        """Whether recovery may do what it is going to do: ask only where there is something to ask."""
        if self.options.agree is None or not recovery.ends_something:
            return True
        return await self.options.agree(RecoveryView(recovery.crash, tuple(item.words for item in recovery.plan)))

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Hear every event as it is decided."""
        self.sup.board.listen(listener)

    @property
    def _open_fleet(self) -> Fleet:
        if self.fleet is None:
            raise Refused("council", "it is not open")
        return self.fleet

    async def run(self, *, stays: bool = False) -> Ending:
        """Dispatch the fleet to its end, or with `stays` until it is drained.

        What went wrong inside is told by the ending, not raised.
        """
        fleet = self._open_fleet
        fault = ""
        try:
            await fleet.run(stays=stays)
        except Exception as error:
            fault = f"{type(error).__name__}: {error}"
            await fleet.drain("the supervisor failed")
        return await fleet.finish(fault)

    def dispatch(self) -> None:
        """Dispatch in the background for as long as a console is open."""
        self._dispatch = asyncio.create_task(self._open_fleet.dispatch_forever())

    async def interrupt(self, reason: str) -> None:
        """End the fleet in order because a person or a signal said so."""
        await self._open_fleet.drain(reason, interrupted=True)

    async def end(self) -> Ending:
        """Close the offices, audit and verify, once everything below them has been drained."""
        await self._stop_dispatch()
        return await self._open_fleet.finish()

    async def _stop_dispatch(self) -> None:
        if self._dispatch is not None:
            self._dispatch.cancel()
            await asyncio.gather(self._dispatch, return_exceptions=True)

    async def hand_over(self) -> int:
        """Leave everyone who lives to the next supervisor and give the home back; how many that are."""
        self.handed_over = True
        await self._stop_dispatch()
        await self._open_fleet.leave()
        living = await self.living()
        await self.sup.hand_over()
        return living

    async def close(self) -> None:
        """End what is left, in order, and give the home back."""
        await self._stop_dispatch()
        await self.sup.close()

    @property
    def left_behind(self) -> list[str]:
        """After closing: a sentence for each agent that could not be ended."""
        return self.sup.left_behind

    # the door

    async def room(self) -> RoomView:
        """The present picture. Raises `CouncilError` when the supervisor cannot go on."""
        failed = self.sup.failed
        if failed is not None and failed.done() and (error := failed.exception()) is not None:
            raise CouncilError(f"the supervisor cannot go on: {error}")
        return self.pictures.room()

    async def detail(self, ident: str) -> Detail:
        """An agent or a card in full."""
        return await self.pictures.detail(ident)

    async def check_draft(self, draft: SpawnDraft) -> DraftCheck:
        """Hold a draft against the rules; starts nothing."""
        return check_draft(self.sup, self._open_fleet, draft)

    async def spawn(self, draft: SpawnDraft) -> str:
        """Send the contract through its office; the card's id."""
        check = check_draft(self.sup, self._open_fleet, draft)
        if check.problems:
            field, rule = check.problems[0]
            raise Refused(field, rule)
        return await self._open_fleet.submit(order_of(draft))

    def _living(self, agent: str) -> Seat:
        seat = self.sup.by_agent.get(agent)
        if seat is None:
            raise Refused("agent", "it is not alive any more")
        return seat

    async def preview_reap(self, agent: str) -> ReapPreview:
        """What a reap of this agent would end."""
        return self.pictures.preview(self._living(agent))

    async def reap(self, agent: str) -> None:
        """Reap an agent and all below it; returns once it has begun."""
        seat = self._living(agent)
        # What would not die is tried again at once; everyone else is begun with.
        if not self.sup.reaper.again(seat):
            await self.sup.signal(seat, Signal.CANCELLED, {"reason": "reaped by the operator"})

    def named(self, name: str) -> str:
        """The one living agent that a person means: by its full name, or its card's id or name in the plan."""
        if name in self.sup.by_agent:
            return name
        found = [seat.agent for seat in self.sup.seats.values() if name in (seat.card, seat.order.id)]
        if len(found) != 1:
            raise Refused("agent", f"{len(found) or 'no'} living agents are called {safe(name, 80)}")
        return found[0]

    async def freeze(self, agent: str, frozen: bool) -> None:
        """Stop an agent, or all, and what is below where they stand, or let them go on; their clocks stand still."""
        if agent == EVERYONE:
            queue = [seat for seat in self.sup.seats.values() if seat.kind == "child"]
        elif (one := self._living(self.named(agent))).kind not in PARENTS:
            queue = [one]
        else:
            raise Refused("agent", "an office is not frozen; freeze what is below it")
        while queue:
            seat = queue.pop()
            queue += self.sup.children_of(seat.agent)
            await self.sup.signal(seat, Signal.FREEZE if frozen else Signal.THAW)

    async def pause(self, paused: bool) -> None:
        """Hold dispatch back, or go on."""
        self._open_fleet.pause(paused)

    async def entries(self, start: int = 0, limit: int = 500) -> tuple[EntryView, ...]:
        """Rows of the ledger."""
        return await entries(self.home.ledger, start, limit)

    async def verify(self, index: int | None = None) -> VerifyView:
        """Verify one entry, or the whole ledger."""
        found = await verify(self.home.ledger, pins_of(self.home), index)
        if index is None:
            self.pictures.verified(found)
        return found

    async def _drained(self) -> None:
        await self.drain()

    async def drain(self) -> QuitOutcome:
        """Reap all, in order, and say what ended."""
        ended = await self._open_fleet.drain("the operator closed the council")
        left = await self.living()
        return QuitOutcome(ended, left)

    async def stop_at_once(self) -> QuitOutcome:
        """The emergency stop: end all without grace; nothing new starts here any more."""
        return QuitOutcome(await self._open_fleet.stop_at_once("emergency stop by the operator"), await self.living())

    def _stop(self, *, at_once: bool) -> None:
        if self.on_stop is None:
            raise Refused("stop", f"process {os.getpid()} takes no such order")
        words = "emergency stop" if at_once else "stopped"
        if at_once:
            self.sup.background(self._open_fleet.stop_at_once(words))
        self.on_stop(f"{words} by `council stop`")

    def _leave(self, pid: int) -> None:
        if self.on_leave is None:
            raise Refused("leave", f"process {os.getpid()} runs this fleet to its end and leaves it to nobody")
        self.on_leave(pid)

    async def living(self) -> int:
        """Agents below the offices that still live."""
        return sum(1 for seat in self.sup.seats.values() if seat.kind not in PARENTS)

    # operators elsewhere

    async def _operate(self, call: Call) -> Any:  # noqa: ANN401
        """One intent of an attached front end, by the name of the door's method."""
        params = call.params
        match call.method:
            case "room":
                room = await self.room()
                return as_plain(room) if room.version != params.get("version") else {"version": room.version}
            case "detail":
                return as_plain(await self.detail(str(params["ident"])))
            case "check_draft":
                return as_plain(await self.check_draft(SpawnDraft(**params["draft"])))
            case "spawn":
                return await self.spawn(SpawnDraft(**params["draft"]))
            case "preview_reap":
                return as_plain(await self.preview_reap(str(params["agent"])))
            case "reap":
                return await self.reap(str(params["agent"]))
            case "comment":
                return await self.sup.board.append(draft_of(self.sup.board, str(params["card"]), str(params["text"])))
            case "freeze":
                return await self.freeze(str(params["agent"]), bool(params["frozen"]))
            case "pause":
                return await self.pause(bool(params["paused"]))
            case "living":
                return await self.living()
            case "drain":
                self.sup.background(self._drained())
                return None
            case "stop_at_once":
                self.sup.background(self._open_fleet.stop_at_once("emergency stop by the operator"))
                return None
            case "stop":
                return self._stop(at_once=bool(params["at_once"]))
            case "leave":
                return self._leave(int(params["pid"]))
            case _:
                raise Refused("method", f"there is no intent {call.method!r}")
