"""A door through another process's supervisor: reads its pictures, sends it intents, owns nothing."""

from __future__ import annotations

import asyncio
import os
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import TypeAdapter

from council_tui.board.home import OwnerLock
from council_tui.control.proof import entries, pins_of, verify
from council_tui.control.reading import Reader
from council_tui.control.views import (
    CouncilGone,
    Detail,
    DraftCheck,
    EntryView,
    QuitOutcome,
    ReapPreview,
    RoomView,
    SpawnDraft,
    VerifyView,
)
from council_tui.domain.errors import CouncilError
from council_tui.domain.text import safe
from council_tui.runner.channel import Peer, PeerGone, UnknownMethod

if TYPE_CHECKING:
    from council_tui.board.home import Home
    from council_tui.domain.wire import Call

T = TypeVar("T")
ANSWER_SECONDS = 5.0
LOOK_SECONDS = 0.1


async def _nothing_offered(peer: Peer, call: Call) -> Any:  # noqa: ANN401
    raise UnknownMethod(f"a front end does not offer {call.method!r}")


class Attached:
    """A `CouncilDoor` to a council that another process runs."""

    def __init__(self, home: Home, peer: Peer, owner: int) -> None:
        self.home = home
        self.owner = owner
        """Pid of the process that runs the council."""
        self._peer = peer
        self._room: RoomView | None = None
        self._gone: CouncilGone | None = None

    @classmethod
    async def open(cls, home: Home) -> Attached:
        """Connect to the supervisor of a home. Raises `CouncilError` when none answers."""
        loop = asyncio.get_running_loop()
        try:
            _, peer = await loop.create_unix_connection(lambda: Peer(_nothing_offered), str(home.socket))
        except OSError as error:
            raise CouncilError(f"no council answers in {home.root}: {error.strerror}") from None
        try:
            answer = await peer.call("attach", {}, ANSWER_SECONDS)
        except TimeoutError:
            peer.close()
            raise CouncilError(
                f"process {OwnerLock(home).owner() or 'unknown'} runs the council in {home.root} and has not answered "
                f"for {ANSWER_SECONDS:g} s; if it hangs or was stopped, end it with kill -9 and start council again"
            ) from None
        return cls(home, peer, int(answer["pid"]))

    async def _ask(self, method: str, **params: object) -> Any:  # noqa: ANN401
        if self._gone is not None:
            raise self._gone
        try:
            return await self._peer.call(method, dict(params), ANSWER_SECONDS)
        except PeerGone:
            self._gone = CouncilGone(await asyncio.to_thread(self._how_it_ended))
            raise self._gone from None
        except TimeoutError:
            raise CouncilError(f"process {self.owner} has not answered for {ANSWER_SECONDS:g} s") from None

    async def ended(self) -> str:
        """How the council ended, in a sentence; empty while it goes on."""
        if self._gone is None and self._peer.lost.done():
            self._gone = CouncilGone(await asyncio.to_thread(self._how_it_ended))
        return str(self._gone or "")

    def _how_it_ended(self) -> str:
        """What the board on disk says of the fleet that this process ran; its end is written before it leaves."""
        try:
            with Reader(self.home) as reader:
                fleet = reader.snapshot().fleet
        except CouncilError as error:
            return f"process {self.owner}, which ran this council, has ended, and {error}"
        successor = OwnerLock(self.home).held()
        if successor not in (None, self.owner):
            return f"process {self.owner}, which ran this council, has ended; process {successor} runs one here now"
        if fleet is not None and fleet.ending is not None:
            return f"fleet {safe(fleet.name, 80)} has ended with exit code {fleet.ending.get('exit')}"
        return f"process {self.owner}, which ran this council, has ended without closing its fleet"

    async def room(self) -> RoomView:
        """The present picture; the last one when nothing has changed since."""
        known = self._room.version if self._room else -1
        raw = await self._ask("room", version=known)
        if self._room is None or raw["version"] != known:
            self._room = replace(TypeAdapter(RoomView).validate_python(raw), attached=True)
        return self._room

    async def detail(self, ident: str) -> Detail:
        """An agent or a card in full."""
        return _view(Detail, await self._ask("detail", ident=ident))

    async def check_draft(self, draft: SpawnDraft) -> DraftCheck:
        """Hold a draft against the rules; starts nothing."""
        return _view(DraftCheck, await self._ask("check_draft", draft=asdict(draft)))

    async def spawn(self, draft: SpawnDraft) -> str:
        """Send the contract through its office; the card's id."""
        return str(await self._ask("spawn", draft=asdict(draft)))

    async def preview_reap(self, agent: str) -> ReapPreview:
        """What a reap of this agent would end."""
        return _view(ReapPreview, await self._ask("preview_reap", agent=agent))

    async def reap(self, agent: str) -> None:
        """Reap an agent and all below it; returns once it has begun."""
        await self._ask("reap", agent=agent)

    async def freeze(self, agent: str, frozen: bool) -> None:
        """Stop an agent and all below it where they stand, or let them go on."""
        await self._ask("freeze", agent=agent, frozen=frozen)

    async def comment(self, card: str, text: str) -> None:
        """Put a person's comment on a card, given by its id or its name in the plan."""
        await self._ask("comment", card=card, text=text)

    async def pause(self, paused: bool) -> None:
        """Hold dispatch back, or go on."""
        await self._ask("pause", paused=paused)

    async def entries(self, start: int = 0, limit: int = 500) -> tuple[EntryView, ...]:
        """Rows of the ledger, read from the file."""
        return await entries(self.home.ledger, start, limit)

    async def verify(self, index: int | None = None) -> VerifyView:
        """Verify one entry, or the whole ledger, from the file."""
        return await verify(self.home.ledger, pins_of(self.home), index)

    async def drain(self) -> QuitOutcome:
        """Have all reaped, in order, and wait until it is so."""
        return await self._end_all("drain")

    async def stop_at_once(self) -> QuitOutcome:
        """The emergency stop: have all ended without grace."""
        return await self._end_all("stop_at_once")

    async def _end_all(self, method: str) -> QuitOutcome:
        before = int(await self._ask("living"))
        await self._ask(method)
        left = before
        while left:
            await asyncio.sleep(LOOK_SECONDS)
            left = int(await self._ask("living"))
        return QuitOutcome(before, left)

    async def stop(self, *, at_once: bool) -> str:
        """Have the council ended that this door leads to, and wait for that; how it ended, in a sentence."""
        await self._ask("stop", at_once=at_once)
        await asyncio.wait({self._peer.lost})
        return await self.ended()

    async def take_over(self) -> None:
        """Have the other process leave the fleet to this one, and wait until it has; then the home can be opened."""
        await self._ask("leave", pid=os.getpid())
        await asyncio.wait({self._peer.lost})

    async def living(self) -> int:
        """None that would end with this front end."""
        return 0

    async def close(self) -> None:
        """Leave; the council goes on."""
        self._peer.close()
        await asyncio.wait({self._peer.lost}, timeout=1)


def _view(kind: type[T], raw: object) -> T:
    return TypeAdapter(kind).validate_python(raw)
