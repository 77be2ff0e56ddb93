"""Alive, late, stalled, silent, dead and unknown, told apart by arithmetic on a monotonic clock (protocols.md 8a)."""

from __future__ import annotations

from enum import StrEnum

LATE_AFTER = 1.25
"""Intervals of silence after which a beat counts as late."""
SILENT_AFTER = 2.0
"""Intervals of silence that an agent survives: 60 s at 30 s is no orphan, 61 s is."""
STALL_SECONDS = 300.0
"""Seconds without any sign of work after which an agent that beats counts as stalled, unless its contract says more."""


class Standing(StrEnum):
    """How an agent stands, as far as anyone can see."""

    ALIVE = "alive"
    LATE = "late"
    """Slow: a beat is overdue."""
    STALLED = "stalled"
    """It beats, and nothing of it moves. A warning, never a reason to end it."""
    SILENT = "silent"
    """Its processes are there and do not beat any more."""
    DEAD = "dead"
    """Its processes are gone."""
    UNKNOWN = "unknown"
    """Nobody can say; it counts as alive."""


def standing(
    silence: float | None,
    interval: float,
    *,
    idle: float | None = None,
    stall: float = STALL_SECONDS,
    gone: bool | None = False,
) -> Standing:
    """Judge an agent. All in seconds of one monotonic clock, or None for what nobody knows.

    `silence`: since its last beat; `idle`: since it last got on with its work; `stall`: how long that may be;
    `gone`: whether its processes have ended.
    """
    if gone:
        return Standing.DEAD
    if silence is None:
        return Standing.UNKNOWN
    if silence > SILENT_AFTER * interval:
        return Standing.SILENT if gone is False else Standing.UNKNOWN
    if silence > LATE_AFTER * interval:
        return Standing.LATE
    return Standing.STALLED if idle is not None and idle >= stall else Standing.ALIVE


def silent_at(last_beat: float, interval: float) -> float:
    """The moment after which silence makes an orphan."""
    return last_beat + SILENT_AFTER * interval


def promised(now: float, seconds: float, interval: float, latest: float) -> float:
    """The beat that counts for one who says that its next may take `seconds` (EXTEND_TIMEOUT_USEC, sd_notify(3)).

    Silence then makes an orphan only after that time, and after `latest`, the end of its life, at the latest.
    """
    return max(now, min(now + seconds, latest) - SILENT_AFTER * interval)
