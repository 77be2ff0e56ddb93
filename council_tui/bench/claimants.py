"""The other side of the claim benchmark: one process with a connection for each run, and rivals for each card.

stdin: JSON, [[token, card], ...]; stdout: one JSON object with what was won, refused, and how long it took.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import TYPE_CHECKING, Any

from council_tui.bench.figures import milliseconds
from council_tui.runner.channel import Peer, RemoteRefusal, UnknownMethod

if TYPE_CHECKING:
    from council_tui.domain.wire import Call

IN_FLIGHT = 64
"""Runs that are claiming at one moment."""


async def _offers_nothing(peer: Peer, call: Call) -> Any:  # noqa: ANN401
    raise UnknownMethod(f"a claimant does not offer {call.method!r}")


async def _connect(socket: str, token: str, gate: asyncio.Semaphore) -> Peer:
    async with gate:
        loop = asyncio.get_running_loop()
        _, peer = await loop.create_unix_connection(lambda: Peer(_offers_nothing), socket)
        await peer.call("hello", {"token": token})
        return peer


class _Claimants:
    """Connected runs, each with the card it was started for."""

    def __init__(self, peers: list[Peer], cards: list[str]) -> None:
        self._peers = peers
        self._cards = cards
        self.gate = asyncio.Semaphore(IN_FLIGHT)
        self.spent: list[float] = []
        self.refused = 0

    async def _attempt(self, peer: Peer, card: str, name: str) -> int:
        began = time.perf_counter()
        try:
            await peer.call("claim", {"card": card, "claim": name})
        except RemoteRefusal:
            self.refused += 1
            return 0
        self.spent.append(time.perf_counter() - began)
        return 1

    async def _one(self, number: int, rivals: bool) -> int:
        own, card = self._peers[number], self._cards[number]
        claims = [self._attempt(own, card, f"c_{number}")]
        if rivals:
            # The same run once more, and a run that was started for another card.
            claims += [self._attempt(own, card, f"c_{number}_again")]
            claims += [self._attempt(self._peers[number - 1], card, f"c_{number}_rival")]
        async with self.gate:
            return sum(await asyncio.gather(*claims))

    async def claim(self, numbers: range, rivals: bool) -> dict[str, Any]:
        """Claim these cards; what came of it."""
        self.spent, self.refused = [], 0
        began = time.perf_counter()
        won = sum(await asyncio.gather(*(self._one(number, rivals) for number in numbers)))
        seconds = time.perf_counter() - began
        return {"won": won, "refused": self.refused, "seconds": seconds, "latency": milliseconds(self.spent)}


async def claim_all(socket: str, work: list[tuple[str, str]]) -> dict[str, Any]:
    """Claim the first half of the cards alone, and the second half among rivals."""
    gate = asyncio.Semaphore(IN_FLIGHT)
    peers = await asyncio.gather(*(_connect(socket, token, gate) for token, _ in work))
    claimants = _Claimants(peers, [card for _, card in work])
    half = len(work) // 2
    found = {
        "alone": await claimants.claim(range(half), rivals=False),
        "among_rivals": await claimants.claim(range(half, len(work)), rivals=True),
    }
    for peer in peers:
        peer.close()
    return found


if __name__ == "__main__":
    print(json.dumps(asyncio.run(claim_all(sys.argv[1], [(token, card) for token, card in json.load(sys.stdin)]))))
