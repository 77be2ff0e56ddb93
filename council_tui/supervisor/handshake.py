"""The birth of an agent on the wire, gate by gate, and what its runner says afterwards.

hello, delegate (the parent signs), claim, inheritance checked by the child, accept (the child's first
entry), acknowledge; then started, returned, report. Out of order is ignored and journalled.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from council_tui.board.home import ordinary
from council_tui.domain.card import BlockKind, FailKind
from council_tui.domain.errors import CouncilError, Refused, StaleRun
from council_tui.domain.events import EventKind
from council_tui.domain.evidence import check_result
from council_tui.domain.heartbeat import SILENT_AFTER
from council_tui.domain.lifecycle import Outcome, Phase, Signal
from council_tui.domain.order import Order
from council_tui.domain.rate_limit import rate_limited
from council_tui.domain.text import safe
from council_tui.ledger.envelope import open_strict
from council_tui.ledger.keys import valid_public
from council_tui.ledger.lineage import validity
from council_tui.ledger.verdicts import BadEntry, Verdict
from council_tui.runner.channel import UnknownMethod
from council_tui.runner.proof import canonical_sha256
from council_tui.runner.reserve import reserve
from council_tui.supervisor.channel import credentials

if TYPE_CHECKING:
    from council_tui.domain.contract import Inheritance
    from council_tui.domain.wire import Call
    from council_tui.ledger.log import Appended
    from council_tui.runner.channel import Peer
    from council_tui.supervisor.seat import Seat
    from council_tui.supervisor.supervisor import Supervisor

DELEGATE_SLACK = 60.0
"""Seconds beyond the child's own window in which a late delegation still reaches the log."""
STATUS_EVERY = 2.0
"""Seconds between two lines of status of one agent that reach the journal."""


