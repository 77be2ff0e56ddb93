"""A runner's connection to whichever supervisor holds the home: it outlives the one it began with.

When the connection is lost the runner comes back for as long as its patience lasts, introduces itself to
whoever listens there now, and asks again what was not answered. Once patience is over it is alone for good.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

from council_tui.domain.errors import CouncilError
from council_tui.runner.channel import Peer, PeerGone

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from council_tui.runner.channel import Handler

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 1.0
"""Seconds between two tries; a thousand runners shall not come all at once, so half of each is chance."""
INTRODUCTION_SECONDS = 5.0


class Link:
    """The way to the supervisor, as long as there is one."""

    def __init__(self, path: str, handler: Handler, on_fault: Callable[[Exception], None]) -> None:
        self._path = path
        self._handler = handler
        self._on_fault = on_fault
        self._peer: Peer | None = None
        self._here = asyncio.Event()
        self._patience: Callable[[], float] | None = None
        self._introduce: Callable[[Peer], Awaitable[None]] | None = None
        self._coming: asyncio.Task[None] | None = None
        self.gone = asyncio.Event()
        """Set when there is no supervisor, and none is waited for any more."""

    @property
    def peer(self) -> Peer | None:
        """The connection in use; None while there is none."""
        return self._peer if self._here.is_set() else None

    async def open(self) -> Peer:
        """The first connection. Raises OSError."""
        self._peer = await self._connect()
        self._here.set()
        return self._peer

    def keep(self, patience: Callable[[], float], introduce: Callable[[Peer], Awaitable[None]]) -> None:
        """From now on come back for up to `patience()` seconds when the connection is lost.

        `introduce` makes a new connection a trusted one, or raises `CouncilError`.
        """
        self._patience, self._introduce = patience, introduce

    async def ask(self, method: str, params: dict[str, Any] | Callable[[], dict[str, Any]]) -> Any:  # noqa: ANN401
        """Ask, again after every loss of the connection, until there is an answer.

        `params` may be a function: what is asked then depends on what the new supervisor has of us.
        Raises `RemoteRefusal`, `TooLong`, and `PeerGone` once there is no way to a supervisor any more.
        """
        while True:
            await self._here.wait()
            peer = self._peer
            if peer is None or self.gone.is_set():
                raise PeerGone("there is no supervisor any more")
            try:
                return await peer.call(method, params() if callable(params) else params)
            except PeerGone:
                await asyncio.wait({peer.lost})
                if self._patience is None:
                    raise

    def tell(self, method: str, params: dict[str, Any]) -> None:
        """Tell whoever is there; nobody hears it while nobody is."""
        if (peer := self.peer) is not None:
            peer.notify(method, params)

    async def close(self) -> None:
        """Close after what is written has been sent."""
        if self._coming is not None:
            self._coming.cancel()
        if self._peer is not None:
            self._peer.close()
            await asyncio.wait({self._peer.lost}, timeout=1)

    async def _connect(self) -> Peer:
        _, peer = await asyncio.get_running_loop().create_unix_connection(
            lambda: Peer(self._handler, on_lost=self._lost, on_fault=self._on_fault, prompt=frozenset({"ping"})),
            self._path,
        )
        return peer

    def _lost(self, peer: Peer) -> None:
        if peer is not self._peer or self.gone.is_set():
            return
        if self._patience is None:
            self._give_up()
            return
        self._here.clear()
        self._coming = asyncio.get_running_loop().create_task(self._come_back(self._patience()))

    def _give_up(self) -> None:
        self.gone.set()
        # Whoever waits for a connection must hear that there will be none.
        self._here.set()

    async def _come_back(self, patience: float) -> None:
        loop = asyncio.get_running_loop()
        deadline, pause = loop.time() + patience, FIRST_PAUSE
        while (left := deadline - loop.time()) > 0:
            await asyncio.sleep(min(left, pause * random.uniform(0.5, 1.0)))
            pause = min(2 * pause, LONGEST_PAUSE)
            if await self._try_again(min(INTRODUCTION_SECONDS, deadline - loop.time())):
                return
        self._give_up()

    async def _try_again(self, seconds: float) -> bool:
        peer: Peer | None = None
        try:
            async with asyncio.timeout(seconds):
                peer = await self._connect()
                if self._introduce is not None:
                    await self._introduce(peer)
        except (OSError, TimeoutError, CouncilError, KeyError, TypeError, ValueError):
            if peer is not None:
                peer.close()
            return False
        if peer.lost.done():
            return False
        self._peer = peer
        self._here.set()
        return True
