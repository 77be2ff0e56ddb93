"""What arrives without being asked for, counted: beats, nonsense, and callers that had to wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from council_tui.board.board import Draft
from council_tui.domain.events import EventKind
from council_tui.domain.lifecycle import Signal, step

if TYPE_CHECKING:
    from council_tui.supervisor.seat import Seat
    from council_tui.supervisor.supervisor import Supervisor


class Hearing:
    """Listens for one supervisor."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._sup = supervisor
        self.beats = 0
        self.strangers = 0
        """Messages refused on connections that belong to no run."""
        self.shortages = 0
        """Times that callers had to wait because a connection could not be taken."""

    def beat(self, seat: Seat, late_ms: int, told: dict[str, float]) -> None:
        """One heartbeat, and what its agent told with it."""
        now = self._sup.clock()
        self.beats += 1
        if seat.state.last_beat is not None:
            seat.note_beat(late_ms, now - seat.state.last_beat)
        before = seat.state
        seat.state, effects = step(before, Signal.BEAT, now, told)
        for effect in effects:
            if effect.kind is not None:
                self._sup.log(seat, effect.kind, effect.data)

    def bad(self, seat: Seat | None, reason: str) -> None:
        """A line that is no message, of a run or of a stranger."""
        if seat is None:
            count = self.strangers = self.strangers + 1
        else:
            count = seat.refused = seat.refused + 1
        if not _worth_telling(count):
            return
        agent, card, run = (None, None, None) if seat is None else (seat.agent, seat.card, seat.run)
        self._sup.board.append(Draft(EventKind.MESSAGE_REFUSED, agent, card, run, {"reason": reason, "count": count}))

    def shortage(self, reason: str) -> None:
        """A caller had to wait."""
        self.shortages += 1
        if _worth_telling(self.shortages):
            data = {"reason": reason, "count": self.shortages}
            self._sup.board.append(Draft(EventKind.CALLERS_WAIT, self._sup.hermes, data=data))


def _worth_telling(count: int) -> bool:
    """Whether the journal hears of it: of what comes in floods at 1, 10, 100, ... only."""
    return str(count).rstrip("0") == "1"
