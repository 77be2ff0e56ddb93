"""The cgroups of runs, from our side: where they were made is written down, so that the next supervisor can
clear what a dead one left, wherever that one was started from.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from council_tui.board.home import ordinary
from council_tui.runner import cgroup

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from council_tui.board.home import Home

FOLDERS = "cgroups"
"""File in the runtime directory: every folder in which a run may have a cgroup, one a line."""


def known(home: Home) -> list[str]:
    """Where runs of this home may have cgroups; empty on a machine that gives us none."""
    with suppress(OSError, ValueError):
        return list(dict.fromkeys(ordinary(home.runtime / FOLDERS).decode().splitlines()))
    return []


def note(home: Home, folders: Iterable[str]) -> None:
    """Write down where this supervisor lets cgroups be made. Raises OSError."""
    new = [folder for folder in dict.fromkeys(folders) if folder not in known(home)]
    if not new:
        return
    how = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_APPEND
    with os.fdopen(os.open(home.runtime / FOLDERS, how, 0o600), "w", encoding="utf-8") as file:
        file.writelines(f"{folder}\n" for folder in new)


def clear(home: Home, run: str) -> list[str]:
    """Remove a run's cgroups; those that are still there."""
    return cgroup.remove(run, known(home))


def clear_leftovers(home: Home, ours: Container[str], living: Container[str]) -> None:
    """Remove the cgroups of runs that are on this home's board and that nobody holds any more."""
    for folder in known(home):
        for run in cgroup.runs_at(folder):
            if run in ours and run not in living:
                cgroup.remove(run, (folder,))
