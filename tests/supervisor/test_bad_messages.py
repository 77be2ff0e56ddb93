"""Nonsense on the wire is refused, counted and journalled, and never stops the supervisor."""

from __future__ import annotations

import array
import asyncio
import json
import os
import socket
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from council_tui.domain.events import EventKind as K
from council_tui.domain.lifecycle import Phase
from council_tui.domain.wire import MAX_MESSAGE
from council_tui.runner.channel import RemoteRefusal
from council_tui.supervisor.handshake import _METHODS
from supervisor.stage import short_home, until
from supervisor.wire import Bare

NONSENSE = [
    b"\n",
    b"\x00\xff\xfe\x80\n",
    b"not json\n",
    b"[]\n",
    b'{"jsonrpc": "1.0", "id": 1, "method": "hello"}\n',
    b'{"jsonrpc": "2.0", "id": "one", "method": "hello"}\n',
    b'{"jsonrpc": "2.0", "id": 1, "method": "hello", "params": []}\n',
    b'{"jsonrpc": "2.0", "id": 1, "method": 5}\n',
    b'{"jsonrpc": "2.0", "params": NaN}\n',
    b'{"jsonrpc": "2.0", "id": 1, "x": ' + b"[" * 5000 + b"]" * 5000 + b"}\n",
    b'{"jsonrpc": "2.0", "method": "x", "params": {"a": "\\ud800"}}\n',
]


@pytest.fixture
async def bare(home):
    async with Bare(home) as bare:
        yield bare


@pytest.fixture
async def runner(bare):
    """A runner that has said hello."""
    office = await bare.office()
    await office.connect()
    await office.hello()
    return office


async def stranger(bare):
    return await asyncio.open_unix_connection(str(bare.sup.home.socket))


def refusals(bare):
    return [event for event in bare.events if event.kind is K.MESSAGE_REFUSED]


async def test_nonsense_from_a_stranger_is_counted_and_a_runner_still_gets_in(bare):
    _, writer = await stranger(bare)
    writer.write(b"".join(NONSENSE))
    await until(lambda: bare.sup.hearing.strangers == len(NONSENSE))
    writer.close()
    assert [event.data["count"] for event in refusals(bare)] == [1, 10]
    await (await bare.office()).begin()


async def test_nonsense_from_a_runner_is_counted_on_its_seat_and_its_next_gate_opens(bare, runner):
    runner.peer._transport.write(b"".join(NONSENSE))
    await runner.claim()
    assert runner.seat.refused == len(NONSENSE)
    assert {event.run for event in refusals(bare)} == {runner.seat.run}
    assert bare.sup.hearing.strangers == 0


@pytest.mark.parametrize("known", [False, True])
async def test_a_line_of_five_megabytes_is_refused_whole_and_the_next_one_heard(bare, runner, known):
    line = b'{"jsonrpc": "2.0", "id": 7, "method": "claim", "params": {"x": "' + b"y" * (5 * 1024 * 1024) + b'"}}\n'
    assert len(line) > MAX_MESSAGE
    if known:
        runner.peer._transport.write(line)
        await runner.claim()
        assert runner.seat.refused == 1
    else:
        reader, writer = await stranger(bare)
        writer.write(line + b'{"jsonrpc": "2.0", "id": 8, "method": "attach", "params": {}}\n')
        answer = json.loads(await reader.readline())
        assert (answer["id"], answer["result"]["pid"]) == (8, os.getpid())
        writer.close()
        assert bare.sup.hearing.strangers == 1
    assert refusals(bare)[0].data["reason"] == "longer than the cap"


@pytest.mark.parametrize("method", ["hello_there", "__class__", "returned ", "", "_gate", "answer"])
async def test_a_method_that_is_none_is_refused_and_journalled(bare, runner, method):
    with pytest.raises(RemoteRefusal, match="there is no method"):
        await runner.call(method)
    assert "there is no method" in refusals(bare)[0].data["reason"]
    await runner.claim()


async def test_whoever_begins_with_anything_but_hello_or_attach_is_sent_away(bare):
    reader, writer = await stranger(bare)
    writer.write(b'{"jsonrpc": "2.0", "id": 1, "method": "claim\\u001b[2J", "params": {}}\n')
    answer = json.loads(await reader.readline())
    assert answer["error"]["code"] == -32601
    assert await reader.read() == b"", "the connection is closed"
    writer.close()
    assert "\x1b" not in refusals(bare)[0].data["reason"]


