"""The time that a fleet has: the minutes of its plan, and the patience of whoever started it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

BUDGET_WARNING = 0.8
"""Part of the minutes after which a person is told."""


@dataclass
class Budget:
    """Seconds and minutes of one fleet on one monotonic clock, passed in."""

    minutes: float | None
    timeout: float | None
    """Seconds."""
    began: float
    warned: bool = False
    exhausted: bool = False

    def as_json(self, elapsed: float) -> dict[str, Any]:
        """Minutes granted and used; `elapsed` in seconds."""
        return {"minutes": self.minutes, "used_minutes": round(elapsed / 60, 3), "exhausted": self.exhausted}

    def warns(self, elapsed: float) -> bool:
        """Whether now is the moment to tell that most of it is spent."""
        if self.minutes is None or self.warned or elapsed <= BUDGET_WARNING * self.minutes * 60:
            return False
        self.warned = True
        return True

    def left_to_open(self, now: float) -> float | None:
        """Seconds of the timeout that are left; None for as long as it takes."""
        return None if self.timeout is None else max(0.0, self.timeout - (now - self.began))

    def overrun(self, now: float, elapsed: float) -> tuple[str, str | None] | None:
        """(why everything ends now, the block of what waits); None while there is time.

        `elapsed`: seconds in which this process could have done something. Whoever gave a timeout waits by the
        clock: a pause of ours is no excuse before them.
        """
        if self.timeout is not None and now - self.began > self.timeout:
            return f"the fleet ran longer than --timeout {self.timeout:g}", None
        if self.minutes is not None and elapsed > self.minutes * 60:
            self.exhausted = True
            return f"the budget of {self.minutes:g} minutes is spent", "budget"
        return None
