"""The nursery: starts runners, tells of their ends, and outlives whoever started it while they live."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import sys
import time
from types import SimpleNamespace

import pytest
from faults.killed import Owner
from supervisor.stage import child, until

from council_tui.board.home import Home
from council_tui.hosts import descriptors
from council_tui.hosts.local import HostFailed, LocalHost
from council_tui.hosts.nursery import Nursery, Ward
from council_tui.runner import guard
from council_tui.runner.spec import RunnerSpec


class Ends:
    """What a host tells of."""

    def __init__(self, host):
        self.exits, self.clean, self.gone = {}, [], asyncio.Event()
        host.on_exit = self.exits.__setitem__
        host.on_clean = self.clean.append
        host.on_gone = self.gone.set


@pytest.fixture
async def host(tmp_path, home):
    home.parent.mkdir(exist_ok=True)
    host = LocalHost(tmp_path / "runners.log", home.parent / "n")
    host.start()
    yield host
    await host.close()


@pytest.fixture
async def silent(home):
    """A socket that accepts and never answers: runners wait there."""
    home.parent.mkdir(exist_ok=True)
    path = str(home.parent / "s")
    open_links = []
    server = await asyncio.start_unix_server(lambda reader, writer: open_links.append(writer), path)
    yield path, open_links
    server.close()
    for writer in open_links:
        writer.close()


def spec(path, name="r_1"):
    return RunnerSpec(name, f"child:x.{name}", path, path + "n", "t", "b", path + "l", path + "b")


def status(pid):
    process = guard.read_process(pid)
    return process.state if process else None


async def test_a_runner_that_finds_no_supervisor_ends_and_is_told_of(host, tmp_path):
    ends = Ends(host)
    started = await host.spawn(spec(str(tmp_path / "nobody")))
    await until(lambda: ends.clean)
    assert os.waitstatus_to_exitcode(ends.exits[started.pid]) == 1
    assert ends.clean == [started.pid]
    assert b"runner r_1: " in (tmp_path / "runners.log").read_bytes()


async def test_a_runner_has_a_session_of_its_own_below_the_nursery_and_a_start_time(host, silent):
    ends = Ends(host)
    path, links = silent
    started = await host.spawn(spec(path))
    process = guard.read_process(started.pid)
    assert process is not None
    await until(lambda: links)
    process = guard.read_process(started.pid)
    assert process is not None
    assert (process.ppid, process.session, process.start_time) == (host.pid, started.pid, started.start_time)
    os.kill(started.pid, signal.SIGKILL)
    await until(lambda: ends.clean)
    assert os.WTERMSIG(ends.exits[started.pid]) == signal.SIGKILL


async def test_many_spawns_at_once_each_get_their_own_answer(host, tmp_path):
    ends = Ends(host)
    names = [f"r_{number}" for number in range(40)]
    started = await asyncio.gather(*(host.spawn(spec(str(tmp_path / "nobody"), name)) for name in names))
    assert len({one.pid for one in started}) == 40
    await until(lambda: len(ends.clean) == 40)
    assert set(ends.clean) == set(ends.exits) == {one.pid for one in started}


async def test_hundreds_of_spawns_at_once_neither_hang_nor_get_lost(host, tmp_path):
    ends = Ends(host)
    # More than the socket takes before the nursery has read the first.
    names = [f"r_{number}" for number in range(300)]
    os.kill(host.pid, signal.SIGSTOP)
    spawning = asyncio.gather(*(host.spawn(spec(str(tmp_path / "nobody" / ("x" * 200)), name)) for name in names))
    await asyncio.sleep(0)
    os.kill(host.pid, signal.SIGCONT)
    started = await spawning
    assert len({one.pid for one in started}) == 300
    await until(lambda: len(ends.clean) == 300)


async def test_nobody_hears_of_an_end_before_the_beginning(host, tmp_path):
    order = []
    host.on_exit = lambda pid, status: order.append(("exit", pid))
    host.on_clean = lambda pid: order.append(("clean", pid))

    async def spawn():
        started = await host.spawn(spec(str(tmp_path / "nobody")))
        order.append(("started", started.pid))

    task = asyncio.create_task(spawn())
    await asyncio.sleep(0)
    # While this loop is busy the runner is born and dies, and both are read at once.
    while not (tmp_path / "runners.log").read_bytes():
        time.sleep(0.01)  # noqa: ASYNC251
    time.sleep(0.2)  # noqa: ASYNC251
    await task
    await until(lambda: len(order) == 3)
    assert [what for what, _ in order] == ["started", "exit", "clean"]


async def test_a_nursery_whose_supervisor_lets_go_stays_until_its_last_runner_has_left(tmp_path, home, silent):
    path, links = silent
    host = LocalHost(tmp_path / "runners.log", home.parent / "n")
    host.start()
    await host.spawn(spec(path))
    await until(lambda: links)
    closing = asyncio.create_task(host.close())
    await asyncio.sleep(0)
    assert status(host.pid) not in (None, "Z")
    # The supervisor's end of the connection closes: nothing outlives it.
    links[0].close()
    await closing
    assert status(host.pid) is None


async def test_signals_of_a_terminal_do_not_end_the_nursery(host, tmp_path):
    Ends(host)
    await host.spawn(spec(str(tmp_path / "nobody")))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(host.pid, number)
    await host.spawn(spec(str(tmp_path / "nobody"), "r_2"))


async def test_a_nursery_that_dies_is_noticed_and_its_runners_are_still_watched(host, silent):
    ends = Ends(host)
    path, links = silent
    started = await host.spawn(spec(path))
    await until(lambda: links)
    os.kill(host.pid, signal.SIGKILL)
    await ends.gone.wait()
    assert ends.exits == {}
    with pytest.raises(HostFailed, match="not running"):
        await host.spawn(spec(path))
    os.kill(started.pid, signal.SIGKILL)
    await until(lambda: ends.clean)
    assert ends.exits == {started.pid: None}


@pytest.fixture
def hurried(monkeypatch):
    """A host that is not patient."""
    for name, seconds in (("PING_SECONDS", 0.05), ("WAKE_SECONDS", 0.1), ("DEAF_SECONDS", 0.5)):
        monkeypatch.setattr(f"council_tui.hosts.local.{name}", seconds)


async def test_a_nursery_that_was_stopped_is_woken(hurried, host, tmp_path):
    ends = Ends(host)
    await host.spawn(spec(str(tmp_path / "nobody")))
    os.kill(host.pid, signal.SIGSTOP)
    async with asyncio.timeout(20):
        await host.spawn(spec(str(tmp_path / "nobody"), "r_2"))
    os.kill(host.pid, signal.SIGSTOP)
    await until(lambda: len(ends.clean) == 2)
    assert not ends.gone.is_set()


async def test_a_nursery_that_cannot_be_woken_is_ended_and_nobody_waits_for_it(hurried, host, tmp_path, monkeypatch):
    ends = Ends(host)
    await host.spawn(spec(str(tmp_path / "nobody")))
    await until(lambda: ends.clean)
    send = guard.send
    monkeypatch.setattr(guard, "send", lambda process, number: number == signal.SIGCONT or send(process, number))
    os.kill(host.pid, signal.SIGSTOP)
    # Also those whose request never got into the socket.
    long = str(tmp_path / "nobody" / ("x" * 200))
    asked = (host.spawn(spec(long, f"r_{number}")) for number in range(300))
    async with asyncio.timeout(20):
        answers = await asyncio.gather(*asked, return_exceptions=True)
    assert {str(answer) for answer in answers} == {"the nursery has ended"}
    assert ends.gone.is_set()
    await until(lambda: status(host.pid) in (None, "Z"))


class Released:
    """A nursery whose supervisor is gone, and the next one's end of it."""

    def __init__(self, tmp_path, home):
        self.errors, self.door = tmp_path / "runners.log", home.parent / "n"
        self.nursery = None

    async def left_by_one_that_is_gone(self, *specs):
        """Start these runners and go; their pids by run."""
        host = LocalHost(self.errors, self.door)
        host.start()
        started = {one.run: await host.spawn(one) for one in specs}
        self.nursery = guard.read_process(host.pid)
        self.process = host._process
        host.release()
        return started

    def next(self):
        return LocalHost(self.errors, self.door)


