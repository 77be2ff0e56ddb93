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
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from council_tui.runner.beats import receive
from council_tui.supervisor.channel import bind, identity
from council_tui.supervisor.slices import remove

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from council_tui.supervisor.seat import Seat


_TOLD = {"idle": "X_COUNCIL_IDLE_MS", "extend": "X_COUNCIL_EXTEND_MS"}
"""What a beat may tell, in milliseconds: for how long nothing has moved, how long the next one may take."""
_DIGITS = 15
_PAUSE = 0.05


def _number(fields: dict[str, str], key: str) -> int:
    """A field of a datagram as a number; 0 for what is none, or too long to be meant."""
    text = fields.get(key, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else 0


class _Ear:
    """One socket and the thread that reads it."""

    def __init__(self, listening: socket.socket, take: Callable[[dict[str, str]], None]) -> None:
        self.socket = listening
        self._take = take
        self._over = False
        self._thread = threading.Thread(target=self._receive, name="beats", daemon=True)

    def start(self) -> None:
        """Begin to read. Raises RuntimeError where no thread can be started."""
        self._thread.start()

    def _receive(self) -> None:
        while True:
            try:
                fields = receive(self.socket)
            except OSError:
                # A machine without memory for it; what else there is waits.
                time.sleep(_PAUSE)
                continue
            if self._over:
                return
            self._take(fields or {})

    def stop(self) -> None:
        """Read nothing more."""
        self._over = True
        # Its name may be gone, so no datagram could wake the thread; this does.
        self.socket.shutdown(socket.SHUT_RD)
        self._thread.join()
        self.socket.close()


class BeatListener:
    """Receives beats and hands each to the seat whose token it carries."""

    def __init__(
        self, path: Path, find: Callable[[str], Seat | None], heard: Callable[[Seat, int, dict[str, float]], None]
    ) -> None:
        self._path = path
        self._find = find
        self._heard = heard
        self._ear: _Ear | None = None
        self._bound: tuple[int, int] | None = None
        self._lock = threading.Lock()
        self._arrived: list[tuple[Seat, int, int, dict[str, float]]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self.refused = 0
        """Datagrams that carried no run of ours, or a wrong token."""

    def start(self) -> None:
        """Bind the socket, 0600, and listen. Raises OSError, and RuntimeError where no thread can be started."""
        self._loop = asyncio.get_running_loop()
        ear = _Ear(bind(self._path, socket.SOCK_DGRAM), self._take)
        try:
            ear.start()
        except RuntimeError:
            ear.socket.close()
            raise
        self._ear, self._bound = ear, identity(self._path)

    def keep(self) -> None:
        """Bind anew if the socket's file is gone or is another one."""
        before = self._ear
        if before is None or identity(self._path) == self._bound:
            return
        # Where nothing can be had for it now the next look is near.
        with suppress(OSError, RuntimeError):
            self.start()
            before.stop()

    def _take(self, fields: dict[str, str]) -> None:
        seat = self._find(fields.get("X_COUNCIL_RUN", ""))
        token = fields.get("X_COUNCIL_TOKEN", "")
        if seat is None or not hmac.compare_digest(seat.beat_token.encode(), token.encode()):
            self.refused += 1
            return
        used, late = _number(fields, "X_COUNCIL_SLICE"), _number(fields, "X_COUNCIL_LATE_MS")
        told = {name: _number(fields, key) / 1000 for name, key in _TOLD.items() if key in fields}
        with self._lock:
            first = not self._arrived
            self._arrived.append((seat, late, used, told))
        if first and self._loop is not None:
            # A loop that is closing judges nobody any more.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self.drain)

    def drain(self) -> None:
        """Hand on what has arrived."""
        with self._lock:
            arrived, self._arrived = self._arrived, []
        for seat, late, used, told in arrived:
            seat.slice_used = used
            self._heard(seat, late, told)

    def close(self) -> None:
        """Stop listening and remove the socket."""
        if self._ear is not None:
            self._ear.stop()
            self._ear = None
            remove(self._path)
