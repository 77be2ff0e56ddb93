"""The one pair of eyes for all peers: it finds the plain children by their command line, wherever they hang."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from council_tui.runner import guard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

UNDECIDED_SECONDS = 10.0
"""How long a new process may take to become the program that it was started for."""
LETTERS = "0ABCD"


def command_line(pid: int) -> bytes:
    """The arguments of a process, each ended by a NUL; empty for one that is gone or a zombie."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def all_pids() -> set[int]:
    """Every process there is."""
    return {int(name) for name in os.listdir("/proc") if name.isdigit()}


def joined(argv: Sequence[str]) -> bytes:
    """An argument list as the kernel shows it."""
    return b"".join(argument.encode() + b"\0" for argument in argv)


class Look:
    """Finds the children of one trial, again and again, without reading every process each time.

    They are the processes whose arguments begin like these: what follows is a supervisor's own affair.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        pids: Callable[[], set[int]] = all_pids,
        read: Callable[[int], bytes] = command_line,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wanted = joined(argv)
        self._pids, self._read, self._clock = pids, read, clock
        self._ours: set[int] = set()
        self._first_seen: dict[int, float] = {}
        """When each process that is not ours (yet) was seen first."""

    def living(self) -> set[int]:
        """Pids of the children. One that was killed may still be among them until someone has waited for it."""
        now, there = self._clock(), self._pids()
        self._ours &= there
        seen = {pid: self._first_seen.get(pid, now) for pid in there - self._ours}
        fresh = {pid for pid, at in seen.items() if now - at < UNDECIDED_SECONDS and self._is_ours(pid)}
        self._ours |= fresh
        self._first_seen = {pid: at for pid, at in seen.items() if pid not in fresh}
        return set(self._ours)

    def _is_ours(self, pid: int) -> bool:
        return self._read(pid).startswith(self._wanted)

    def exact(self) -> set[int]:
        """The same, with every process read anew."""
        self._ours = {pid for pid in self._pids() if self._is_ours(pid)}
        return set(self._ours)


def _length(line: bytes) -> str:
    """The first argument of a `sleep`, by whatever path it was started; empty for any other program."""
    words = line.split(b"\0")
    return words[1].decode("utf-8", "replace") if len(words) > 2 and words[0].rpartition(b"/")[2] == b"sleep" else ""


def escaped(number: str, lines: Iterable[bytes]) -> str:
    """Which of the escaper's processes are among these command lines, as letters in their order."""
    names = {f"{number}.{place}": letter for place, letter in enumerate(LETTERS)}
    return "".join(sorted(names[length] for line in lines if (length := _length(line)) in names))


def of_trial(number: str) -> list[guard.Process]:
    """Every living `sleep` that the trial of this number has started, however it hides."""
    return [p for p in guard.all_processes() if _length(command_line(p.pid)).partition(".")[0] == number]


def alive(process: guard.Process) -> bool:
    """Whether this very process still runs."""
    now = guard.read_process(process.pid)
    return now is not None and now.start_time == process.start_time and now.state not in "ZX"