@pytest.fixture
def released(tmp_path, home):
    home.parent.mkdir(exist_ok=True)
    released = Released(tmp_path, home)
    yield released
    if released.nursery is not None:
        guard.send(released.nursery, signal.SIGKILL)
        os.waitpid(released.nursery.pid, 0)


async def test_the_next_supervisor_takes_the_nursery_over_and_hears_of_its_runners(released, silent):
    path, links = silent
    started = await released.left_by_one_that_is_gone(spec(path), spec(path, "r_2"))
    await until(lambda: len(links) == 2)
    host = released.next()
    ends = Ends(host)
    wards = await host.adopt(released.nursery)
    assert {ward.run: (pid, ward.start_time) for pid, ward in wards.items()} == {
        run: (one.pid, one.start_time) for run, one in started.items()
    }
    assert host.pid == released.nursery.pid
    host.listen()
    os.kill(started["r_1"].pid, signal.SIGKILL)
    await until(lambda: ends.clean)
    assert {pid: os.WTERMSIG(status) for pid, status in ends.exits.items()} == {started["r_1"].pid: signal.SIGKILL}
    new = await host.spawn(spec(path, "r_3"))
    assert guard.read_process(new.pid).ppid == released.nursery.pid
    await until(lambda: len(links) == 3)
    for writer in links:
        writer.close()
    await host.close()


