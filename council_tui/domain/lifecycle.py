"""The life of one run as a pure state machine: (state, signal, now) -> (state, effects) (protocols.md 8a).

Gates are passed in order or not at all; whoever does not answer is an orphan; nothing that is being
reaped comes back; and an end is only an end once every process is proved dead.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from council_tui.domain.card import BlockKind, FailKind
from council_tui.domain.events import EventKind
from council_tui.domain.heartbeat import STALL_SECONDS, Standing, promised, standing

if TYPE_CHECKING:
    from council_tui.domain.contract import LifecyclePolicy


class Phase(StrEnum):
    """Where a run stands."""

    STARTING = "starting"
    GREETED = "greeted"
    DELEGATED = "delegated"
    CLAIMED = "claimed"
    VERIFIED = "verified"
    ACCEPTED = "accepted"
    RUNNING = "running"
    RETURNED = "returned"
    CLOSING = "closing"
    """Reported; its processes are on their way out."""
    HELD = "held"
    """An orphan, stopped and kept for a person."""
    REAPING = "reaping"
    ENDED = "ended"


class Signal(StrEnum):
    """What can happen to a run."""

    HELLO = "hello"
    DELEGATED = "delegated"
    CLAIMED = "claimed"
    VERIFIED = "verified"
    REJECTED = "rejected"
    ACCEPTED = "accepted"
    ACKNOWLEDGED = "acknowledged"
    BEAT = "beat"
    RETURNED = "returned"
    REPORTED = "reported"
    BREACHED = "breached"
    VIOLATED = "violated"
    CANCELLED = "cancelled"
    FAILED = "failed"
    """The handshake broke on our side, e.g. a parent that did not delegate."""
    PROCESS_GONE = "process_gone"
    SUPERVISOR_GONE = "supervisor_gone"
    """It ended while there was no supervisor to see how."""
    PARENT_GONE = "parent_gone"
    QUARANTINED = "quarantined"
    """It was alive at two crashes: it is ended, and its card waits for a person."""
    FREEZE = "freeze"
    THAW = "thaw"
    TICK = "tick"
    DEAD = "dead"
    """Every process of the run is proved dead."""


@dataclass(frozen=True)
class Timing:
    """The contract's numbers that the machine judges by, in seconds."""

    interval: float
    window: float
    requires_ack: bool = True
    ttl: float | None = None
    grace: float = 5.0
    hold: float | None = None
    """How long an orphan is kept for a person; None reaps at once."""
    stall: float = STALL_SECONDS
    """How long an agent may beat without any sign of work before it is told to be stalled."""

    @classmethod
    def of(cls, policy: LifecyclePolicy, budget_seconds: float | None) -> Timing:
        """From a contract: the life ends at the TTL or the time budget, whichever is sooner."""
        limits = [limit for limit in (policy.run_ttl_seconds, budget_seconds) if limit is not None]
        return cls(
            interval=policy.parent_heartbeat_interval_seconds,
            window=policy.window,
            requires_ack=policy.requires_acknowledgement,
            ttl=min(limits) if limits else None,
            grace=policy.grace_seconds,
            hold=policy.hold_seconds if policy.orphan_policy == "hold" else None,
            stall=policy.stall_seconds,
        )


@dataclass(frozen=True)
class Outcome:
    """How a run ended: neither fail nor block means done."""

    fail: FailKind | None = None
    block: BlockKind | None = None
    reason: str = ""

    def as_data(self) -> dict[str, Any]:
        """As the journal keeps it."""
        return {
            "fail": str(self.fail) if self.fail else None,
            "block": str(self.block) if self.block else None,
            "reason": self.reason,
        }

    @classmethod
    def of(cls, data: dict[str, Any]) -> Outcome:
        """From what the journal keeps."""
        fail, block = data.get("fail"), data.get("block")
        why = str(data.get("reason", ""))
        return cls(FailKind(fail) if fail else None, BlockKind(block) if block else None, why)


