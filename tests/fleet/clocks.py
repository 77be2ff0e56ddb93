"""Clocks for fleets whose time is not to be waited for."""

from __future__ import annotations

import time


class Ahead:
    """This machine's monotonic clock, and so many seconds more: a jump looks like a suspend."""

    def __init__(self) -> None:
        self.by = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.by
