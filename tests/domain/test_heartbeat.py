"""How an agent stands: slow, stalled, silent, dead and unknown are told apart, and only silence ends anyone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council_tui.domain.heartbeat import STALL_SECONDS, Standing, promised, silent_at, standing

SECONDS = st.floats(0, 1e5)
INTERVALS = st.floats(0.1, 1e4)


@pytest.mark.parametrize(
    ("silence", "found"),
    [
        (0, Standing.ALIVE),
        (37.5, Standing.ALIVE),
        (37.6, Standing.LATE),
        (60, Standing.LATE),
        (60.001, Standing.SILENT),
        (61, Standing.SILENT),
    ],
)
def test_at_thirty_seconds_sixty_of_silence_are_survived_and_sixty_one_are_not(silence, found):
    assert standing(silence, 30) is found


@given(SECONDS, INTERVALS, SECONDS)
def test_silence_begins_exactly_after_the_moment_that_is_announced(last, interval, silence):
    now = last + silence
    assert (standing(now - last, interval) is Standing.SILENT) == (now - last > 2 * interval)
    assert silent_at(last, interval) == last + 2 * interval


@pytest.mark.parametrize(
    ("silence", "idle", "gone", "found"),
    [
        (1, 0, False, Standing.ALIVE),
        (1, None, False, Standing.ALIVE),
        (1, STALL_SECONDS - 0.1, False, Standing.ALIVE),
        (1, STALL_SECONDS, False, Standing.STALLED),
        (40, STALL_SECONDS, False, Standing.LATE),
        (61, 0, False, Standing.SILENT),
        (61, STALL_SECONDS, False, Standing.SILENT),
        (61, 0, True, Standing.DEAD),
        (1, 0, True, Standing.DEAD),
        (None, None, True, Standing.DEAD),
        (None, None, False, Standing.UNKNOWN),
        (61, 0, None, Standing.UNKNOWN),
        (1, 0, None, Standing.ALIVE),
    ],
)
def test_each_way_to_hang_has_its_own_word(silence, idle, gone, found):
    assert standing(silence, 30, idle=idle, gone=gone) is found


@given(st.none() | SECONDS, INTERVALS, st.none() | SECONDS, SECONDS, st.sampled_from([True, False, None]))
def test_no_progress_never_makes_an_agent_silent_or_dead(silence, interval, idle, stall, gone):
    found = standing(silence, interval, idle=idle, stall=stall, gone=gone)
    busy = standing(silence, interval, idle=0.0, stall=1e6, gone=gone)
    assert found is busy or (found, busy) == (Standing.STALLED, Standing.ALIVE)


@given(SECONDS, SECONDS, INTERVALS, SECONDS)
def test_a_promised_pause_delays_silence_to_its_end_and_never_beyond_the_end_of_a_life(now, seconds, interval, left):
    beat = promised(now, seconds, interval, now + left)
    assert beat >= now
    end = silent_at(beat, interval)
    assert end <= max(now + left, silent_at(now, interval)) + 1e-3
    assert end == pytest.approx(max(silent_at(now, interval), min(now + seconds, now + left)), abs=1e-3)
