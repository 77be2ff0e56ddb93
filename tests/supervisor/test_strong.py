"""Strong mode: what the contract forbids cannot be done, and the ceiling is a wall. Needs bubblewrap."""

from __future__ import annotations

import os
import shutil
import socket
from typing import TYPE_CHECKING

import pytest

from council_tui.board.home import Home
from council_tui.containers import seccomp
from council_tui.containers.sandbox import probe
from council_tui.domain.errors import Refused
from council_tui.domain.events import EventKind as K
from council_tui.domain.order import materialise
from council_tui.runner import guard
from council_tui.supervisor.limits import Tier, enforcement, find_tier
from supervisor.stage import Stage, child, plan_of, play, python, until

if TYPE_CHECKING:
    from pathlib import Path

WHY = probe(shutil.which("bwrap"))
strong = pytest.mark.skipif(bool(WHY), reason=WHY or "strong")
MB = 1024 * 1024


@pytest.fixture(autouse=True)
def _strong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COUNCIL_TIER", raising=False)


def forbid(*names: str, **memory: object) -> dict[str, object]:
    context: dict[str, object] = {"enforcement": "required", "inheritance": {"forbidden_capabilities": list(names)}}
    return {**context, "memory_slice": memory} if memory else context


@strong
def test_a_forbidden_network_is_not_there_and_an_allowed_one_is(home: Path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5); print('through')"
        played = play(
            home,
            plan_of(
                child("open", python(code, str(port))),
                child("shut", python(code, str(port)), context=forbid("network")),
            ),
        )
    assert played.cards["open"].state == "done"
    assert played.cards["shut"].fail == "error"


@strong
def test_with_a_forbidden_network_no_socket_in_the_file_system_leads_out_either(home: Path):
    code = """
import errno, socket, sys
def how(family, *address):
    try:
        socket.socket(family).connect(*address)
        return "through"
    except OSError as error:
        return errno.errorcode[error.errno]
print(how(socket.AF_UNIX, sys.argv[1]), how(socket.AF_VSOCK, (2, 1)))
"""
    path = str(home.parent / "agent.sock")
    with socket.socket(socket.AF_UNIX) as link:
        link.bind(path)
        link.listen()
        shut, free = child("shut", python(code, path), context=forbid("network")), child("free", python(code, path))
        played = play(home, plan_of(shut, free))
    assert played.output("shut").split()[0] == b"ECONNREFUSED"
    assert played.output("free").split()[0] == b"through"
    if seccomp.rules():
        assert played.output("shut").split()[1] == b"EAFNOSUPPORT"


@strong
def test_sockets_of_a_council_whose_home_has_a_long_path_are_out_of_sight_too(tmp_path: Path):
    home = tmp_path / ("long" * 30)
    code = "import os, sys; print(os.environ['NOTIFY_SOCKET']); print(*os.listdir(os.path.dirname(sys.argv[1])))"
    runtime = Home(home).runtime
    assert home not in runtime.parents
    played = play(home, plan_of(child("looks", python(code, str(runtime / "council.sock")))))
    notify, seen = played.output("looks").decode().splitlines()
    assert notify.startswith(str(runtime))
    assert sorted(seen.split()) == ["bodies", "slices"]


@strong
def test_forbidden_writing_leaves_only_the_slice(home: Path, tmp_path: Path):
    script = f'touch {tmp_path}/mark || echo kept out; echo x > "$COUNCIL_SLICE/y" && echo slice is mine'
    played = play(
        home,
        plan_of(child("reads", script, context=forbid("write")), child("writes", f"touch {tmp_path}/allowed")),
    )
    assert played.cards["reads"].state == "done"
    assert os.listdir(tmp_path) == ["allowed"]
    log = played.output("reads").decode()
    assert "kept out" in log
    assert "slice is mine" in log


@strong
def test_the_ceiling_is_a_wall_at_exactly_its_size(home: Path):
    code = f"""
import errno, os
path = os.environ["COUNCIL_SLICE"] + "/f"
with open(path, "wb", 0) as file:
    file.write(bytes({MB}))
    try:
        file.write(b"x")
    except OSError as error:
        print(errno.errorcode[error.errno], os.path.getsize(path))
"""
    contract = forbid(shared_memory_path=str(home.parent / "own-slice"), memory_limit_mb=1, ceiling="hard")
    played = play(home, plan_of(child("fills", python(code), context=contract)))
    assert played.cards["fills"].state == "done"
    log = played.output("fills").decode()
    assert log.split() == ["ENOSPC", str(MB)]
    assert not (home.parent / "own-slice").exists()


