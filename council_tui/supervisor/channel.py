"""The supervisor's socket: who may connect, and who it is."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from council_tui.domain.errors import CouncilError, Refused
from council_tui.domain.text import safe
from council_tui.runner import guard
from council_tui.runner.channel import Peer, UnknownMethod
from council_tui.runner.reserve import SHORT
from council_tui.supervisor.slices import remove

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from council_tui.domain.wire import Call
    from council_tui.supervisor.seat import Seat

    RunnerHandler = Callable[[Seat, Call], Awaitable[Any]]
    Introduction = Callable[[Peer, dict[str, Any]], Awaitable[tuple[Seat, dict[str, Any]]]]
    OperatorHandler = Callable[[Call], Awaitable[Any]]


BACKLOG = 1024
"""That may wait at the door."""
AT_ONCE = 64
"""Who are let in before everyone else has a turn of the loop."""
PAUSE_SECONDS = 0.5
"""Before anyone is let in again when there was no descriptor for somebody."""


def credentials(peer: Peer) -> tuple[int, int]:
    """(pid, uid) of the other end of a connection."""
    return guard.peer_of(peer.socket_info("socket"))


def identity(path: Path) -> tuple[int, int] | None:
    """(device, inode) of a socket's file; None when there is none."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISSOCK(found.st_mode) else None


def bind(path: Path, kind: socket.SocketKind) -> socket.socket:
    """A Unix socket of our own at `path`, 0600, in place of whatever is there. Raises OSError."""
    remove(path)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    bound = socket.socket(socket.AF_UNIX, kind)
    previous = os.umask(0o177)
    try:
        bound.bind(str(path))
    except OSError:
        bound.close()
        raise
    finally:
        os.umask(previous)
    return bound


class Channel:
    """Listens on `council.sock`. The first call decides what a connection is: a runner or an operator."""

    def __init__(
        self,
        path: Path,
        hello: Introduction,
        resume: Introduction,
        runner: RunnerHandler,
        operator: OperatorHandler,
        bad: Callable[[Seat | None, str], None],
        guarded: Callable[[int], bool],
        fault: Callable[[Exception], None],
        short: Callable[[str], None],
    ) -> None:
        self._path = path
        self._hello = hello
        self._resume = resume
        self._runner = runner
        self._operator = operator
        self._bad = bad
        self._fault = fault
        """Hears of an exception of ours that answering a call brought to light."""
        self._short = short
        """Hears why somebody who wants to connect has to wait."""
        self._guarded = guarded
        """Whether a process, by its pid, belongs to an agent."""
        self._seats: dict[Peer, Seat] = {}
        self._operators: set[Peer] = set()
        self._open: set[Peer] = set()
        self._coming: set[asyncio.Task[Any]] = set()
        self._listening: socket.socket | None = None
        self._bound: tuple[int, int] | None = None

    def start(self) -> None:
        """Bind the socket, 0600, and listen. Raises OSError."""
        listening = bind(self._path, socket.SOCK_STREAM)
        listening.setblocking(False)
        listening.listen(BACKLOG)
        self._listening, self._bound = listening, identity(self._path)
        self._listen(listening)

    def keep(self) -> None:
        """Bind anew if the socket's file is gone or is another one; what is connected stays so."""
        before = self._listening
        if before is None or identity(self._path) == self._bound:
            return
        # Where there is no descriptor, or no room on the disk, the next look is near.
        with suppress(OSError):
            self.start()
            self._stop(before)

    def _listen(self, listening: socket.socket) -> None:
        if listening is self._listening:
            asyncio.get_running_loop().add_reader(listening, self._come_in, listening)

    @staticmethod
    def _stop(listening: socket.socket) -> None:
        asyncio.get_running_loop().remove_reader(listening)
        listening.close()

    def _come_in(self, listening: socket.socket) -> None:
        """Let in who waits at the door.

        A server of asyncio's own, without a descriptor, would print as many tracebacks a second as can wait there.
        """
        loop = asyncio.get_running_loop()
        for _ in range(AT_ONCE):
            try:
                came, _ = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                loop.remove_reader(listening)
                loop.call_later(PAUSE_SECONDS, self._listen, listening)
                self._short(error.strerror or str(error))
                return
            task = loop.create_task(self._take_in(came))
            self._coming.add(task)
            task.add_done_callback(self._coming.discard)

    async def _take_in(self, came: socket.socket) -> None:
        try:
            transport, _ = await asyncio.get_running_loop().connect_accepted_socket(self._accept, came)
            if self._listening is None:
                transport.close()
        except OSError as error:
            came.close()
            self._short(error.strerror or str(error))

    def _accept(self) -> Peer:
        peer = Peer(self._answer, self._heard_bad, self._lost, self._fault, prompt=frozenset({"fault"}))
        self._open.add(peer)
        return peer

    async def _answer(self, peer: Peer, call: Call) -> Any:  # noqa: ANN401
        try:
            return await self._answered(peer, call)
        except CouncilError as error:
            self._note(peer, error)
            raise
        except OSError as error:
            if error.errno not in SHORT:
                raise
            # It passes by itself, so it is no fault of ours: who asked hears of it and may ask again.
            refused = Refused("council", f"it cannot answer just now: {error.strerror}")
            self._note(peer, refused)
            raise refused from None

    def _note(self, peer: Peer, error: CouncilError) -> None:
        seat = self._seats.get(peer)
        if seat is not None:
            seat.refusal = str(error)

    async def _answered(self, peer: Peer, call: Call) -> Any:  # noqa: ANN401
        seat = self._seats.get(peer)
        if seat is not None:
            return await self._runner(seat, call)
        if peer in self._operators:
            return await self._operator(call)
        pid, uid = credentials(peer)
        if uid != os.getuid():
            self._send_away(peer)
            raise Refused("peer", "another user's process")
        try:
            return await self._introduce(peer, call, pid)
        except Refused as error:
            self._bad(None, str(error))
            raise

    async def _introduce(self, peer: Peer, call: Call, pid: int) -> Any:  # noqa: ANN401
        """The first call of a connection."""
        if call.method in ("hello", "resume"):
            introduce = self._hello if call.method == "hello" else self._resume
            seat, answer = await introduce(peer, call.params)
            self._seats[peer] = seat
            return answer
        if call.method == "attach":
            # What runs inside an agent must not be able to reap its siblings or answer for a person.
            if self._guarded(pid):
                raise Refused("attach", "an agent's process may not act as an operator")
            self._operators.add(peer)
            return {"pid": os.getpid()}
        self._send_away(peer)
        raise UnknownMethod(f"the first call must be hello, resume or attach, not {safe(call.method)!r}")

    @staticmethod
    def _send_away(peer: Peer) -> None:
        # Not at once: it shall still hear why.
        asyncio.get_running_loop().call_soon(peer.close)

    def _heard_bad(self, peer: Peer, reason: str) -> None:
        self._bad(self._seats.get(peer), reason)

    def _lost(self, peer: Peer) -> None:
        self._open.discard(peer)
        self._seats.pop(peer, None)
        self._operators.discard(peer)

    async def close(self) -> None:
        """Stop listening, drop every connection and remove the socket."""
        if self._listening is not None:
            self._stop(self._listening)
            self._listening = None
        for peer in tuple(self._open):
            peer.close()
        remove(self._path)
