"""What a tree of processes uses, added up from /proc: the portable way to hold it to limits, and a soft one."""

from __future__ import annotations

import os
from dataclasses import dataclass

from council_tui.runner import guard

PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Footprint:
    """A tree at one moment. Whoever forks between two lines of /proc is seen at the next look."""

    tasks: int
    """Processes and threads."""
    resident: int
    """Bytes in memory; pages that several processes share are counted for each."""
    pids: tuple[int, ...]

    def shared_out(self) -> int:
        """Bytes in memory with each shared page counted once; slower, so for whoever seems to be over."""
        return sum(_proportional(pid) for pid in self.pids)


def footprint(root: int, spare: frozenset[int] = frozenset()) -> Footprint:
    """All that lives below `root` except `spare`. Raises OSError where this machine has no room to look."""
    pids = tuple(process.pid for process in guard.descendants(root) if process.pid not in spare)
    sizes = [_size(pid) for pid in pids]
    return Footprint(sum(threads for threads, _ in sizes), sum(pages for _, pages in sizes) * PAGE, pids)


def _size(pid: int) -> tuple[int, int]:
    """(threads, pages in memory) of a process; nothing when it is gone (proc_pid_stat(5))."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0, 0
    return int(fields[17]), int(fields[21])


def _proportional(pid: int) -> int:
    """One process's part of what it shares, and all of what it does not (smaps_rollup); 0 when it is gone.

    A program that hides its memory from us counts with all that it has.
    """
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            return next((int(line.split()[1]) * 1024 for line in file if line.startswith(b"Pss:")), 0)
    except PermissionError:
        return _size(pid)[1] * PAGE
    except (FileNotFoundError, ProcessLookupError):
        return 0