async def test_what_ended_while_there_was_no_supervisor_is_told_to_the_next_one(released, silent):
    path, links = silent
    started = await released.left_by_one_that_is_gone(spec(path), spec(path, "r_2"))
    await until(lambda: len(links) == 2)
    os.kill(started["r_1"].pid, signal.SIGKILL)
    await until(lambda: status(started["r_1"].pid) is None)
    host = released.next()
    ends = Ends(host)
    wards = await host.adopt(released.nursery)
    told = {ward.run: (ward.status, ward.clean) for ward in wards.values()}
    assert told == {"r_1": (signal.SIGKILL, True), "r_2": (None, False)}
    host.listen()
    host.release()
    assert ends.exits == {}, "it was told when it was asked for"
    third = released.next()
    assert {ward.run for ward in (await third.adopt(released.nursery)).values()} == {"r_2"}, "it is news only once"
    third.release()


async def test_how_a_runner_ended_is_told_again_while_what_it_guarded_is_not_proved_dead(home):
    """The supervisor that was told may have died before it could write it down."""
    deaf = child("deaf", "trap '' TERM; sleep 600; sleep 600", policy={"grace_seconds": 1.5})
    async with Owner(home, deaf) as owner:
        await owner.wait("nursery")
        await owner.wait("body_started")
        runner = (await owner.wait("agent_started", "deaf"))[3]["pid"]
        nursery = guard.read_process(next(one[3]["pid"] for one in owner.told if one[0] == "nursery"))
        await owner.kill()
    os.kill(runner, signal.SIGKILL)
    told = []
    for _ in range(2):
        await until(lambda: status(runner) is None)
        host = LocalHost(home / "runners.log", Home(home).nursery)
        ends = Ends(host)
        ward = (await host.adopt(nursery))[runner]
        told.append((ward.status, ward.clean))
        host.listen()
        if len(told) == 2:
            await until(lambda: ends.clean)  # noqa: B023
        host.release()
    assert told == [(signal.SIGKILL, False)] * 2
    assert (ends.exits, ends.clean) == ({}, [runner])


async def test_a_nursery_serves_no_second_supervisor_and_no_process_of_an_agent(host, silent):
    path, links = silent
    await host.spawn(spec(path))
    await until(lambda: links)
    nursery = guard.read_process(host.pid)
    door = host._door
    assert await LocalHost(host._errors, door).adopt(nursery) is None
    host._drop()
    ask = (
        "import os, socket, sys; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.connect(sys.argv[1]);"
        "sys.exit(len(s.recv(65536)))"
    )
    for env, hears in (({"COUNCIL_RUN": "r_1"}, False), ({}, True)):
        asking = await asyncio.create_subprocess_exec(sys.executable, "-c", ask, str(door), env=env)
        assert (await asking.wait() > 0) is hears
    again = LocalHost(host._errors, door)
    assert await again.adopt(nursery) is not None
    again.release()


async def test_a_nursery_of_another_version_is_left_as_it_is(released, silent, monkeypatch):
    path, links = silent
    started = await released.left_by_one_that_is_gone(spec(path))
    await until(lambda: links)
    with monkeypatch.context() as other:
        other.setattr("council_tui.hosts.local.__version__", "0.0.1")
        assert await released.next().adopt(released.nursery) is None
    assert status(started["r_1"].pid) not in (None, "Z")
    host = released.next()
    assert set(await host.adopt(released.nursery)) == {started["r_1"].pid}
    host.release()


async def test_a_nursery_that_was_stopped_is_woken_to_be_taken_over(released, silent):
    path, links = silent
    await released.left_by_one_that_is_gone(spec(path))
    await until(lambda: links)
    os.kill(released.nursery.pid, signal.SIGSTOP)
    host = released.next()
    assert await host.adopt(released.nursery) is not None
    host.release()


async def test_whoever_else_listens_at_the_door_is_not_taken_for_the_nursery(released, silent):
    path, links = silent
    await released.left_by_one_that_is_gone(spec(path))
    await until(lambda: links)
    released.door.unlink()
    assert await released.next().adopt(released.nursery) is None
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as impostor:
        impostor.bind(str(released.door))
        impostor.listen()
        assert await released.next().adopt(released.nursery) is None


