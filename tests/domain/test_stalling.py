"""A run that beats and does nothing is told once, never ended for it, and told again when it goes on."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from council_tui.domain.contract import LifecyclePolicy
from council_tui.domain.events import EventKind as K
from council_tui.domain.lifecycle import Phase, RunState, Signal, Timing, shift, step

TIMING = Timing(interval=30, window=300, ttl=3600, stall=300)


def running(timing: Timing = TIMING) -> RunState:
    """An acknowledged run at 0, whose beats tell how long nothing has moved."""
    return RunState(timing, 0.0, Phase.RUNNING, acknowledged=0.0, last_beat=0.0)


def life(state: RunState, *steps: tuple[Signal, float, dict | None]) -> tuple[RunState, list[K]]:
    """The state after these steps, and what was journalled on the way."""
    told: list[K] = []
    for signal, now, data in steps:
        state, effects = step(state, signal, now, data)
        told += [effect.kind for effect in effects if effect.kind is not None]
    return state, told


def beats(until: float, since: float = 0.0):
    """Beats every 10 s and a look after each, with nothing moving since `since`."""
    for now in range(int(since) + 10, int(until) + 1, 10):
        yield Signal.BEAT, float(now), {"idle": now - since}
        yield Signal.TICK, float(now), None


def test_five_minutes_of_beats_without_work_are_told_once_and_end_nobody():
    state, told = life(running(), *beats(290))
    assert told == []
    state, told = life(state, *beats(3590))
    assert told == [K.STALLED]
    assert (state.phase, state.stalled) == (Phase.RUNNING, True)


def test_a_stall_of_405_seconds_that_passes_is_told_and_taken_back():
    state, told = life(running(), *beats(405), (Signal.BEAT, 406.0, {"idle": 0.0}), *beats(600, since=406))
    assert told == [K.STALLED, K.GOING_ON]
    assert (state.phase, state.stalled) == (Phase.RUNNING, False)


def test_who_stalls_and_falls_silent_is_an_orphan_like_any_other():
    state, told = life(running(), *beats(400), (Signal.TICK, 461.0, None))
    assert told == [K.STALLED, K.ORPHANED]
    assert state.phase is Phase.REAPING


def test_nobody_whose_work_cannot_be_seen_is_stalled():
    state, told = life(running(), *((Signal.BEAT, float(now), None) for now in range(10, 3000, 10)))
    assert (told, state.progress) == ([], None)


def test_time_in_which_nobody_could_work_is_no_stall():
    frozen, _ = life(running(), *beats(200), (Signal.FREEZE, 200.0, None), (Signal.THAW, 1000.0, None))
    # The runner's own clock went on meanwhile.
    state, told = life(frozen, (Signal.BEAT, 1010.0, {"idle": 1010.0}), (Signal.TICK, 1010.0, None))
    assert told == []
    slept, told = life(shift(running(), 800.0), (Signal.BEAT, 810.0, {"idle": 10.0}), (Signal.TICK, 810.0, None))
    assert (told, slept.progress) == ([], 800.0)
    assert state.progress == 800.0


def test_a_result_ends_a_stall_without_a_word():
    state, told = life(running(), *beats(400), (Signal.RETURNED, 401.0, {}), (Signal.TICK, 402.0, None))
    assert told == [K.STALLED, K.RETURNED]
    assert not state.stalled


def test_a_program_that_asks_for_more_time_gets_it_until_its_life_is_over():
    state, told = life(running(), (Signal.BEAT, 10.0, {"extend": 600.0}), (Signal.TICK, 609.0, None))
    assert (state.phase, told) == (Phase.RUNNING, [K.BEAT_LATE])
    state, told = life(state, (Signal.TICK, 611.0, None))
    assert told == [K.ORPHANED]
    asked, _ = life(running(), (Signal.BEAT, 10.0, {"extend": 1e9}), (Signal.TICK, 3599.0, None))
    assert asked.phase is Phase.RUNNING
    _, told = life(asked, (Signal.TICK, 3600.0, None))
    assert told == [K.EXPIRED]


def test_a_beat_takes_no_promised_time_back_and_no_life_without_end_is_extended():
    state, _ = life(running(), (Signal.BEAT, 10.0, {"extend": 600.0}), (Signal.BEAT, 20.0, None))
    assert life(state, (Signal.TICK, 600.0, None))[0].phase is Phase.RUNNING
    endless = running(Timing(interval=30, window=300))
    assert life(endless, (Signal.BEAT, 10.0, {"extend": 600.0}), (Signal.TICK, 71.0, None))[1] == [K.ORPHANED]


@given(st.lists(st.tuples(st.integers(0, 90), st.none() | st.integers(0, 2000)), max_size=40))
def test_stalled_and_going_on_take_turns_whatever_the_beats_say(said):
    state, now, told = running(), 0.0, []
    for pause, idle in said:
        now += pause
        state, heard = life(state, (Signal.BEAT, now, None if idle is None else {"idle": float(idle)}))
        told += heard
        state, heard = life(state, (Signal.TICK, now, None))
        told += heard
    turns = [kind for kind in told if kind in (K.STALLED, K.GOING_ON)]
    assert turns == [K.STALLED, K.GOING_ON] * (len(turns) // 2) + [K.STALLED] * (len(turns) % 2)
    assert state.stalled == (len(turns) % 2 == 1)


def test_how_long_a_stall_may_be_is_in_the_contract():
    assert Timing.of(LifecyclePolicy(), 60).stall == 300
    assert Timing.of(LifecyclePolicy(stall_seconds=7), 60).stall == 7
