"""A kernel for cgroups, of files in a directory: what mkdir makes there, and that only the living keep a group."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from council_tui.runner import cgroup

if TYPE_CHECKING:
    import pytest

V2 = {
    "memory": ("memory.max", "memory.swap.max", "memory.events"),
    "pids": ("pids.max", "pids.events"),
    "cpu": ("cpu.max", "cpu.stat"),
}
V1 = {
    "memory": ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.oom_control"),
    "pids": ("pids.max", "pids.events"),
    "cpu": ("cpu.cfs_period_us", "cpu.cfs_quota_us", "cpu.stat"),
}


class FakeKernel:
    """Two mounts, `unified` and one for each controller of version 1, below a directory of the test."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self._mkdir, self._rmdir = os.mkdir, os.rmdir
        monkeypatch.setattr(os, "mkdir", self.mkdir)
        monkeypatch.setattr(os, "rmdir", self.rmdir)
        self._write = cgroup._write
        monkeypatch.setattr(cgroup, "_write", self.write)

    def _inside(self, path: str) -> str:
        """The hierarchy that a path lies in; empty for one that is no cgroup."""
        parts = Path(path).parts
        top = self.root.parts
        return parts[len(top)] if parts[: len(top)] == top and len(parts) > len(top) else ""

    def mkdir(self, path: str, mode: int = 0o777) -> None:
        """mkdir(2) makes the files too: those of each controller that the cgroup above hands on."""
        self._mkdir(path, mode)
        kind = self._inside(str(path))
        if not kind:
            return
        above = Path(path).parent
        names = ["cgroup.procs"]
        if kind == "unified":
            given = (above / "cgroup.subtree_control").read_text().split()
            (Path(path) / "cgroup.controllers").write_text(" ".join(given))
            (Path(path) / "cgroup.subtree_control").write_text("")
            names += [name for controller in given for name in V2[controller]]
        else:
            names += V1[kind]
        for name in names:
            (Path(path) / name).write_text("")

    def rmdir(self, path: str, **how: int) -> None:
        """rmdir(2) takes the files along, but not what is below, nor a group with a process in it."""
        if how or not self._inside(str(path)):
            self._rmdir(path, **how)
            return
        if (Path(path) / "cgroup.procs").read_text().strip() not in ("", "0"):
            raise OSError(16, os.strerror(16), str(path))
        for entry in list(Path(path).iterdir()):
            if entry.is_dir():
                raise OSError(16, os.strerror(16), str(path))
            entry.unlink()
        self._rmdir(path)

    def write(self, path: str, value: str) -> None:
        """write(2): who has processes of its own hands no controller on (cgroups(7))."""
        file = Path(path)
        if file.name == "cgroup.subtree_control":
            if (file.parent / "cgroup.procs").read_text().strip() not in ("", "0"):
                raise OSError(16, os.strerror(16), path)
            value = f"{file.read_text()} {value.removeprefix('+')}"
        self._write(path, value)

    def unified(self, *, offers: str = "memory pids cpu", given: str = "") -> Path:
        """The root of a version 2 hierarchy."""
        top = self.root / "unified"
        self._mkdir(top)
        (top / "cgroup.procs").write_text("")
        (top / "cgroup.controllers").write_text(offers)
        (top / "cgroup.subtree_control").write_text(given)
        return top

    def controller(self, name: str) -> Path:
        """The root of a version 1 hierarchy."""
        top = self.root / name
        self._mkdir(top)
        return top

    def tables(self, **own: str) -> Path:
        """A /proc/self for a process that is in these cgroups, by hierarchy."""
        proc = self.root.parent / "proc-self"
        self._mkdir(proc)
        mounts = ["20 1 0:1 / / rw - ext4 /dev/root rw", f"21 20 0:2 / {self.root} rw - tmpfs tmpfs rw"]
        lines = []
        for number, (name, path) in enumerate(own.items(), 22):
            kind, options = ("cgroup2", "rw") if name == "unified" else ("cgroup", f"rw,{name}")
            mounts.append(f"{number} 21 0:{number} / {self.root / name} rw,nosuid shared:9 - {kind} {kind} {options}")
            lines.append(f"{number}:{'' if name == 'unified' else name}:{path}")
        (proc / "mountinfo").write_text("\n".join(mounts) + "\n")
        (proc / "cgroup").write_text("\n".join(lines) + "\n")
        return proc
