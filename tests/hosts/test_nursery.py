"""The nursery: starts runners, tells of their ends, and outlives whoever started it while they live."""

from __future__ import annotations

import asyncio
import os
import signal
import time

import pytest
from supervisor.stage import until

from council_tui.hosts.local import HostFailed, LocalHost
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
async def host(tmp_path):
    host = LocalHost(tmp_path / "runners.log")
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


def spec(socket, name="r_1"):
    return RunnerSpec(name, f"child:x.{name}", socket, socket + "n", "t", "b", socket + "l", socket + "b")


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


async def test_a_nursery_whose_supervisor_lets_go_stays_until_its_last_runner_has_left(tmp_path, silent):
    path, links = silent
    host = LocalHost(tmp_path / "runners.log")
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
