"""Where beats arrive: one datagram socket for the whole fleet, read by a thread of its own.

The kernel queues few datagrams (net.unix.max_dgram_qlen), so a socket that is only read when the loop has
time loses the beats of a large fleet. What the thread accepts waits here until the loop drains it, and it
is drained before anyone is judged.
"""

from __future__ import annotations

import asyncio
import hmac
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from council_tui.runner.beats import receive
from council_tui.supervisor.channel import bind, identity
from council_tui.supervisor.slices import remove

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
        self._thread: threading.Thread | None = None
        self._bound: tuple[int, int] | None = None
        self._lock = threading.Lock()
        self._arrived: list[tuple[Seat, int, int]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self.refused = 0
        """Datagrams that carried no run of ours, or a wrong token."""

    def start(self) -> None:
        """Bind the socket, 0600, and listen. Raises OSError."""
        self._loop = asyncio.get_running_loop()
        self._socket = bind(self._path, socket.SOCK_DGRAM)
        self._bound = identity(self._path)
        self._thread = threading.Thread(target=self._receive, args=(self._socket,), name="beats", daemon=True)
        self._thread.start()

    def keep(self) -> None:
        """Bind anew if the socket's file is gone or is another one."""
        if self._socket is not None and identity(self._path) != self._bound:
            self._stop(self._socket)
            self.start()

    def _receive(self, listening: socket.socket) -> None:
        while True:
            fields = receive(listening)
            if self._socket is not listening:
                return
            self._take(fields or {})

    def _take(self, fields: dict[str, str]) -> None:
        seat = self._find(fields.get("X_COUNCIL_RUN", ""))
        token = fields.get("X_COUNCIL_TOKEN", "")
        if seat is None or not hmac.compare_digest(seat.beat_token.encode(), token.encode()):
            self.refused += 1
            return
        used, late = fields.get("X_COUNCIL_SLICE", ""), fields.get("X_COUNCIL_LATE_MS", "")
        with self._lock:
            first = not self._arrived
            self._arrived.append((seat, int(late) if late.isdigit() else 0, int(used) if used.isdigit() else 0))
        if first and self._loop is not None:
            # A loop that is closing judges nobody any more.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self.drain)

    def drain(self) -> None:
        """Hand on what has arrived."""
        with self._lock:
            arrived, self._arrived = self._arrived, []
        for seat, late, used in arrived:
            seat.slice_used = used
            self._heard(seat, late)

    def _stop(self, listening: socket.socket) -> None:
        self._socket = None
        # Its name may be gone, so no datagram could wake the thread; this does.
        listening.shutdown(socket.SHUT_RD)
        if self._thread is not None:
            self._thread.join()
        listening.close()

    def close(self) -> None:
        """Stop listening and remove the socket."""
        if self._socket is not None:
            self._stop(self._socket)
            remove(self._path)
