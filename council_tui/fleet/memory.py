"""The memory-pressure gate: while this machine is short of memory nothing more is born, and all that lives goes on."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from council_tui.fleet.gate import Gate

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 1024 * 1024
OPENS_ABOVE = 1.25
"""Of the floor, so that the gate does not flap around it."""
OPENS_BELOW = 0.5
"""Of the pressure that closed it."""


@dataclass(frozen=True)
class Memory:
    """How this machine stands; None for what it does not tell."""

    available_mb: float | None = None
    """MiB that can be had without swapping, of the machine or of the cgroup we live in, whichever is less."""
    pressure: float | None = None
    """Percent of the last 10 s in which at least one task waited for memory (PSI `some avg10`)."""


def _number(path: Path) -> int | None:
    """The number in a kernel file; None where there is none, or no limit."""
    with suppress(OSError, ValueError):
        return int(path.read_text(encoding="ascii"))
    return None


def _fields(path: Path, separator: str | None = None) -> dict[str, str]:
    """The lines of a kernel file by their first word."""
    with suppress(OSError, ValueError):
        lines = path.read_text(encoding="ascii").splitlines()
        return {key: rest.strip() for key, _, rest in (line.partition(separator or " ") for line in lines)}
    return {}


def _own_group(root: Path) -> float | None:
    """MiB that our own cgroup (v2) still has; None where there is no such limit."""
    path = _fields(root / "proc/self/cgroup", "::").get("0")
    if path is None:
        return None
    group = root / "sys/fs/cgroup" / path.lstrip("/")
    limit, used = _number(group / "memory.max"), _number(group / "memory.current")
    if limit is None or used is None:
        return None
    # What was read from files and is not in use can be had back at any time.
    spare = _fields(group / "memory.stat").get("inactive_file", "0")
    return (limit - used + int(spare)) / MIB


def read_memory(root: Path = Path("/")) -> Memory:
    """Look at this machine (proc(5), "Pressure Stall Information" of the kernel, cgroups(7)). Never raises."""
    free = _fields(root / "proc/meminfo", ":").get("MemAvailable", "").removesuffix(" kB")
    rooms = [float(free) / 1024] if free.isdigit() else []
    if (own := _own_group(root)) is not None:
        rooms.append(own)
    some = _fields(root / "proc/pressure/memory").get("some", "")
    average = dict(part.partition("=")[::2] for part in some.split()).get("avg10", "")
    pressure = float(average) if average.replace(".", "", 1).isdigit() else None
    return Memory(min(rooms) if rooms else None, pressure)


class MemoryGate(Gate):
    """Closed while memory is short."""

    def __init__(self, floor_mb: float, pressure: float, read: Callable[[], Memory] = read_memory) -> None:
        super().__init__()
        self._floor = floor_mb
        self._most = pressure
        self._read = read

    def _judge(self) -> str:
        memory, closed = self._read(), bool(self.reason)
        floor = self._floor * (OPENS_ABOVE if closed else 1.0)
        most = self._most * (OPENS_BELOW if closed else 1.0)
        if memory.available_mb is not None and self._floor and memory.available_mb < floor:
            return f"{memory.available_mb:,.0f} MiB of memory free, {floor:,.0f} wanted (limits.memory_floor_mb)"
        if memory.pressure is not None and memory.pressure > most:
            return f"memory pressure is {memory.pressure:.0f} %, above {most:g} % (limits.memory_pressure)"
        return ""
