"""How fast agents may be born: whoever runs away is held after a minute's worth, and it is shown."""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

MINUTE = 60.0


class Pace:
    """Remembers the births of the last minute by parent. Every time is in seconds of one monotonic clock."""

    def __init__(self) -> None:
        self._births: deque[tuple[float, str]] = deque()
        self._below: Counter[str] = Counter()

    def born(self, parent: str, now: float) -> None:
        """One more agent below this parent."""
        self._births.append((now, parent))
        self._below[parent] += 1

    def last_minute(self, now: float) -> Mapping[str, int]:
        """How many were born below each parent within the last minute."""
        while self._births and now - self._births[0][0] >= MINUTE:
            _, parent = self._births.popleft()
            self._below[parent] -= 1
            if not self._below[parent]:
                del self._below[parent]
        return self._below
