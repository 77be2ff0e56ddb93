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
import socket
import stat
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from council_tui.domain.errors import CouncilError
from council_tui.runner.reserve import SHORT, reserve

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


def _content(path: str) -> bytes | None:
    """A file of /proc; None when its process is gone or keeps it from us.

    Raises OSError where this machine has no room to look: that nobody could be seen proves nobody dead.
    """

    def read() -> bytes:
        with open(path, "rb") as file:
            return file.read()

    try:
        return reserve.use(read)
    except OSError as error:
        if error.errno in SHORT:
            raise
        return None


def read_process(pid: int) -> Process | None:
    """One process, or None when it is gone (proc_pid_stat(5)). Raises OSError where nothing can be looked at."""
    raw = _content(f"/proc/{pid}/stat")
    if raw is None:
        return None
    fields = raw[raw.rindex(b")") + 2 :].split()
    return Process(pid, int(fields[1]), fields[0].decode(), int(fields[19]), int(fields[3]))


def running(pid: int, start_time: int) -> Process | None:
    """The process with this pid, if it is the one that began then and it lives. Raises OSError where none can look."""
    found = read_process(pid)
    return found if found is not None and found.start_time == start_time and found.state not in "ZX" else None


def peer_of(connected: socket.socket) -> tuple[int, int]:
    """(pid, uid) of the other end of a Unix socket (unix(7), SO_PEERCRED)."""
    raw = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _ = struct.unpack("3i", raw)
    return pid, uid


def all_processes() -> Iterator[Process]:
    """One pass over /proc."""
    for name in reserve.use(lambda: os.listdir("/proc")):
        if name.isdigit() and (found := read_process(int(name))) is not None:
            yield found


def children_of(pid: int) -> list[int]:
    """Direct children of every thread of a process (proc_pid_task(5)); empty when it is gone.

    Exact for a process that asks about itself; of another one, a child that is handed on at this moment can
    be missed, so whoever needs a proof asks again.
    """
    found: list[int] = []
    try:
        threads = reserve.use(lambda: os.listdir(f"/proc/{pid}/task"))
    except OSError as error:
        if error.errno in SHORT:
            raise
        return found
    for thread in threads:
        found += map(int, (_content(f"/proc/{pid}/task/{thread}/children") or b"").split())
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
    """Signal exactly this process; False when it is gone, or not ours to signal, or its pid someone else's by now.

    False proves nothing: whoever kills looks again.
    """

    def reach() -> bool:
        fd = os.pidfd_open(process.pid)
        try:
            now = read_process(process.pid)
            if now is None or now.start_time != process.start_time:
                return False
            signal.pidfd_send_signal(fd, number)
        finally:
            os.close(fd)
        return True

    try:
        return reserve.use(reach)
    except OSError:
        # Gone; or a program that runs as another user by now (setuid); or this machine has no room to look.
        return False


def signal_tree(root: int, number: int, spare: frozenset[int] = frozenset()) -> list[int]:
    """Signal everything below `root` except `spare`; the pids that got it."""
    return [process.pid for process in descendants(root) if process.pid not in spare and send(process, number)]


_NEEDED = ("self/stat", "thread-self/children", "sys/kernel/random/boot_id")
"""What tells processes apart; a container or a service manager may keep any of it from us."""


@functools.cache
def boot_id() -> str:
    """The kernel's name of this boot: a pid of another boot is nobody's.

    Raises `CouncilError` where /proc tells too little: who cannot see what lives must not start anything.
    """
    text = ""
    for name in _NEEDED:
        try:
            with open(f"/proc/{name}", encoding="ascii") as file:
                text = file.read()
        except OSError as error:
            raise CouncilError(
                f"cannot read /proc/{name}: {error.strerror}; council tells processes apart by /proc, "
                "so mount it whole (proc(5))"
            ) from None
    return text.strip()


MARKER = b"COUNCIL_RUN="


def marker_of(pid: int) -> str | None:
    """The run in whose body a process was started, or None; an unreadable environment counts as none."""
    for entry in (_content(f"/proc/{pid}/environ") or b"").split(b"\0"):
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
    found: list[tuple[Process, str]] = []
    for name in reserve.use(lambda: os.listdir("/proc")):
        # Most processes of a machine have no marker, and need no second look.
        if not name.isdigit() or marker_of(int(name)) is None:
            continue
        # Identity before the marker that counts: whoever gets this pid in between is not taken for its former owner.
        process, run = read_process(int(name)), marker_of(int(name))
        if process is not None and process.state not in "ZX" and run is not None:
            found.append((process, run))
    return found


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