async def test_a_nursery_whose_supervisor_died_before_it_stood_leaves_the_door_to_others(host, tmp_path):
    """Both were started on one home, and the slower one must not take the faster one's place."""
    Ends(host)
    await host.spawn(spec(str(tmp_path / "nobody")))
    inode = os.stat(host._door).st_ino
    late = LocalHost(host._errors, host._door)
    late.start()
    late._drop()
    await late.close()
    assert os.stat(host._door).st_ino == inode


def full(*args, **more):
    raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")


async def test_a_full_process_table_is_told_in_a_sentence_and_leaves_nothing_open(tmp_path, home, monkeypatch):
    home.parent.mkdir(exist_ok=True)
    host, before = LocalHost(tmp_path / "runners.log", home.parent / "n"), descriptors.used()
    with monkeypatch.context() as patch:
        patch.setattr("subprocess.Popen", full)
        with pytest.raises(HostFailed) as caught:
            host.start()
    assert str(caught.value) == (
        "this machine cannot start another process: Resource temporarily unavailable; end something, then start again"
    )
    assert descriptors.used() == before
    await host.close()


async def test_a_fifo_in_the_place_of_the_runners_log_is_not_waited_for(tmp_path, home):
    home.parent.mkdir(exist_ok=True)
    os.mkfifo(tmp_path / "runners.log")
    with pytest.raises(OSError, match="No such device or address"):
        LocalHost(tmp_path / "runners.log", home.parent / "n").start()


class Blind:
    """A machine that has no room to look at a process the first so many times."""

    def __init__(self, monkeypatch, times):
        self.looks, read = 0, guard.read_process

        def look(pid):
            self.looks += 1
            if self.looks <= times:
                raise OSError(errno.ENFILE, "Too many open files in system")
            return read(pid)

        monkeypatch.setattr(guard, "read_process", look)


async def test_whoever_cannot_be_looked_at_is_not_gone_and_is_looked_at_again(host, silent, monkeypatch):
    ends = Ends(host)
    path, links = silent
    started = await host.spawn(spec(path))
    await until(lambda: links)
    os.kill(host.pid, signal.SIGKILL)
    await ends.gone.wait()
    with monkeypatch.context() as patch:
        blind = Blind(patch, 3)
        await until(lambda: blind.looks > 4)
        assert ends.exits == {}
        os.kill(started.pid, signal.SIGKILL)
        await until(lambda: ends.clean)


async def test_closing_waits_for_a_nursery_that_it_cannot_look_at_and_not_for_ever(host, tmp_path, monkeypatch):
    Ends(host)
    await host.spawn(spec(str(tmp_path / "nobody")))
    own, host._process = host._process, None
    with monkeypatch.context() as patch:
        blind = Blind(patch, 5)
        await host.close()
        assert blind.looks > 5
    own.wait()
    again = LocalHost(tmp_path / "runners.log", tmp_path / "n")
    again._nursery = guard.read_process(os.getpid())
    with monkeypatch.context() as patch:
        patch.setattr("council_tui.hosts.local.KILLED_SECONDS", 0.05)
        patch.setattr(guard, "send", lambda process, number: False)
        async with asyncio.timeout(20):
            await again.close(patience=0)


@pytest.fixture
def nursery(monkeypatch):
    """A nursery in this process, of which nothing works yet but its loop."""
    one = object.__new__(Nursery)
    one._control, one._runners, one._unclean = None, {}, {7: Ward("r_1", 1, 0.0)}
    one._selector = SimpleNamespace(select=lambda seconds: [])
    one._collect = one._remove_door = lambda: None
    return one


def test_a_nursery_that_has_no_room_to_look_proves_nobody_dead_and_looks_again(nursery, monkeypatch):
    monkeypatch.setattr(guard, "children_of", lambda pid: [4_194_304])
    blind = Blind(monkeypatch, 3)
    nursery._kill_at, nursery._unheard = {}, {}
    nursery.serve()
    assert blind.looks == 4
    assert list(nursery._unheard) == [7]


def test_a_nursery_without_a_descriptor_lets_whoever_connects_wait(nursery, monkeypatch):
    paused = []

    def short():
        raise OSError(errno.ENFILE, "Too many open files in system")

    nursery._door = SimpleNamespace(accept=short)
    monkeypatch.setattr("council_tui.hosts.nursery.time.sleep", paused.append)
    nursery._welcome()
    assert paused == [0.05]


def test_a_runner_whose_birth_cannot_be_seen_is_ended_and_refused(nursery, monkeypatch):
    killed = []
    monkeypatch.setattr("os.fork", lambda: 4_194_304)
    monkeypatch.setattr("os.kill", lambda pid, number: killed.append((pid, number)))
    Blind(monkeypatch, 1)
    with pytest.raises(OSError, match="Too many"):
        nursery._fork(spec("/none"))
    assert killed == [(4_194_304, signal.SIGKILL)]
    assert nursery._runners == {}
