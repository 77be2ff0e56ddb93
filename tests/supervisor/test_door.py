"""Who connects is let in one after another; without a descriptor they wait, and nobody prints anything about it."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os

import pytest
from faults.shortage import no_descriptors

from council_tui.domain.events import EventKind as K
from council_tui.runner.channel import RemoteRefusal
from council_tui.supervisor import channel
from supervisor.stage import WITHIN, until
from supervisor.wire import Bare

ATTACH = b'{"jsonrpc": "2.0", "id": 1, "method": "attach", "params": {}}\n'


@pytest.fixture
async def bare(home):
    async with Bare(home) as bare:
        yield bare


async def attached(bare):
    """A connection that asks to attach, and what it is answered in time."""
    reader, writer = await asyncio.open_unix_connection(str(bare.sup.home.socket))
    writer.write(ATTACH)
    return reader, writer


async def answer(reader):
    async with asyncio.timeout(WITHIN):
        return json.loads(await reader.readline())


async def test_without_descriptors_whoever_connects_waits_and_the_terminal_is_left_alone(bare, caplog, monkeypatch):
    monkeypatch.setattr(channel, "PAUSE_SECONDS", 0.05)
    with caplog.at_level(logging.DEBUG, "asyncio"):
        with no_descriptors(1):
            reader, writer = await attached(bare)
            await until(lambda: bare.sup.hearing.shortages >= 3)
        assert (await answer(reader))["result"] == {"pid": os.getpid()}
    writer.close()
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    told = [event.data for event in bare.events if event.kind is K.CALLERS_WAIT]
    assert told == [{"reason": "Too many open files", "count": 1}]


async def test_a_pause_lies_between_two_tries(bare, monkeypatch):
    monkeypatch.setattr(channel, "PAUSE_SECONDS", 3600)
    with no_descriptors(1):
        _, writer = await attached(bare)
        await until(lambda: bare.sup.hearing.shortages == 1)
        for _ in range(50):
            await asyncio.sleep(0)
        assert bare.sup.hearing.shortages == 1
    writer.close()


async def test_hundreds_who_come_at_once_are_all_let_in(bare):
    came = [await attached(bare) for _ in range(3 * channel.AT_ONCE)]
    for reader, writer in came:
        assert (await answer(reader))["id"] == 1
        writer.close()


async def test_a_connection_that_the_loop_cannot_take_is_closed_and_counted(bare, monkeypatch):
    async def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(asyncio.get_running_loop(), "connect_accepted_socket", full)
        reader, writer = await asyncio.open_unix_connection(str(bare.sup.home.socket))
        assert await reader.read() == b""
    writer.close()
    assert bare.sup.hearing.shortages == 1


async def test_a_look_at_who_asks_that_cannot_be_had_is_a_refusal_and_no_fault(bare, monkeypatch):
    def short(pid):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(bare.sup.channel, "_guarded", short)
    reader, writer = await attached(bare)
    told = await answer(reader)
    assert told["error"]["message"] == "council: it cannot answer just now: Too many open files"
    writer.close()
    assert not bare.sup.failed.done()


@pytest.mark.parametrize("error", [OSError(errno.EMFILE, "Too many open files"), RuntimeError("no thread")])
async def test_sockets_that_cannot_be_bound_again_now_are_bound_later(bare, error, monkeypatch):
    office = await (await bare.office()).begin()

    def refuse(*args):
        raise error

    bare.sup.home.beats.unlink()
    if isinstance(error, OSError):
        bare.sup.home.socket.unlink()
    with monkeypatch.context() as patch:
        if isinstance(error, OSError):
            patch.setattr(channel, "bind", refuse)
            patch.setattr("council_tui.supervisor.heartbeats.bind", refuse)
        else:
            patch.setattr("threading.Thread.start", refuse)
        await bare.sup.tick()
        assert not bare.sup.home.socket.exists() or isinstance(error, RuntimeError)
    await office.call("status", text="still connected")
    await bare.sup.tick()
    await (await bare.office("zeroclaw")).begin()
    assert bare.sup.home.beats.exists()
    assert not bare.sup.failed.done()


async def test_a_card_says_what_its_runner_was_refused(bare):
    office = await bare.office()
    await office.connect()
    await office.hello()
    await office.claim()
    await office.call("verified")
    await office.call("accept", entry=office.acceptance())
    with pytest.raises(RemoteRefusal):
        await office.call("acknowledge")
    office.peer.close()
    bare.sup.watch._gone(office.seat.pid, 1 << 8)
    office.leave()
    await office.seat.ended.wait()
    reason = bare.sup.board.tables.cards[office.seat.card].reason
    path = f"{office.seat.slice}/ctl/acknowledged"
    assert reason.startswith(f"its runner left, for it was refused: acknowledge: {path} cannot be read: ")
    assert reason.endswith("No such file or directory: " + repr(path))


async def test_the_last_words_of_a_runner_that_cannot_go_on_are_its_cards_reason(bare):
    office = await (await bare.office()).begin()
    office.peer.notify("fault", {"reason": "No space left on device: /slice/\x1bx"})
    office.peer.close()
    bare.sup.watch._gone(office.seat.pid, 70 << 8)
    office.leave()
    await office.seat.ended.wait()
    card = bare.sup.board.tables.cards[office.seat.card]
    assert card.fail == "orphaned", "its work is not to blame, so it may be tried again"
    assert card.reason.startswith("its runner cannot go on: No space left on device: /slice/")
    assert "\x1b" not in card.reason
