"""A gate that births have to pass: closed while this machine is short of something, looked at once a second."""

from __future__ import annotations

from abc import ABC, abstractmethod

LOOK_SECONDS = 1.0
PATIENCE_SECONDS = 600.0
"""How long a fleet without a person waits at a gate when nothing of it lives that could give something back."""


class Gate(ABC):
    """Open or closed, with a gap between the two. Seconds of one monotonic clock."""

    def __init__(self) -> None:
        self._looked: float | None = None
        self._since: float | None = None
        self.reason = ""
        """Why nothing is born; empty while the gate is open."""

    @abstractmethod
    def _judge(self) -> str:
        """The reason as the machine stands now, or nothing; `self.reason` is still the one before."""

    def look(self, now: float) -> str:
        """Look at the machine if the last look is a second old; the reason."""
        if self._looked is None or now - self._looked >= LOOK_SECONDS:
            self._looked = now
            self.reason = self._judge()
            self._since = (self._since if self._since is not None else now) if self.reason else None
        return self.reason

    def closed_for(self, now: float) -> float:
        """Seconds since it closed; 0 while it is open."""
        return 0.0 if self._since is None else now - self._since
