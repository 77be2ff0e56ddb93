"""A tree added up from /proc: every thread counts, and a page that several share counts once when it matters."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from council_tui.domain.contract import ResourceLimits
from council_tui.runner import footprint as module
from council_tui.runner.bounds import Bounds
from council_tui.runner.footprint import footprint

if TYPE_CHECKING:
    from collections.abc import Iterator

MB = 1024 * 1024
THREADS = "import threading; [threading.Thread(target=input, daemon=True).start() for _ in range(3)]; print(); input()"
SHARED = """
import os
block = bytearray(40 << 20)
for _ in range(3):
    if os.fork() == 0:
        os.read(0, 1)
        os._exit(0)
print(flush=True)
os.read(0, 1)
"""


@contextmanager
def tree(code: str) -> Iterator[int]:
    """A program that has set itself up; its pid. It ends with its input."""
    argv = [sys.executable, "-I", "-S", "-u", "-c", code]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as started:
        assert started.stdout is not None
        assert started.stdin is not None
        started.stdout.readline()
        try:
            yield started.pid
        finally:
            started.stdin.close()


def soft(limits: ResourceLimits) -> Bounds:
    """Limits on a machine without cgroups."""
    return Bounds("r_1", limits, {}, strong=False, spare=0)


def test_threads_count_as_much_as_processes_and_the_spared_do_not():
    with tree(THREADS) as pid:
        mine = footprint(os.getpid())
        assert pid in mine.pids
        assert mine.tasks - footprint(os.getpid(), frozenset({pid})).tasks == 4
        assert soft(ResourceLimits(processes=mine.tasks)).passed(os.getpid(), frozenset()) == {}
        breach = soft(ResourceLimits(processes=mine.tasks - 1)).passed(os.getpid(), frozenset())
    assert breach["of"] == "processes"
    assert breach["reason"] == f"it has {mine.tasks} processes and threads, its limit is {mine.tasks - 1}"


def test_memory_that_a_tree_shares_is_counted_once_before_anybody_is_ended_for_it():
    with tree(SHARED):
        found = footprint(os.getpid())
        assert found.resident > 4 * 40 * MB
        assert 40 * MB < found.shared_out() < 100 * MB
        assert soft(ResourceLimits(memory_mb=100)).passed(os.getpid(), frozenset()) == {}
        breach = soft(ResourceLimits(memory_mb=20)).passed(os.getpid(), frozenset())
    assert breach["of"] == "memory"
    assert breach["used"] > breach["limit"] == 20 * MB
    assert breach["reason"].endswith("MiB of memory, its limit is 20 MiB")


def test_who_is_gone_or_hides_its_memory_does_not_stop_the_count(monkeypatch: pytest.MonkeyPatch):
    assert module._size(2**22) == (0, 0)
    assert module._proportional(2**22) == 0
    whole = module._size(os.getpid())[1] * module.PAGE
    real = open

    def keeps_it(path: str, *how: str):
        if path.endswith("smaps_rollup"):
            raise PermissionError(13, "Permission denied", path)
        return real(path, *how)

    monkeypatch.setattr(module, "open", keeps_it, raising=False)
    assert module._proportional(os.getpid()) >= whole // 2


@pytest.mark.parametrize(
    ("strong", "folders", "watched"),
    [(True, {}, True), (False, {"processes": "/nowhere"}, True), (True, {"processes": "/nowhere"}, False)],
)
def test_a_guardian_looks_wherever_a_program_could_get_past_its_cgroup(monkeypatch, strong, folders, watched):
    looks = []
    empty = module.Footprint(0, 0, ())
    monkeypatch.setattr("council_tui.runner.bounds.footprint", lambda *_: looks.append(1) or empty)
    bounds = Bounds("r_1", ResourceLimits(processes=4), folders, strong=strong, spare=0)
    assert bounds.passed(1, frozenset()) == {}
    assert bool(looks) is watched


def test_without_limits_nothing_is_made_looked_at_or_told():
    bounds = Bounds("r_1", None, {"memory": "/nowhere"}, strong=False, spare=0)
    bounds.make()
    assert (bounds.passed(1, frozenset()), bounds.notes()) == ({}, ())
