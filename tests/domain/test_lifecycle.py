"""The life of a run: no sequence of signals, deaths and clock steps breaks its rules."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from council_tui.domain.card import FailKind
from council_tui.domain.contract import LifecyclePolicy
from council_tui.domain.events import EventKind
from council_tui.domain.lifecycle import Do, Outcome, Phase, RunState, Signal, Timing, shift, step

GATES = [
    Signal.HELLO,
    Signal.DELEGATED,
    Signal.CLAIMED,
    Signal.VERIFIED,
    Signal.ACCEPTED,
    Signal.ACKNOWLEDGED,
    Signal.RETURNED,
    Signal.REPORTED,
]
PATH = [
    Phase.STARTING,
    Phase.GREETED,
    Phase.DELEGATED,
    Phase.CLAIMED,
    Phase.VERIFIED,
    Phase.ACCEPTED,
    Phase.RUNNING,
    Phase.RETURNED,
    Phase.CLOSING,
]
ALLOWED = {
    *pairwise(PATH),
    *((phase, Phase.REAPING) for phase in [*PATH, Phase.HELD]),
    (Phase.RUNNING, Phase.HELD),
    (Phase.RETURNED, Phase.HELD),
    (Phase.CLOSING, Phase.ENDED),
    (Phase.REAPING, Phase.ENDED),
}
"""Every change of phase that there is."""

TIMING = Timing(interval=30, window=300, ttl=None, grace=5, hold=None)
OUTCOMES = {"outcome": Outcome(reason="reported")}


def at(phase: Phase, timing: Timing = TIMING, now: float = 0.0) -> RunState:
    """A run that came by the right way as far as this phase, all of it at `now`."""
    state = RunState(timing, now)
    for signal in GATES[: PATH.index(phase)]:
        state, _ = step(state, signal, now, OUTCOMES if signal is Signal.REPORTED else None)
    assert state.phase is phase
    return state


def overdue(state: RunState, now: float) -> bool:
    """Whether a deadline of this run has passed, said a second time and in other words than the machine's."""
    timing = state.timing
    if state.phase in PATH[:6]:
        return timing.requires_ack and now > state.started + timing.window
    if state.frozen_since is not None:
        return False
    if state.phase in (Phase.RUNNING, Phase.RETURNED):
        acknowledged, beat = state.acknowledged, state.last_beat
        assert acknowledged is not None
        assert beat is not None
        spent = timing.ttl is not None and now >= acknowledged + timing.ttl
        return spent or now > beat + 2 * timing.interval
    if state.phase is Phase.HELD:
        return state.held_until is not None and now > state.held_until
    return state.phase is Phase.CLOSING and state.closing_since is not None and now > state.closing_since + timing.grace


