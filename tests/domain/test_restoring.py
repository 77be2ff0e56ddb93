"""What the journal tells of a run is enough to go on with it: the same phase and decided end, as frozen or held."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from council_tui.domain.card import BlockKind, FailKind
from council_tui.domain.events import EventKind as K
from council_tui.domain.lifecycle import Do, Outcome, Phase, RunState, Signal, Timing, step
from council_tui.domain.restoring import CAN_BE_TAKEN_BACK, as_told, restore
from domain.test_lifecycle import GATES

TIMING = Timing(interval=2, window=30, ttl=40, grace=1, hold=None)
HOLDING = replace(TIMING, hold=20)
SIGNALS = [one for one in Signal if one is not Signal.DEAD]
"""What is dead is settled, and no open run any more."""


def journal(timing, signals):
    """The state after these signals, each some seconds after the one before, and what the journal has of them."""
    state, now, told = RunState(timing, 0.0), 0.0, []
    for signal, seconds in signals:
        now += seconds
        outcome = Outcome(FailKind.ERROR, None, "exit status 3") if seconds > 1 else Outcome()
        data = {"reason": f"because of {signal}", **({"outcome": outcome} if signal is Signal.REPORTED else {})}
        state, effects = step(state, signal, now, data)
        for effect in effects:
            if effect.do is Do.LOG:
                told.append((effect.kind, json.loads(json.dumps(effect.data))))
            elif effect.do is Do.REAP:
                # The reaper's first word.
                told.append((K.REAP_STARTED, {"cause": effect.data["cause"], "outcome": state.outcome.as_data()}))
    return state, now, told


OFTEN = [Signal.FREEZE, Signal.THAW, Signal.TICK, Signal.RETURNED]
steps = st.tuples(st.sampled_from([*SIGNALS, *OFTEN * 3]), st.sampled_from([0.0, 0.5, 1.5, 3.0, 5.0, 25.0]))
gates = st.sampled_from([*range(len(GATES) + 1), *[6] * 6])
"""How many of them a run has passed; most of its life it is at work."""


@settings(max_examples=300)
@given(st.sampled_from([TIMING, HOLDING]), gates, st.lists(steps, max_size=8))
def test_a_run_is_restored_from_what_any_sequence_of_signals_left_in_the_journal(timing, passed, more):
    signals = [*((gate, 0.0) for gate in GATES[:passed]), *more]
    state, now, told = journal(timing, signals)
    again = restore(timing, told, now)
    assert (again.phase, again.outcome) == (state.phase, state.outcome)
    assert (again.frozen_since is None) is (state.frozen_since is None)
    assert (again.held_until is None or again.phase is not Phase.HELD) is (state.held_until is None)
    assert (again.acknowledged is None) is (state.acknowledged is None)


@given(st.sampled_from([TIMING, HOLDING]), gates, st.lists(steps, max_size=8), st.data())
def test_a_journal_that_was_cut_off_anywhere_still_makes_a_state_that_goes_on(timing, passed, more, data):
    _, now, told = journal(timing, [*((gate, 0.0) for gate in GATES[:passed]), *more])
    again = restore(timing, told[: data.draw(st.integers(0, len(told)))], now)
    for signal in SIGNALS:
        step(again, signal, now, {"reason": "next"})
    assert (again.outcome is not None) >= (again.phase in (Phase.REAPING, Phase.HELD, Phase.CLOSING))


@pytest.mark.parametrize(
    "signal",
    [
        Signal.BREACHED,
        Signal.VIOLATED,
        Signal.CANCELLED,
        Signal.QUARANTINED,
        Signal.PROCESS_GONE,
        Signal.PARENT_GONE,
        Signal.TICK,
    ],
)
def test_an_end_that_was_decided_is_carried_out_though_its_reap_had_not_begun(signal):
    state, now, told = journal(TIMING, [*((gate, 0.0) for gate in GATES[:6]), (signal, 50.0)])
    again = restore(TIMING, [one for one in told if one[0] is not K.REAP_STARTED], now)
    assert (again.phase, again.outcome) == (Phase.REAPING, state.outcome)


def test_what_was_decided_first_stands_though_the_reap_was_for_another_reason():
    told = [(K.REPORTED, {"outcome": Outcome().as_data()}), (K.CANCELLED, {"reason": "later"})]
    again = restore(TIMING, told, 0.0)
    assert (again.phase, again.outcome) == (Phase.REAPING, Outcome())


def test_a_quarantine_waits_for_a_person():
    again = restore(TIMING, [(K.ACKNOWLEDGED, {}), (K.QUARANTINED, {"reason": "twice"})], 0.0)
    assert again.outcome == Outcome(None, BlockKind.HOLD, "twice")


def test_only_who_has_accepted_can_be_taken_back():
    assert {Phase.STARTING, Phase.GREETED, Phase.DELEGATED, Phase.CLAIMED, Phase.VERIFIED}.isdisjoint(CAN_BE_TAKEN_BACK)
    assert {Phase.REAPING, Phase.ENDED}.isdisjoint(CAN_BE_TAKEN_BACK)


def running(**more):
    return RunState(HOLDING, 0.0, Phase.RUNNING, acknowledged=100.0, last_beat=100.0, late=True, **more)


def test_the_life_of_a_run_goes_on_from_what_its_runner_counts():
    told = as_told(running(), 100.0, active=30.0, stopped=None)
    assert (told.acknowledged, told.last_beat, told.late) == (70.0, 100.0, False)
    state, _ = step(told, Signal.TICK, 110.1)
    assert state.outcome.fail is FailKind.EXPIRED, "it has lived its 40 s"


def test_a_freeze_goes_on_and_costs_no_life_when_it_is_thawed():
    told = as_told(running(frozen_since=100.0), 100.0, active=30.0, stopped=8.0)
    assert told.frozen_since == 92.0
    thawed, _ = step(told, Signal.THAW, 102.0)
    assert thawed.acknowledged == 72.0, "30 s of its life are over"


def test_who_is_held_for_a_person_is_held_no_longer_than_its_contract_says():
    held = replace(running(), phase=Phase.HELD, held_until=120.0)
    assert as_told(held, 100.0, active=30.0, stopped=15.0).held_until == 105.0


@pytest.mark.parametrize("phase", [Phase.ACCEPTED, Phase.CLOSING])
def test_what_has_no_life_to_count_is_left_as_it_was(phase):
    state = RunState(TIMING, 5.0, phase)
    assert as_told(state, 100.0, None, None).acknowledged is None
