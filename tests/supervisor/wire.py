"""A supervisor whose runners are spoken by hand: everything on the wire is real, the processes are not."""

from __future__ import annotations

import asyncio
import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from council_tui.board.board import Draft
from council_tui.board.home import Home
from council_tui.domain.events import EventKind
from council_tui.fleet.offices import office_order
from council_tui.hosts.local import Started
from council_tui.ledger.keys import Key
from council_tui.ledger.signer import Signer
from council_tui.runner.channel import Peer
from council_tui.runner.family import Family
from council_tui.runner.proof import canonical_sha256
from council_tui.runner.spec import Grant, RunnerSpec
from council_tui.supervisor.supervisor import Supervisor
from supervisor.stage import WITHIN, Watcher, child, plan_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from council_tui.domain.order import Order
    from council_tui.domain.wire import Call
    from council_tui.supervisor.seat import Seat

RESULT = {"status": "DONE", "findings": [], "evidence": ["by hand"]}


class HandHost:
    """Starts nothing: the runner is this process. A start time that cannot be keeps it from being shot."""

    pid = None

    def __init__(self) -> None:
        self.specs: dict[str, RunnerSpec] = {}
        self.fault: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()

    def start(self) -> None:
        """There is nothing to start."""

    async def spawn(self, spec: RunnerSpec) -> Started:
        """Keep the spec for whoever plays the runner."""
        await self.gate.wait()
        if self.fault is not None:
            raise self.fault
        self.specs[spec.run] = spec
        return Started(os.getpid(), 0)

    def kill(self, pid: int) -> None:
        """The runner is this process."""

    async def close(self) -> None:
        """There is nothing to close."""


class ByHand:
    """One runner, gate by gate."""

    def __init__(self, sup: Supervisor, seat: Seat, spec: RunnerSpec) -> None:
        self.sup, self.seat, self.spec = sup, seat, spec
        self.key = Key.generate()
        self.answers: dict[str, Callable[[dict[str, Any]], Any]] = {
            "contract": lambda params: self.family.contract(params, datetime.now(UTC)),
            "delegate": lambda params: {"entry": self.family.delegate(params, int(time.time())).decode()},
            "withdraw": lambda params: self.signer.withdraw(params["entry"].encode()),
            "reap": self._reap,
            "settled": lambda params: None,
        }
        self.told: list[tuple[str, dict[str, Any]]] = []

    def _reap(self, params: dict[str, Any]) -> dict[str, Any]:
        self.leave()
        return {"survivors": [], "exit_status": 0, "signal": None}

    def leave(self) -> None:
        """The process of this runner, if it had one, is gone."""
        self.seat.exited.set()
        self.seat.clean.set()

    async def _handle(self, peer: Peer, call: Call) -> Any:
        self.told.append((call.method, call.params))
        answer = self.answers[call.method](call.params)
        return await answer if asyncio.iscoroutine(answer) else answer

    async def connect(self) -> ByHand:
        """Open the connection."""
        _, self.peer = await asyncio.get_running_loop().create_unix_connection(
            lambda: Peer(self._handle), self.spec.socket
        )
        return self

    async def call(self, method: str, **params: Any) -> Any:
        """Ask the supervisor; raises `RemoteRefusal`."""
        return await self.peer.call(method, params, WITHIN)

    async def hello(self, **changed: Any) -> None:
        """The first gate; afterwards this runner can sign."""
        params = {"run": self.spec.run, "token": self.spec.token, "public_key": self.key.public.hex(), **changed}
        self.grant = Grant.read(await self.call("hello", **params))
        self.signer = Signer(self.spec.agent, self.key, self.grant.log)
        inherited = self.grant.context.inheritance
        self.family = Family(
            self.spec.agent, inherited, self.signer, self.grant.card, self.grant.depth, self.grant.validity
        )

    async def claim(self, claim: str = "c_hand") -> None:
        """The second gate."""
        await self.call("claim", card=self.seat.card, claim=claim)

    def acceptance(self, contract: str | None = None) -> str:
        """This agent's entry 0."""
        fields = {"contract": contract or self.grant.context.sha256()}
        return self.signer.sign("acceptance", int(time.time()), (), fields).decode()

    def acknowledged(self, **changed: Any) -> None:
        """The file in the slice."""
        said = {"run": self.seat.run, "card": self.seat.card, **changed}
        Path(self.seat.slice, "ctl", "acknowledged").write_text(json.dumps(said))

    async def begin(self) -> ByHand:
        """Every gate up to acknowledged."""
        await self.connect()
        await self.hello()
        await self.claim()
        await self.call("verified")
        await self.call("accept", entry=self.acceptance())
        self.acknowledged()
        await self.call("acknowledge")
        return self

    async def returned(self, result: dict[str, Any] | None = None, **changed: Any) -> None:
        """The result."""
        result = result or RESULT
        said = {"result": result, "problems": [], "violation": None, "digest": canonical_sha256(result), **changed}
        await self.call("returned", **said)

    def ascension(self, result: dict[str, Any] | None = None, **changed: Any) -> str:
        """The signed report."""
        result = result or RESULT
        digest = canonical_sha256(result)
        fields = {
            "status": result["status"],
            "summary": "by hand",
            "findings": 0,
            "artifacts": ["result.json"],
            "contract": self.grant.context.sha256(),
            "run": self.seat.run,
            "enforcement": self.grant.enforcement,
            **changed,
        }
        subjects = [(self.seat.card, digest), ("result.json", digest)]
        return self.signer.sign("ascension", int(time.time()), subjects, fields).decode()


class Bare(Watcher):
    """The supervisor, for `async with`; its clock ticks only when told to if `still`."""

    def __init__(self, home: Path, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self.sup = Supervisor(Home(home), clock)
        self.host = HandHost()
        self.sup.host = self.host  # type: ignore[assignment]
        self.played: list[ByHand] = []

    async def __aenter__(self) -> Bare:
        await self.sup.open()
        # There is no fleet here, and nobody is to wait for one.
        self.sup.fleet_here.set()
        self.sup.board.listen(self.hear)
        return self

    async def __aexit__(self, *error: object) -> None:
        for seat in self.sup.seats.values():
            seat.exited.set()
            seat.clean.set()
        async with asyncio.timeout(WITHIN):
            await self.sup.close()
        for one in self.played:
            if hasattr(one, "peer"):
                one.peer.close()
                await one.peer.lost

    async def born(self, card: str) -> ByHand:
        """Spawn a card's agent and hand over the part of its runner."""
        self.sup.board.append(Draft(EventKind.CARD_READY, self.sup.hermes, card))
        seat = await self.sup.births.spawn(card)
        one = ByHand(self.sup, seat, self.host.specs[seat.run])
        self.played.append(one)
        return one

    async def office(self, kind: str = "openclaw", **policy: Any) -> ByHand:
        """An office that has not said hello yet."""
        order = office_order(kind)
        if policy:
            lifecycle = {**order.context["lifecycle_policy"], **policy}
            order = order.model_copy(update={"context": {**order.context, "lifecycle_policy": lifecycle}})
        card, draft = self.sup.new_card(order, self.sup.hermes, None)
        self.sup.board.append(draft)
        return await self.born(card)

    def order(self, **more: Any) -> Order:
        """An order for a child of OpenClaw."""
        return plan_of(child("kid", ["true"], parent="openclaw", **more)).orders[0]

    async def child(self, parent: ByHand, order: Order | None = None) -> ByHand:
        """A child of a living office that has not said hello yet."""
        return await self.born(await self.sup.make_card(parent.seat, order or self.order()))
