"""How an agent ends: the intent is journalled, SIGTERM, grace, SIGKILL, the death is proved, and only then
the card is told, the slice cleared and the authority revoked. Leaves first; twice is the same as once.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

from council_tui.board.board import Draft
from council_tui.domain.card import OPEN_STATES, BlockKind
from council_tui.domain.events import EventKind
from council_tui.domain.hierarchy import PARENTS
from council_tui.domain.lifecycle import Outcome, Signal
from council_tui.domain.text import safe
from council_tui.runner import guard
from council_tui.runner.channel import PeerGone, RemoteRefusal
from council_tui.runner.reserve import SHORT
from council_tui.supervisor.sweep import Sweep
from council_tui.supervisor.unkillable import RETRY_SECONDS, Unkillable, over

if TYPE_CHECKING:
    from council_tui.supervisor.seat import Seat
    from council_tui.supervisor.supervisor import Supervisor

ANSWER_SLACK = 2.0
"""Seconds beyond its grace that a runner has to end its own tree before it is ended with it."""
PROOF_SECONDS = 10.0
"""Seconds beyond its grace after which what is not proved dead counts as unkillable for now."""
AGAIN_SECONDS = 0.2
"""Before a reap that broke off is begun anew for the first time; each further pause is twice as long."""
TRIES_TO_WAIT_FOR = 4
"""After so many that broke off nobody waits for the next one."""
PROVE_PAUSE = 0.05
LOOK_SECONDS = 2.0
"""For finding out how what is left is called."""


class Reaper:
    """Ends seats of one supervisor."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._sup = supervisor
        self._sweep = Sweep()

    async def freeze(self, seat: Seat) -> None:
        """Stop an agent's tree where it stands; one that cannot be stopped is reaped instead."""
        await self._hold(seat, "stop")

    async def resume(self, seat: Seat) -> None:
        """Let a stopped tree go on; one that cannot is reaped instead."""
        await self._hold(seat, "continue")

    async def _hold(self, seat: Seat, method: str) -> None:
        if seat.peer is None:
            return
        try:
            await seat.peer.call(method, {}, ANSWER_SLACK)
        except (TimeoutError, PeerGone, RemoteRefusal):
            await self._sup.signal(seat, Signal.CANCELLED, {"reason": f"its runner did not {method} it"})

    async def reap(self, seat: Seat, cause: str) -> None:
        """Carry out one reap, from the intent to the proof; one that breaks off is begun anew until it is through."""
        for tries in count(1):
            try:
                await self._reap(seat, cause, first=tries == 1)
            except Exception as error:
                if seat.ended.is_set():
                    raise
                if not (isinstance(error, OSError) and error.errno in SHORT):
                    self._sup.heard_fault(error)
                await self._rest(seat, tries, error)
            else:
                return

    async def _rest(self, seat: Seat, tries: int, error: Exception) -> None:
        """Between two tries, longer each time; after a few of them nobody waits for the next one."""
        now, pause = self._sup.clock(), min(AGAIN_SECONDS * 2 ** (tries - 1), RETRY_SECONDS)
        why = f"{type(error).__name__}: {safe(str(error), 200)}"
        left = seat.unkillable = Unkillable((), now + pause, seat.clean.is_set(), why)
        if tries >= TRIES_TO_WAIT_FOR:
            self._sup.log(seat, EventKind.UNKILLABLE, {"pids": [], "reason": left.reason(now), "next_seconds": pause})
            seat.stuck.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await left.again.wait()
        seat.stuck.clear()
        seat.unkillable = None

    async def _reap(self, seat: Seat, cause: str, *, first: bool) -> None:
        if first:
            self._begin(seat, cause)
        below = self._sup.children_of(seat.agent)
        reason = f"its parent {seat.label} is being reaped: {cause}" if cause else f"its parent {seat.label} is gone"
        for child in below:
            # Each on its own: what goes wrong with one must not keep the others alive.
            self._sup.background(self._sup.signal(child, Signal.PARENT_GONE, {"reason": reason}))
        await self._end_runner(seat)
        await self._prove(seat)
        for child in below:
            if not await over(child):
                seat.stuck.set()
                await child.ended.wait()
        status, number = seat.body_status = self._how(seat)
        self._sup.log(seat, EventKind.REAPED, {"exit_status": status, "signal": number, "survivors": []})
        await self._sup.signal(seat, Signal.DEAD)

    def _begin(self, seat: Seat, cause: str) -> None:
        tree: list[guard.Process] = []
        # Whom it will meet is for the journal: who cannot look at them now can still end them.
        with suppress(OSError):
            tree = guard.descendants(seat.pid) if seat.pid is not None else []
        decided = (seat.state.outcome or Outcome()).as_data()
        pids = [process.pid for process in tree]
        self._sup.log(seat, EventKind.REAP_STARTED, {"cause": cause, "outcome": decided, "pids": pids})

    async def _end_runner(self, seat: Seat) -> None:
        """Ask the runner to end its tree; end the runner too when it does not answer."""
        said: dict[str, Any] = {}
        if seat.exited.is_set():
            return
        wait = 0.0 if seat.breached else seat.state.timing.grace
        self._sup.log(seat, EventKind.SIGNALLED, {"signal": "SIGTERM" if wait else "SIGKILL", "grace_seconds": wait})
        if seat.peer is not None:
            with suppress(TimeoutError, PeerGone, RemoteRefusal):
                answer = await seat.peer.call("reap", {"grace": wait}, wait + ANSWER_SLACK)
                said = answer if isinstance(answer, dict) else {}
        if said.get("exit_status") is not None or said.get("signal") is not None:
            seat.body_status = said.get("exit_status"), said.get("signal")
        if said and not said.get("survivors"):
            with suppress(TimeoutError):
                async with asyncio.timeout(ANSWER_SLACK):
                    await seat.exited.wait()
        if not seat.exited.is_set() and seat.pid is not None:
            self._sup.log(seat, EventKind.SIGNALLED, {"signal": "SIGKILL", "pids": [seat.pid]})

    async def _prove(self, seat: Seat) -> None:
        """Until nothing is left of it: what will not die is told, shown, and tried again after a while."""
        while not await self._attempt(seat):
            now = self._sup.clock()
            left = Unkillable(await self._named(seat), now + RETRY_SECONDS, seat.clean.is_set())
            facts = {"pids": list(left.pids), "reason": left.reason(now), "next_seconds": RETRY_SECONDS}
            self._sup.log(seat, EventKind.UNKILLABLE, facts)
            seat.unkillable = left
            seat.stuck.set()
            await left.again.wait()
            seat.stuck.clear()
        seat.unkillable = None

    async def _attempt(self, seat: Seat) -> bool:
        """Wait until the host says that nothing is left, then kill what carries the marker; whether all is dead."""
        if not seat.exited.is_set() and seat.pid is not None:
            runner = guard.Process(seat.pid, 0, "?", seat.start_time, 0)
            if not guard.send(runner, signal.SIGKILL):
                self._sup.host.kill(seat.pid)
        with suppress(TimeoutError):
            async with asyncio.timeout(seat.state.timing.grace + PROOF_SECONDS):
                await seat.exited.wait()
                await seat.clean.wait()
                while left := await self._sweep.living(seat.run):
                    for process in left:
                        guard.send(process, signal.SIGKILL)
                    await asyncio.sleep(PROVE_PAUSE)
                return True
        return False

    async def _named(self, seat: Seat) -> tuple[int, ...]:
        """Pids of what is left, as far as they can be seen."""
        pids = [] if seat.exited.is_set() or seat.pid is None else [seat.pid]
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS):
                pids += [process.pid for process in await self._sweep.living(seat.run)]
        return tuple(dict.fromkeys(pids))

    def again(self, seat: Seat) -> bool:
        """Try at once again to end what would not die; whether there is anything of this kind."""
        if seat.unkillable is None:
            return False
        seat.unkillable.again.set()
        return True

    def look(self, seat: Seat) -> None:
        """Try again what would not die once its time has come, or the host has proved it dead meanwhile."""
        left = seat.unkillable
        if left is not None and (self._sup.clock() >= left.due or seat.clean.is_set() is not left.clean):
            left.again.set()

    @staticmethod
    def _how(seat: Seat) -> tuple[int | None, int | None]:
        """(exit status, signal) of the body if anyone saw it, else of its runner."""
        if seat.body_status != (None, None):
            return seat.body_status
        status = seat.runner_status
        if status is not None and os.WIFSIGNALED(status):
            return None, os.WTERMSIG(status)
        return (os.WEXITSTATUS(status) if status is not None and os.WIFEXITED(status) else None), None

    async def settle(self, seat: Seat) -> None:
        """Everything is dead: clear the slice, close the agent's authority, and tell the card and the parent."""
        sup = self._sup
        outcome = seat.state.outcome or Outcome()
        try:
            await sup.clearing.clear(seat)
            try:
                if sup.authority.ledger.lineage.agent(seat.agent) is not None:
                    await self._close_authority(seat, outcome)
            finally:
                await sup.board.append(*self._last_words(seat, outcome))
        finally:
            # It is dead whatever went wrong since: nobody may wait for it any longer.
            try:
                self._tell(seat, outcome)
            finally:
                sup.forget(seat)
        if not seat.again:
            sup.on_settled(seat)

    def _tell(self, seat: Seat, outcome: Outcome) -> None:
        """A parent that waits for its microshark hears how it ended."""
        parent = self._sup.by_agent.get(seat.parent)
        if parent is None or parent.peer is None or seat.kind != "microshark":
            return
        if seat.again or self._sup.will_retry(seat, outcome):
            return
        # A rate limit that is not waited for any longer is an end like any other.
        block = "error" if outcome.block is BlockKind.TRANSIENT else outcome.block
        state = str(outcome.fail or block or "done")
        parent.peer.notify("settled", {"order": seat.order.id, "state": state})

    async def _close_authority(self, seat: Seat, outcome: Outcome) -> None:
        """What we saw from outside, and the end of the agent's authority at this place in the log."""
        exit_status, number = seat.body_status
        wall = int((self._sup.clock() - seat.opened) * 1000)
        await self._sup.authority.sign(
            "observation",
            {
                "of": seat.agent,
                "exit_status": exit_status,
                "signal": number,
                "wall_ms": max(0, wall),
                "result": seat.result_digest or None,
            },
        )
        reason = outcome.reason or ("its fleet is over" if seat.kind in PARENTS else "its run is over")
        entry = await self._sup.authority.sign("revocation", {"of": seat.agent, "reason": reason[:1000]})
        self._sup.log(seat, EventKind.REVOKED, {"entry": entry.index})

    def _last_words(self, seat: Seat, outcome: Outcome) -> list[Draft]:
        """The end of the run, and with it, in one transaction, that its card's turn comes again."""
        card = self._sup.board.tables.cards.get(seat.card)
        seat.again = seat.again and card is not None and card.state in OPEN_STATES
        again = Draft(EventKind.CARD_READY, self._sup.hermes, seat.card, None, {"uncounted": True})
        return [self._last_word(seat, outcome), *([again] if seat.again else [])]

    @staticmethod
    def _last_word(seat: Seat, outcome: Outcome) -> Draft:
        data: dict[str, Any] = {"reason": outcome.reason}
        kind = EventKind.CARD_DONE
        if outcome.fail is not None:
            kind, data["fail"] = EventKind.CARD_FAILED, str(outcome.fail)
        elif outcome.block is not None:
            kind, data["block"] = EventKind.CARD_BLOCKED, str(outcome.block)
        return Draft(kind, seat.agent, seat.card, seat.run, data)
