"""The guard of a body: adopts whatever it starts, finds all of it, and ends all of it (prctl(2), pidfd_open(2)).

The runner is the subreaper of the body's tree, so a double fork cannot get away: what loses its parent
becomes the runner's own child. Every kill goes through a pidfd that was opened before the last look.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import signal
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36

_libc = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, value: int) -> None:
    """Call prctl(2) with one argument; raises OSError."""
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")


def become_subreaper() -> None:
    """Adopt every descendant that loses its parent."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)


def hide_memory() -> None:
    """Keep other processes of this user from reading our memory: a key is about to be in it."""
    prctl(PR_SET_DUMPABLE, 0)


@dataclass(frozen=True)
class Process:
    """A line of /proc/PID/stat: enough to tell one process from another with the same pid."""

    pid: int
    ppid: int
    state: str
    start_time: int
    """Clock ticks after boot."""
    session: int


def read_process(pid: int) -> Process | None:
    """One process, or None when it is gone (proc_pid_stat(5))."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            raw = file.read()
    except OSError:
        return None
    fields = raw[raw.rindex(b")") + 2 :].split()
    return Process(pid, int(fields[1]), fields[0].decode(), int(fields[19]), int(fields[3]))


def all_processes() -> Iterator[Process]:
    """One pass over /proc."""
    for name in os.listdir("/proc"):
        if name.isdigit() and (found := read_process(int(name))) is not None:
            yield found


def children_of(pid: int) -> list[int]:
    """Direct children of every thread of a process (proc_pid_task(5)); empty when it is gone.

    Exact for a process that asks about itself; of another one, a child that is handed on at this moment can
    be missed, so whoever needs a proof asks again.
    """
    found: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found
    for thread in threads:
        try:
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
        except OSError:
            continue
    return found


def descendants(root: int) -> list[Process]:
    """Every living process below `root`, parents before children; zombies are left out of the list."""
    found: list[Process] = []
    queue = children_of(root)
    seen = set(queue)
    while queue:
        process = read_process(queue.pop(0))
        if process is None:
            continue
        if process.state not in "ZX":
            found.append(process)
        for child in children_of(process.pid):
            if child not in seen:
                seen.add(child)
                queue.append(child)
    return found


def send(process: Process, number: int) -> bool:
    """Signal exactly this process; False when it is gone or its pid is someone else's by now."""
    try:
        fd = os.pidfd_open(process.pid)
    except OSError:
        return False
    try:
        now = read_process(process.pid)
        if now is None or now.start_time != process.start_time:
            return False
        signal.pidfd_send_signal(fd, number)
    except ProcessLookupError:
        return False
    else:
        return True
    finally:
        os.close(fd)


def signal_tree(root: int, number: int, spare: frozenset[int] = frozenset()) -> list[int]:
    """Signal everything below `root` except `spare`; the pids that got it."""
    return [process.pid for process in descendants(root) if process.pid not in spare and send(process, number)]


@functools.cache
def boot_id() -> str:
    """The kernel's name of this boot: a pid of another boot is nobody's."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


MARKER = b"COUNCIL_RUN="


def marker_of(pid: int) -> str | None:
    """The run in whose body a process was started, or None; an unreadable environment counts as none."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            raw = file.read()
    except OSError:
        return None
    for entry in raw.split(b"\0"):
        if entry.startswith(MARKER):
            return entry[len(MARKER) :].decode("utf-8", "replace")
    return None


def is_below(pid: int, root: int) -> bool:
    """Whether a process hangs below `root`; one that is gone or cannot be read counts as such."""
    at = pid
    while at > 1:
        process = read_process(at)
        if process is None or process.ppid == root:
            return True
        at = process.ppid
    return False


def all_marked() -> list[tuple[Process, str]]:
    """Every living process that carries a run's marker, wherever it hangs in the tree, with that run."""
    found = ((process, marker_of(process.pid)) for process in all_processes() if process.state not in "ZX")
    return [(process, run) for process, run in found if run is not None]


_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})


@dataclass
class Usage:
    """What a slice holds."""

    used: int = 0
    """Bytes, counted in whole blocks as the file system does."""
    files: int = 0
    hidden: str = ""
    """Why a part of it could not be looked into; empty when all of it was."""


def slice_usage(path: str, stop_at: int) -> Usage:
    """Add up a directory without following links; counting ends once `stop_at` bytes are passed.

    A file that was unlinked while it is held open is not seen; only a file system of its own (strong mode)
    counts that.
    """
    total = Usage()
    queue = [path]
    while queue and total.used <= stop_at:
        folder = queue.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    _count(entry, total, queue)
        except OSError as error:
            if error.errno not in _GONE:
                total.hidden = error.strerror or "unreadable"
    return total


def _count(entry: os.DirEntry[str], total: Usage, queue: list[str]) -> None:
    try:
        facts = entry.stat(follow_symlinks=False)
    except OSError as error:
        if error.errno not in _GONE:
            total.hidden = error.strerror or "unreadable"
        return
    total.files += 1
    total.used += facts.st_blocks * 512
    if stat.S_ISDIR(facts.st_mode):
        queue.append(entry.path)


def tmpfs_usage(path: str) -> Usage:
    """What a file system of its own holds, without walking it (statvfs(3)); nothing when it is gone."""
    try:
        facts = os.statvfs(path)
    except OSError:
        return Usage()
    # The root of the file system is a file of it too.
    return Usage((facts.f_blocks - facts.f_bfree) * facts.f_frsize, max(0, facts.f_files - facts.f_ffree - 1))
