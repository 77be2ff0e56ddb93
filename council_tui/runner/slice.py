"""The memory slice as its own agent sees it: whether it can be used at all, and whether something came into it."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
from pathlib import Path

from council_tui.domain.errors import Refused

FIELD = "memory_slice.shared_memory_path"


def slice_problems(where: str) -> list[Refused]:
    """Why this agent cannot use the slice at `where`: it must be there, its own, closed to others, writable."""
    path = Path(where)
    try:
        facts = path.stat(follow_symlinks=False)
    except OSError as error:
        return [Refused(FIELD, f"{path} cannot be used: {error.strerror}")]
    if facts.st_mode & 0o077 or facts.st_uid != os.getuid():
        return [Refused(FIELD, f"{path} is open to others")]
    if not os.access(path / "data", os.W_OK):
        return [Refused(FIELD, f"{path} cannot be written")]
    return []


class Arrivals:
    """Tells when something is put into a directory (fcntl(2), F_NOTIFY): an empty one need not be looked at.

    One for each process: the kernel tells by SIGIO. Unlike inotify it takes no instance, of which a user has few.
    """

    def __init__(self, path: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()
        # Before it is asked for: nobody survives the signal without a handler.
        self._loop.add_signal_handler(signal.SIGIO, self._event.set)
        self._fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.fcntl(self._fd, fcntl.F_NOTIFY, fcntl.DN_CREATE | fcntl.DN_MULTISHOT)
        except OSError:
            os.close(self._fd)
            raise

    async def wait(self, at_most: float) -> None:
        """Until something came since the last call, or so many seconds are over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(at_most):
                await self._event.wait()
        self._event.clear()

    def close(self) -> None:
        """Hear no more. The handler stays: a signal may be on its way."""
        os.close(self._fd)


def arrivals(path: str) -> Arrivals | None:
    """Hear of what comes into a directory; None where the kernel does not tell."""
    try:
        return Arrivals(path)
    except OSError:
        return None
