"""Why agents that could be born are not: each cause is journalled when it begins and when it is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from council_tui.board.board import Draft
from council_tui.domain.events import EventKind
from council_tui.fleet.gate import PATIENCE_SECONDS, Gate
from council_tui.fleet.memory import MemoryGate
from council_tui.fleet.open_files import OpenFilesGate

if TYPE_CHECKING:
    from council_tui.fleet.plan import Limits
    from council_tui.supervisor.supervisor import Supervisor


class Holds:
    """The causes of one fleet, by name: `memory`, `descriptors`, `births`."""

    def __init__(self, supervisor: Supervisor, limits: Limits) -> None:
        self._sup = supervisor
        self._gates: dict[str, Gate] = {
            "memory": MemoryGate(limits.memory_floor_mb, limits.memory_pressure),
            "descriptors": OpenFilesGate(),
        }
        self._known: dict[str, tuple[float, str]] = {}

    @property
    def reason(self) -> str:
        """Why births wait, for a screen; empty while they do not."""
        return "; ".join(reason for _, reason in self._known.values())

    def machine(self) -> str:
        """Why this machine lets nothing be born now, or nothing."""
        now = self._sup.clock()
        for cause, gate in self._gates.items():
            self._note(cause, gate.look(now))
        return "; ".join(gate.reason for gate in self._gates.values() if gate.reason)

    def births(self, reason: str) -> None:
        """A limit of births keeps a card waiting, for this reason; an empty one: no card waits for that."""
        self._note("births", reason)

    def hopeless(self) -> str:
        """Why nobody should wait for the machine any more if nothing lives that could give some back, or nothing."""
        now = self._sup.clock()
        for gate in self._gates.values():
            if gate.closed_for(now) > PATIENCE_SECONDS:
                return f"after {PATIENCE_SECONDS / 60:g} min still: {gate.reason}"
        return ""

    def _note(self, cause: str, reason: str) -> None:
        now, known = self._sup.clock(), self._known.get(cause)
        if reason:
            self._known[cause] = (known[0] if known else now, reason)
            if known is None:
                self._append(EventKind.BIRTHS_HELD, {"cause": cause, "reason": reason})
        elif known is not None:
            del self._known[cause]
            self._append(EventKind.BIRTHS_GO_ON, {"cause": cause, "seconds": round(now - known[0], 1)})

    def _append(self, kind: EventKind, data: dict[str, object]) -> None:
        self._sup.board.append(Draft(kind, self._sup.hermes, data=data))