@dataclass(frozen=True)
class RunState:
    """One run. Every time is from the supervisor's monotonic clock."""

    timing: Timing
    started: float
    phase: Phase = Phase.STARTING
    acknowledged: float | None = None
    last_beat: float | None = None
    late: bool = False
    progress: float | None = None
    """When it last got on with its work; None while nobody watches that."""
    stalled: bool = False
    held_until: float | None = None
    closing_since: float | None = None
    frozen_since: float | None = None
    """Since when a person keeps it stopped; its clocks stand still."""
    outcome: Outcome | None = None
    """Set when the end is decided; it never changes afterwards."""

    @property
    def living(self) -> bool:
        """Whether processes of this run may exist."""
        return self.phase is not Phase.ENDED


class Do(StrEnum):
    """What the supervisor has to do after a step."""

    LOG = "log"
    STOP = "stop"
    """Freeze the body's tree and keep it."""
    CONTINUE = "continue"
    """Let a frozen tree go on."""
    REAP = "reap"
    SETTLE = "settle"
    """Post the outcome to the card, clear the slice, revoke."""


@dataclass(frozen=True)
class Effect:
    """One thing to do, in order. For LOG, `kind` and `data` are the journal's."""

    do: Do
    kind: EventKind | None = None
    data: dict[str, Any] = field(default_factory=dict)


_GATES: dict[Signal, tuple[Phase, Phase, EventKind]] = {
    Signal.HELLO: (Phase.STARTING, Phase.GREETED, EventKind.HELLO),
    Signal.DELEGATED: (Phase.GREETED, Phase.DELEGATED, EventKind.DELEGATED),
    Signal.CLAIMED: (Phase.DELEGATED, Phase.CLAIMED, EventKind.CLAIMED),
    Signal.VERIFIED: (Phase.CLAIMED, Phase.VERIFIED, EventKind.INHERITANCE_VERIFIED),
    Signal.ACCEPTED: (Phase.VERIFIED, Phase.ACCEPTED, EventKind.ACCEPTED),
    Signal.ACKNOWLEDGED: (Phase.ACCEPTED, Phase.RUNNING, EventKind.ACKNOWLEDGED),
    Signal.RETURNED: (Phase.RUNNING, Phase.RETURNED, EventKind.RETURNED),
    Signal.REPORTED: (Phase.RETURNED, Phase.CLOSING, EventKind.REPORTED),
}
_BEFORE_ACK = frozenset({Phase.STARTING, Phase.GREETED, Phase.DELEGATED, Phase.CLAIMED, Phase.VERIFIED, Phase.ACCEPTED})
_BEATING = frozenset({Phase.RUNNING, Phase.RETURNED})
_OVER = frozenset({Phase.REAPING, Phase.ENDED})

Step = tuple[RunState, tuple[Effect, ...]]


def _log(kind: EventKind, /, **data: object) -> Effect:
    return Effect(Do.LOG, kind, dict(data))


def _reap(state: RunState, outcome: Outcome, *logs: Effect) -> Step:
    decided = state.outcome or outcome
    ended = replace(state, phase=Phase.REAPING, outcome=decided, held_until=None, frozen_since=None)
    return ended, (*logs, Effect(Do.REAP, data={"cause": decided.reason}))


def _orphan(state: RunState, now: float, cause: str, reason: str, *, may_hold: bool) -> Step:
    log = _log(EventKind.ORPHANED, cause=cause, reason=reason)
    outcome = Outcome(fail=FailKind.ORPHANED, reason=reason)
    if may_hold and state.timing.hold is not None:
        held = replace(state, phase=Phase.HELD, held_until=now + state.timing.hold, outcome=outcome)
        return held, (log, _log(EventKind.HELD, until_seconds=state.timing.hold), Effect(Do.STOP))
    return _reap(state, outcome, log)


