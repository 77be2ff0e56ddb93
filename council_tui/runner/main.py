"""The runner: what containerd's shim is to a container, this is to an agent.

It holds the agent's key, passes the gates of the handshake, starts and guards the body, beats, and signs
the report. If it loses the supervisor it looks for the next one for as long as its patience lasts; then it
ends its body and leaves.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import time
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from council_tui.domain.errors import CouncilError, Refused
from council_tui.domain.ids import agent_type, encode
from council_tui.domain.order import Order
from council_tui.domain.text import safe
from council_tui.ledger.keys import Key
from council_tui.ledger.merkle import leaf_hash
from council_tui.ledger.signer import Signer
from council_tui.runner import guard
from council_tui.runner.beats import BeatSender
from council_tui.runner.channel import Peer, PeerGone, RemoteRefusal, UnknownMethod
from council_tui.runner.family import Family
from council_tui.runner.keeper import Keeper
from council_tui.runner.link import Link
from council_tui.runner.office import Office
from council_tui.runner.passport import Passport
from council_tui.runner.proof import canonical_sha256
from council_tui.runner.slice import slice_problems
from council_tui.runner.spec import Grant, RunnerSpec

if TYPE_CHECKING:
    from council_tui.domain.evidence import Result
    from council_tui.domain.wire import Call
    from council_tui.runner.body import Body

EXIT_OK, EXIT_REFUSED, EXIT_LOST, EXIT_FAULT = 0, 1, 3, 70


class Runner:
    """One agent's runner, from hello to bye."""

    def __init__(self, spec: RunnerSpec) -> None:
        self.spec = spec
        self._key = Key.generate()
        self._loop = asyncio.get_running_loop()
        self._link = Link(spec.socket, self._handle, _print_fault)
        self._passport: Passport | None = None
        self._grant: Grant | None = None
        self._signer: Signer | None = None
        self._keeper: Keeper | None = None
        self._family: Family | None = None
        self._office: Office | None = None
        self._beats: BeatSender | None = None
        self._ending = False
        self._reaped = False
        """Whether everything it guarded was ended because its supervisor asked for that."""
        self._done = asyncio.Event()
        self._exit = EXIT_OK
        self._beat_token = spec.beat_token
        self._known: Peer | None = None
        """The connection whose other end may ask things of us."""

    async def live(self) -> int:
        """Run to the end; the exit status."""
        self._known = await self._link.open()
        tasks = [self._loop.create_task(self._work()), self._loop.create_task(self._leave_when_alone())]
        await self._done.wait()
        if self._reaped and (self._link.peer is None or self._link.peer.sent):
            # It guards nobody any more: hundreds that tidy up at once would be in each other's way.
            os._exit(self._exit)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._body is not None:
            if self._exit in (EXIT_REFUSED, EXIT_FAULT):
                await self._body.kill_tree()
            self._body.close()
        await self._link.close()
        return self._exit

    def _finish(self, status: int) -> None:
        self._exit = status
        self._done.set()

    async def _work(self) -> None:
        try:
            await self._handshake()
            await self._serve()
        except (RemoteRefusal, Refused):
            # The supervisor said no, or we did: it knows, and it decides what becomes of the card.
            if not self._ending:
                self._finish(EXIT_REFUSED)
        except PeerGone:
            return
        except Exception as error:
            # Whoever only keeps beating after a fault of its own would look alive until its time is up.
            self._link.tell("fault", {"reason": _words(error)})
            self._finish(EXIT_FAULT)
            _print_fault(error)

    # the gates

    async def _ask(self, method: str, **params: Any) -> Any:  # noqa: ANN401
        return await self._link.ask(method, params)

    async def _handshake(self) -> None:
        raw = await self._ask("hello", run=self.spec.run, token=self.spec.token, public_key=self._key.public.hex())
        grant = self._grant = Grant.read(raw)
        self._signer = Signer(self.spec.agent, self._key, grant.log, since=grant.validity[0])
        inherited = grant.context.inheritance
        self._family = Family(
            self.spec.agent,
            inherited,
            self._signer,
            grant.card,
            grant.depth,
            grant.validity,
            grant.context.resource_limits,
            grant.context.lifecycle_policy.patience,
        )
        fault = grant.order.fault
        if fault == "never-claims":
            await asyncio.Event().wait()
        await self._ask("claim", card=grant.card, claim=f"c_{encode(secrets.token_bytes(7))}")
        await self._verify(grant, fault)
        contract = grant.context.sha256()
        entry = self._signer.sign("acceptance", int(time.time()), (), {"contract": contract})
        await self._ask("accept", entry=entry.decode())
        if fault == "never-acknowledges":
            await asyncio.Event().wait()
        if agent_type(self.spec.agent) not in ("child", "microshark"):
            # Orders may come in the moment the acknowledgement is on the board.
            self._office = Office(agent_type(self.spec.agent), self._ask)
        self._write_acknowledgement(grant)
        # From here on there is work that a new supervisor can take up.
        self._passport = Passport(self.spec, grant, self._key, self._signer)
        self._link.keep(self._parent().patience, self._introduce)
        await self._ask("acknowledge")

    async def _introduce(self, peer: Peer) -> None:
        """To the supervisor that took the home over: who we are, and how things stand here."""
        if self._passport is None:
            raise Refused("resume", "the handshake is not over")
        self._known = peer
        answer = await self._passport.show(peer, self._standing())
        if self._beats is not None:
            self._beats.token = answer
        self._beat_token = answer

    def _standing(self) -> dict[str, Any]:
        if self._office is not None:
            return {"closing": self._office.closed.is_set()}
        return self._keeper.standing() if self._keeper is not None else {}

    async def _verify(self, grant: Grant, fault: str | None) -> None:
        """The child checks what it inherits itself, whatever its parent made of it."""
        inherited = grant.context.inheritance
        if fault == "bad-mbti":
            inherited = inherited.model_copy(update={"mbti_type": "ENTP-X"})
        problems = [*inherited.problems(grant.mbti), *slice_problems(grant.context.memory_slice.shared_memory_path)]
        if problems:
            await self._ask("reject", reason="; ".join(str(problem) for problem in problems))
            raise problems[0]
        await self._ask("verified")

    def _write_acknowledgement(self, grant: Grant) -> None:
        """`acknowledged` in the slice, whole or not at all, for whoever looks there instead of at the board."""
        control = Path(grant.context.memory_slice.shared_memory_path) / "ctl"
        text = json.dumps({"agent": self.spec.agent, "card": grant.card, "run": self.spec.run})
        draft = control / ".acknowledged"
        draft.write_text(text, encoding="utf-8")
        draft.replace(control / "acknowledged")

    # the work

    async def _serve(self) -> None:
        grant = self._grant
        if grant is None:
            return
        self._beats = BeatSender(self.spec.notify, self.spec.run, self._beat_token)
        policy = grant.context.lifecycle_policy
        if policy.beat_source == "runner":
            self._beats.every(policy.parent_heartbeat_interval_seconds)
        if self._office is not None:
            await self._office.closed.wait()
            await self._report(self._office.result(), None)
            return
        await self._keep_body(grant)

    async def _keep_body(self, grant: Grant) -> None:
        if self._family is None or self._beats is None:
            return
        keeper = self._keeper = Keeper(self.spec, grant, self._family, self._beats, self._ask, self._link.tell)
        judged = await keeper.work()
        if judged is not None and not self._ending:
            await self._report(*judged)

    @property
    def _body(self) -> Body | None:
        return self._keeper.body if self._keeper is not None else None

    async def _report(self, result: Result, violation: str | None) -> None:
        grant, signer = self._grant, self._signer
        if grant is None or signer is None:
            return
        plain = result.as_json()
        digest = canonical_sha256(plain)
        end = self._body.outcome() if self._body is not None else None
        summary = {
            "result": plain,
            "problems": list(result.problems),
            "violation": violation,
            "exit_status": end.status if end else None,
            "signal": end.signal if end else None,
            "digest": digest,
        }
        await self._ask("returned", **summary)
        if violation is not None:
            return
        artifacts = [("result.json", digest)]
        if end is not None:
            artifacts.append(("output.log", end.output_sha256))
        fields = {
            "status": result.status,
            "summary": safe(result.recommendation, 2000) or grant.order.title,
            "findings": len(result.findings),
            "artifacts": [name for name, _ in artifacts],
            "contract": grant.context.sha256(),
            "run": self.spec.run,
            "enforcement": grant.enforcement,
        }
        entry = b""

        def signed() -> dict[str, Any]:
            nonlocal entry
            # After a loss: the log has it already and it is only told again, or it never had it.
            if not entry or leaf_hash(entry).hex() != signer.prev:
                entry = signer.sign("ascension", int(time.time()), [(grant.card, digest), *artifacts], fields)
            return {"entry": entry.decode()}

        await self._link.ask("report", signed)
        self._ending = True
        self._finish(EXIT_OK)

    # what the supervisor asks

    async def _handle(self, peer: Peer, call: Call) -> Any:  # noqa: ANN401
        method = getattr(self, f"_on_{call.method}", None)
        if peer is not self._known or (peer is not self._link.peer and call.method != "prove"):
            raise Refused("peer", "not introduced")
        if method is None:
            raise UnknownMethod(f"a runner does not offer {call.method!r}")
        return await method(call.params)

    async def _on_reap(self, params: dict[str, Any]) -> dict[str, Any]:
        """End the body and everything it started; then this runner leaves too."""
        self._ending = True
        survivors: list[int] = []
        exit_status: int | None = None
        number: int | None = None
        if self._body is not None:
            grace = float(params["grace"])
            survivors = await (self._body.end_tree(grace) if grace > 0 else self._body.kill_tree())
            if self._body.exited.done():
                exit_status, number = self._body.how_it_ended
        if not survivors:
            self._reaped = True
            self._loop.call_soon(self._finish, EXIT_OK)
        return {
            "exit_status": exit_status,
            "signal": number,
            "survivors": survivors,
        }

    async def _on_prove(self, params: dict[str, Any]) -> dict[str, Any]:
        """Our new supervisor shows that it is Hermes, and wants to see that we are who we say."""
        if self._passport is None:
            raise Refused("prove", "the handshake is not over")
        return {"proof": self._passport.stamp(params)}

    async def _on_ping(self, params: dict[str, Any]) -> dict[str, Any]:
        """Seconds since this agent last beat, for a supervisor that did not hear of it."""
        if self._beats is None:
            raise Refused("ping", "the handshake is not over")
        return {"age": self._loop.time() - self._beats.last}

    async def _on_stop(self, params: dict[str, Any]) -> dict[str, Any]:
        """Freeze the body's tree where it stands."""
        return {"stopped": self._keeper.freeze() if self._keeper is not None else []}

    async def _on_continue(self, params: dict[str, Any]) -> dict[str, Any]:
        """Let a frozen tree go on."""
        return {"going_on": self._keeper.thaw() if self._keeper is not None else []}

    async def _on_contract(self, params: dict[str, Any]) -> dict[str, Any]:
        """As a parent: the spawn context for one attempt at one of this agent's cards."""
        return self._parent().contract(params, datetime.now(UTC))

    async def _on_delegate(self, params: dict[str, Any]) -> dict[str, Any]:
        """As a parent: sign the child's name, key and contract into the ledger."""
        return {"entry": self._parent().delegate(params, int(time.time())).decode()}

    async def _on_withdraw(self, params: dict[str, Any]) -> None:
        """The log refused what this agent signed: the next entry takes its place."""
        if self._signer is not None:
            self._signer.withdraw(str(params["entry"]).encode())

    async def _on_settled(self, params: dict[str, Any]) -> None:
        """One of this agent's cards has ended."""
        self._parent().settle(str(params["order"]), str(params["state"]))

    async def _on_order(self, params: dict[str, Any]) -> dict[str, Any]:
        """As an office: take orders from Hermes and make cards of them."""
        return {"cards": await self._as_office().take([Order.model_validate(raw) for raw in params["orders"]])}

    async def _on_render(self, params: dict[str, Any]) -> dict[str, Any]:
        """As OpenClaw's office: render the fleet's report and sign it."""
        if self._signer is None:
            raise Refused("render", "the handshake is not over")
        return self._as_office().render(params, self._signer, int(time.time()))

    async def _on_close(self, params: dict[str, Any]) -> None:
        """As an office: the fleet is over."""
        self._as_office().closed.set()

    def _parent(self) -> Family:
        if self._family is None:
            raise Refused("parent", "the handshake is not over")
        return self._family

    def _as_office(self) -> Office:
        if self._office is None:
            raise Refused("office", f"{self.spec.agent} holds no office")
        return self._office

    async def _leave_when_alone(self) -> None:
        """The supervisor is gone, and patience with it: nothing survives that."""
        await self._link.gone.wait()
        self._ending = True
        grace = self._grant.context.lifecycle_policy.grace_seconds if self._grant else 0
        if self._body is not None:
            await self._body.end_tree(grace)
        self._finish(EXIT_LOST)


def _words(error: Exception) -> str:
    """A fault of ours for a person: what this machine refused us, or what kind it was."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return f"{type(error).__name__}: {error}"


def _print_fault(error: Exception) -> None:
    """A fault of ours, for the log of all runners, if the disk takes any of it."""
    with suppress(OSError):
        traceback.print_exception(error)


def run(spec: RunnerSpec) -> int:
    """The life of a runner in a process of its own; the exit status."""
    guard.become_subreaper()
    guard.hide_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)

    async def main() -> int:
        return await Runner(spec).live()

    try:
        return asyncio.run(main())
    except (OSError, CouncilError) as error:
        with suppress(OSError):
            os.write(2, f"runner {spec.run}: {error}\n".encode())
        return EXIT_REFUSED
