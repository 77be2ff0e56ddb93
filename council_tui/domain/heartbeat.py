"""Late, silent and orphaned, as arithmetic on a monotonic clock (protocols.md 8a)."""

from __future__ import annotations

from enum import StrEnum

LATE_AFTER = 1.25
"""Intervals of silence after which a beat counts as late."""
SILENT_AFTER = 2.0
"""Intervals of silence that an agent survives: 60 s at 30 s is no orphan, 61 s is."""


class Pulse(StrEnum):
    """How an agent's heartbeat stands."""

    ALIVE = "alive"
    LATE = "late"
    SILENT = "silent"


def pulse(now: float, last_beat: float, interval: float) -> Pulse:
    """Judge a silence. All in seconds; `now` and `last_beat` from one monotonic clock."""
    silence = now - last_beat
    if silence > SILENT_AFTER * interval:
        return Pulse.SILENT
    return Pulse.LATE if silence > LATE_AFTER * interval else Pulse.ALIVE


def silent_at(last_beat: float, interval: float) -> float:
    """The moment after which silence makes an orphan."""
    return last_beat + SILENT_AFTER * interval
