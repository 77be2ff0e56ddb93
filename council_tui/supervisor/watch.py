"""What the host tells of runners: which ended and how, and that nothing they guarded is left."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

from council_tui.domain.events import EventKind
from council_tui.domain.lifecycle import Phase, Signal
from council_tui.domain.text import safe
from council_tui.runner import guard

if TYPE_CHECKING:
    from council_tui.supervisor.seat import Seat
    from council_tui.supervisor.supervisor import Supervisor


LAST_WORDS_SECONDS = 1.0
"""That what a runner said before it ended may take to be heard."""
NOT_BEGUN = "the supervisor was gone before its work had begun"
"""Why a run has ended that another supervisor had not let begin."""


def facts_of(status: int | None) -> dict[str, Any]:
    """exit_status and signal of a raw wait status; neither for a runner that nobody could wait for."""
    if status is None:
        return {"exit_status": None, "signal": None}
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
    return {"exit_status": code, "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None}


def how(status: int | None) -> str:
    """The same for a sentence."""
    facts = facts_of(status)
    number, code = facts["signal"], facts["exit_status"]
    return f"with signal {number}" if number is not None else f"with exit status {code}"


class Watch:
    """Listens to the host for one supervisor."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._sup = supervisor
        supervisor.host.on_exit = self._gone
        supervisor.host.on_clean = self._clean

    def belongs_to_an_agent(self, pid: int) -> bool:
        """Whether a process is one of an agent's."""
        # An agent may clear its marker, and one that lost its guard hangs elsewhere: either gives it away.
        nursery = self._sup.host.pid
        return guard.marker_of(pid) in self._sup.seats or (nursery is not None and guard.is_below(pid, nursery))

    def _gone(self, pid: int, status: int | None) -> None:
        seat = self._sup.by_pid.get(pid)
        if seat is None:
            return
        seat.runner_status = status
        seat.exited.set()
        facts = facts_of(status)
        reason = f"its runner ended {how(status)} before it had reported"
        if seat.refusal and facts["exit_status"]:
            reason = f"its runner left, for it was refused: {safe(seat.refusal, 300)}"
        self._sup.background(self._after(seat, reason, facts))

    async def _after(self, seat: Seat, reason: str, data: dict[str, Any]) -> None:
        await seat.started.wait()
        if seat.peer is not None:
            # What it said last comes first.
            await asyncio.wait({seat.peer.lost}, timeout=LAST_WORDS_SECONDS)
        self._sup.log(seat, EventKind.AGENT_ENDED, data)
        if seat.state.phase is Phase.CLOSING:
            await seat.clean.wait()
            # Reaped meanwhile: then the reaper has the last word.
            if seat.state.phase is Phase.CLOSING:
                await self._sup.signal(seat, Signal.DEAD)
        else:
            seat.again = seat.not_begun
            await self._sup.signal(seat, Signal.PROCESS_GONE, {"reason": NOT_BEGUN if seat.again else reason})

    def _clean(self, pid: int) -> None:
        seat = self._sup.by_pid.get(pid)
        if seat is not None:
            seat.clean.set()
