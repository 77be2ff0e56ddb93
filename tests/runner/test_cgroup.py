"""Cgroups: where they can be made, what is written into them, and that they go away; then the machine's own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from council_tui.containers.command import Launch
from council_tui.domain.contract import ResourceLimits
from council_tui.runner import cgroup
from council_tui.runner.bounds import Bounds
from council_tui.runner.cgroup import TREE, Group, attempt, candidates, find, remove, runs_at
from runner.kernel import FakeKernel

FOLDERS, REASONS = find()
real = pytest.mark.skipif(bool(REASONS), reason="; ".join(REASONS.values()) or "cgroups can be made")
EVERY = ResourceLimits(memory_mb=64, processes=20, cpus=0.25)
RUN = f"r_test{os.getpid()}"


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeKernel:
    (tmp_path / "cgroup").mkdir()
    monkeypatch.setattr(cgroup, "_TRIES", 1)
    return FakeKernel(tmp_path / "cgroup", monkeypatch)


def held(path: Path) -> dict[str, str]:
    """What was written into the files of a group."""
    files = (file for file in path.iterdir() if file.is_file() and file.name != "cgroup.controllers")
    return {file.name: text for file in files if (text := file.read_text())}


def test_in_version_2_every_limit_is_in_one_group_and_the_tree_one_level_below(kernel):
    top = kernel.unified(given="memory pids cpu")
    group = Group("r_1", dict.fromkeys(cgroup.CONTROLLERS, str(top)))
    group.make(EVERY, spare=2)
    at = top / "council-r_1"
    size = str(64 * 1024 * 1024)
    expected = {"memory.max": size, "memory.swap.max": "0", "pids.max": "22", "cpu.max": "25000 100000"}
    assert held(at) == expected
    assert held(at / TREE) == {}
    assert [word for word in group.around(("true",)) if "procs" in word] == [str(at / TREE / "cgroup.procs")]
    assert runs_at(str(top)) == ["r_1"]
    assert remove("r_1", [str(top)]) == []
    assert runs_at(str(top)) == []


def test_in_version_1_each_limit_is_with_its_own_controller(kernel):
    folders = {limit: str(kernel.controller(name)) for limit, name in cgroup.CONTROLLERS.items()}
    group = Group("r_1", folders)
    group.make(EVERY)
    found = {name: held(Path(folder) / "council-r_1") for name, folder in folders.items()}
    size = str(64 * 1024 * 1024)
    assert found["memory"] == {"memory.limit_in_bytes": size, "memory.memsw.limit_in_bytes": size}
    assert found["processes"] == {"pids.max": "20"}
    assert found["cpus"] == {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "25000"}
    assert sum("procs" in word for word in group.around(("true",))) == 3


def test_a_kernel_that_does_not_account_for_swap_still_limits_memory(kernel):
    top = kernel.controller("memory")
    group = Group("r_1", {"memory": str(top)})
    write = kernel.write

    def without_swap(path: str, value: str) -> None:
        if "memsw" in path:
            os.unlink(path)
        write(path, value)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cgroup, "_write", without_swap)
        group.make(EVERY)
    assert held(top / "council-r_1") == {"memory.limit_in_bytes": str(64 * 1024 * 1024)}


def test_a_controller_that_is_not_handed_on_is_a_limit_that_cannot_be_held(kernel):
    top = kernel.unified(given="pids")
    with pytest.raises(FileNotFoundError):
        Group("r_1", {"memory": str(top)}).make(EVERY)


def test_what_the_kernel_counted_is_told_in_words_from_whichever_level_it_counts_on(kernel):
    top = kernel.unified(given="memory pids cpu")
    bounds = Bounds("r_1", EVERY, dict.fromkeys(cgroup.CONTROLLERS, str(top)), strong=True, spare=2)
    bounds.make()
    assert bounds.notes() == ()
    at = top / "council-r_1"
    (at / "memory.events").write_text("low 0\nhigh 0\nmax 31\noom 1\noom_kill 1\n")
    (at / TREE / "pids.events").write_text("max 3\n")
    assert bounds.notes() == (
        "the kernel ended 1 process of it at its memory limit of 64 MiB",
        "the kernel refused it another process 3 times, its limit is 20",
    )


def test_a_group_is_removed_with_what_a_body_made_in_it_and_stays_while_somebody_lives_there(kernel):
    top = kernel.unified(given="memory pids cpu")
    Group("r_1", {"memory": str(top)}).make(EVERY)
    inner = top / "council-r_1" / TREE / "own"
    os.mkdir(inner)
    (inner / "cgroup.procs").write_text("4711\n")
    assert remove("r_1", [str(top)]) == [str(top / "council-r_1")]
    (inner / "cgroup.procs").write_text("")
    assert remove("r_1", [str(top)]) == []
    assert remove("r_1", [str(top)]) == []


def test_a_machine_finds_each_limit_where_its_controller_is(kernel, monkeypatch):
    tops = {name: kernel.controller(name) for name in ("memory", "pids")}
    kernel.mkdir(str(tops["memory"] / "session"))
    kernel.unified(offers="cpu", given="")
    monkeypatch.setattr(cgroup, "attempt", lambda limit, folder: "" if limit != "cpus" else "no way")
    proc = kernel.tables(memory="/session", pids="/", unified="/")
    folders, reasons = find(proc)
    assert folders == {"memory": str(tops["memory"] / "session"), "processes": str(tops["pids"])}
    assert reasons == {"cpus": "no way"}


def test_in_version_2_the_cgroup_above_ours_is_the_place_and_hands_on_what_it_has(kernel):
    top = kernel.unified(given="memory pids")
    above, here = str(top / "service"), str(top / "service" / "us")
    kernel.mkdir(above)
    kernel.mkdir(here)
    Path(here, "cgroup.controllers").write_text("memory pids")
    Path(here, "cgroup.procs").write_text(f"{os.getpid()}\n")
    proc = kernel.tables(unified="/service/us")
    tables = (proc / "cgroup").read_text(), (proc / "mountinfo").read_text()
    assert candidates("memory", *tables) == [here, above]
    folders, reasons = find(proc)
    assert folders == {"memory": above, "processes": above}
    assert reasons == {"cpus": "no cgroup offers the cpu controller"}
    assert Path(above, "cgroup.subtree_control").read_text().split() == ["memory", "pids"]
    assert runs_at(above) == []


def test_where_nobody_may_hand_controllers_on_there_is_no_place(kernel):
    top = kernel.unified()
    (top / "cgroup.procs").write_text(f"{os.getpid()}\n")
    folders, reasons = find(kernel.tables(unified="/"))
    assert folders == {}
    assert reasons["memory"] == f"{top}: Device or resource busy"


def test_a_cgroup_that_is_not_to_be_seen_from_here_is_no_place(kernel):
    kernel.controller("pids")
    proc = kernel.tables(pids="/../elsewhere")
    assert candidates("processes", (proc / "cgroup").read_text(), (proc / "mountinfo").read_text()) == []


def test_a_machine_without_cgroups_says_so_for_each_limit(tmp_path):
    folders, reasons = find(tmp_path)
    assert folders == {}
    assert set(reasons) == set(cgroup.CONTROLLERS)
    assert "cannot read" in reasons["memory"]
    (tmp_path / "cgroup").write_text("")
    (tmp_path / "mountinfo").write_text("")
    assert find(tmp_path)[1]["processes"] == "no cgroup offers the pids controller"


def test_a_place_that_is_not_ours_to_use_is_told_with_its_reason(kernel, tmp_path):
    assert attempt("memory", str(tmp_path / "nowhere")) == f"{tmp_path / 'nowhere'}: No such file or directory"
    top = kernel.unified(given="memory")
    assert attempt("memory", str(top)) == ""
    assert runs_at(str(top)) == []


def test_a_program_that_cannot_move_into_its_group_does_not_start(tmp_path):
    group = Group("r_1", {"memory": str(tmp_path / "nowhere")})
    done = subprocess.run(group.around(("echo", "started")), capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (126, b"")
    assert b"cgroup.procs" in done.stderr


def launched(limits: ResourceLimits, code: str) -> tuple[subprocess.CompletedProcess[str], Bounds]:
    """A program under these limits, to its end, in cgroups of this machine."""
    bounds = Bounds(RUN, limits, FOLDERS, strong=True, spare=0)
    bounds.make()
    plan = bounds.around(Launch((sys.executable, "-I", "-S", "-c", code), "/", {}))
    return subprocess.run(plan.argv, capture_output=True, text=True, timeout=30, check=False), bounds


@pytest.fixture
def cleared():
    """Cgroups of this test go away, or it fails."""
    yield
    assert remove(RUN, FOLDERS.values()) == []


@real
@pytest.mark.usefixtures("cleared")
def test_the_kernel_ends_a_tree_at_its_memory_limit():
    done, bounds = launched(ResourceLimits(memory_mb=32), "x = bytearray(100 << 20)")
    assert done.returncode == -9
    assert bounds.notes() == ("the kernel ended 1 process of it at its memory limit of 32 MiB",)


FORKS = """
import os, time
count = 0
try:
    while count < 50:
        if os.fork() == 0:
            time.sleep(0.1)
            os._exit(0)
        count += 1
except BlockingIOError:
    pass
print(count)
"""


@real
@pytest.mark.usefixtures("cleared")
def test_the_kernel_refuses_a_tree_more_processes_than_its_limit():
    done, bounds = launched(ResourceLimits(processes=6), FORKS)
    assert done.stdout == "5\n"
    assert bounds.notes() == ("the kernel refused it another process once, its limit is 6",)


@real
@pytest.mark.usefixtures("cleared")
def test_a_limit_of_cores_makes_a_tree_slower_and_does_not_end_it():
    busy = "import time; a = time.monotonic()\nwhile time.process_time() < 0.1: pass\nprint(time.monotonic() - a)"
    done, bounds = launched(ResourceLimits(cpus=0.2), busy)
    assert float(done.stdout) > 0.3
    assert bounds.notes() == ()
