"""A JSON-RPC peer on a Unix stream socket; supervisor and runner both speak through one.

Calls from the other side are handled one after another, in order; replies are handled at once, so that a
peer can ask and be asked at the same time. Every call is answered, whatever goes wrong with it here: a side
that waits for an answer that never comes would wait for ever.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from council_tui.domain.errors import CouncilError
from council_tui.domain.text import safe
from council_tui.domain.wire import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    MAX_MESSAGE,
    METHOD_NOT_FOUND,
    REFUSED,
    BadMessage,
    Call,
    Reply,
    decode,
    encode,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Handler = Callable[["Peer", Call], Awaitable[Any]]

MAX_QUEUED = 256
"""Calls that may wait; beyond that the socket is not read until the queue has drained."""
LINES_A_TURN = 64
"""What is taken of one connection before everyone else has a turn of the loop."""
MOST_USELESS = 64
"""Lines of no use, or kilobytes of them, after which a connection is not read for a while."""
PAUSE_SECONDS = 0.01
PAUSE_SHARE = 4
"""How many times the pause is at least as long as what it follows took: a flood costs no more than a fifth of us."""


class PeerGone(CouncilError):
    """The other side closed the connection before it answered."""


class RemoteRefusal(CouncilError):
    """The other side answered with an error."""


class TooLong(CouncilError):
    """A message that the other side would pass over, so it is not sent."""


class UnknownMethod(CouncilError):
    """A call that this side does not offer."""


def packed(message: Call | Reply) -> bytes:
    """A message as it goes out. Raises `TooLong`."""
    line = encode(message)
    if len(line) - 1 > MAX_MESSAGE:
        what = message.method if isinstance(message, Call) else "the answer"
        raise TooLong(f"{what} is {len(line):,} bytes long; a message holds at most {MAX_MESSAGE:,}")
    return line


class Peer(asyncio.Protocol):
    """One end of a connection. `handler` answers calls, `on_bad` hears of lines that are no messages.

    `on_fault` hears of an exception that no handler should raise; `prompt` names the calls that are answered
    at once, whatever waits before them.
    """

    def __init__(
        self,
        handler: Handler,
        on_bad: Callable[[Peer, str], None] | None = None,
        on_lost: Callable[[Peer], None] | None = None,
        on_fault: Callable[[Exception], None] | None = None,
        prompt: frozenset[str] = frozenset(),
    ) -> None:
        self._handler = handler
        self._on_bad = on_bad
        self._on_lost = on_lost
        self._on_fault = on_fault
        self._prompt = prompt
        self._answering: set[asyncio.Task[None]] = set()
        self._buffer = bytearray()
        self._skipping = False
        self._useless = 0
        self._behind = False
        """Whether there is more to take, in a later turn."""
        self._calls: asyncio.Queue[Call] = asyncio.Queue()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._next_id = 1
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._worker: asyncio.Task[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self.lost = self._loop.create_future()
        """Resolves when the connection is gone."""

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start to answer calls."""
        if not isinstance(transport, asyncio.Transport):
            raise TypeError("a stream transport is needed")
        self._transport = transport
        self._worker = self._loop.create_task(self._work())

    def data_received(self, data: bytes) -> None:
        """Cut the stream into lines; a line over the cap is passed over to its end and counted once."""
        self._buffer += data
        if not self._behind:
            self._turn()

    def pause_writing(self) -> None:
        """Answer nothing more until the other side reads: its answers would pile up here."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Go on answering."""
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail what waits for an answer and stop answering."""
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(PeerGone("the connection closed"))
        self._waiting.clear()
        if self._worker is not None:
            self._worker.cancel()
        if not self.lost.done():
            self.lost.set_result(None)
        if self._on_lost is not None:
            self._on_lost(self)

    # the two directions

    async def call(self, method: str, params: dict[str, Any] | None = None, timeout: float | None = None) -> Any:  # noqa: ANN401, ASYNC109
        """Ask and wait. Raises `RemoteRefusal`, `PeerGone`, `TooLong`, or TimeoutError after `timeout` seconds."""
        if self._transport is None or self._transport.is_closing():
            raise PeerGone("the connection closed")
        ident = self._next_id
        self._next_id += 1
        line = packed(Call(method, params or {}, ident))
        future: asyncio.Future[Any] = self._loop.create_future()
        self._waiting[ident] = future
        self._transport.write(line)
        try:
            # Not wait_for: before Python 3.12 it can lose a cancellation that comes with the answer.
            async with asyncio.timeout(timeout):
                return await future
        finally:
            self._waiting.pop(ident, None)

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Tell, and expect no answer; nothing happens when the connection is gone. Raises `TooLong`."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(packed(Call(method, params or {})))

    def close(self) -> None:
        """Close after what is written has been sent."""
        if self._transport is not None:
            self._transport.close()

    @property
    def sent(self) -> bool:
        """Whether all that was written has left this process."""
        return self._transport is None or self._transport.get_write_buffer_size() == 0

    def socket_info(self, name: str) -> Any:  # noqa: ANN401 - whatever asyncio offers under the name
        """What asyncio knows of the transport under `name`, e.g. `socket`."""
        return self._transport.get_extra_info(name) if self._transport is not None else None

    # inside

    def _turn(self) -> None:
        """Take some lines; whoever has sent more waits, so that no flood keeps others from being heard."""
        self._behind = False
        if self.lost.done():
            return
        began, taken = self._loop.time(), 0
        while taken < LINES_A_TURN and self._useless < MOST_USELESS and self._calls.qsize() <= MAX_QUEUED:
            if (line := self._line()) is None:
                break
            taken += 1
            self._take(line)
        if self._useless >= MOST_USELESS:
            self._useless = 0
            self._behind = True
            pause = max(PAUSE_SECONDS, PAUSE_SHARE * (self._loop.time() - began))
            self._loop.call_later(pause, self._turn)
        elif taken == LINES_A_TURN:
            self._behind = True
            self._loop.call_soon(self._turn)
        self._read_or_wait()

    def _read_or_wait(self) -> None:
        if self._transport is None:
            return
        if self._behind or self._calls.qsize() > MAX_QUEUED:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _line(self) -> bytes | None:
        """The next line, or None when there is no whole one."""
        while (end := self._buffer.find(b"\n")) >= 0:
            line = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            if not self._skipping:
                return line
            self._skipping = False
        if len(self._buffer) > MAX_MESSAGE:
            self._useless += len(self._buffer) // 1024
            self._buffer.clear()
            if not self._skipping:
                self._skipping = True
                self._refuse("longer than the cap")
        return None

    def _take(self, line: bytes) -> None:
        try:
            message = decode(line)
        except BadMessage as error:
            self._useless += len(line) // 1024
            self._refuse(str(error))
            return
        if isinstance(message, Call):
            if message.method in self._prompt:
                self._answer_now(message)
            else:
                self._calls.put_nowait(message)
            return
        future = self._waiting.get(message.id)
        if future is None or future.done():
            self._useless += 1
        elif message.error is not None:
            future.set_exception(RemoteRefusal(message.error))
        else:
            future.set_result(message.result)

    def _refuse(self, reason: str) -> None:
        self._useless += 1
        if self._on_bad is not None:
            self._on_bad(self, reason)

    async def _work(self) -> None:
        while True:
            await self._writable.wait()
            call = await self._calls.get()
            if self._calls.qsize() == MAX_QUEUED // 2 and not self._behind:
                self._turn()
            await self._answer(call)

    def _answer_now(self, call: Call) -> None:
        # Whoever asks and does not read gets no more answers, and none pile up here.
        if self._writable.is_set() and len(self._answering) < MAX_QUEUED:
            task = self._loop.create_task(self._answer(call))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

    async def _answer(self, call: Call) -> None:
        reply = await self._reply(call)
        if call.id is None or self._transport is None or self._transport.is_closing():
            return
        try:
            line = packed(reply)
        except TooLong as error:
            line = packed(Reply(call.id, None, str(error), REFUSED))
        except (ValueError, TypeError, RecursionError) as error:
            line = packed(Reply(call.id, None, self._fault(error), INTERNAL_ERROR))
        self._transport.write(line)

    async def _reply(self, call: Call) -> Reply:
        ident = call.id or 0
        try:
            return Reply(ident, await self._handler(self, call))
        except UnknownMethod as error:
            self._refuse(str(error))
            return Reply(ident, None, str(error), METHOD_NOT_FOUND)
        except CouncilError as error:
            return Reply(ident, None, str(error), REFUSED)
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            # What the other side sent did not have the shape the method needs.
            self._refuse(f"{safe(call.method)}: unusable parameters ({type(error).__name__})")
            return Reply(ident, None, f"unusable parameters for {call.method}", INVALID_PARAMS)
        except Exception as error:
            return Reply(ident, None, self._fault(error), INTERNAL_ERROR)

    def _fault(self, error: Exception) -> str:
        """Tell our own side in full, and the other one no more than what kind of fault it was."""
        if self._on_fault is not None:
            self._on_fault(error)
        return f"internal error: {type(error).__name__}"
