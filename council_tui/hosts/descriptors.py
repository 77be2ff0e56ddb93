"""How many files this process may have open: one for each agent and some more, so a council takes all it can get.

What it starts is to find the limit that the council was started with: a program that watches its descriptors
by select(2) breaks when one of them is above 1,023, which is why that limit is low (setrlimit(2), RLIMIT_NOFILE).
"""

from __future__ import annotations

import errno
import os
import resource
from typing import TYPE_CHECKING

from council_tui.domain.errors import CouncilError
from council_tui.runner.reserve import reserve

if TYPE_CHECKING:
    from collections.abc import Iterable

GIVEN = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
"""The soft limit with which this process was started."""
SPARE = 100
"""Files that the council itself may need beside one for each agent."""
TO_START = 40
"""Files without which no council comes up."""


def make_room() -> None:
    """Widen the limit. Raises `CouncilError` where even then a council could not be opened."""
    widen()
    try:
        need(TO_START)
    except OSError as error:
        bound = (
            f"this process may have {limit():,} open (ulimit -Hn)" if error.errno == errno.EMFILE else error.strerror
        )
        raise CouncilError(
            f"a council needs {TO_START} open files to start, and there are fewer left: {bound}; "
            "raise that limit, or end something, then start again"
        ) from None


def widen() -> None:
    """Let this process have as many files open as anybody lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def as_given(argv: Iterable[str]) -> list[str]:
    """A command that runs this one under the limit with which we were started."""
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] == GIVEN:
        return list(argv)
    # Not set between fork and exec: that takes Python code in a child that has only one of our threads.
    return ["/bin/sh", "-c", 'ulimit -Sn "$0" && exec "$@"', str(GIVEN), *argv]


def limit() -> int | None:
    """How many files this process may have open now; None for any number."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def most() -> int | None:
    """How many files a council may have open here, once it has widened its limit; None for any number."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return None if hard == resource.RLIM_INFINITY else hard


def room() -> int | None:
    """How many agents may be alive at once as far as open files go; None for any number."""
    files = most()
    return None if files is None else max(0, files - SPARE)


def need(count: int) -> None:
    """Raises OSError where so many files cannot be opened now."""
    opened: list[int] = []
    try:
        while len(opened) < count:
            opened.append(os.open("/", os.O_PATH | os.O_CLOEXEC))
    finally:
        for fd in opened:
            os.close(fd)


def used() -> int:
    """How many files this process has open. Raises OSError where it cannot even look."""
    return len(reserve.use(lambda: os.listdir("/proc/self/fd")))
