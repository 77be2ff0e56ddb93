"""Tells whoever started this process how far it is: systemd, or a council that waits for it (sd_notify(3))."""

from __future__ import annotations

import contextlib
import os
import socket

from council_tui.domain.wire import notify

VARIABLE = "NOTIFY_SOCKET"
WATCHDOG_VARIABLE = "WATCHDOG_USEC"
WAITING = "waiting for the home"
"""STATUS of a process that waits until the one that runs the council has left."""


class Readiness:
    """The socket that the environment names, taken out of it: nothing that is started later shall speak there."""

    def __init__(self) -> None:
        self._path = os.environ.pop(VARIABLE, "")
        every = os.environ.pop(WATCHDOG_VARIABLE, "")
        self.watchdog = int(every) / 2_000_000 if every.isdecimal() and int(every) > 0 else None
        """Seconds between two signs of life that are asked for; None when nobody asks."""

    def tell(self, **fields: str | int) -> None:
        """Send the fields; nothing where nobody listens."""
        if not self._path:
            return
        address = "\0" + self._path[1:] if self._path.startswith("@") else self._path
        kind = socket.SOCK_DGRAM | socket.SOCK_NONBLOCK
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, kind) as sender:
            sender.sendto(notify(fields), address)
