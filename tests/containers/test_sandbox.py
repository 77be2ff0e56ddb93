"""The sandbox, with real programs in it: what reaches past its namespaces is closed. Needs bubblewrap."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from council_tui.containers import sandbox
from council_tui.containers.command import Launch
from council_tui.containers.sandbox import Sandbox, probe, with_sockets, wrap
from council_tui.containers.sockets import uncover

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = shutil.which("bwrap")
WHY = probe(PROGRAM)
boxed = pytest.mark.skipif(bool(WHY), reason=WHY or "boxed")
MB = 1024 * 1024

CONNECT = """
import socket, sys
for path in sys.argv[1:]:
    link = socket.socket(socket.AF_UNIX)
    try:
        link.connect(path)
        print("through")
    except OSError as error:
        print(type(error).__name__)
"""


@pytest.fixture
def box() -> Iterator[Sandbox]:
    """A sandbox around a home that holds the slice and the socket of one run."""
    with tempfile.TemporaryDirectory(prefix="c-", dir="/tmp") as folder:
        home = Path(folder) / "h"
        (home / "slice").mkdir(parents=True)
        with listener(home / "notify"):
            yield Sandbox(
                program=PROGRAM or "",
                hidden=(str(home),),
                data=str(home / "slice"),
                limit=MB,
                notify=str(home / "notify"),
                workdir=folder,
            )


@contextmanager
def listener(path: Path) -> Iterator[Path]:
    """A socket on which this process listens."""
    with socket.socket(socket.AF_UNIX) as link:
        link.bind(str(path))
        link.listen()
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)


def run(box: Sandbox, *argv: str, workdir: str = "") -> subprocess.CompletedProcess[str]:
    """A program in the sandbox, to its end."""
    status, theirs = os.pipe()
    plan = wrap(Launch(argv, workdir or box.workdir, dict(os.environ)), box, theirs)
    try:
        return subprocess.run(
            plan.argv,
            cwd=plan.cwd,
            env=plan.env,
            pass_fds=(theirs, *plan.fds),
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    finally:
        for fd in (status, theirs, *plan.fds):
            os.close(fd)


def connects(box: Sandbox, *paths: Path, workdir: str = "") -> list[str]:
    """How it goes for a program in the sandbox that connects to these."""
    code = (sys.executable, "-I", "-S", "-c", CONNECT, *map(str, paths))
    return run(with_sockets(box), *code, workdir=workdir).stdout.split()


@boxed
def test_with_a_forbidden_network_no_socket_outside_is_reachable_and_ones_own_is(box):
    with ExitStack() as stack:
        outside = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="c-", dir="/tmp")))
        paths = [stack.enter_context(listener(path)) for path in (outside / "agent.1", Path(box.workdir, "s"))]
        # A service that listens by a path which leads over a link.
        (outside / "link").symlink_to(outside)
        paths.append(stack.enter_context(listener(outside / "link" / "linked")))
        assert connects(box, *paths, Path(box.notify)) == ["through"] * 4
        closed = replace(box, network=False)
        assert connects(closed, *paths, Path(box.notify)) == [*["ConnectionRefusedError"] * 3, "through"]
        # A socket beside a read-only file system is as reachable as any, so it is covered there too.
        assert connects(replace(closed, write=False), *paths) == ["ConnectionRefusedError"] * 3


@boxed
@pytest.mark.skipif(not os.access("/run", os.W_OK), reason="/run is not ours to write to")
def test_run_is_not_there_with_a_forbidden_network_but_for_a_work_directory_in_it(box):
    with tempfile.TemporaryDirectory(prefix="c-", dir="/run") as folder:
        work = Path(folder) / "work"
        work.mkdir()
        (work / "file").write_text("mine")
        closed = replace(box, network=False)
        with listener(Path(folder) / "dbus") as dbus, listener(work / "inside") as inside:
            assert connects(closed, dbus) == ["FileNotFoundError"]
            at_work = replace(closed, workdir=str(work))
            assert connects(at_work, dbus, inside, workdir=str(work)) == ["FileNotFoundError", "ConnectionRefusedError"]
            assert run(at_work, "cat", "file", workdir=str(work)).stdout == "mine"
            assert run(at_work, "touch", "new", workdir=str(work)).returncode == 0
            assert (work / "new").exists()
            assert run(replace(at_work, write=False), "touch", "newer", workdir=str(work)).returncode != 0


@boxed
def test_a_socket_that_is_gone_when_it_is_to_be_covered_leaves_nothing_behind(box):
    gone = Path(box.workdir) / "gone"
    closed = replace(box, network=False, sockets=(str(gone),))
    assert run(closed, "true").returncode == 0
    assert gone.exists(), "bubblewrap made a file to put its mount on"
    uncover(closed.sockets)
    assert not gone.exists()


@boxed
def test_the_slice_is_all_the_memory_of_the_machine_that_a_program_can_write_to(box):
    closed = replace(box, network=False, write=False)
    script = f"touch /dev/x {box.hidden[0]}/x /run/x; head -c {2 * MB} /dev/zero > /dev/shm/x; echo done"
    done = run(closed, "sh", "-c", script)
    assert done.stdout == "done\n"
    assert done.stderr.count("Read-only file system") >= 3
    assert "No space left" in done.stderr
    usual = "import multiprocessing, os, pty; multiprocessing.Lock(); pty.openpty(); open('/dev/null', 'w').write('x')"
    assert run(closed, sys.executable, "-c", usual).returncode == 0


@boxed
def test_root_gives_up_what_it_could_undo_the_sandbox_with(box):
    closed = replace(box, network=False, write=False)
    kernel = "/proc/sys/kernel/core_pattern"
    script = f"mount -o remount,rw /; umount /run; [ -w {kernel} ] && echo open; grep CapEff /proc/self/status"
    done = run(closed, "sh", "-c", script)
    assert done.stdout.startswith("CapEff:")
    assert int(done.stdout.split()[-1], 16) & sandbox._SYS_ADMIN == 0
    assert "umount: " in done.stderr
    assert "\nmount: " in f"\n{done.stderr}"


@boxed
def test_cgroups_can_be_looked_at_and_not_be_left(box):
    found = next(iter(Path("/sys/fs/cgroup").rglob("cgroup.procs")), None)
    if found is None:
        pytest.skip("no cgroup is to be seen here")
    done = run(box, "sh", "-c", f"cat {found} > /dev/null && echo seen; echo 0 > {found}")
    assert done.stdout == "seen\n"
    assert "Read-only file system" in done.stderr


@boxed
def test_no_setting_of_the_kernel_can_be_written(box):
    look = "find /sys/kernel /sys/module -type f -writable 2>/dev/null | head -1; echo looked"
    assert run(box, "sh", "-c", look).stdout == "looked\n"


def test_root_asks_only_for_what_it_has_and_others_for_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(sandbox, "_status", lambda: {"CapPrm": f"{1 << 0 | 1 << 5 | 1 << 21:016x}"})
    assert sandbox._privileges() == ["--cap-drop", "ALL", "--cap-add", "CAP_CHOWN", "--cap-add", "CAP_KILL"]
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert sandbox._privileges() == []


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ("CapEff:\t0000000000200000\nSeccomp:\t2\n", "CAP_SYS_ADMIN"),
        ("CapEff:\t0000000000000000\nSeccomp:\t0\n", "does not filter"),
        ("CapEff:\t00000000a00425fb\nSeccomp:\t2\n", ""),
    ],
)
def test_a_trial_that_only_looks_well_is_no_strong_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status, why):
    monkeypatch.setattr(sandbox.seccomp, "rules", lambda: b"\0" * 8)
    liar = tmp_path / "bwrap"
    liar.write_text(f"#!/bin/sh\ncat <<'END'\n{status}END\n")
    liar.chmod(0o755)
    found = probe(str(liar))
    assert (why in found) if why else (found == "")
