"""What the figures were measured on, and whether a size fits this machine at all."""

from __future__ import annotations

import os
import platform
import resource
import sqlite3
from pathlib import Path
from typing import Any

import psutil

from council_tui import __version__
from council_tui.hosts import descriptors

PROCESSES_PER_CHILD = {"portable": 2, "strong": 4}
"""A runner and its body; in strong mode also the wrapper and the first process of its namespace."""
_SPARE = 100
_MEMORY_PER_CHILD = 5 * 1024 * 1024


def machine() -> dict[str, Any]:
    """The machine and the versions that matter."""
    return {
        "council": __version__,
        "cpus": len(os.sched_getaffinity(0)),
        "load": [round(value, 2) for value in os.getloadavg()],
        "memory_mb": psutil.virtual_memory().total // 2**20,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }


def _number(path: str) -> int | None:
    """The number in a kernel file, or None where there is no such limit."""
    try:
        text = Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def why_not(children: int, tier: str = "portable") -> str:
    """One sentence when so many children do not fit, else an empty text."""
    wanted = PROCESSES_PER_CHILD[tier] * children + _SPARE
    pids = _number("/proc/sys/kernel/pid_max")
    running = len(psutil.pids())
    if pids is not None and running + wanted > pids:
        return f"{children} children need {wanted} processes, and kernel.pid_max is {pids} with {running} running"
    files = descriptors.most()
    if files is not None and children + _SPARE > files:
        return f"{children} children need {children + _SPARE} open files here, and the limit (ulimit -Hn) is {files}"
    mine, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if os.getuid() != 0 and mine not in (-1, resource.RLIM_INFINITY) and running + wanted > mine:
        return f"{children} children need {wanted} processes, and the limit (ulimit -u) is {mine}"
    free = psutil.virtual_memory().available
    if children * _MEMORY_PER_CHILD > free:
        return f"{children} children may need {children * _MEMORY_PER_CHILD >> 20} MiB, and {free >> 20} MiB are free"
    return ""
