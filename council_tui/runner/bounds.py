"""What holds a body to its contract's limits: a cgroup where the machine gives us one, and our own look."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from council_tui.domain.contract import MIB, ResourceLimits
from council_tui.runner.cgroup import Group
from council_tui.runner.footprint import footprint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from council_tui.containers.command import Launch


class Bounds:
    """The limits of one run. `folders` are where cgroups can be made; `strong`: nobody gets out of them."""

    def __init__(
        self, run: str, limits: ResourceLimits | None, folders: Mapping[str, str], *, strong: bool, spare: int
    ) -> None:
        self._limits = limits or ResourceLimits()
        held = {name: folders[name] for name in self._limits.names if name in folders}
        self._group = Group(run, held) if held else None
        self._spare = spare
        self._watched = [name for name in self._limits.names if not (strong and name in held)]

    @property
    def watched(self) -> bool:
        """Whether there is a limit that only our own look holds."""
        return bool(self._watched)

    def make(self) -> None:
        """Create the cgroup, if there is to be one. Raises OSError."""
        if self._group is not None:
            self._group.make(self._limits, self._spare)

    def around(self, plan: Launch) -> Launch:
        """The same program, started inside its cgroup if it has one."""
        return plan if self._group is None else replace(plan, argv=self._group.around(plan.argv))

    def passed(self, root: int, spared: frozenset[int]) -> dict[str, Any]:
        """Which limit, of those that only we hold, the tree below `root` is over: `of`, used, limit and the reason.

        Empty when none. `spared` are no part of the tree. Raises OSError where nothing can be looked at.
        """
        if not self._watched:
            return {}
        now, limits = footprint(root, spared), self._limits
        most, size = limits.processes, limits.memory_bytes
        if "processes" in self._watched and most is not None and now.tasks > most:
            reason = f"it has {now.tasks} processes and threads, its limit is {most}"
            return {"of": "processes", "used": now.tasks, "limit": most, "reason": reason}
        if "memory" in self._watched and size is not None and now.resident > size:
            # Pages that its processes share were counted for each of them.
            used = now.shared_out()
            if used > size:
                reason = f"it uses {used / MIB:,.0f} MiB of memory, its limit is {limits.memory_mb} MiB"
                return {"of": "memory", "used": used, "limit": size, "reason": reason}
        return {}

    def notes(self) -> tuple[str, ...]:
        """What the kernel did to hold it, in words."""
        if self._group is None:
            return ()
        killed, refused = self._group.killed(), self._group.refused()
        found = []
        if killed:
            many = "process" if killed == 1 else "processes"
            found.append(f"the kernel ended {killed} {many} of it at its memory limit of {self._limits.memory_mb} MiB")
        if refused:
            times = "once" if refused == 1 else f"{refused} times"
            found.append(f"the kernel refused it another process {times}, its limit is {self._limits.processes}")
        return tuple(found)
