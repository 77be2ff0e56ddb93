"""The keeper's look at a slice in strong mode, at moments that a whole fleet rarely shows."""

from __future__ import annotations

import os
import shutil
import subprocess
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from council_tui.containers.sandbox import probe
from council_tui.domain.contract import MemorySlice
from council_tui.runner.keeper import Keeper

if TYPE_CHECKING:
    from pathlib import Path

WHY = probe(shutil.which("bwrap"))


def looking_at(data: Path) -> Keeper:
    """A keeper that has nothing but a slice to look at."""
    keeper = Keeper.__new__(Keeper)
    keeper._data = str(data)
    keeper._memory = MemorySlice(shared_memory_path=str(data.parent))
    return keeper


def test_a_slice_that_is_not_mounted_yet_or_not_any_more_is_empty_and_not_as_full_as_the_machines_disk(tmp_path: Path):
    keeper = looking_at(tmp_path)
    before = keeper._usage(SimpleNamespace(inside=os.getpid()))
    after = keeper._usage(SimpleNamespace(inside=2**22))
    assert (before.used, before.files, after.used, after.files) == (0, 0, 0, 0)


@pytest.mark.skipif(bool(WHY), reason=WHY or "boxed")
def test_a_slice_that_is_mounted_is_seen_through_its_namespace(tmp_path: Path):
    keeper = looking_at(tmp_path)
    script = f"head -c 8192 /dev/zero > {tmp_path}/file; echo; read line"
    box = ["bwrap", "--bind", "/", "/", "--dev", "/dev", "--tmpfs", str(tmp_path), "sh", "-c", script]
    with subprocess.Popen(box, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as started:
        assert started.stdout is not None
        started.stdout.readline()
        children = f"/proc/{started.pid}/task/{started.pid}/children"
        with open(children, encoding="ascii") as file:
            (inside,) = map(int, file.read().split())
        found = keeper._usage(SimpleNamespace(inside=inside))
        started.communicate(b"\n")
    assert (found.used, found.files) == (8192, 1)
    assert os.listdir(tmp_path) == []
