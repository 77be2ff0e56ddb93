"""Keys that are typed while a display is drawn are not echoed into it."""

from __future__ import annotations

import contextlib
import os
import termios
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_LFLAG = 3


@contextlib.contextmanager
def quiet_keys(fd: int) -> Iterator[None]:
    """Turn the terminal's echo off, and back on at the end; a job in the background leaves it alone."""
    try:
        # A background job that changes the terminal is stopped for it (termios(3), SIGTTOU).
        before = termios.tcgetattr(fd) if os.tcgetpgrp(fd) == os.getpgrp() else None
    except (OSError, termios.error):
        before = None
    if before is None:
        yield
        return
    silent = termios.tcgetattr(fd)
    silent[_LFLAG] &= ~termios.ECHO
    termios.tcsetattr(fd, termios.TCSADRAIN, silent)
    try:
        yield
    finally:
        # The terminal may have gone away meanwhile.
        with contextlib.suppress(termios.error):
            termios.tcsetattr(fd, termios.TCSADRAIN, before)
