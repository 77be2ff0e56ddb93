"""How an agent ends: the intent is journalled, SIGTERM, grace, SIGKILL, the death is proved, and only then
the card is told, the slice cleared and the authority revoked. Leaves first; twice is the same as once.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from council_tui.board.board import Draft
from council_tui.domain.events import EventKind
from council_tui.domain.hierarchy import PARENTS
from council_tui.domain.lifecycle import Outcome, Signal
from council_tui.runner import guard
from council_tui.runner.channel import PeerGone, RemoteRefusal
from council_tui.supervisor import slices
from council_tui.supervisor.sweep import Sweep

if TYPE_CHECKING:
    from council_tui.supervisor.seat import Seat
    from council_tui.supervisor.supervisor import Supervisor

ANSWER_SLACK = 2.0
"""Seconds beyond its grace that a runner has to end its own tree before it is ended with it."""
PROVE_PASSES = 100
PROVE_PAUSE = 0.05
RETRY_SECONDS = 120.0
"""Between two attempts at a process that will not die; the card keeps its claim until then."""


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
        """Carry out one reap, from the intent to the proof."""
        tree = guard.descendants(seat.pid) if seat.pid is not None else []
        self._sup.log(seat, EventKind.REAP_STARTED, {"cause": cause, "pids": [process.pid for process in tree]})
        below = self._sup.children_of(seat.agent)
        reason = f"its parent {seat.label} is being reaped: {cause}" if cause else f"its parent {seat.label} is gone"
        for child in below:
            # Each on its own: what goes wrong with one must not keep the others alive.
            self._sup.background(self._sup.signal(child, Signal.PARENT_GONE, {"reason": reason}))
        said = await self._end_runner(seat)
        await self._prove(seat)
        for child in below:
            await child.ended.wait()
        status, number = seat.body_status = self._how(seat, said)
        self._sup.log(seat, EventKind.REAPED, {"exit_status": status, "signal": number, "survivors": []})
        await self._sup.signal(seat, Signal.DEAD)

    async def _end_runner(self, seat: Seat) -> dict[str, Any]:
        """Ask the runner to end its tree; end the runner too when it does not answer. What it said."""
        said: dict[str, Any] = {}
        if seat.exited.is_set():
            return said
        grace = 0.0 if seat.state.outcome and seat.slice_used > seat.context.memory_slice.limit_bytes else None
        wait = seat.state.timing.grace if grace is None else grace
        self._sup.log(seat, EventKind.SIGNALLED, {"signal": "SIGTERM" if wait else "SIGKILL", "grace_seconds": wait})
        if seat.peer is not None:
            with suppress(TimeoutError, PeerGone, RemoteRefusal):
                said = await seat.peer.call("reap", {"grace": wait}, wait + ANSWER_SLACK)
        if said and not said.get("survivors"):
            with suppress(TimeoutError):
                async with asyncio.timeout(ANSWER_SLACK):
                    await seat.exited.wait()
        if not seat.exited.is_set() and seat.pid is not None:
            self._sup.log(seat, EventKind.SIGNALLED, {"signal": "SIGKILL", "pids": [seat.pid]})
            guard.send(guard.Process(seat.pid, 0, "?", seat.start_time, 0), signal.SIGKILL)
        return said

    async def _prove(self, seat: Seat) -> None:
        """Wait until the host says that nothing is left, then look for the marker; keep at it until it is so."""
        await seat.exited.wait()
        await seat.clean.wait()
        while True:
            for _ in range(PROVE_PASSES):
                left = await self._sweep.living(seat.run)
                if not left:
                    return
                for process in left:
                    guard.send(process, signal.SIGKILL)
                await asyncio.sleep(PROVE_PAUSE)
            self._sup.log(seat, EventKind.REAPED, {"survivors": [p.pid for p in left]})
            await asyncio.sleep(RETRY_SECONDS)

    @staticmethod
    def _how(seat: Seat, said: dict[str, Any]) -> tuple[int | None, int | None]:
        """(exit status, signal) of the body if anyone saw it, else of its runner."""
        if said.get("exit_status") is not None or said.get("signal") is not None:
            return said.get("exit_status"), said.get("signal")
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
            await self._clear(seat)
            try:
                if sup.ledger.lineage.agent(seat.agent) is not None:
                    await self._close_authority(seat, outcome)
            finally:
                await sup.board.append(self._last_word(seat, outcome))
        finally:
            # It is dead whatever went wrong since: nobody may wait for it any longer.
            try:
                self._tell(seat, outcome)
            finally:
                sup.forget(seat)
        sup.on_settled(seat)

    async def _clear(self, seat: Seat) -> None:
        """Remove what the run had on disk; in a thread, for an agent may have left very many files."""
        # A runner that was killed could not take its body's socket with it.
        paths = (seat.slice, str(self._sup.home.bodies / seat.run))
        left = await asyncio.to_thread(lambda: [path for path in paths if not slices.remove(path)])
        self._sup.uncleared.update(left)
        self._sup.log(seat, EventKind.SLICE_CLEARED, {"path": seat.slice, "cleared": seat.slice not in left})

    def _tell(self, seat: Seat, outcome: Outcome) -> None:
        """A parent that waits for its microshark hears how it ended."""
        parent = self._sup.by_agent.get(seat.parent)
        if parent is None or parent.peer is None or seat.kind != "microshark" or self._sup.will_retry(seat, outcome):
            return
        state = str(outcome.fail or outcome.block or "done")
        findings = len(seat.result.get("findings", ()))
        parent.peer.notify("settled", {"order": seat.order.id, "state": state, "findings": findings})

    async def _close_authority(self, seat: Seat, outcome: Outcome) -> None:
        """What we saw from outside, and the end of the agent's authority at this place in the log."""
        exit_status, number = seat.body_status
        wall = int((self._sup.clock() - seat.opened) * 1000)
        await self._sup.sign(
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
        entry = await self._sup.sign("revocation", {"of": seat.agent, "reason": reason[:1000]})
        self._sup.log(seat, EventKind.REVOKED, {"entry": entry.index})

    @staticmethod
    def _last_word(seat: Seat, outcome: Outcome) -> Draft:
        data: dict[str, Any] = {"reason": outcome.reason}
        kind = EventKind.CARD_DONE
        if outcome.fail is not None:
            kind, data["fail"] = EventKind.CARD_FAILED, str(outcome.fail)
        elif outcome.block is not None:
            kind, data["block"] = EventKind.CARD_BLOCKED, str(outcome.block)
        return Draft(kind, seat.agent, seat.card, seat.run, data)
