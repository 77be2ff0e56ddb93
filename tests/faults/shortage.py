"""A process that has run out of something, for the time of a test: its own limits are changed, never the machine's."""

from __future__ import annotations

import os
import resource
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

GROUPS = Path("/sys/fs/cgroup")


@contextmanager
def no_descriptors(left: int = 0) -> Iterator[None]:
    """This process can open `left` more files and no others."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []
    highest = max(int(name) for name in os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + left + 1, hard))
    try:
        with suppress(OSError):
            while True:
                taken.append(os.open("/", os.O_PATH | os.O_CLOEXEC))
        for _ in range(left):
            os.close(taken.pop())
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for fd in taken:
            os.close(fd)


@contextmanager
def no_memory(*pids: int, room: int) -> Iterator[None]:
    """These processes get at most `room` bytes of address space on top of what they have."""
    before = {pid: resource.prlimit(pid, resource.RLIMIT_AS) for pid in pids}
    for pid, (_, hard) in before.items():
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
        resource.prlimit(pid, resource.RLIMIT_AS, (pages * resource.getpagesize() + room, hard))
    try:
        yield
    finally:
        for pid, limits in before.items():
            with suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_AS, limits)


class Group:
    """A control group (cgroups(7)) of our own."""

    def __init__(self, path: Path, limit: Path) -> None:
        self._path = path
        self._limit = limit

    def take(self, pid: int) -> None:
        """What this process starts from now on belongs to it, and so does the process."""
        (self._path / "cgroup.procs").write_text(str(pid))

    def limit(self, value: int | None) -> None:
        """So much and no more; None for as much as there is."""
        self._limit.write_text("max" if value is None else str(value))


@contextmanager
def group(controller: str, *names: str) -> Iterator[Group]:
    """A group of its own for one test; `names` are the file of its limit in either version of control groups.

    Skips the test where none can be made.
    """
    for parent in (GROUPS / controller, GROUPS):
        path = parent / f"shortage-{os.getpid()}"
        try:
            path.mkdir()
        except OSError:
            continue
        limit = next((path / name for name in names if (path / name).exists()), None)
        try:
            if limit is not None:
                yield Group(path, limit)
                return
        finally:
            path.rmdir()
    pytest.skip(f"no control group that limits {controller} can be made here")