def _tick(state: RunState, now: float) -> Step:
    timing = state.timing
    if state.phase in _BEFORE_ACK:
        if timing.requires_ack and now - state.started > timing.window:
            reason = f"no acknowledgement within {timing.window:g} s (it got as far as {state.phase})"
            return _orphan(state, now, "no_acknowledgement", reason, may_hold=False)
        return state, ()
    if state.phase is Phase.HELD and state.held_until is not None and now > state.held_until:
        return _reap(state, Outcome(fail=FailKind.ORPHANED, reason="nobody decided in time"))
    if state.phase is Phase.CLOSING and state.closing_since is not None:
        if now - state.closing_since > timing.grace:
            return _reap(state, Outcome(reason="reported, then did not leave"))
        return state, ()
    if state.phase in _BEATING and state.last_beat is not None and state.frozen_since is None:
        return _judge(state, now, state.last_beat)
    return state, ()


def _judge(state: RunState, now: float, last_beat: float) -> Step:
    timing = state.timing
    if timing.ttl is not None and state.acknowledged is not None and now - state.acknowledged >= timing.ttl:
        reason = f"lived longer than its {timing.ttl:g} s"
        return _reap(state, Outcome(fail=FailKind.EXPIRED, reason=reason), _log(EventKind.EXPIRED, reason=reason))
    idle = None if state.progress is None else now - state.progress
    found = standing(now - last_beat, timing.interval, idle=idle, stall=timing.stall)
    if found is Standing.SILENT:
        silence = now - last_beat
        reason = f"silent for {silence:.1f} s, more than two intervals of {timing.interval:g} s"
        return _orphan(state, now, "silent", reason, may_hold=True)
    if found is Standing.LATE and not state.late:
        return replace(state, late=True), (_log(EventKind.BEAT_LATE, seconds=round(now - last_beat, 1)),)
    if found is Standing.STALLED and not state.stalled and state.phase is Phase.RUNNING:
        return replace(state, stalled=True), (_log(EventKind.STALLED, seconds=round(idle or 0.0, 1)),)
    return state, ()


def _beat(state: RunState, now: float, data: dict[str, Any]) -> Step:
    """A beat may say for how many seconds nothing has moved (`idle`), and how long the next may take (`extend`)."""
    if state.phase not in _BEATING or state.frozen_since is not None:
        return state, ()
    timing, beat, progress = state.timing, now, None
    if timing.ttl is not None and state.acknowledged is not None and "extend" in data:
        beat = promised(now, data["extend"], timing.interval, state.acknowledged + timing.ttl)
    if "idle" in data:
        moved_at = now - data["idle"]
        # Whoever counts may have stood still itself, so what is known already is not taken back.
        progress = moved_at if state.progress is None else max(moved_at, state.progress)
    stalled = state.stalled and progress is not None and now - progress >= timing.stall
    logs = ((EventKind.BEAT_BACK, state.late), (EventKind.GOING_ON, state.stalled and not stalled))
    moved = replace(state, last_beat=max(beat, state.last_beat or beat), late=False, progress=progress, stalled=stalled)
    return moved, tuple(_log(kind) for kind, happened in logs if happened)


def _freeze(state: RunState, now: float) -> Step:
    if state.phase is not Phase.RUNNING or state.frozen_since is not None:
        return state, ()
    return replace(state, frozen_since=now), (_log(EventKind.FROZEN), Effect(Do.STOP))


def _thaw(state: RunState, now: float) -> Step:
    if state.frozen_since is None:
        return state, ()
    seconds = now - state.frozen_since
    thawed = shift(replace(state, frozen_since=None), seconds)
    return thawed, (_log(EventKind.THAWED, seconds=round(seconds, 1)), Effect(Do.CONTINUE))