async def test_a_flood_is_answered_no_faster_than_it_is_read(bare, runner):
    reader, writer = await stranger(bare)
    writer.write(b'{"jsonrpc": "2.0", "id": 0, "method": "attach", "params": {}}\n')
    await reader.readline()
    served = next(iter(bare.sup.channel._operators))
    calls = 20_000
    line = b'{"jsonrpc": "2.0", "id": 1, "method": "' + b"x" * 60 + b'", "params": {}}\n'
    flood = asyncio.create_task(asyncio.to_thread(_pour, writer.get_extra_info("socket").dup(), line * calls))
    await runner.claim()
    # Nobody reads the answers: they do not pile up on our side, and neither do the calls.
    await until(lambda: not served._writable.is_set())
    assert served._transport.get_write_buffer_size() < 256 * 1024
    assert served._calls.qsize() < 10_000
    for _ in range(calls):
        await reader.readline()
    await flood
    writer.close()


def _pour(sock, data):
    sock.setblocking(True)
    with sock:
        sock.sendall(data)


async def test_a_flood_of_nonsense_is_journalled_at_its_powers_of_ten(bare, runner):
    runner.peer._transport.write(b"nonsense\n" * 2345)
    await runner.claim()
    assert runner.seat.refused == 2345
    assert [event.data["count"] for event in refusals(bare)] == [1, 10, 100, 1000]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
KEYS = ["card", "claim", "entry", "reason", "pid", "start_time", "text", "order", "used", "limit", "result", "digest"]
CALLS = st.lists(
    st.tuples(
        st.sampled_from(sorted(set(_METHODS) - {"reject", "breach", "fault"})),
        st.dictionaries(st.sampled_from([*KEYS, "problems", "violation", "exit_status", "signal"]), JSON),
    ),
    max_size=12,
)


@settings(max_examples=15)
@given(st.sampled_from([Phase.DELEGATED, Phase.VERIFIED, Phase.RUNNING]), CALLS)
def test_no_parameters_of_any_method_stop_a_connection(phase, calls):
    async def work(home):
        async with Bare(home) as bare:
            office = await bare.office()
            if phase is Phase.RUNNING:
                await office.begin()
            else:
                await office.connect()
                await office.hello()
                if phase is Phase.VERIFIED:
                    await office.claim()
                    await office.call("verified")
            for method, params in calls:
                try:
                    await office.call(method, **params)
                except RemoteRefusal:
                    continue
            with pytest.raises(RemoteRefusal, match="there is no method"):
                await office.call("are_you_there")
            assert not bare.sup.failed.done()

    with short_home() as home:
        asyncio.run(work(home))


async def test_an_acknowledgement_that_is_no_object_is_refused(bare, runner):
    await runner.claim()
    await runner.call("verified")
    await runner.call("accept", entry=runner.acceptance())
    path = Path(runner.seat.slice, "ctl", "acknowledged")
    for text in (b"[]", b"7", b"nonsense", b"\xff\xfe"):
        await asyncio.to_thread(path.write_bytes, text)
        with pytest.raises(RemoteRefusal):
            await runner.call("acknowledge")
    runner.acknowledged()
    await runner.call("acknowledge")


async def test_only_the_beats_of_the_right_token_are_heard(bare, runner):
    await runner.claim()
    await runner.call("verified")
    await runner.call("accept", entry=runner.acceptance())
    runner.acknowledged()
    await runner.call("acknowledge")
    link = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    link.connect(runner.spec.notify)
    good = f"WATCHDOG=1\nX_COUNCIL_RUN={runner.spec.run}\nX_COUNCIL_TOKEN={runner.spec.beat_token}".encode()
    bad = [
        b"",
        b"\xff\xfe",
        b"WATCHDOG=1",
        good.replace(b"TOKEN=", b"TOKEN=x"),
        good.replace(b"RUN=", b"RUN=x"),
        good + b"\nX_COUNCIL_TOKEN=",
    ]
    for datagram in [*bad, good + b"\nX_COUNCIL_SLICE=junk\nX_COUNCIL_LATE_MS=-5", good + b"\nX_COUNCIL_SLICE=77"]:
        await until(lambda datagram=datagram: _sent(link, datagram))
    await until(lambda: runner.seat.beat_count == 2)
    assert (bare.sup.beats.refused, runner.seat.slice_used) == (len(bad), 77)
    link.close()


def _sent(link, datagram):
    try:
        link.send(datagram, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    return True


async def test_descriptors_that_come_with_a_datagram_are_closed(bare):
    link = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    link.connect(str(bare.sup.home.beats))
    read, write = os.pipe()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        link.sendmsg([b"BARRIER=1"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [write] * 10))])
        await asyncio.sleep(0)
        bare.sup.beats.drain()
    await until(lambda: bare.sup.beats.refused == 5)
    assert len(os.listdir("/proc/self/fd")) == before
    for fd in (read, write):
        os.close(fd)
    link.close()


async def test_closing_drops_every_connection(home):
    async with Bare(home) as bare:
        reader, writer = await stranger(bare)
        await until(lambda: bare.sup.channel._open)
    assert await reader.read() == b""
    writer.close()
    assert not bare.sup.home.socket.exists()
