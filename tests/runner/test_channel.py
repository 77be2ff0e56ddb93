"""Both ends of a connection: every call is answered, whatever its size and whatever goes wrong with it."""

from __future__ import annotations

import asyncio
import socket
import sqlite3

import pytest

from council_tui.domain.errors import CouncilError
from council_tui.domain.wire import MAX_MESSAGE
from council_tui.runner.channel import (
    LINES_A_TURN,
    MAX_QUEUED,
    MOST_USELESS,
    PAUSE_SECONDS,
    Peer,
    RemoteRefusal,
    TooLong,
    UnknownMethod,
)

WITHIN = 20.0


@pytest.fixture
async def ends():
    """(the asking end, the answering end); `answer` is what the latter does."""
    here, there = socket.socketpair()
    loop = asyncio.get_running_loop()
    answers = {}
    faults = []

    async def handle(peer, call):
        answer = answers[call.method](call.params)
        return await answer if asyncio.iscoroutine(answer) else answer

    _, asking = await loop.create_unix_connection(lambda: Peer(handle), sock=here)
    _, answering = await loop.create_unix_connection(
        lambda: Peer(handle, on_fault=faults.append, prompt=frozenset({"ping"})), sock=there
    )
    answers["hello"] = lambda params: "here"
    yield asking, answers, faults
    for peer in (asking, answering):
        peer.close()
        await peer.lost


async def test_a_message_that_the_other_side_would_pass_over_is_not_sent(ends):
    asking, answers, _ = ends
    answers["long"] = lambda params: len(params["x"])
    room = MAX_MESSAGE - 100
    assert await asking.call("long", {"x": "y" * room}, WITHIN) == room
    with pytest.raises(TooLong, match=r"long is 4,194,\d{3} bytes long; a message holds at most 4,194,304"):
        await asking.call("long", {"x": "y" * MAX_MESSAGE}, WITHIN)
    with pytest.raises(CouncilError):
        asking.notify("long", {"x": "y" * MAX_MESSAGE})
    assert await asking.call("hello", {}, WITHIN) == "here"


async def test_an_answer_that_is_too_long_is_told_to_be(ends):
    asking, answers, _ = ends
    answers["all"] = lambda params: "y" * MAX_MESSAGE
    with pytest.raises(RemoteRefusal, match="the answer is 4,194,"):
        await asking.call("all", {}, WITHIN)
    assert await asking.call("hello", {}, WITHIN) == "here"


@pytest.mark.parametrize("error", [sqlite3.OperationalError("disk is full"), OSError(28, "full"), RecursionError("x")])
async def test_an_exception_that_nobody_expected_is_answered_and_told_at_home(ends, error):
    asking, answers, faults = ends

    def fail(params):
        raise error

    answers["fail"] = fail
    with pytest.raises(RemoteRefusal, match=f"^internal error: {type(error).__name__}$"):
        await asking.call("fail", {}, WITHIN)
    assert faults == [error]
    assert await asking.call("hello", {}, WITHIN) == "here"


async def test_an_answer_that_is_no_json_is_a_fault_and_not_a_silence(ends):
    asking, answers, faults = ends
    answers["odd"] = lambda params: {1, 2}
    with pytest.raises(RemoteRefusal, match="internal error: TypeError"):
        await asking.call("odd", {}, WITHIN)
    assert len(faults) == 1


async def test_a_prompt_call_is_answered_before_those_that_wait(ends):
    asking, answers, _ = ends
    go_on = asyncio.Event()

    async def slow(params):
        await go_on.wait()
        return "done"

    answers |= {"slow": slow, "ping": lambda params: "pong"}
    waiting = asyncio.create_task(asking.call("slow", {}, WITHIN))
    assert await asking.call("ping", {}, WITHIN) == "pong"
    assert not waiting.done()
    go_on.set()
    assert await waiting == "done"


BAD = b"nonsense\n"
NOBODYS = b'{"jsonrpc": "2.0", "id": 99, "result": 1}\n'
NO_METHOD = b'{"jsonrpc": "2.0", "method": "zzz", "params": {}}\n'


@pytest.fixture
async def flooded():
    """(a raw socket, the end that it reaches, what that one refused, whether calls are held up)."""
    here, there = socket.socketpair()
    here.setblocking(False)
    refused, gate = [], asyncio.Event()
    gate.set()

    async def handle(peer, call):
        await gate.wait()
        if call.method != "fine":
            raise UnknownMethod(call.method)

    _, peer = await asyncio.get_running_loop().create_unix_connection(
        lambda: Peer(handle, lambda peer, reason: refused.append(reason)), sock=there
    )
    yield here, peer, refused, gate
    here.close()
    await peer.lost


async def steps(count, until):
    """How much `count()` grew in each turn of the loop, until a condition holds."""
    grown = []
    async with asyncio.timeout(WITHIN):
        while not until():
            before = count()
            await asyncio.sleep(0)
            grown.append(count() - before)
    return grown


@pytest.mark.parametrize("line", [BAD, NO_METHOD])
async def test_a_flood_is_taken_a_few_lines_a_turn_and_of_nonsense_no_more_than_so_many_a_second(flooded, line):
    raw, _, refused, _ = flooded
    lines = 10 * MOST_USELESS
    began = asyncio.get_running_loop().time()
    raw.send(line * lines)
    grown = await steps(lambda: len(refused), lambda: len(refused) == lines)
    assert max(grown) <= 2 * LINES_A_TURN
    assert asyncio.get_running_loop().time() - began >= 9 * PAUSE_SECONDS


async def test_nonsense_of_many_kilobytes_counts_like_many_lines(flooded):
    raw, peer, refused, _ = flooded
    raw.send(b"x" * (MOST_USELESS * 1024) + b"\n" + BAD)
    await steps(lambda: len(refused), lambda: refused)
    assert len(refused) == 1
    assert not peer._transport.is_reading()
    await steps(lambda: len(refused), lambda: len(refused) == 2 and peer._transport.is_reading())


async def test_what_nobody_waits_for_is_no_way_around_that(flooded):
    raw, peer, refused, _ = flooded
    raw.send(NOBODYS * MOST_USELESS + BAD)
    await steps(lambda: 0, lambda: peer._behind)
    assert refused == []
    await steps(lambda: 0, lambda: refused)


async def test_sound_calls_are_neither_lost_nor_slowed_down(flooded):
    raw, peer, refused, gate = flooded
    gate.clear()
    raw.send(b'{"jsonrpc": "2.0", "id": 1, "method": "fine", "params": {}}\n' * 700)
    await steps(peer._calls.qsize, lambda: not peer._transport.is_reading() and not peer._behind)
    assert MAX_QUEUED < peer._calls.qsize() <= MAX_QUEUED + 1
    gate.set()
    answers = b""
    async with asyncio.timeout(WITHIN):
        while answers.count(b"\n") < 700:
            answers += await asyncio.get_running_loop().sock_recv(raw, 65536)
    assert peer._transport.is_reading()
    assert refused == []


async def test_who_hangs_up_in_the_middle_of_a_flood_is_heard_no_further(flooded):
    raw, peer, refused, _ = flooded
    raw.send(BAD * 5 * MOST_USELESS)
    await steps(lambda: 0, lambda: refused)
    peer.close()
    await peer.lost
    known = len(refused)
    await asyncio.sleep(2 * PAUSE_SECONDS)
    assert len(refused) == known
