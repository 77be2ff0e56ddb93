"""The tables as a fold over the journal: cards, runs, agents and comments. No disk, no clock."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from council_tui.board.rows import Agent, Card, Row, Run
from council_tui.domain.card import OWNED_STATES, CardState, check_move
from council_tui.domain.errors import IllegalMove, StaleRun
from council_tui.domain.events import Event, EventKind
from council_tui.domain.heartbeat import Standing

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Agent", "Card", "Row", "Run", "Tables"]

K = EventKind

_CARD_STATES: dict[EventKind, CardState] = {
    K.CARD_READY: CardState.READY,
    K.CLAIMED: CardState.CLAIMED,
    K.ACKNOWLEDGED: CardState.RUNNING,
    K.RETURNED: CardState.REVIEW,
    K.CARD_DONE: CardState.DONE,
    K.CARD_FAILED: CardState.FAILED,
    K.CARD_BLOCKED: CardState.BLOCKED,
    K.CARD_RETRY: CardState.BLOCKED,
    K.RATE_LIMITED: CardState.BLOCKED,
    K.CARD_ARCHIVED: CardState.ARCHIVED,
}
_FENCED = frozenset({K.CLAIMED, K.ACKNOWLEDGED, K.RETURNED, K.CARD_DONE, K.REPORTED, K.VERIFIED})
"""Only the run that owns the card may write these."""
_PHASES: dict[EventKind, str] = {
    K.HELLO: "greeted",
    K.DELEGATED: "delegated",
    K.CLAIMED: "claimed",
    K.INHERITANCE_VERIFIED: "verified",
    K.INHERITANCE_REJECTED: "rejected",
    K.ACCEPTED: "accepted",
    K.ACKNOWLEDGED: "running",
    K.RETURNED: "returned",
    K.REPORTED: "reported",
    K.ORPHANED: "orphaned",
    K.HELD: "held",
    K.FROZEN: "frozen",
    K.THAWED: "running",
    K.UNKILLABLE: "reaping",
    K.EXPIRED: "expired",
    K.CANCELLED: "cancelled",
    K.SLICE_BREACHED: "slice breached",
    K.LIMIT_BREACHED: "limit breached",
    K.PROTOCOL_VIOLATION: "protocol violation",
    K.REAPED: "reaped",
}


_STANDINGS: dict[EventKind, Standing] = {
    K.ACKNOWLEDGED: Standing.ALIVE,
    K.BEAT_LATE: Standing.LATE,
    K.BEAT_BACK: Standing.ALIVE,
    K.STALLED: Standing.STALLED,
    K.GOING_ON: Standing.ALIVE,
    K.RETURNED: Standing.ALIVE,
    K.UNKILLABLE: Standing.SILENT,
    K.REAPED: Standing.DEAD,
    K.AGENT_ENDED: Standing.DEAD,
}
_ORPHANS = {"silent": Standing.SILENT, "process_gone": Standing.DEAD}
"""How an orphan stands, by the cause."""


@dataclass
class Tables:
    """Every row that is not archived, by id."""

    cards: dict[str, Card] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    agents: dict[str, Agent] = field(default_factory=dict)
    seq: int = 0

    def check(self, event: Event) -> None:
        """Raise `StaleRun` or `IllegalMove` when this event may not happen to these rows."""
        if event.card is None:
            return
        if event.kind is K.CARD_CREATED:
            if event.card in self.cards:
                raise IllegalMove(f"card {event.card} exists already")
            return
        card = self.cards.get(event.card)
        if card is None:
            raise IllegalMove(f"there is no card {event.card}")
        if event.kind is K.AGENT_STARTED and event.run in self.runs:
            raise IllegalMove(f"run {event.run} exists already")
        if event.kind in _FENCED and event.run != card.run:
            raise StaleRun(f"card {card.id} belongs to run {card.run}, not to {event.run}")
        if event.kind is K.CLAIMED and card.claim is not None:
            raise StaleRun(f"card {card.id} is claimed already")
        then = _CARD_STATES.get(event.kind)
        if then is not None and then is not card.state:
            check_move(card.id, card.state, then)

    def apply(self, event: Event) -> list[Row]:
        """Fold one event in; the rows it touched, each with its version raised by one."""
        self.seq = event.seq
        touched = [row for row in (self._card(event), self._run(event), self._agent(event)) if row is not None]
        for row in touched:
            row.version += 1
        return touched

    def forget(self, card: str) -> None:
        """Leave out a card that is archived, with its runs and agents."""
        self.cards.pop(card, None)
        for run in [run.id for run in self.runs.values() if run.card == card]:
            del self.runs[run]
        for agent in [agent.name for agent in self.agents.values() if agent.card == card]:
            del self.agents[agent]

    def _card(self, event: Event) -> Card | None:
        if event.card is None:
            return None
        if event.kind is K.CARD_CREATED:
            card = _new_card(event)
            self.cards[card.id] = card
            return card
        card = self.cards[event.card]
        then = _CARD_STATES.get(event.kind)
        change = _CARD_CHANGES.get(event.kind)
        if then is None and change is None:
            return None
        if then is not None and then is not card.state:
            card.state, card.moved = then, event.at
            if then not in OWNED_STATES:
                card.claim = card.lease_seconds = None
        if change is not None:
            change(card, event)
        return card

    def _run(self, event: Event) -> Run | None:
        if event.run is None:
            return None
        if event.kind is K.AGENT_STARTED:
            run = _new_run(event)
            self.runs[run.id] = run
            return run
        found = self.runs.get(event.run)
        change = _RUN_CHANGES.get(event.kind)
        if found is None or change is None:
            return None
        change(found, event)
        return found

    def _agent(self, event: Event) -> Agent | None:
        if event.agent is None:
            return None
        if event.kind is K.AGENT_STARTED:
            agent = _new_agent(event)
            self.agents[agent.name] = agent
            return agent
        found = self.agents.get(event.agent)
        if found is None:
            return None
        change = _AGENT_CHANGES.get(event.kind)
        if change is None and event.kind not in _PHASES and event.kind not in _STANDINGS:
            return None
        found.phase = _PHASES.get(event.kind, found.phase)
        found.standing = _STANDINGS.get(event.kind, found.standing)
        if change is not None:
            change(found, event)
        return found


def _key_id(public: str | None) -> str:
    # the ledger's name of a key; the ledger itself lies above the board
    return hashlib.sha256(bytes.fromhex(public)).hexdigest() if public else ""


def _new_card(event: Event) -> Card:
    data = event.data
    return Card(
        id=event.card or "",
        title=data["title"],
        plan_id=data["plan_id"],
        kind=data["kind"],
        parent_agent=data["parent_agent"],
        parent_card=data.get("parent_card"),
        created=event.at,
        moved=event.at,
        after=list(data.get("after", ())),
        priority=data.get("priority", 0),
        labels=list(data.get("labels", ())),
        attempts=data.get("attempts", 1),
        order=data.get("order", {}),
    )


def _new_run(event: Event) -> Run:
    data = event.data
    return Run(
        id=event.run or "",
        card=event.card or "",
        agent=event.agent or "",
        attempt=data["attempt"],
        started=event.at,
        pid=data["pid"],
        start_time=data["start_time"],
        boot_id=data["boot_id"],
        slice=data["slice"],
        contract=data["contract"],
    )


def _new_agent(event: Event) -> Agent:
    data = event.data
    return Agent(
        name=event.agent or "",
        label=data["label"],
        kind=data["kind"],
        parent=data["parent"],
        run=event.run or "",
        card=event.card,
        started=event.at,
        enforcement=data["enforcement"],
    )


def _card_started(card: Card, event: Event) -> None:
    card.run, card.agent, card.attempt = event.run, event.agent, event.data["attempt"]
    card.block = card.fail = None
    card.reason = ""


def _card_claimed(card: Card, event: Event) -> None:
    card.claim, card.lease_seconds = event.data["claim"], event.data.get("lease_seconds")


def _card_returned(card: Card, event: Event) -> None:
    card.findings = len(event.data.get("findings", ()))
    card.result = event.data


def _card_reported(card: Card, event: Event) -> None:
    card.entry = event.data["entry"]


def _card_blocked(card: Card, event: Event) -> None:
    card.block, card.fail, card.reason = event.data["block"], None, event.data.get("reason", "")


def _card_failed(card: Card, event: Event) -> None:
    card.fail, card.block, card.reason = event.data["fail"], None, event.data.get("reason", "")


def _card_retry(card: Card, event: Event) -> None:
    card.block, card.fail = "transient", None
    card.reason = f"attempt {event.data['attempt']} failed, next in {event.data['delay_seconds']:g} s"
    if "why" in event.data:
        card.reason += f": {event.data['why']}"


def _card_limited(card: Card, event: Event) -> None:
    card.block, card.fail = "transient", None
    card.attempt, card.limited = card.attempt - 1, event.data["times"]
    card.reason = f"rate limited, next try at {event.data['until']}"


def _card_ready(card: Card, event: Event) -> None:
    card.attempt -= bool(event.data.get("uncounted"))
    card.block = card.fail = None
    card.reason = ""


def _card_recovered(card: Card, event: Event) -> None:
    card.crashes += bool(event.data.get("crash") and event.data.get("what") in ("taken_back", "quarantined"))


def _card_adopted(card: Card, event: Event) -> None:
    card.parent_agent, card.parent_card = event.data["parent_agent"], event.data["parent_card"]


def _comment(card: Card, event: Event) -> None:
    card.comments.append({"at": event.at, "author": event.data["author"], "text": event.data["text"]})


_CARD_CHANGES: dict[EventKind, Callable[[Card, Event], None]] = {
    K.AGENT_STARTED: _card_started,
    K.CLAIMED: _card_claimed,
    K.RETURNED: _card_returned,
    K.REPORTED: _card_reported,
    K.CARD_BLOCKED: _card_blocked,
    K.CARD_FAILED: _card_failed,
    K.CARD_RETRY: _card_retry,
    K.RATE_LIMITED: _card_limited,
    K.CARD_READY: _card_ready,
    K.CARD_ADOPTED: _card_adopted,
    K.COMMENT: _comment,
    K.RECOVERED: _card_recovered,
}


def _agent_greeted(agent: Agent, event: Event) -> None:
    agent.key_id = _key_id(event.data.get("public_key"))


def _agent_orphaned(agent: Agent, event: Event) -> None:
    agent.standing = _ORPHANS.get(event.data.get("cause", ""), agent.standing)


def _agent_ended(agent: Agent, event: Event) -> None:
    agent.ended = True


def _agent_said(agent: Agent, event: Event) -> None:
    agent.status = str(event.data.get("text", ""))


def _agent_granted(agent: Agent, event: Event) -> None:
    agent.swarms[event.data["swarm"]] = event.data


_AGENT_CHANGES: dict[EventKind, Callable[[Agent, Event], None]] = {
    K.HELLO: _agent_greeted,
    K.ORPHANED: _agent_orphaned,
    K.AGENT_ENDED: _agent_ended,
    K.STATUS: _agent_said,
    K.SWARM_GRANTED: _agent_granted,
}


def _run_body(run: Run, event: Event) -> None:
    run.body_pid = event.data["pid"]


def _run_acknowledged(run: Run, event: Event) -> None:
    run.acknowledged = event.at


def _run_returned(run: Run, event: Event) -> None:
    run.exit_status, run.signal = event.data.get("exit_status"), event.data.get("signal")


def _run_reaped(run: Run, event: Event) -> None:
    run.exit_status, run.signal = event.data.get("exit_status"), event.data.get("signal")


def _run_unkillable(run: Run, event: Event) -> None:
    run.reason = event.data["reason"]


def _run_over(outcome_key: str | None) -> Callable[[Run, Event], None]:
    def change(run: Run, event: Event) -> None:
        run.ended = event.at
        run.outcome = "done" if outcome_key is None else str(event.data[outcome_key])
        run.reason = str(event.data.get("reason", ""))

    return change


_RUN_CHANGES: dict[EventKind, Callable[[Run, Event], None]] = {
    K.ACKNOWLEDGED: _run_acknowledged,
    K.BODY_STARTED: _run_body,
    K.RETURNED: _run_returned,
    K.UNKILLABLE: _run_unkillable,
    K.REAPED: _run_reaped,
    K.CARD_DONE: _run_over(None),
    K.CARD_FAILED: _run_over("fail"),
    K.CARD_BLOCKED: _run_over("block"),
}
