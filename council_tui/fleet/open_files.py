"""The gate of open files: each agent takes one of this council's, and the last ones are for ending them in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from council_tui.fleet.gate import Gate
from council_tui.hosts import descriptors

if TYPE_CHECKING:
    from collections.abc import Callable

KEPT_BACK = 48
"""Files that are left to whoever has to be looked at, cleared away or let in."""
SHARE = 4
"""Where there are few at all no more than one in so many is kept back."""
OPENS_ABOVE = 1.25
"""Of what is kept back, so that the gate does not flap around it."""


class OpenFilesGate(Gate):
    """Closed while this process has few descriptors left."""

    def __init__(
        self, limit: Callable[[], int | None] = descriptors.limit, used: Callable[[], int] = descriptors.used
    ) -> None:
        super().__init__()
        self._limit = limit
        self._used = used

    def _judge(self) -> str:
        limit = self._limit()
        try:
            used = self._used()
        except OSError as error:
            return f"this council can open no file: {error.strerror}"
        if limit is None:
            return ""
        kept = min(KEPT_BACK, limit // SHARE) * (OPENS_ABOVE if self.reason else 1.0)
        if limit - used >= kept:
            return ""
        return f"{used:,} of the {limit:,} files that this council may have open are open (ulimit -Hn)"
