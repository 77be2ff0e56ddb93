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
    RoomView,
    SpawnDraft,
    VerifyView,
    as_plain,
)
from council_tui.domain.errors import CouncilError, Refused
from council_tui.domain.hierarchy import PARENTS
from council_tui.domain.lifecycle import Signal
from council_tui.fleet.fleet import Fleet
from council_tui.supervisor.supervisor import Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable

    from council_tui.board.home import Home
    from council_tui.domain.events import Event
    from council_tui.domain.wire import Call
    from council_tui.fleet.outcome import Ending
    from council_tui.fleet.plan import Plan
    from council_tui.supervisor.seat import Seat


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


class Council:
    """Owns a home from `open` to `close`. Also a `CouncilDoor`."""

    def __init__(self, home: Home, options: Options | None = None) -> None:
        self.home = home
        self.options = options or Options()
        self.sup = Supervisor(home)
        self.sup.workdir = self.options.workdir or os.getcwd()
        self.fleet: Fleet | None = None
        self.pictures = Pictures(self.sup)
        self._dispatch: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Take the home and open the fleet's offices. Raises `CouncilError`; then nothing is left behind."""
        await self.sup.open()
        try:
            await self.pictures.load()
            self.sup.board.listen(self.pictures.heard)
            self.sup.on_operator = self._operate
            self.fleet = Fleet(self.sup, self.options.plan, self.options.timeout)
            self.pictures.fleet = self.fleet
            self.pictures.note = self.options.note
            await self.fleet.start()
        except BaseException:
            await self.sup.close()
            raise

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Hear every event as it is decided."""
        self.sup.board.listen(listener)

    @property
    def _open_fleet(self) -> Fleet:
        if self.fleet is None:
            raise Refused("council", "it is not open")
        return self.fleet

    async def run(self) -> Ending:
        """Dispatch the plan to its end; what went wrong inside is told by the ending, not raised."""
        fleet = self._open_fleet
        fault = ""
        try:
            await fleet.run()
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

    async def close(self) -> None:
        """End what is left, in order, and give the home back."""
        await self._stop_dispatch()
        await self.sup.close()

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
        await self.sup.signal(seat, Signal.CANCELLED, {"reason": "reaped by the operator"})

    async def freeze(self, agent: str, frozen: bool) -> None:
        """Stop an agent and all below it where they stand, or let them go on; their clocks stand still meanwhile."""
        queue = [self._living(agent)]
        if queue[0].kind in PARENTS:
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

    async def drain(self) -> QuitOutcome:
        """Reap all, in order, and say what ended."""
        ended = await self._open_fleet.drain("the operator closed the council")
        left = await self.living()
        return QuitOutcome(ended, left)

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
            case _:
                raise Refused("method", f"there is no intent {call.method!r}")
