"""What a supervisor that is gone left on the machine: its nursery, its runners and bodies, its directories."""

from __future__ import annotations

import asyncio
import functools
import json
import os
import signal
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from council_tui.board.home import ordinary
from council_tui.domain.errors import HomeUnusable
from council_tui.runner import guard
from council_tui.supervisor import slices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from council_tui.board.home import Home

T = TypeVar("T")
GRACE_SECONDS = 5.0
LOOK_SECONDS = 10.0
"""How long a machine that has no room for a look at it is waited for."""
KILL_SECONDS = 10.0
"""That a process has to be gone after SIGKILL; a start does not wait for one that cannot be killed."""
_PAUSE = 0.05


async def looked(look: Callable[[], T]) -> T:
    """What a look at the machine finds, again after a pause while it has no room to look. Raises OSError at last."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + LOOK_SECONDS
    while True:
        try:
            return look()
        except OSError:
            if loop.time() > deadline:
                raise
        await asyncio.sleep(_PAUSE)


def _strays(runs: Mapping[str, tuple[int, int]]) -> list[guard.Process]:
    """Bodies and runners of these runs (run id to the runner's pid and start time) that still live."""
    found = [process for process, run in guard.all_marked() if run in runs]
    for pid, start_time in runs.values():
        if (process := guard.running(pid, start_time)) is not None:
            found.append(process)
    return found


async def end_strays(runs: Mapping[str, tuple[int, int]]) -> None:
    """SIGTERM, grace, SIGKILL, until nothing of these runs is left (run id to its runner's pid and start time).

    What SIGKILL does not end is left to the reap of its run, which says so.
    """
    for process in await looked(lambda: _strays(runs)):
        guard.send(process, signal.SIGTERM)
        guard.send(process, signal.SIGCONT)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + GRACE_SECONDS
    while (left := await looked(lambda: _strays(runs))) and loop.time() < deadline + KILL_SECONDS:
        if loop.time() > deadline:
            for process in left:
                guard.send(process, signal.SIGKILL)
        await asyncio.sleep(_PAUSE)


NURSERY = "nursery"
"""File in the runtime directory: pid, start time and boot of every nursery that may still live, one a line."""


def note_nursery(home: Home, pid: int | None, *, alone: bool = False) -> None:
    """Write down which nursery this home has, if any; `alone`: and that those before it are gone."""
    if pid is None:
        return
    process = guard.read_process(pid)
    line = json.dumps({"pid": pid, "start_time": process.start_time if process else 0, "boot_id": guard.boot_id()})
    path = home.runtime / NURSERY
    if alone:
        slices.remove(path)
    _add_line(path, line)


def _add_line(path: Path, line: str) -> None:
    """To a file of ours, in place of whatever else is there. Raises `HomeUnusable`."""
    if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
        slices.remove(path)
    how = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_APPEND
    try:
        with os.fdopen(os.open(path, how, 0o600), "w", encoding="ascii") as file:
            file.write(line + "\n")
    except OSError as error:
        raise HomeUnusable(f"cannot write {path}: {error.strerror}; make room there, then start again") from None


def _lines(path: Path) -> list[Any]:
    """What such a file says, line by line; what is none of ours is left out."""
    said: list[Any] = []
    with suppress(OSError, ValueError):
        for line in ordinary(path).decode("ascii").splitlines():
            with suppress(ValueError):
                said.append(json.loads(line))
    return said


def former_nurseries(home: Home) -> list[guard.Process]:
    """Those of earlier supervisors that still live, by pid, start time and boot; the newest last."""
    found: list[guard.Process] = []
    for said in _lines(home.runtime / NURSERY):
        with suppress(ValueError, KeyError, TypeError):
            process = guard.running(int(said["pid"]), said["start_time"])
            if process is not None and said["boot_id"] == guard.boot_id():
                found.append(process)
    return found


def _still(processes: Iterable[guard.Process]) -> list[guard.Process]:
    return [process for process in processes if guard.running(process.pid, process.start_time) is not None]


async def end_nurseries(left: list[guard.Process]) -> None:
    """A nursery that nobody needs any more leaves by itself; one that does not is ended."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + GRACE_SECONDS
    while (left := await looked(functools.partial(_still, left))) and loop.time() < deadline + KILL_SECONDS:
        for process in left:
            guard.send(process, signal.SIGKILL if loop.time() > deadline else signal.SIGCONT)
        await asyncio.sleep(_PAUSE)


def _inside(folder: Path) -> list[Path]:
    with suppress(OSError):
        return list(folder.iterdir())
    return []


def clear_directories(home: Home, used: frozenset[str]) -> None:
    """Remove slices and sockets of runs that nobody holds. `used`: paths that stay."""
    for leftover in (*_inside(home.slices), *_inside(home.bodies)):
        if str(leftover) not in used:
            slices.remove(leftover)
    noted: dict[str, dict[str, Any]] = {}
    for said in _lines(home.runtime / SLICES):
        if isinstance(said, dict) and isinstance(said.get("path"), str):
            noted[str(said.get("run"))] = said
    slices.remove(home.runtime / SLICES)
    for run, said in noted.items():
        if said["path"] in used:
            note_slice(home, run, said["path"], made=True)
        elif said.get("made"):
            slices.remove(said["path"])
        else:
            _remove_empty(said["path"])


SLICES = "slices.noted"
"""File in the runtime directory: where slices were made that do not lie in it, one a line."""


def note_slice(home: Home, run: str, path: str, *, made: bool) -> None:
    """Write down that the slice of a run is going to be made at `path`, or has been."""
    _add_line(home.runtime / SLICES, json.dumps({"run": run, "path": path, "made": made}))


def _remove_empty(path: str) -> None:
    """What may be the beginning of a slice, or somebody's own: goes only if nothing is in it."""
    for folder in (f"{path}/ctl", f"{path}/data", path):
        with suppress(OSError):
            os.rmdir(folder)
