"""How the comparison tells its own children from everything else that runs."""

from __future__ import annotations

import subprocess

from comparison.processes import LETTERS, UNDECIDED_SECONDS, Look, alive, escaped, joined, of_trial
from comparison.trial import until
from council_tui.runner import guard

OURS, SHELL = joined(["/bin/sleep", "77"]), joined(["sh"])


class Table:
    """A table of processes that a test fills."""

    def __init__(self) -> None:
        self.lines: dict[int, bytes] = {}
        self.read: list[int] = []
        self.now = 0.0

    def look(self) -> Look:
        return Look(["/bin/sleep", "77"], pids=lambda: set(self.lines), read=self._line, clock=lambda: self.now)

    def _line(self, pid: int) -> bytes:
        self.read.append(pid)
        return self.lines[pid]


def test_a_child_is_found_once_it_has_become_its_program_and_is_lost_when_it_is_gone():
    table = Table()
    look = table.look()
    table.lines = {1: SHELL, 2: SHELL}
    assert look.living() == set()
    table.lines[2] = OURS + b"0.000000001\0"
    assert look.living() == {2}
    del table.lines[2]
    assert look.living() == set()


def test_who_has_long_been_another_program_is_not_read_again_unless_all_are():
    table = Table()
    look = table.look()
    table.lines = {1: SHELL, 2: OURS}
    look.living()
    table.now = UNDECIDED_SECONDS
    table.read.clear()
    assert look.living() == {2}
    assert table.read == []
    table.lines[1], table.lines[2] = OURS, b""
    assert look.exact() == {1}


def test_a_pid_that_was_given_anew_is_judged_anew():
    table = Table()
    look = table.look()
    table.lines = {1: SHELL}
    look.living()
    table.now = UNDECIDED_SECONDS
    table.lines = {}
    look.living()
    table.lines = {1: OURS}
    assert look.living() == {1}


def test_the_processes_that_hide_are_told_as_letters_by_whatever_path_they_were_started():
    lines = [
        joined(["/usr/bin/sleep", "5.3"]),
        joined(["sleep", "5.0"]),
        joined(["sleep", "6.1"]),
        joined(["sh", "5.2"]),
    ]
    assert escaped("5", lines) == "0C"
    assert escaped("5", [joined(["sleep", f"5.{place}"]) for place in range(5)]) == LETTERS


def test_the_children_of_one_trial_are_found_among_all_processes_and_no_others():
    number = "1999888777"
    mine = [subprocess.Popen(["sleep", length]) for length in (number, f"{number}.4")]
    other = subprocess.Popen(["sleep", "1999888778"])
    try:
        until("both", lambda: {process.pid for process in of_trial(number)} == {one.pid for one in mine}, 20)
        found = of_trial(number)
        assert all(alive(process) for process in found)
    finally:
        for one in (*mine, other):
            one.kill()
            one.wait()
    assert not any(alive(process) for process in found)
    assert not alive(guard.Process(1, 0, "S", -1, 1))
