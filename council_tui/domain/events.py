"""Everything that can happen, as rows of an append-only journal; the tables are derived from these."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class EventKind(StrEnum):
    """One word per thing that can happen; the journal, `--json` and the event log share them."""

    # the fleet
    FLEET_STARTED = "fleet_started"
    """data: name, plan, pid, workdir, limits{concurrency, children_per_parent, microsharks},
    budget{minutes}"""
    FLEET_ENDED = "fleet_ended"
    """data: exit, reason"""
    DISPATCH_PAUSED = "dispatch_paused"
    DISPATCH_RESUMED = "dispatch_resumed"
    BUDGET_WARNING = "budget_warning"
    RECOVERED = "recovered"
    """A new supervisor found an open run of a dead one. data: pid, survivors"""

    # cards
    CARD_CREATED = "card_created"
    """data: title, parent_agent, parent_card, plan_id, after[], priority, labels[], retries, contract{},
    envelope{}, container, run[] (argv), kind (child|microshark)"""
    CARD_READY = "card_ready"
    CARD_BLOCKED = "card_blocked"
    """data: block, reason"""
    CARD_FAILED = "card_failed"
    """data: fail, reason"""
    CARD_DONE = "card_done"
    CARD_RETRY = "card_retry"
    """data: attempt, delay_seconds"""
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
    PROTOCOL_VIOLATION = "protocol_violation"
    REAP_STARTED = "reap_started"
    """data: cause, pids[]"""
    SIGNALLED = "signalled"
    """data: signal, pids"""
    REAPED = "reaped"
    """data: exit_status, signal, survivors[]"""
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
