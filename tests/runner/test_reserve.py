"""Who has no descriptor left can still look and kill; and who cannot look proves nobody dead."""

from __future__ import annotations

import errno
import os
import signal
import subprocess

import pytest
from faults.shortage import no_descriptors

from council_tui.runner import guard
from council_tui.runner.reserve import KEPT, Reserve


@pytest.fixture
def sleeper():
    process = subprocess.Popen(["sleep", "600"], env={"COUNCIL_RUN": "r_reserve", "PATH": os.environ["PATH"]})
    yield process
    process.kill()
    process.wait()


def test_without_a_descriptor_a_guard_still_sees_names_and_kills(sleeper):
    while guard.marker_of(sleeper.pid) is None:
        assert sleeper.poll() is None
    with no_descriptors():
        with pytest.raises(OSError, match="Too many open files"):
            os.open("/", os.O_RDONLY)
        seen = guard.read_process(sleeper.pid)
        assert seen is not None
        assert sleeper.pid in [process.pid for process in guard.descendants(os.getpid())]
        assert (sleeper.pid, "r_reserve") in [(process.pid, run) for process, run in guard.all_marked()]
        assert guard.send(seen, signal.SIGTERM)
    assert sleeper.wait() == -signal.SIGTERM


def test_who_cannot_look_says_so_and_calls_nobody_dead(sleeper, monkeypatch):
    monkeypatch.setattr("council_tui.runner.guard.reserve", Reserve())
    guard.reserve._kept.clear()
    seen = guard.read_process(sleeper.pid)
    assert seen is not None
    with no_descriptors():
        for look in (guard.read_process, guard.children_of, guard.marker_of, guard.descendants):
            with pytest.raises(OSError, match="Too many open files"):
                look(sleeper.pid)
        assert not guard.send(seen, signal.SIGKILL), "not sent, and nothing is concluded from it"
    assert sleeper.poll() is None


def test_what_was_given_back_is_kept_again_and_the_standard_streams_are_left_alone():
    kept = Reserve()
    first = list(kept._kept)
    assert len(first) == KEPT
    assert min(first) > 2
    with no_descriptors():
        assert kept.use(lambda: _opened(3)) == 3
        with pytest.raises(OSError, match="Too many"):
            kept.use(lambda: _opened(KEPT + 1))
        assert len(kept._kept) == KEPT
    for fd in kept._kept:
        os.close(fd)


def test_another_error_is_raised_at_once():
    kept = Reserve()
    asked = []

    def work():
        asked.append(1)
        raise OSError(errno.ENOENT, "gone")

    with pytest.raises(FileNotFoundError):
        kept.use(work)
    assert len(asked) == 1
    for fd in kept._kept:
        os.close(fd)


def _opened(count):
    """How many files could be opened at the same time, if so many could."""
    fds = []
    try:
        for _ in range(count):
            fds.append(os.open("/", os.O_PATH))  # noqa: PERF401
        return len(fds)
    finally:
        for fd in fds:
            os.close(fd)