@strong
def test_more_files_than_the_slice_may_have_end_the_run(home: Path):
    code = (
        "import os, time\nfor i in range(400): open(os.environ['COUNCIL_SLICE'] + f'/{i}', 'w').close()\ntime.sleep(60)"
    )
    played = play(home, plan_of(child("many", python(code), context={"memory_slice": {"memory_limit_mb": 1}})))
    assert played.cards["many"].fail == "protocol_violation"
    assert "files" in played.cards["many"].reason


@strong
def test_a_body_sees_neither_the_councils_home_nor_processes_outside(home: Path):
    code = f"""
import os
print(sorted(os.listdir({str(home)!r})), os.path.exists({str(home / "run" / "council.sock")!r}))
print(sum(name.isdigit() for name in os.listdir("/proc")) < 5)
"""
    played = play(home, plan_of(child("looks", python(code))))
    log = played.output("looks").decode().splitlines()
    assert log == ["['run'] False", "True"]


@strong
async def test_sigterm_reaches_the_program_with_its_grace_and_its_exit_is_told(home: Path):
    script = "trap 'exit 7' TERM; echo ready; while :; do sleep 0.05; done"
    async with Stage(home, plan_of(child("polite", script))) as stage:
        await stage.wait(K.BODY_STARTED, "polite")
        seat = stage.seat("polite")
        await until(lambda: b"ready" in (home / "logs" / seat.run / "output.log").read_bytes())
        await stage.fleet.drain("enough")
        reaped = stage.find(K.REAPED, "polite")
    assert reaped is not None
    assert (reaped.data["exit_status"], reaped.data["signal"]) == (7, None)


@strong
def test_a_signal_that_ended_the_program_is_told_as_one(home: Path):
    played = play(home, plan_of(child("crash", "kill -SEGV $$")))
    assert played.cards["crash"].reason.startswith("signal 11")


@strong
def test_a_daemon_that_hides_everything_ends_with_its_namespace(home: Path):
    code = """
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    os.closerange(0, 100)
    os.execve("/bin/sleep", ["hidden-sleeper", "654"], {})
time.sleep(0.3)
"""
    played = play(home, plan_of(child("leaves", python(code))))
    assert played.cards["leaves"].state == "done"
    assert not [p for p in guard.all_processes() if _argv(p.pid).startswith(b"hidden-sleeper")]


def _argv(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


@strong
async def test_a_killed_runner_takes_the_whole_namespace_with_it(home: Path):
    async with Stage(home, plan_of(child("shot", "trap '' TERM; sleep 655 & wait"))) as stage:
        await stage.wait(K.BODY_STARTED, "shot")
        seat = stage.seat("shot")
        await until(lambda: len(guard.descendants(seat.pid or 0)) >= 3)
        tree = guard.descendants(seat.pid or 0)
        os.kill(seat.pid or 0, 9)
        await stage.wait(K.ORPHANED, "shot")
        await until(lambda: not any(_same(process) for process in tree), 2)
        await stage.wait(K.CARD_FAILED, "shot")


def _same(process: guard.Process) -> bool:
    now = guard.read_process(process.pid)
    return now is not None and now.start_time == process.start_time and now.state not in "ZX"


def _context(*forbidden: str, ceiling: str = "any", mode: str = "required"):
    plan = plan_of(
        child(
            "x",
            "true",
            context={
                "enforcement": mode,
                "inheritance": {"forbidden_capabilities": list(forbidden)},
                "memory_slice": {"ceiling": ceiling},
            },
        )
    )
    return materialise(
        plan.orders[0],
        parent_id="zeroclaw:office.1",
        parent=None,
        parent_task="t_0",
        task="t_1",
        slice_path="/s",
        spawn_ts="2026-01-01T00:00:00Z",
    )


def test_each_tier_says_what_it_holds_and_refuses_what_it_cannot():
    weak, hard = Tier("portable", "", "no bubblewrap"), Tier("strong", "/usr/bin/bwrap")
    assert enforcement(_context(), weak) == "portable; soft slice"
    assert enforcement(_context("network", "write"), hard) == "strong; hard slice; no network, no write"
    assert enforcement(_context("network", mode="declared-only"), weak).endswith("declared only: no network")
    assert enforcement(_context("network", "search", mode="declared-only"), hard).endswith("declared only: no search")
    for context, tier in (
        (_context("network"), weak),
        (_context("search"), hard),
        (_context(ceiling="hard"), weak),
    ):
        with pytest.raises(Refused):
            enforcement(context, tier)


def test_a_machine_without_bubblewrap_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    tier = find_tier()
    assert not tier.strong
    assert tier.why == "bubblewrap is not installed"
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'no permission' >&2\nexit 1\n")
    broken.chmod(0o755)
    assert find_tier().why == "bubblewrap cannot make namespaces here: no permission"