def _gate(state: RunState, signal: Signal, now: float, data: dict[str, Any]) -> Step:
    expected, then, kind = _GATES[signal]
    if state.phase is not expected:
        return state, (_log(EventKind.OUT_OF_ORDER, method=str(signal), phase=str(state.phase)),)
    moved = replace(state, phase=then, frozen_since=None, stalled=False)
    if signal is Signal.ACKNOWLEDGED:
        moved = replace(moved, acknowledged=now, last_beat=now)
    elif signal is Signal.REPORTED:
        outcome = data.get("outcome") or Outcome()
        moved = replace(moved, closing_since=now, outcome=outcome)
        data = {**data, "outcome": outcome.as_data()}
    return moved, (_log(kind, **data),)


def _ended_badly(state: RunState, signal: Signal, now: float, data: dict[str, Any]) -> Step:
    reason = str(data.get("reason", ""))
    if signal is Signal.REJECTED:
        if state.phase is not Phase.CLAIMED:
            return state, (_log(EventKind.OUT_OF_ORDER, method=str(signal), phase=str(state.phase)),)
        return _reap(
            state, Outcome(fail=FailKind.REJECTED, reason=reason), _log(EventKind.INHERITANCE_REJECTED, **data)
        )
    if signal is Signal.BREACHED:
        kind = EventKind.SLICE_BREACHED if data.get("of", "slice") == "slice" else EventKind.LIMIT_BREACHED
        return _reap(state, Outcome(fail=FailKind.PROTOCOL_VIOLATION, reason=reason), _log(kind, **data))
    if signal is Signal.VIOLATED:
        return _reap(
            state,
            Outcome(fail=FailKind.PROTOCOL_VIOLATION, reason=reason),
            _log(EventKind.PROTOCOL_VIOLATION, **data),
        )
    if signal is Signal.CANCELLED:
        return _reap(state, Outcome(fail=FailKind.CANCELLED, reason=reason), _log(EventKind.CANCELLED, **data))
    if signal is Signal.QUARANTINED:
        return _reap(state, Outcome(block=BlockKind.HOLD, reason=reason), _log(EventKind.QUARANTINED, **data))
    if signal is Signal.FAILED:
        return _reap(state, Outcome(fail=FailKind.ERROR, reason=reason))
    return _orphan(state, now, str(signal), reason, may_hold=False)


def step(state: RunState, signal: Signal, now: float, data: dict[str, Any] | None = None) -> Step:
    """One step of the machine. What is out of order changes nothing and is journalled."""
    facts = data or {}
    if signal is Signal.DEAD:
        if state.phase not in (Phase.REAPING, Phase.CLOSING):
            return state, ()
        return replace(state, phase=Phase.ENDED), (Effect(Do.SETTLE),)
    if state.phase in _OVER:
        late = signal in _GATES or signal is Signal.REJECTED
        return state, ((_log(EventKind.OUT_OF_ORDER, method=str(signal), phase=str(state.phase)),) if late else ())
    if signal is Signal.TICK:
        return _tick(state, now)
    if signal is Signal.BEAT:
        return _beat(state, now, facts)
    if signal is Signal.FREEZE:
        return _freeze(state, now)
    if signal is Signal.THAW:
        return _thaw(state, now)
    if signal in _GATES:
        return _gate(state, signal, now, facts)
    if state.phase is Phase.CLOSING and signal is not Signal.CANCELLED:
        return state, ()
    return _ended_badly(state, signal, now, facts)


def shift(state: RunState, seconds: float) -> RunState:
    """Move every deadline by a pause in which nobody could have kept it (a freeze or a suspend)."""

    def later(moment: float | None) -> float | None:
        return None if moment is None else moment + seconds

    return replace(
        state,
        started=state.started + seconds,
        acknowledged=later(state.acknowledged),
        last_beat=later(state.last_beat),
        progress=later(state.progress),
        held_until=later(state.held_until),
        closing_since=later(state.closing_since),
        frozen_since=later(state.frozen_since),
    )
