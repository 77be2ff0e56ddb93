"""Heartbeats: sd_notify datagrams to the supervisor, and the socket on which a body may send its own."""

from __future__ import annotations

import array
import asyncio
import os
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

from council_tui.domain.wire import MAX_DATAGRAM, notify, parse_notify

if TYPE_CHECKING:
    from collections.abc import Callable

DRAIN = 64
"""Datagrams taken at one wake-up; the kernel queues few, so take what is there."""


STATUS_SECONDS = 1.0
"""Between two lines of status of one body that are handed on."""
EXTEND = "EXTEND_TIMEOUT_USEC"
_BEATS = ("WATCHDOG", EXTEND)
_MOST_SECONDS = 30 * 86400
"""That a body may ask for; its contract gives it less."""
_TRIES = 5
_AGAIN_SECONDS = 0.02


class BeatSender:
    """Sends beats without ever blocking: one that finds the queue full is tried again a little later."""

    def __init__(self, path: str, run: str, token: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._path = path
        self._run = run
        self.token = token
        self._seq = 0
        self._loop = asyncio.get_running_loop()
        self.slice_used = 0
        self.idle: Callable[[], float] | None = None
        """For how many seconds the body has not moved; None while there is none to watch."""
        self.last = self._loop.time()
        """When the last beat was due to go out, on this loop's clock; before the first, when it began."""

    def beat(self, late_ms: int = 0, extend: float = 0.0) -> None:
        """One beat. `late_ms`: how late this process got to it; `extend`: seconds that the next one may take."""
        self._seq += 1
        self.last = self._loop.time()
        fields: dict[str, str | int] = {
            "WATCHDOG": 1,
            "X_COUNCIL_RUN": self._run,
            "X_COUNCIL_TOKEN": self.token,
            "X_COUNCIL_SEQ": self._seq,
            "X_COUNCIL_LATE_MS": late_ms,
            "X_COUNCIL_SLICE": self.slice_used,
        }
        if self.idle is not None:
            fields["X_COUNCIL_IDLE_MS"] = int(self.idle() * 1000)
        if extend:
            fields["X_COUNCIL_EXTEND_MS"] = int(extend * 1000)
        self._send(notify(fields), _TRIES)

    def _send(self, datagram: bytes, tries: int) -> None:
        try:
            self._socket.sendto(datagram, self._path)
        except BlockingIOError:
            if tries > 1:
                self._loop.call_later(_AGAIN_SECONDS, self._send, datagram, tries - 1)
        except OSError:
            # Nobody listens: the stream tells us when that is for good.
            return

    def every(self, interval: float) -> None:
        """Beat now and at this interval, in seconds, from now on."""
        self._next(self._loop.time(), interval)

    def _next(self, due: float, interval: float) -> None:
        now = self._loop.time()
        self.beat(max(0, int((now - due) * 1000)))
        # A beat that could not be sent in time is not sent late in a burst.
        following = due + interval if due + interval > now else now + interval
        self._loop.call_at(following, self._next, following, interval)


def receive(sock: socket.socket) -> dict[str, str] | None:
    """One datagram's fields, or None when there is none; descriptors that come along are closed at once."""
    fds = array.array("i")
    try:
        data, ancillary, _, _ = sock.recvmsg(MAX_DATAGRAM, socket.CMSG_SPACE(16 * fds.itemsize))
    except (BlockingIOError, InterruptedError):
        return None
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            # `systemd-notify` waits on a descriptor (BARRIER=1) until we close it.
            fds.frombytes(payload[: len(payload) - len(payload) % fds.itemsize])
    for fd in fds:
        os.close(fd)
    return parse_notify(data)


def asked_seconds(fields: dict[str, str]) -> float:
    """For how many seconds a body asks; 0 when it does not."""
    text = fields.get(EXTEND, "")
    return min(int(text) / 1e6, _MOST_SECONDS) if text.isascii() and text.isdigit() and len(text) < 20 else 0.0


class BodyBeats:
    """The NOTIFY_SOCKET of one body, which may send as much as it likes: it is heard as often as anyone needs.

    A beat is handed on with each look, and the time that it asks for (EXTEND_TIMEOUT_USEC, sd_notify(3)); of
    lines of status only the newest, one a second.
    """

    def __init__(self, path: str, heard: Callable[[dict[str, str]], None]) -> None:
        self._path = path
        self._heard = heard
        self._loop = asyncio.get_running_loop()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._status: str | None = None
        """The newest line that waits to be handed on."""
        self._timers: dict[str, asyncio.TimerHandle] = {}
        with suppress(FileNotFoundError):
            os.unlink(path)
        self._socket.bind(path)
        self._listen()

    def _listen(self) -> None:
        self._timers.pop("pause", None)
        self._loop.add_reader(self._socket, self._ready)

    def _ready(self) -> None:
        beat: dict[str, str] = {}
        for _ in range(DRAIN):
            fields = receive(self._socket)
            if fields is None:
                break
            beat |= {key: fields[key] for key in _BEATS if key in fields}
            self._status = fields.get("STATUS") or self._status
        else:
            # A flood: what is not read stays in the kernel's queue, and that is short.
            self._loop.remove_reader(self._socket)
            self._timers["pause"] = self._loop.call_later(_AGAIN_SECONDS, self._listen)
        if beat:
            self._heard(beat)
        if self._status is not None and "status" not in self._timers:
            self._tell()

    def _tell(self) -> None:
        self._timers.pop("status", None)
        if self._status is not None:
            self._heard({"STATUS": self._status})
            self._status = None
            self._timers["status"] = self._loop.call_later(STATUS_SECONDS, self._tell)

    def close(self) -> None:
        """Hand on the last line, stop listening and remove the socket."""
        self._ready()
        if self._status is not None:
            self._heard({"STATUS": self._status})
        for timer in self._timers.values():
            timer.cancel()
        self._loop.remove_reader(self._socket)
        self._socket.close()
        # Whatever the body put in its place is the supervisor's to clear.
        with suppress(OSError):
            os.unlink(self._path)
