"""A cgroup of its own for the whole tree of a body: limits that the kernel holds (cgroups(7)).

Both versions are used as they are found, each limit where its controller is. Nothing is assumed: whether a
group can be made somewhere, and a program started in it, is found out by doing it.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from council_tui.domain.contract import ResourceLimits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

CONTROLLERS = {"memory": "memory", "processes": "pids", "cpus": "cpu"}
"""By limit, as the kernel calls what holds it."""
PREFIX = "council-"
TREE = "tree"
"""The level below its limits on which a body lives: in a cgroup namespace of its own, its own level would be
the root, with files that its user may write to; the one above is out of sight (cgroup_namespaces(7))."""
PERIOD_US = 100_000
TRIAL_SECONDS = 5.0
_TRIES, _PAUSE = 20, 0.01
"""The kernel may need a moment until the dead have left."""
_LAUNCHER = 'while [ "$1" != -- ]; do echo 0 >"$1" || exit 126; shift; done; shift; exec "$@"'
"""Moves itself and only then becomes the program: whoever moves another is too late for what that one has forked."""
_WITHOUT_SWAP_ACCOUNTING = frozenset({"memory.swap.max", "memory.memsw.limit_in_bytes"})


class _Mount(NamedTuple):
    kind: str
    root: str
    at: str
    options: tuple[str, ...]


def _mounts(table: str) -> list[_Mount]:
    """The cgroup file systems of a /proc/PID/mountinfo (proc_pid_mountinfo(5))."""
    found = []
    for line in table.splitlines():
        before, _, after = line.partition(" - ")
        fields, (kind, _, options) = before.split(), after.split(" ", 2)
        if kind in ("cgroup", "cgroup2"):
            found.append(_Mount(kind, fields[3], fields[4], tuple(options.split(","))))
    return found


def _folder(mount: _Mount, path: str) -> str | None:
    """Where a cgroup lies below a mount; None when it cannot be seen there."""
    inside = os.path.relpath(path, mount.root)
    return None if ".." in f"{path}/{inside}".split("/") else os.path.normpath(f"{mount.at}/{inside}")


def candidates(limit: str, cgroups: str, mountinfo: str) -> list[str]:
    """Where a group for this limit may be made, best first; from a /proc/PID/cgroup and mountinfo.

    In version 2 a cgroup with programs in it cannot give limits to those below it, so the one above ours is
    the usual place.
    """
    lines = [line.split(":", 2) for line in cgroups.splitlines()]
    name = CONTROLLERS[limit]
    for mount in _mounts(mountinfo):
        for _, controllers, path in lines:
            here = _folder(mount, path)
            if here is None:
                continue
            if mount.kind == "cgroup" and name in mount.options and name in controllers.split(","):
                return [here]
            if mount.kind == "cgroup2" and not controllers and _offers(here, name):
                return [here, *([os.path.dirname(here)] if here != mount.at else [])]
    return []


def _offers(folder: str, controller: str) -> bool:
    with suppress(OSError):
        return controller in Path(folder, "cgroup.controllers").read_text(encoding="ascii").split()
    return False


def _unified(folder: str) -> bool:
    return os.path.exists(f"{folder}/cgroup.controllers")


def _write(path: str, value: str) -> None:
    # Never creates: a file that is not there is a controller that is not there.
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, value.encode())
    finally:
        os.close(fd)


def _counter(path: str, name: str) -> int:
    """A value of a file of names and numbers; 0 where there is none."""
    with suppress(OSError, ValueError):
        for line in Path(path).read_text(encoding="ascii").splitlines():
            said, _, value = line.partition(" ")
            if said == name:
                return int(value)
    return 0


def _settings(limit: str, limits: ResourceLimits, spare: int, *, unified: bool) -> list[tuple[str, str]]:
    """(file, content) for one limit, in the order in which they have to be written."""
    if limit == "processes":
        return [("pids.max", str((limits.processes or 0) + spare))]
    if limit == "memory":
        size = str(limits.memory_bytes)
        if unified:
            return [("memory.max", size), ("memory.swap.max", "0")]
        return [("memory.limit_in_bytes", size), ("memory.memsw.limit_in_bytes", size)]
    quota = str(round((limits.cpus or 0) * PERIOD_US))
    if unified:
        return [("cpu.max", f"{quota} {PERIOD_US}")]
    return [("cpu.cfs_period_us", str(PERIOD_US)), ("cpu.cfs_quota_us", quota)]


class Group:
    """The cgroups of one run, one for each limit or one for several."""

    def __init__(self, run: str, folders: Mapping[str, str]) -> None:
        self._at = {limit: f"{folder}/{PREFIX}{run}" for limit, folder in folders.items()}

    def make(self, limits: ResourceLimits, spare: int = 0) -> None:
        """Create it with its limits; `spare` processes are ours. Raises OSError."""
        for path in dict.fromkeys(self._at.values()):
            os.mkdir(path, 0o755)
            os.mkdir(f"{path}/{TREE}", 0o755)
        for limit, path in self._at.items():
            for file, content in _settings(limit, limits, spare, unified=_unified(os.path.dirname(path))):
                try:
                    _write(f"{path}/{file}", content)
                except FileNotFoundError:
                    if file not in _WITHOUT_SWAP_ACCOUNTING:
                        raise

    def around(self, argv: Iterable[str]) -> tuple[str, ...]:
        """A command that moves into the group and then becomes this one."""
        doors = (f"{path}/{TREE}/cgroup.procs" for path in dict.fromkeys(self._at.values()))
        return ("/bin/sh", "-c", _LAUNCHER, "sh", *doors, "--", *argv)

    def killed(self) -> int:
        """Processes that the kernel ended because all of them together needed too much memory."""
        return self._most("memory", (("memory.events", "oom_kill"), ("memory.oom_control", "oom_kill")))

    def refused(self) -> int:
        """How often the kernel refused another process."""
        return self._most("processes", (("pids.events", "max"),))

    def _most(self, limit: str, places: tuple[tuple[str, str], ...]) -> int:
        # Version 1 counts on the level where it happens, version 2 on that of the limit.
        path = self._at.get(limit)
        levels = (path, f"{path}/{TREE}") if path else ()
        return max((_counter(f"{level}/{file}", name) for level in levels for file, name in places), default=0)


def remove(run: str, folders: Iterable[str]) -> list[str]:
    """Remove a run's cgroups, with what a body made in them; those that are still there. Never raises.

    The kernel keeps what has a living process in it, so nothing is taken away from anybody.
    """
    left = [f"{folder}/{PREFIX}{run}" for folder in dict.fromkeys(folders)]
    for attempt in range(_TRIES):
        left = [path for path in left if not _gone(path)]
        if not left:
            break
        if attempt < _TRIES - 1:
            time.sleep(_PAUSE)
    return left


def _gone(path: str) -> bool:
    for folder, _, _ in os.walk(path, topdown=False):
        with suppress(OSError):
            os.rmdir(folder)
    return not os.path.lexists(path)


def runs_at(folder: str) -> list[str]:
    """The runs, of whatever council, that have a cgroup here."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return [name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX)]


