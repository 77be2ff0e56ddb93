"""A run's state as the journal tells it, for a supervisor that was not there: a pure fold over its events.

Times are not in it: the journal's clock is for people. What was running counts as having beaten just now, and
the runner, which has a monotonic clock of its own, says how long it has really been at work.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from council_tui.domain.card import BlockKind, FailKind
from council_tui.domain.events import EventKind
from council_tui.domain.lifecycle import Outcome, Phase, RunState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from council_tui.domain.lifecycle import Timing

K = EventKind

_PHASES: dict[EventKind, Phase] = {
    K.AGENT_STARTED: Phase.STARTING,
    K.HELLO: Phase.GREETED,
    K.DELEGATED: Phase.DELEGATED,
    K.CLAIMED: Phase.CLAIMED,
    K.INHERITANCE_VERIFIED: Phase.VERIFIED,
    K.ACCEPTED: Phase.ACCEPTED,
    K.ACKNOWLEDGED: Phase.RUNNING,
    K.RETURNED: Phase.RETURNED,
    K.REPORTED: Phase.CLOSING,
    K.HELD: Phase.HELD,
    K.REAP_STARTED: Phase.REAPING,
}
_FAILS: dict[EventKind, FailKind] = {
    K.ORPHANED: FailKind.ORPHANED,
    K.EXPIRED: FailKind.EXPIRED,
    K.CANCELLED: FailKind.CANCELLED,
    K.SLICE_BREACHED: FailKind.PROTOCOL_VIOLATION,
    K.LIMIT_BREACHED: FailKind.PROTOCOL_VIOLATION,
    K.PROTOCOL_VIOLATION: FailKind.PROTOCOL_VIOLATION,
    K.INHERITANCE_REJECTED: FailKind.REJECTED,
}
"""An end that was decided is carried out, also when its reap had not begun."""
CAN_BE_TAKEN_BACK = frozenset({Phase.ACCEPTED, Phase.RUNNING, Phase.RETURNED, Phase.CLOSING, Phase.HELD})
"""Phases in which a runner comes back to a new supervisor; before them it leaves, and nothing has begun."""


def restore(timing: Timing, events: Iterable[tuple[EventKind, dict[str, Any]]], now: float) -> RunState:
    """The state after these events, as if all of it had happened at `now` (seconds, the supervisor's clock)."""
    state = RunState(timing, now)
    for kind, data in events:
        if kind in (K.FROZEN, K.THAWED):
            state = replace(state, frozen_since=now if kind is K.FROZEN else None)
        elif kind in (K.STALLED, K.GOING_ON):
            state = replace(state, stalled=kind is K.STALLED)
        elif kind in _FAILS or kind is K.QUARANTINED:
            block = BlockKind.HOLD if kind is K.QUARANTINED else None
            ended = state.outcome or Outcome(_FAILS.get(kind), block, str(data.get("reason", "")))
            state = replace(state, phase=Phase.REAPING, outcome=ended, frozen_since=None)
        elif (phase := _PHASES.get(kind)) is not None:
            state = _entered(replace(state, phase=phase, frozen_since=None, stalled=False), data, now)
    return state


def _entered(state: RunState, data: dict[str, Any], now: float) -> RunState:
    if state.phase is Phase.RUNNING:
        return replace(state, acknowledged=now, last_beat=now)
    if state.phase is Phase.HELD:
        return replace(state, held_until=now + float(data["until_seconds"]))
    if state.phase in (Phase.CLOSING, Phase.REAPING):
        # What was decided first stands: a reported agent that did not leave is still done.
        outcome = state.outcome or Outcome.of(data.get("outcome", {}))
        return replace(state, outcome=outcome, closing_since=now if state.phase is Phase.CLOSING else None)
    return state


def as_told(state: RunState, now: float, active: float | None, stopped: float | None) -> RunState:
    """What the runner knows better. `active`: seconds at work since its acknowledgement, pauses left out;
    `stopped`: for how long its tree has stood still, None while it does not."""
    acknowledged = state.acknowledged if active is None or state.acknowledged is None else now - active
    if state.phase is Phase.HELD and stopped is not None and state.timing.hold is not None:
        return replace(state, acknowledged=acknowledged, held_until=now - stopped + state.timing.hold)
    if state.frozen_since is None:
        return replace(state, acknowledged=acknowledged, last_beat=now, late=False)
    since = now - (stopped or 0.0)
    # The clocks are moved on by all of the freeze when it is thawed.
    lived = None if acknowledged is None or active is None else since - active
    return replace(state, acknowledged=lived, frozen_since=since)
