"""Whether a body gets on with its work, seen from outside: what it prints, keeps, starts and says.

A heartbeat only proves that somebody is there; this tells one who works from one who hangs.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

LOOK_SECONDS = 5.0
"""Between two looks at a body's processes, which cost more than all else here."""


class Progress:
    """Remembers when a body last moved. Seconds of the clock that is passed in.

    `seen`: what costs nothing to look at (bytes printed, bytes kept); `tree`: its processes.
    """

    def __init__(self, clock: Callable[[], float], seen: Callable[[], Hashable], tree: Callable[[], Hashable]) -> None:
        self._clock, self._seen, self._tree = clock, seen, tree
        self._moved = self._looked = clock()
        self._known, self._processes = seen(), tree()

    def moved(self, busy: float = 0.0) -> None:
        """It has moved, and may be busy for so many seconds with what cannot be seen."""
        self._moved = max(self._moved, self._clock() + busy)

    def idle(self) -> float:
        """Seconds since it last moved; a look at it too."""
        now, seen = self._clock(), self._seen()
        if seen != self._known:
            self._known = seen
            self.moved()
        elif now - self._looked >= LOOK_SECONDS:
            self._looked = now
            # Where nothing can be looked at nothing was seen to move, and the beat goes out all the same.
            with suppress(OSError):
                processes = self._tree()
                if processes != self._processes:
                    self._processes = processes
                    self.moved()
        return max(0.0, now - self._moved)
