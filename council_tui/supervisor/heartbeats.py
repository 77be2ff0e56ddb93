"""Where beats arrive: one datagram socket for the whole fleet, drained before anyone is judged."""

from __future__ import annotations

import asyncio
import hmac
import os
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

from council_tui.runner.beats import DRAIN, receive

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from council_tui.supervisor.seat import Seat


class BeatListener:
    """Receives beats and hands each to the seat whose token it carries."""

    def __init__(self, path: Path, find: Callable[[str], Seat | None], heard: Callable[[Seat, int], None]) -> None:
        self._path = path
        self._find = find
        self._heard = heard
        self._socket: socket.socket | None = None
        self.refused = 0
        """Datagrams that carried no run of ours, or a wrong token."""

    def start(self) -> None:
        """Bind the socket, 0600, and listen."""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        with suppress(FileNotFoundError):
            self._path.unlink()
        previous = os.umask(0o177)
        try:
            self._socket.bind(str(self._path))
        finally:
            os.umask(previous)
        asyncio.get_running_loop().add_reader(self._socket, self.drain, DRAIN)

    def drain(self, at_most: int = 100_000) -> None:
        """Take what has arrived."""
        if self._socket is None:
            return
        for _ in range(at_most):
            fields = receive(self._socket)
            if fields is None:
                return
            self._take(fields)

    def _take(self, fields: dict[str, str]) -> None:
        seat = self._find(fields.get("X_COUNCIL_RUN", ""))
        token = fields.get("X_COUNCIL_TOKEN", "")
        if seat is None or not hmac.compare_digest(seat.beat_token.encode(), token.encode()):
            self.refused += 1
            return
        used = fields.get("X_COUNCIL_SLICE", "")
        if used.isdigit():
            seat.slice_used = int(used)
        late = fields.get("X_COUNCIL_LATE_MS", "")
        self._heard(seat, int(late) if late.isdigit() else 0)

    def close(self) -> None:
        """Stop listening and remove the socket."""
        if self._socket is None:
            return
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()
        self._socket = None
        with suppress(FileNotFoundError):
            self._path.unlink()
