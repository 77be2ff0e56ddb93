"""Who is who among processes: a pid alone is nobody's name."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from council_tui.runner import guard

NEST = """
import subprocess, sys
inner = subprocess.Popen(["sleep", "600"])
print(inner.pid, flush=True)
sys.stdin.read()
inner.kill()
"""


@pytest.fixture
def sleeper():
    process = subprocess.Popen(["sleep", "600"], env={"COUNCIL_RUN": "r_guardtest", "PATH": os.environ["PATH"]})
    yield process
    process.kill()
    process.wait()


def test_a_signal_reaches_exactly_the_process_that_was_seen(sleeper):
    seen = guard.read_process(sleeper.pid)
    assert seen is not None
    assert not guard.send(replace(seen, start_time=seen.start_time - 1), signal.SIGKILL), "a pid that was reused"
    assert sleeper.poll() is None
    assert guard.send(seen, signal.SIGTERM)
    assert sleeper.wait() == -signal.SIGTERM
    assert not guard.send(seen, signal.SIGKILL), "gone"


def test_the_marker_names_the_run_wherever_the_process_hangs(sleeper):
    # Between fork and exec a process still has its parent's environment.
    while guard.marker_of(sleeper.pid) is None:
        assert sleeper.poll() is None
    assert guard.marker_of(sleeper.pid) == "r_guardtest"
    assert (sleeper.pid, "r_guardtest") in [(process.pid, run) for process, run in guard.all_marked()]
    assert guard.marker_of(2**22 + 1) is None


def test_descendants_leave_out_zombies_and_find_grandchildren():
    outer = subprocess.Popen([sys.executable, "-c", NEST], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert outer.stdin is not None
    assert outer.stdout is not None
    inner = int(outer.stdout.readline())
    assert {outer.pid, inner} <= {process.pid for process in guard.descendants(os.getpid())}
    assert guard.is_below(inner, os.getpid())
    assert not guard.is_below(os.getpid(), inner)
    outer.stdin.close()
    os.waitid(os.P_PID, outer.pid, os.WEXITED | os.WNOWAIT)
    assert outer.pid not in {process.pid for process in guard.descendants(os.getpid())}, "a zombie"
    outer.wait()
    outer.stdout.close()
    assert guard.is_below(outer.pid, os.getpid()), "who is gone gets no benefit of the doubt"


def test_a_slice_is_measured_without_following_links_and_no_further_than_needed(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "file").write_bytes(b"x" * 100_000)
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "big").symlink_to("/proc/kcore")
    usage = guard.slice_usage(str(tmp_path), 10**9)
    assert 100_000 <= usage.used <= 120_000
    assert guard.slice_usage(str(tmp_path / "missing"), 10) == guard.Usage()


def test_a_hole_in_a_file_is_not_counted_as_bytes(tmp_path):
    with (tmp_path / "hole").open("wb") as file:
        file.truncate(10**9)
    assert guard.slice_usage(str(tmp_path), 10**9).used < 10**6


def test_a_slice_too_deep_for_any_path_is_told_as_hidden(tmp_path):
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 240, dir_fd=here)
        deeper = os.open("d" * 240, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)
    assert guard.slice_usage(str(tmp_path), 10**9).hidden == "File name too long"


def test_what_vanishes_while_it_is_counted_is_nothing_hidden(tmp_path):
    assert guard.slice_usage(str(tmp_path / "gone"), 10) == guard.Usage()
