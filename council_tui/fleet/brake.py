"""The crash-loop brake: what has failed so often in so short a time is not tried on and on."""

from __future__ import annotations

from collections import deque

CRASHES = 5
"""Failed attempts at the same thing..."""
WINDOW_SECONDS = 900.0
"""...within so many seconds close the brake."""
HOLDS = 3
"""So often it opens again by itself; then what it held is given up."""
SUSTAINED_SECONDS = 600.0
"""How long an agent has to live after its acknowledgement for its end to begin a new count."""
IN_WORDS = f"crash loop: {CRASHES} ends in {WINDOW_SECONDS / 60:g} min"


class Brake:
    """Counts failed attempts by what failed. Every time is in seconds of one monotonic clock, passed in.

    A successful start takes nothing off the count: only time does, or `sustained`.
    """

    def __init__(self) -> None:
        self._ends: dict[str, deque[float]] = {}
        self._closings: dict[str, int] = {}

    def _recent(self, what: str, now: float) -> int:
        return sum(1 for end in self._ends.get(what, ()) if now - end < WINDOW_SECONDS)

    def would_close(self, what: str, now: float) -> bool:
        """Whether one more failure at this moment closes the brake, or finds it closed."""
        return self._recent(what, now) + 1 >= CRASHES

    def failed(self, what: str, now: float) -> bool:
        """Count one failed attempt; whether the brake has closed with it."""
        was_open = not self.held(what, now)
        self._ends.setdefault(what, deque(maxlen=CRASHES)).append(now)
        closed = was_open and bool(self.held(what, now))
        if closed:
            self._closings[what] = self._closings.get(what, 0) + 1
        return closed

    def sustained(self, what: str) -> None:
        """It has been healthy for long, or has come to its end: what was before does not count any more."""
        self._ends.pop(what, None)
        self._closings.pop(what, None)

    def held(self, what: str, now: float) -> float:
        """Seconds until it may be tried again: until so few ends lie within the window that one more may follow."""
        if self._recent(what, now) < CRASHES:
            return 0.0
        return self._ends[what][0] + WINDOW_SECONDS - now

    def given_up(self, what: str) -> bool:
        """Whether the brake has closed so often that waiting is no use."""
        return self._closings.get(what, 0) >= HOLDS
