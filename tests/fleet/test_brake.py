"""Five ends in a quarter of an hour close the brake, and no successful start opens it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from council_tui.fleet.brake import CRASHES, HOLDS, WINDOW_SECONDS, Brake


def test_the_fifth_end_within_the_window_closes_it_and_says_so_once():
    brake = Brake()
    assert [brake.failed("x", now) for now in (0, 10, 30, 70, 150, 160)] == [False] * 4 + [True, False]
    assert brake.held("x", 160) > 0
    assert brake.held("y", 160) == 0


def test_it_opens_when_the_first_of_the_five_is_a_quarter_of_an_hour_ago():
    brake = Brake()
    for now in (0, 10, 30, 70, 150):
        brake.failed("x", now)
    assert brake.held("x", 150) == WINDOW_SECONDS - 150
    assert brake.held("x", WINDOW_SECONDS - 1) == 1
    assert brake.held("x", WINDOW_SECONDS) == 0
    assert brake.failed("x", WINDOW_SECONDS), "four are still in the window, so the next closes it again"


def test_ends_that_are_far_apart_never_close_it():
    brake = Brake()
    assert not any(brake.failed("x", now) for now in range(0, 100_000, int(WINDOW_SECONDS / 4)))


def test_only_what_held_out_takes_off_what_was_counted():
    brake = Brake()
    for now in range(CRASHES):
        brake.failed("x", now)
    brake.sustained("x")
    assert (brake.held("x", 5), brake.would_close("x", 5)) == (0, False)


def test_after_it_has_closed_three_times_waiting_is_no_use():
    brake, now = Brake(), 0.0
    for closing in range(HOLDS):
        assert not brake.given_up("x"), closing
        while not brake.failed("x", now):
            now += 1
        now += brake.held("x", now)
    assert brake.given_up("x")
    brake.sustained("x")
    assert not brake.given_up("x")


@given(st.lists(st.tuples(st.floats(0, 500), st.sampled_from("ab")), max_size=60))
def test_no_more_than_five_ends_lie_in_any_window_while_the_brake_is_obeyed(steps):
    brake, now, ends = Brake(), 0.0, {"a": [], "b": []}
    for pause, what in steps:
        now += pause
        if brake.held(what, now):
            continue
        foreseen = brake.would_close(what, now)
        assert brake.failed(what, now) == foreseen
        ends[what].append(now)
        assert sum(1 for end in ends[what] if now - end < WINDOW_SECONDS) <= CRASHES