class Handshake:
    """Answers runners. Every method name is the wire's."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._sup = supervisor
        self.microsharks: dict[str, tuple[Order, ...]] = {}
        """By run: what this agent spawns in its turn."""

    async def hello(self, peer: Peer, params: dict[str, Any]) -> tuple[Seat, dict[str, Any]]:
        """Bind a connection to a run by its token, and hand over the contract its parent has signed for."""
        seat = self._sup.seats.get(str(params["run"]))
        if seat is None or not hmac.compare_digest(seat.token.encode(), str(params["token"]).encode()):
            raise Refused("token", "no run of ours")
        await seat.started.wait()
        if credentials(peer)[0] != seat.pid or seat.peer is not None:
            raise Refused("pid", "not the runner that was started for this run")
        public = bytes.fromhex(str(params["public_key"]))
        if not valid_public(public):
            raise Refused("public_key", "not a valid Ed25519 key")
        seat.peer, seat.public_key = peer, public.hex()
        await self._sup.signal(seat, Signal.HELLO, {"public_key": seat.public_key})
        appended = await self._delegate(seat)
        said = appended.opened.statement.fields
        return seat, self._grant(seat, said["not_before"], said["not_after"])

    def _grant(self, seat: Seat, not_before: int, not_after: int) -> dict[str, Any]:
        allowed = self._sup.births.allowed_types(seat.parent)
        return {
            "context": seat.context.model_dump(mode="json"),
            "order": seat.order.model_dump(mode="json"),
            "card": seat.card,
            "log": self._sup.authority.ledger.origin,
            "root": self._sup.root_public.hex(),
            "depth": seat.depth,
            "not_before": not_before,
            "not_after": not_after,
            "enforcement": seat.enforcement,
            "microsharks": [order.model_dump(mode="json") for order in self.microsharks.get(seat.run, ())],
            "workdir": self._sup.workdir,
            "home": str(self._sup.home.root),
            "bwrap": self._sup.tier.bwrap,
            "groups": dict(self._sup.tier.groups),
            "mbti": None if allowed is None else sorted(allowed),
        }

    async def _delegate(self, seat: Seat) -> Appended:
        window = seat.state.timing.window
        task = asyncio.create_task(self._delegation(seat))
        try:
            # Shielded: a late answer of the parent must still reach the log, or its own chain has a hole.
            async with asyncio.timeout(window):
                appended = await asyncio.shield(task)
        except (TimeoutError, CouncilError) as error:
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
            why = str(error) or f"no answer within {window:g} s"
            reason = f"its parent did not delegate: {safe(why, 300)}"
            await self._sup.signal(seat, Signal.FAILED, {"reason": reason})
            raise Refused("delegate", reason) from None
        await self._sup.signal(seat, Signal.DELEGATED, {"entry": appended.index})
        return appended

    async def _delegation(self, seat: Seat) -> Appended:
        timing = seat.state.timing
        if seat.parent == self._sup.hermes:
            inherited = seat.context.inheritance
            return await self._sup.authority.sign("delegation", self._own_delegation(seat, inherited))
        parent = self._sup.by_agent.get(seat.parent)
        if parent is None or parent.peer is None:
            raise Refused("parent_id", "the parent is gone")
        answer = await parent.peer.call(
            "delegate",
            {
                "run": seat.run,
                "child": seat.agent,
                "public_key": seat.public_key,
                "card": seat.card,
            },
            timing.window + DELEGATE_SLACK,
        )
        if not isinstance(answer, dict) or not isinstance(answer.get("entry"), str):
            raise Refused("delegate", "the parent answered without an entry")
        raw = answer["entry"].encode()
        said = open_strict(raw).payload["predicate"]
        try:
            appended = await self._sup.authority.ledger.append(raw)
        except BadEntry:
            parent.peer.notify("withdraw", {"entry": raw.decode()})
            raise
        if seat.state.phase is Phase.ENDED:
            # Too late: the grant stands on the log, so it has to be taken back there.
            await self._sup.authority.revoke(seat.agent, "its run was over before it was delegated")
        if (said.get("child"), said.get("public_key"), said.get("contract")) != (
            seat.agent,
            seat.public_key,
            seat.context.sha256(),
        ):
            raise Refused("delegate", "the parent signed something else than this child and its contract")
        return appended

    def _own_delegation(self, seat: Seat, inherited: Inheritance) -> dict[str, Any]:
        not_before, not_after = validity(int(time.time()))
        return {
            "child": seat.agent,
            "public_key": seat.public_key,
            "depth": seat.depth,
            "capabilities": list(inherited.core_capabilities),
            "forbidden": list(inherited.forbidden_capabilities),
            "not_before": not_before,
            "not_after": not_after,
            "contract": seat.context.sha256(),
            "card": seat.card,
        }

    async def answer(self, seat: Seat, call: Call) -> Any:  # noqa: ANN401
        """One call of a runner that has said hello."""
        handler = _METHODS.get(call.method)
        if handler is None:
            raise UnknownMethod(f"there is no method {call.method!r}")
        return await handler(self, seat, call.params)

    async def _gate(self, seat: Seat, signal: Signal, data: dict[str, Any] | None = None) -> dict[str, Any]:
        if not await self._sup.signal(seat, signal, data):
            raise Refused(str(signal), f"out of order in phase {seat.state.phase}")
        return {"phase": str(seat.state.phase)}

    async def claim(self, seat: Seat, params: dict[str, Any]) -> dict[str, Any]:
        """Claim the card: one compare-and-set, one winner."""
        if str(params["card"]) != seat.card:
            raise Refused("card", f"run {seat.run} was not started for that card")
        card = self._sup.board.tables.cards[seat.card]
        if card.claim is not None or card.run != seat.run:
            raise StaleRun(f"card {card.id} is not this run's to claim")
        # The lease is renewed by every beat and ends with the silence that makes an orphan.
        lease = SILENT_AFTER * seat.state.timing.interval
        return await self._gate(seat, Signal.CLAIMED, {"claim": str(params["claim"])[:64], "lease_seconds": lease})

    async def verified(self, seat: Seat, params: dict[str, Any]) -> dict[str, Any]:
        """The child found its inheritance sound."""
        return await self._gate(seat, Signal.VERIFIED)

    async def reject(self, seat: Seat, params: dict[str, Any]) -> None:
        """The child refuses what it was given."""
        await self._sup.signal(seat, Signal.REJECTED, {"reason": safe(str(params["reason"]), 500)})

    async def accept(self, seat: Seat, params: dict[str, Any]) -> dict[str, Any]:
        """The child's entry 0: proof that it has the key and has read the contract."""
        if seat.state.phase is not Phase.VERIFIED:
            return await self._gate(seat, Signal.ACCEPTED)
        appended = await self._append(seat, params, "acceptance")
        return await self._gate(seat, Signal.ACCEPTED, {"entry": appended.index})

    async def acknowledge(self, seat: Seat, params: dict[str, Any]) -> dict[str, Any]:
        """The child wrote `acknowledged` into its slice; the board gets it from there."""
        if seat.taken_back and seat.state.phase in (Phase.RUNNING, Phase.HELD):
            # It was told so by a supervisor that died before its answer was heard.
            seat.born.set()
            return {"phase": str(seat.state.phase)}
        path = Path(seat.slice) / "ctl" / "acknowledged"
        try:
            said = json.loads(reserve.use(lambda: ordinary(path)))
        except (OSError, ValueError) as error:
            raise Refused("acknowledge", f"{path} cannot be read: {safe(str(error), 200)}") from None
        if said.get("run") != seat.run or said.get("card") != seat.card:
            raise Refused("acknowledge", "the acknowledgement in the slice is another run's")
        answer = await self._gate(seat, Signal.ACKNOWLEDGED)
        seat.acknowledged_after = self._sup.clock() - seat.opened
        seat.born.set()
        return answer

    async def fault(self, seat: Seat, params: dict[str, Any]) -> None:
        """The last words of a runner that cannot go on."""
        reason = f"its runner cannot go on: {safe(str(params['reason']), 300)}"
        await self._sup.signal(seat, Signal.PROCESS_GONE, {"reason": reason})

    async def started(self, seat: Seat, params: dict[str, Any]) -> None:
        """The body runs."""
        self._sup.log(
            seat, EventKind.BODY_STARTED, {"pid": int(params["pid"]), "start_time": int(params["start_time"])}
        )

    async def status(self, seat: Seat, params: dict[str, Any]) -> None:
        """A line the agent says of itself; it may say many, the journal keeps a few."""
        seat.status = safe(str(params["text"]), 200)
        now = self._sup.clock()
        if seat.status_at is None or now - seat.status_at >= STATUS_EVERY:
            seat.status_at = now
            self._sup.log(seat, EventKind.STATUS, {"text": seat.status})

    async def card(self, seat: Seat, params: dict[str, Any]) -> dict[str, Any]:
        """A parent asks for a card of its own."""
        order = Order.model_validate(params["order"])
        if seat.taken_back:
            for card in self._sup.board.tables.cards.values():
                if card.parent_agent == seat.agent and card.plan_id == order.id:
                    return {"card": card.id}
        return {"card": await self._sup.on_card(seat, order)}

    async def swarm(self, seat: Seat, params: dict[str, Any]) -> dict[str, Any]:
        """A parent asks for many microsharks in one contract; the answer is what Hermes grants."""
        await self._sup.fleet_here.wait()
        if self._sup.on_swarm is None:
            raise Refused("swarm", "nobody grants swarms here")
        return await self._sup.on_swarm(seat, Order.model_validate(params["order"]))

    async def breach(self, seat: Seat, params: dict[str, Any]) -> None:
        """The runner found the slice past its ceiling, or the tree past a limit, and has stopped the tree."""
        facts = breach_facts(params)
        seat.breached = True
        await self._sup.signal(seat, Signal.BREACHED, facts)

    async def returned(self, seat: Seat, params: dict[str, Any]) -> dict[str, Any]:
        """The result, before it is signed: checked here again, against the contract we hold."""
        if seat.taken_back and seat.result_digest and seat.result_digest == params.get("digest"):
            return {"phase": str(seat.state.phase)}
        if seat.state.phase is not Phase.RUNNING:
            return await self._gate(seat, Signal.RETURNED)
        result = dict(params["result"])
        seat.body_status = (params.get("exit_status"), params.get("signal"))
        violation = params.get("violation")
        problems = [safe(str(p), 300) for p in params.get("problems", ())][:5]
        if violation is None and seat.order.envelope.schema_declared and not problems:
            problems = list(check_result(result, seat.order.envelope).problems)
            violation = f"its report breaks the contract: {problems[0]}" if problems else None
        if violation is not None:
            reason = safe(str(violation), 300)
            await self._sup.signal(seat, Signal.VIOLATED, {"reason": reason})
            raise Refused("returned", reason)
        seat.result, seat.result_digest = result, canonical_sha256(result)
        if seat.result_digest != params.get("digest"):
            raise Refused("digest", "does not match the result")
        exit_status, signal = seat.body_status
        ended = {"exit_status": exit_status, "signal": signal, "digest": seat.result_digest}
        facts = {**result, "problems": problems, **ended}
        return await self._gate(seat, Signal.RETURNED, facts)

    async def report(self, seat: Seat, params: dict[str, Any]) -> dict[str, Any]:
        """The signed report: verified, appended, and only then an end of the run."""
        if seat.taken_back and seat.state.phase is Phase.CLOSING:
            return {"phase": str(seat.state.phase)}
        if seat.state.phase is not Phase.RETURNED:
            return await self._gate(seat, Signal.REPORTED)
        return await self.reported(seat, await self._append(seat, params, "ascension"))

    async def reported(self, seat: Seat, appended: Appended) -> dict[str, Any]:
        """The report stands on the ledger: it has to vouch for what was returned."""
        subjects = {s["name"]: s["digest"]["sha256"] for s in appended.opened.payload["subject"]}
        status = str(appended.opened.payload["predicate"]["status"])
        if subjects.get(seat.card) != seat.result_digest or status != seat.result.get("status"):
            reason = "the report vouches for another result than the one returned"
            await self._sup.signal(seat, Signal.VIOLATED, {"reason": reason})
            raise Refused("report", reason)
        self._sup.log(seat, EventKind.VERIFIED, {"entry": appended.index, "verdict": "VALID"})
        outcome = self._outcome(seat, status)
        return await self._gate(
            seat, Signal.REPORTED, {"entry": appended.index, "digest": seat.result_digest, "outcome": outcome}
        )

    @staticmethod
    def _outcome(seat: Seat, status: str) -> Outcome:
        said = seat.result.get("recommendation") or next(iter(seat.result.get("evidence", ())), "")
        if status == "BLOCKED":
            return Outcome(block=BlockKind.NEEDS_INPUT, reason=safe(str(said), 300))
        if status == "ERROR":
            exit_status, signal = seat.body_status
            if rate_limited(seat.result, exit_status) is not None:
                return Outcome(block=BlockKind.TRANSIENT, reason="turned away by a rate limit")
            how = f"signal {signal}" if signal is not None else f"exit status {exit_status}"
            words = [how] if seat.body_status != (None, None) else []
            return Outcome(fail=FailKind.ERROR, reason=safe(": ".join((*words, str(said))) if said else how, 300))
        return Outcome()

    async def _append(self, seat: Seat, params: dict[str, Any], kind: str) -> Appended:
        """Append an agent's own entry. Anything but VALID ends the run."""
        raw = str(params["entry"]).encode()
        try:
            opened = open_strict(raw)
            said = opened.payload["predicate"]["agent"], opened.payload["predicateType"].split("/")[-2]
            if said != (seat.agent, kind):
                raise BadEntry(Verdict.WRONG_SIGNER, f"run {seat.run} may only append its own {kind}")
            newest = await self._sup.authority.ledger.newest_of(seat.agent) if seat.taken_back else None
            if newest is not None and newest.leaf == opened.leaf.hex():
                return newest
            return await self._sup.authority.ledger.append(raw)
        except BadEntry as error:
            reason = safe(f"its {kind} was refused: {error}", 300)
            await self._sup.signal(seat, Signal.VIOLATED, {"reason": reason})
            raise Refused("entry", reason) from None


def breach_facts(said: dict[str, Any]) -> dict[str, Any]:
    """What a runner says of a breach, as the journal keeps it: of (slice, memory or processes), used, limit, reason."""
    numbers = {"used": int(said["used"]), "limit": int(said["limit"])}
    return {"of": safe(str(said["of"]), 40), **numbers, "reason": safe(str(said["reason"]), 300)}


_METHODS = {
    name: getattr(Handshake, name)
    for name in (
        "claim",
        "verified",
        "reject",
        "accept",
        "acknowledge",
        "fault",
        "started",
        "status",
        "card",
        "swarm",
        "breach",
        "returned",
        "report",
    )
}
