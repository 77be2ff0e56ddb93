"""Everything that can happen, as rows of an append-only journal; the tables are derived from these."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class EventKind(StrEnum):
    """One word per thing that can happen; the journal, `--json` and the event log share them."""

    # the fleet
    FLEET_STARTED = "fleet_started"
    """data: name, plan, pid, workdir, limits{concurrency, children_per_parent, microsharks, ...},
    budget{minutes}"""
    FLEET_ENDED = "fleet_ended"
    """data: exit, reason"""
    DISPATCH_PAUSED = "dispatch_paused"
    DISPATCH_RESUMED = "dispatch_resumed"
    BUDGET_WARNING = "budget_warning"
    BIRTHS_HELD = "births_held"
    """Agents that could be born are not. data: cause (memory|descriptors|births), reason"""
    BIRTHS_GO_ON = "births_go_on"
    """data: cause, seconds"""
    FLEET_RESUMED = "fleet_resumed"
    """A new supervisor goes on with a fleet. data: as of its start, and living"""
    HANDED_OVER = "handed_over"
    """The supervisor leaves the living to the next one. data: pid, living"""
    RECOVERED = "recovered"
    """A new supervisor found an open run of another one. data: what (taken_back|ended|again|closed|reaped|
    quarantined), crash (whether that other one had died), pid"""
    QUARANTINED = "quarantined"
    """Its agent was alive at two crashes. data: reason"""

    # cards
    CARD_CREATED = "card_created"
    """data: title, parent_agent, parent_card, plan_id, after[], priority, labels[], retries, contract{},
    envelope{}, container, run[] (argv), kind (child|microshark)"""
    CARD_ADOPTED = "card_adopted"
    """Its office is gone, and the one that was opened in its place takes it over. data: parent_agent, parent_card"""
    CARD_READY = "card_ready"
    """data: uncounted (the attempt before it had not begun, and does not count as one)"""
    CARD_BLOCKED = "card_blocked"
    """data: block, reason"""
    CARD_FAILED = "card_failed"
    """data: fail, reason"""
    CARD_DONE = "card_done"
    CARD_RETRY = "card_retry"
    """data: attempt, delay_seconds, until, why (of a delay that is longer than usual)"""
    RATE_LIMITED = "rate_limited"
    """Its attempt only said "not now", and does not count as one. data: times, delay_seconds, until"""
    CRASH_LOOP = "crash_loop"
    """Too many ends of one card, or of one command, in too short a time. data: of, reason, held_seconds"""
    SWARM_GRANTED = "swarm_granted"
    """Hermes' answer to a parent that asked for microsharks in one contract; nothing granted is a refusal.
    data: swarm, asked, at_least, granted, ttl_seconds, reason (why less than was asked for)"""
    CARD_ARCHIVED = "card_archived"
    COMMENT = "comment"
    """data: author, text"""

    # agents and the handshake
    AGENT_STARTED = "agent_started"
    """A runner exists. data: label, kind, parent, pid, start_time, tier, attempt, slice, beat_seconds"""
    HELLO = "hello"
    """data: key_id, public_key"""
    DELEGATED = "delegated"
    """data: entry"""
    CLAIMED = "claimed"
    """data: claim, lease_seconds (after the last beat)"""
    INHERITANCE_VERIFIED = "inheritance_verified"
    INHERITANCE_REJECTED = "inheritance_rejected"
    """data: reason"""
    ACCEPTED = "accepted"
    """data: entry"""
    ACKNOWLEDGED = "acknowledged"
    BODY_STARTED = "body_started"
    """data: pid, start_time, argv"""
    STATUS = "status"
    """What the agent says of itself. data: text"""
    BEAT_LATE = "beat_late"
    BEAT_BACK = "beat_back"
    STALLED = "stalled"
    """It beats, but nothing of it moves: no output, no status, nothing in its slice, no process. data: seconds"""
    GOING_ON = "going_on"
    """A stalled one moves again."""
    RETURNED = "returned"
    """data: status (DONE|BLOCKED|ERROR), findings, evidence, exit_status, signal, reason"""
    REPORTED = "reported"
    """data: entry, digest"""
    VERIFIED = "verified"
    """data: entry, verdict"""

    # the ways it ends badly
    ORPHANED = "orphaned"
    """data: cause (no_acknowledgement|silent|process_gone|parent_gone|supervisor_gone), reason"""
    HELD = "held"
    """An orphan kept stopped for a person. data: until_seconds"""
    FROZEN = "frozen"
    """A person stopped it; its clocks stand still."""
    THAWED = "thawed"
    """data: seconds"""
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    SLICE_BREACHED = "slice_breached"
    """data: used, limit"""
    LIMIT_BREACHED = "limit_breached"
    """It passed a limit of its contract that no cgroup holds. data: of (memory|processes), used, limit, reason"""
    PROTOCOL_VIOLATION = "protocol_violation"
    REAP_STARTED = "reap_started"
    """data: cause, pids[]"""
    SIGNALLED = "signalled"
    """data: signal, pids"""
    UNKILLABLE = "unkillable"
    """SIGKILL did not end all of it; its card keeps the claim. data: pids[], reason, next_seconds"""
    REAPED = "reaped"
    """Everything of it is proved dead. data: exit_status, signal, survivors[]"""
    SLICE_CLEARED = "slice_cleared"
    REVOKED = "revoked"
    """data: entry"""
    AGENT_ENDED = "agent_ended"
    """The runner is gone. data: exit_status, signal"""

    # the wire
    OUT_OF_ORDER = "out_of_order"
    """data: method, phase"""
    MESSAGE_REFUSED = "message_refused"
    """data: reason, count"""
    CALLERS_WAIT = "callers_wait"
    """Nobody can connect for a while, for want of a descriptor. data: reason, count"""
    REPORT_WRITTEN = "report_written"
    """The fleet's final report. data: path, entry, sha256"""


@dataclass(frozen=True)
class Event:
    """A row of the journal. `seq` counts from 1 without gaps; `at` is RFC 3339 UTC and for people only."""

    seq: int
    at: str
    kind: EventKind
    agent: str | None = None
    card: str | None = None
    run: str | None = None
    data: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The object that `--json` prints (without type and version)."""
        return {
            "seq": self.seq,
            "at": self.at,
            "kind": str(self.kind),
            "agent": self.agent,
            "card": self.card,
            "run": self.run,
            "data": self.data,
        }
