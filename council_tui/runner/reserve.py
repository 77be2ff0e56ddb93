"""Descriptors kept back for the moment when no other is left: a guard must still be able to look, and to kill."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

SHORT = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""What a call fails with where this process or its machine has run out: it says nothing of what was asked about."""
KEPT = 4
_FIRST = 3
"""The numbers below are the standard streams', also when somebody has closed them."""


class Reserve:
    """A few descriptors of this process that nobody uses."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._kept: list[int] = []
        self._fill()

    def _fill(self) -> None:
        while len(self._kept) < KEPT:
            try:
                opened = os.open("/", os.O_PATH | os.O_CLOEXEC)
            except OSError:
                # Whoever holds the rest will close some; until then there are fewer.
                return
            if opened >= _FIRST:
                self._kept.append(opened)
                continue
            try:
                self._kept.append(fcntl.fcntl(opened, fcntl.F_DUPFD_CLOEXEC, _FIRST))
            finally:
                os.close(opened)

    def use(self, work: Callable[[], T]) -> T:
        """Do `work`; where it fails for want of a descriptor, again with ours given back. Raises its OSError.

        What `work` opens it has to close, or the reserve is smaller from then on.
        """
        try:
            return work()
        except OSError as error:
            if error.errno != errno.EMFILE:
                raise
        with self._lock:
            try:
                while len(self._kept) > 1:
                    os.close(self._kept.pop())
                    try:
                        return work()
                    except OSError as error:
                        # Another thread may have been quicker, or it needs more than one.
                        if error.errno != errno.EMFILE:
                            raise
                if self._kept:
                    os.close(self._kept.pop())
                return work()
            finally:
                self._fill()


reserve = Reserve()
"""That of this process."""
