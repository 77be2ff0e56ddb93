"""A runner comes over from another supervisor: both prove who they are, and it goes on where it stood."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Any

from council_tui.domain.errors import CouncilError, Refused
from council_tui.domain.events import EventKind
from council_tui.domain.lifecycle import Phase, Signal
from council_tui.domain.restoring import CAN_BE_TAKEN_BACK, as_told
from council_tui.domain.text import safe
from council_tui.ledger.introduction import nonce, proved
from council_tui.runner import guard
from council_tui.supervisor.channel import credentials
from council_tui.supervisor.handshake import breach_facts
from council_tui.supervisor.recovery import What

if TYPE_CHECKING:
    from council_tui.runner.channel import Peer
    from council_tui.supervisor.seat import Seat
    from council_tui.supervisor.supervisor import Supervisor

PROOF_SECONDS = 5.0


class Welcome:
    """Answers `resume`, for one supervisor."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._sup = supervisor

    async def resume(self, peer: Peer, params: dict[str, Any]) -> tuple[Seat, dict[str, Any]]:
        """Bind a connection to a run that began elsewhere. params: run, nonce, and how things stand there."""
        seat = self._sup.seats.get(str(params["run"]))
        if seat is None or seat.state.phase not in CAN_BE_TAKEN_BACK:
            raise Refused("run", "no run of ours that is waited for")
        pid, process = credentials(peer)[0], guard.read_process(seat.pid or 0)
        if pid != seat.pid or process is None or process.start_time != seat.start_time:
            raise Refused("pid", "not the runner that was started for this run")
        if seat.peer is not None and not seat.peer.lost.done():
            raise Refused("run", "its runner is here already")
        await self._prove(peer, seat, str(params["nonce"]))
        seat.peer, seat.taken_back = peer, True
        seat.beat_token = secrets.token_urlsafe(12)
        self._go_on(seat, params)
        seq, prev = self._sup.authority.ledger.head_of(seat.agent)
        return seat, {"beat_token": seat.beat_token, "seq": seq, "prev": prev}

    async def _prove(self, peer: Peer, seat: Seat, theirs: str) -> None:
        ours, log = nonce(), self._sup.authority.ledger.origin
        shown = self._sup.authority.vouch("supervisor", seat.run, theirs, ours)
        try:
            said = await peer.call("prove", {"nonce": ours, "proof": shown}, PROOF_SECONDS)
        except (TimeoutError, CouncilError) as error:
            raise Refused("proof", f"its runner gave none: {safe(str(error), 200) or 'no answer'}") from None
        proof = str(said.get("proof")) if isinstance(said, dict) else ""
        if not proved(bytes.fromhex(seat.public_key), proof, "runner", log, seat.run, ours, theirs):
            raise Refused("proof", "not signed with this agent's key")

    def _go_on(self, seat: Seat, told: dict[str, Any]) -> None:
        """Take over what the runner knows better than the journal, and mend where the two differ."""
        sup, now = self._sup, self._sup.clock()
        stopped = None if told.get("stopped") is None else float(told["stopped"])
        active = None if told.get("active") is None else float(told["active"])
        seat.state = as_told(seat.state, now, active, stopped)
        sup.recovery.note(seat, What.TAKEN_BACK)
        body = told.get("body")
        run = sup.board.tables.runs.get(seat.run)
        if body and run is not None and run.body_pid is None:
            facts = {"pid": int(body["pid"]), "start_time": int(body["start_time"])}
            sup.log(seat, EventKind.BODY_STARTED, facts)
        still = seat.state.frozen_since is not None or seat.state.phase is Phase.HELD
        if body and still is not (stopped is not None):
            # The supervisor died between the word and the deed.
            sup.background(sup.reaper.freeze(seat) if still else sup.reaper.resume(seat))
        seat.leaving = bool(told.get("closing"))
        if told.get("breach"):
            facts = breach_facts(told["breach"])
            seat.breached = True
            sup.background(sup.signal(seat, Signal.BREACHED, facts))
        # Not at once: before it has our answer it takes no word of ours.
        asyncio.get_running_loop().call_soon(self._tell_of_children, seat)
        seat.back.set()

    def _tell_of_children(self, seat: Seat) -> None:
        """What ended below it while nobody could say so."""
        cards = self._sup.board.tables.cards.values()
        for card in cards if seat.peer is not None and seat.kind == "child" else ():
            lives = card.state in ("backlog", "ready", "claimed", "running", "review") or card.block == "transient"
            if card.parent_agent == seat.agent and not lives and seat.peer is not None:
                state = card.fail or card.block or "done"
                seat.peer.notify("settled", {"order": card.plan_id, "state": state})