_TRIAL = ResourceLimits(memory_mb=64, processes=64, cpus=1)


def attempt(limit: str, folder: str) -> str:
    """Why this limit cannot be held by a cgroup made here; empty when it can. Some milliseconds."""
    run = f"trial-{os.getpid()}-{secrets.token_hex(4)}"
    group = Group(run, {limit: folder})
    try:
        if _unified(folder) and not _given_on(folder, limit):
            _write(f"{folder}/cgroup.subtree_control", f"+{CONTROLLERS[limit]}")
        group.make(_TRIAL)
        done = subprocess.run(
            group.around(("true",)), stdin=subprocess.DEVNULL, capture_output=True, timeout=TRIAL_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{folder}: {getattr(error, 'strerror', None) or 'no answer'}"
    finally:
        remove(run, (folder,))
    return "" if done.returncode == 0 else f"{folder}: a program cannot be moved there"


def _given_on(folder: str, limit: str) -> bool:
    with suppress(OSError):
        return CONTROLLERS[limit] in Path(folder, "cgroup.subtree_control").read_text(encoding="ascii").split()
    return False


def find(proc: Path = Path("/proc/self")) -> tuple[dict[str, str], dict[str, str]]:
    """(folder by limit for what this machine can hold, reason by limit for what it cannot)."""
    folders: dict[str, str] = {}
    reasons: dict[str, str] = {}
    try:
        cgroups = (proc / "cgroup").read_text(encoding="utf-8", errors="surrogateescape")
        mountinfo = (proc / "mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        return {}, dict.fromkeys(CONTROLLERS, f"cannot read {error.filename}: {error.strerror}")
    for limit in CONTROLLERS:
        why = f"no cgroup offers the {CONTROLLERS[limit]} controller"
        for folder in candidates(limit, cgroups, mountinfo):
            why = attempt(limit, folder)
            if not why:
                folders[limit] = folder
                break
        if why:
            reasons[limit] = why
    return folders, reasons