class Life(RuleBasedStateMachine):
    """One run, and everything that can happen to it in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.settled = 0
        self.outcome: Outcome | None = None
        self.state = RunState(TIMING, 0.0)

    @initialize(
        interval=st.integers(1, 8),
        window=st.integers(9, 40),
        ttl=st.none() | st.integers(1, 60),
        hold=st.none() | st.integers(1, 20),
        requires_ack=st.booleans(),
    )
    def begin(self, interval, window, ttl, hold, requires_ack):
        self.state = RunState(Timing(interval, window, requires_ack, ttl, 5, hold), self.now)

    def happen(self, signal: Signal, data=None) -> None:
        before = self.state
        self.state, effects = step(before, signal, self.now, data)
        if self.state.phase is not before.phase:
            assert (before.phase, self.state.phase) in ALLOWED
        if before.phase is Phase.ENDED:
            assert self.state == before
            assert all(effect.do is Do.LOG for effect in effects)
        self.settled += sum(effect.do is Do.SETTLE for effect in effects)
        assert sum(effect.do is Do.REAP for effect in effects) == (
            self.state.phase is Phase.REAPING and before.phase is not Phase.REAPING
        )
        if before.outcome is not None:
            assert self.state.outcome == before.outcome

    @rule(signal=st.sampled_from([s for s in Signal if s not in (Signal.TICK, Signal.DEAD)]))
    def anything(self, signal):
        self.happen(signal, OUTCOMES if signal is Signal.REPORTED else {"reason": "because"})

    @rule(idle=st.none() | st.integers(0, 1000), extend=st.none() | st.integers(1, 1000))
    def beat_that_tells(self, idle, extend):
        before = self.state.phase
        told = {"idle": idle, "extend": extend}
        self.happen(Signal.BEAT, {key: float(value) for key, value in told.items() if value is not None})
        assert self.state.phase is before

    @precondition(lambda self: self.state.phase in PATH[:-1])
    @rule()
    def next_gate(self):
        signal = GATES[PATH.index(self.state.phase)]
        self.happen(signal, OUTCOMES if signal is Signal.REPORTED else None)

    @rule(seconds=st.integers(0, 30))
    def time_passes(self, seconds):
        self.now += seconds

    @rule()
    def tick(self):
        late = overdue(self.state, self.now)
        before = self.state.phase
        self.happen(Signal.TICK)
        if late:
            assert self.state.phase in (Phase.REAPING, Phase.HELD)
            assert self.state.phase is not before
        else:
            assert self.state.phase is before

    @rule()
    def proved_dead(self):
        before = self.state.phase
        self.happen(Signal.DEAD)
        assert (self.state.phase is Phase.ENDED) == (before in (Phase.REAPING, Phase.CLOSING, Phase.ENDED))

    @rule(seconds=st.integers(1, 100_000))
    def everything_freezes(self, seconds):
        self.tick()
        phase = self.state.phase
        self.now += seconds
        self.state = shift(self.state, seconds)
        self.happen(Signal.TICK)
        assert self.state.phase is phase

    @invariant()
    def settles_exactly_when_it_ends(self):
        assert self.settled == (self.state.phase is Phase.ENDED)

    @invariant()
    def an_end_has_an_outcome(self):
        if self.state.phase in (Phase.HELD, Phase.CLOSING, Phase.REAPING, Phase.ENDED):
            assert self.state.outcome is not None


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)


def kinds(effects) -> list[EventKind]:
    """What was journalled."""
    return [effect.kind for effect in effects if effect.do is Do.LOG]


def test_sixty_seconds_of_silence_at_thirty_is_no_orphan():
    state, effects = step(at(Phase.RUNNING), Signal.TICK, 60.0)
    assert state.phase is Phase.RUNNING
    assert EventKind.ORPHANED not in kinds(effects)


def test_sixty_one_seconds_of_silence_at_thirty_is_an_orphan():
    state, effects = step(at(Phase.RUNNING), Signal.TICK, 61.0)
    assert state.phase is Phase.REAPING
    assert state.outcome is not None
    assert state.outcome.fail is FailKind.ORPHANED
    assert effects[0].kind is EventKind.ORPHANED
    assert effects[0].data["cause"] == "silent"


def test_a_beat_starts_the_silence_anew():
    state, _ = step(at(Phase.RUNNING), Signal.BEAT, 59.0)
    state, _ = step(state, Signal.TICK, 119.0)
    assert state.phase is Phase.RUNNING


def test_a_late_beat_is_told_once_and_its_return_once():
    state, first = step(at(Phase.RUNNING), Signal.TICK, 40.0)
    state, second = step(state, Signal.TICK, 41.0)
    state, back = step(state, Signal.BEAT, 42.0)
    assert (kinds(first), kinds(second), kinds(back)) == ([EventKind.BEAT_LATE], [], [EventKind.BEAT_BACK])


@pytest.mark.parametrize("phase", PATH[:6])
def test_whoever_has_not_acknowledged_by_the_deadline_is_an_orphan(phase):
    assert step(at(phase), Signal.TICK, 300.0)[0].phase is phase
    state, effects = step(at(phase), Signal.TICK, 300.1)
    assert state.phase is Phase.REAPING
    assert effects[0].data["cause"] == "no_acknowledgement"


@pytest.mark.parametrize("phase", PATH[:6])
def test_without_required_acknowledgement_only_the_deadline_falls_away(phase):
    timing = replace(TIMING, requires_ack=False)
    state, _ = step(at(phase, timing), Signal.TICK, 1e6)
    assert state.phase is phase
    assert step(state, Signal.PROCESS_GONE, 1e6)[0].phase is Phase.REAPING


def test_a_time_to_live_counts_from_the_acknowledgement():
    state = at(Phase.RUNNING, replace(TIMING, ttl=10, interval=1000))
    assert step(state, Signal.TICK, 9.9)[0].phase is Phase.RUNNING
    ended, effects = step(state, Signal.TICK, 10.0)
    assert ended.outcome is not None
    assert (ended.phase, ended.outcome.fail) == (Phase.REAPING, FailKind.EXPIRED)
    assert kinds(effects) == [EventKind.EXPIRED]


def test_a_held_orphan_is_stopped_and_kept_until_its_deadline():
    state, effects = step(at(Phase.RUNNING, replace(TIMING, hold=600)), Signal.TICK, 61.0)
    assert state.phase is Phase.HELD
    assert [effect.do for effect in effects] == [Do.LOG, Do.LOG, Do.STOP]
    assert step(state, Signal.TICK, 661.0)[0].phase is Phase.HELD
    assert step(state, Signal.TICK, 661.1)[0].phase is Phase.REAPING


def test_a_held_orphan_stays_an_orphan_when_a_person_reaps_it():
    state, _ = step(at(Phase.RUNNING, replace(TIMING, hold=600)), Signal.TICK, 61.0)
    state, _ = step(state, Signal.CANCELLED, 62.0, {"reason": "reaped by the operator"})
    assert state.outcome is not None
    assert (state.phase, state.outcome.fail) == (Phase.REAPING, FailKind.ORPHANED)


@pytest.mark.parametrize("signal", [Signal.PROCESS_GONE, Signal.PARENT_GONE])
def test_only_silence_is_held_and_never_a_death(signal):
    assert step(at(Phase.RUNNING, replace(TIMING, hold=600)), signal, 1.0)[0].phase is Phase.REAPING


def test_a_reported_run_that_does_not_leave_is_reaped_and_still_done():
    state, _ = step(at(Phase.CLOSING), Signal.TICK, 5.1)
    assert (state.phase, state.outcome) == (Phase.REAPING, Outcome(reason="reported"))


@given(st.sampled_from(GATES), st.sampled_from(PATH))
def test_a_gate_out_of_order_changes_nothing_and_is_journalled(signal, phase):
    state = at(phase)
    after, effects = step(state, signal, 1.0)
    if GATES.index(signal) != PATH.index(phase):
        assert after == state
        assert kinds(effects) == [EventKind.OUT_OF_ORDER]


def test_the_life_ends_at_the_time_budget_or_the_ttl_whichever_is_sooner():
    policy = LifecyclePolicy(run_ttl_seconds=100, orphan_policy="hold", hold_seconds=7)
    assert Timing.of(policy, 60).ttl == 60
    assert Timing.of(policy, 600).ttl == 100
    assert Timing.of(policy, None).hold == 7
    assert Timing.of(LifecyclePolicy(), None).ttl is None


def test_whatever_keys_a_result_has_it_is_journalled():
    state = RunState(Timing(30, 60), 0.0, Phase.RUNNING, acknowledged=0.0, last_beat=0.0)
    moved, effects = step(state, Signal.RETURNED, 1.0, {"kind": "x", "do": 1, "data": 2, "state": 3})
    assert moved.phase is Phase.RETURNED
    assert effects[0].data == {"kind": "x", "do": 1, "data": 2, "state": 3}


def test_a_frozen_run_is_judged_by_nothing_and_goes_on_with_its_time_unspent():
    timing = Timing(interval=30, window=300, ttl=100, grace=5)
    state, effects = step(at(Phase.RUNNING, timing), Signal.FREEZE, 10.0)
    assert [effect.do for effect in effects] == [Do.LOG, Do.STOP]
    state, _ = step(state, Signal.BEAT, 500.0)
    same, effects = step(state, Signal.TICK, 10_000.0)
    assert (same, effects) == (state, ())
    state, effects = step(state, Signal.THAW, 10_010.0)
    assert [effect.do for effect in effects] == [Do.LOG, Do.CONTINUE]
    state, _ = step(state, Signal.TICK, 10_050.0)
    assert state.phase is Phase.RUNNING
    beaten, _ = step(state, Signal.BEAT, 10_095.0)
    state, _ = step(beaten, Signal.TICK, 10_100.0)
    assert state.outcome is not None
    assert state.outcome.fail is FailKind.EXPIRED


def test_only_a_running_agent_is_frozen_and_twice_is_the_same_as_once():
    for phase in (Phase.STARTING, Phase.ACCEPTED, Phase.RETURNED, Phase.CLOSING):
        state = at(phase)
        assert step(state, Signal.FREEZE, 1.0) == (state, ())
        assert step(state, Signal.THAW, 1.0) == (state, ())
    frozen, _ = step(at(Phase.RUNNING), Signal.FREEZE, 1.0)
    assert step(frozen, Signal.FREEZE, 2.0) == (frozen, ())


def test_a_frozen_run_can_be_reaped():
    frozen, _ = step(at(Phase.RUNNING), Signal.FREEZE, 1.0)
    state, _ = step(frozen, Signal.CANCELLED, 2.0, {"reason": "enough"})
    assert (state.phase, state.frozen_since) == (Phase.REAPING, None)
