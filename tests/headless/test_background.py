"""Fleets in the background: detached, stopped, frozen, taken over, crashed and gone on with, run as a service."""

from __future__ import annotations

import configparser
import json
import os
import shlex
import signal
import socket
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from supervisor.stage import alive, runs_of

from council_tui.board.home import Home, OwnerLock
from council_tui.control.readiness import Readiness
from council_tui.runner import guard
from headless.command import argv, child, council, running, until, write_plan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest

SLEEPER = ("sh", "-c", "exec sleep 40")


def owner(home: Path) -> int | None:
    return OwnerLock(Home(home)).held()


@contextmanager
def ended_after(home: Path) -> Iterator[None]:
    """Whatever runs in the home in the end is ended with it."""
    try:
        yield
    finally:
        if (pid := owner(home)) is not None:
            os.kill(pid, signal.SIGTERM)
            wait_for_exit(pid)
        assert alive(runs_of(home)) == []


def wait_for_exit(pid: int) -> None:
    fd = os.pidfd_open(pid)
    try:
        import select

        assert select.select([fd], [], [], 30)[0], f"process {pid} does not end"
    finally:
        os.close(fd)


def agents(home: Path) -> dict[str, str]:
    said = json.loads(council("agents", "--json", home=home).stdout)
    return {agent["name"].split(":")[1].split(".")[0]: agent["health"] for agent in said["agents"]}


def test_a_detached_fleet_goes_on_and_is_stopped_in_order(home: Path, tmp_path: Path):
    plan = write_plan(tmp_path, child("one", *SLEEPER), child("two", *SLEEPER, parent="openclaw"))
    with ended_after(home):
        done = council("--run", str(plan), "--detach", home=home, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert f"process {owner(home)}" in done.stdout
        again = council("--run", str(plan), "--detach", home=home, cwd=tmp_path)
        assert (again.returncode, "already runs a council" in again.stderr) == (2, True)
        frozen = council("freeze", "one", home=home)
        assert (frozen.returncode, agents(home)["one"]) == (0, "frozen")
        assert (council("thaw", "all", home=home).returncode, agents(home)["one"]) == (0, "alive")
        refused = council("freeze", "three", home=home)
        assert (refused.returncode, "no living agents are called three" in refused.stderr) == (2, True)
        stopped = council("stop", home=home)
        assert (stopped.returncode, stopped.stdout) == (0, "fleet small has ended with exit code 130\n")
        assert owner(home) is None
        assert alive(runs_of(home)) == []
        nobody = council("stop", home=home)
        assert (nobody.returncode, "no council answers" in nobody.stderr) == (2, True)


def test_an_emergency_stop_asks_nobody(home: Path, tmp_path: Path):
    plan = write_plan(tmp_path, child("deaf", "sh", "-c", "trap '' TERM; echo up; while :; do sleep 1; done"))
    with ended_after(home):
        assert council("--run", str(plan), "--detach", home=home, cwd=tmp_path).returncode == 0
        assert council("stop", "--now", home=home).returncode == 0
        events = [json.loads(line) for line in council("events", "--json", home=home).stdout.splitlines()]
        graces = [
            e["data"]["grace_seconds"] for e in events if e["kind"] == "signalled" and "grace_seconds" in e["data"]
        ]
        assert 0.0 in graces


def test_a_fleet_that_does_not_open_says_why_and_leaves_nothing(home: Path, tmp_path: Path):
    wrong = council("--run", str(tmp_path / "none.yaml"), "--detach", home=home)
    assert (wrong.returncode, owner(home)) == (2, None)
    plan = write_plan(tmp_path, child("one", *SLEEPER))
    home.mkdir(mode=0o700)
    (home / "board.db").write_bytes(b"no database at all" * 100)
    broken = council("--run", str(plan), "--detach", home=home, cwd=tmp_path)
    assert broken.returncode != 0
    assert "board.db" in broken.stderr
    assert owner(home) is None
    (home / "board.db").unlink()


def test_the_same_plan_after_a_crash_goes_on_with_who_lives(home: Path, tmp_path: Path):
    plan = write_plan(
        tmp_path, child("one", "sh", "-c", "sleep 3; echo one"), child("two", "echo", "two", after=["one"])
    )
    with running("--run", str(plan), "--json", home=home) as first:
        started = until(first, "body_started")[-1]
        first.kill()
        first.wait()
        done = council("--run", str(plan), "--json", home=home, cwd=tmp_path)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, lines[0]["type"], lines[-1]["type"]) == (0, "snapshot", "summary")
    assert lines[-1]["cards"] == {"done": 2}
    runs = {line["run"] for line in lines if line.get("kind") == "reported" and line["agent"].startswith("child:one")}
    assert runs == {started["run"]}


def test_a_service_takes_a_fleet_over_says_that_it_is_ready_and_leaves_in_order(home: Path, tmp_path: Path):
    plan = write_plan(tmp_path, child("one", *SLEEPER))
    address = str(home.parent / "notify")
    home.parent.mkdir(exist_ok=True)
    with ended_after(home), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(address)
        heard.settimeout(30)
        assert council("--run", str(plan), "--detach", home=home, cwd=tmp_path).returncode == 0
        first = owner(home)
        assert first is not None
        os.kill(first, signal.SIGKILL)
        wait_for_exit(first)
        env = {**os.environ, "COUNCIL_HOME": str(home), "NOTIFY_SOCKET": address, "WATCHDOG_USEC": "200000"}
        pid = os.posix_spawn(sys.executable, argv("serve"), env, file_actions=_quiet())
        told = b""
        while b"READY=1" not in told or b"WATCHDOG=1" not in told:
            told += heard.recv(4096)
        assert agents(home)["one"] == "alive"
        os.kill(pid, signal.SIGTERM)
        while b"STOPPING=1" not in told:
            told += heard.recv(4096)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 130
        assert alive(runs_of(home)) == []


def _quiet() -> list[tuple[object, ...]]:
    null = os.open(os.devnull, os.O_RDWR)
    return [(os.POSIX_SPAWN_DUP2, null, number) for number in (0, 1, 2)]


def test_the_unit_runs_this_council_in_this_home(tmp_path: Path):
    home = tmp_path / 'a "home" with 100 % and $HOME'
    done = council("--home", str(home), "config", "unit", home=None, cwd=tmp_path)
    unit = configparser.ConfigParser(interpolation=None, comment_prefixes=("#",))
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(done.stdout)
    service = unit["Service"]
    assert (service["Type"], service["KillMode"], service["Delegate"]) == ("notify", "control-group", "yes")
    command = shlex.split(service["ExecStart"].replace("%%", "%").replace("$$", "$"))
    assert command == [sys.executable, "-m", "council_tui", "--home", str(home), "serve"]
    assert not home.exists()


def test_readiness_leaves_the_environment_and_never_fails(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NOTIFY_SOCKET", "/nowhere/at/all")
    monkeypatch.setenv("WATCHDOG_USEC", "3000000")
    ready = Readiness()
    ready.tell(READY=1)
    assert ready.watchdog == 1.5
    assert "NOTIFY_SOCKET" not in os.environ
    assert Readiness().watchdog is None


def test_a_process_that_is_left_running_is_not_one_of_ours(home: Path, tmp_path: Path):
    plan = write_plan(tmp_path, child("one", *SLEEPER))
    with ended_after(home):
        council("--run", str(plan), "--detach", home=home, cwd=tmp_path)
        pid = owner(home)
        assert pid is not None
        process = guard.read_process(pid)
        assert process is not None
        assert process.session == pid, "it has no terminal that could take it along"
