"""Both ends of a connection: every call is answered, whatever its size and whatever goes wrong with it."""

from __future__ import annotations

import asyncio
import socket
import sqlite3

import pytest

from council_tui.domain.errors import CouncilError
from council_tui.domain.wire import MAX_MESSAGE
from council_tui.runner.channel import Peer, RemoteRefusal, TooLong

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
