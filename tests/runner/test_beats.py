"""A body may send whatever it likes to its NOTIFY_SOCKET: its runner hears the newest, now and then."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket

import pytest
from supervisor.stage import short_home, until

from council_tui.runner import beats
from council_tui.runner.beats import BodyBeats


@pytest.fixture
def path():
    with short_home() as home:
        yield str(home.parent / "body")


def pour(path, count):
    """Send lines of status as fast as they are taken."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
        for number in range(count):
            link.sendto(b"STATUS=line %d\nWATCHDOG=1" % number, path)


async def test_of_a_flood_of_status_the_first_and_the_newest_are_heard(path):
    heard = []
    body = BodyBeats(path, heard.append)
    await asyncio.to_thread(pour, path, 3000)
    await until(lambda: body._status == "line 2999")
    body.close()
    lines = [fields["STATUS"] for fields in heard if "STATUS" in fields]
    assert lines[-1] == "line 2999"
    assert len(lines) <= 5, "one a second"
    assert 0 < sum("WATCHDOG" in fields for fields in heard) <= 3000


async def test_a_line_of_status_that_is_alone_is_heard_at_once_and_the_next_one_soon(path, monkeypatch):
    monkeypatch.setattr(beats, "STATUS_SECONDS", 0.05)
    heard = []
    body = BodyBeats(path, heard.append)
    await asyncio.to_thread(pour, path, 1)
    await until(lambda: {"STATUS": "line 0"} in heard)
    await asyncio.to_thread(pour, path, 2)
    await until(lambda: {"STATUS": "line 1"} in heard)
    body.close()


async def test_a_flood_is_read_no_faster_than_anyone_needs(path, monkeypatch):
    monkeypatch.setattr(beats, "DRAIN", 4)
    monkeypatch.setattr(beats, "_AGAIN_SECONDS", 60)
    body = BodyBeats(path, lambda fields: None)
    await asyncio.to_thread(_until_full, path)
    await until(lambda: "pause" in body._timers)
    assert not body._loop._selector.get_map().get(body._socket.fileno())
    body.close()


def _until_full(path):
    link = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    with link, contextlib.suppress(BlockingIOError):
        while True:
            link.sendto(b"STATUS=x", path)


async def test_a_body_that_puts_a_directory_in_the_place_of_its_socket_stops_nothing(path):
    body = BodyBeats(path, lambda fields: None)
    os.unlink(path)
    os.mkdir(path)
    body.close()
    os.rmdir(path)
