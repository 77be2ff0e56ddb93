"""A body works when it prints, keeps, starts or says something; a beat alone is no work."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st
from supervisor.stage import Stage, child, plan_of, python, short_home, until

from council_tui.domain.events import EventKind as K
from council_tui.domain.wire import parse_notify
from council_tui.runner.beats import BeatSender, BodyBeats, asked_seconds
from council_tui.runner.progress import LOOK_SECONDS, Progress


class Body:
    """A body of which everything that can be seen is set by hand."""

    def __init__(self) -> None:
        self.now, self.seen, self.tree, self.looks = 100.0, 0, 0, 0
        self.progress = Progress(lambda: self.now, lambda: self.seen, self._tree)

    def _tree(self) -> int:
        self.looks += 1
        return self.tree


@pytest.fixture
def body():
    return Body()


def test_nothing_moves_and_the_time_without_work_grows(body):
    for seconds in (0, 1, 100, 1000):
        body.now = 100.0 + seconds
        assert body.progress.idle() == seconds


@pytest.mark.parametrize("what", ["seen", "tree"])
def test_whatever_changes_is_work(body, what):
    body.now += 60
    setattr(body, what, 1)
    assert body.progress.idle() == 0
    body.now += 7
    assert body.progress.idle() == 7


def test_its_processes_are_looked_at_only_now_and_then(body):
    for _ in range(100):
        body.now += LOOK_SECONDS / 10
        body.progress.idle()
    assert body.looks <= 1 + 10


def test_what_it_says_is_work_and_a_pause_that_it_asks_for_is_granted(body):
    body.now += 60
    body.progress.moved()
    assert body.progress.idle() == 0
    body.progress.moved(600)
    body.now += 599
    assert body.progress.idle() == 0
    body.progress.moved(), body.progress.moved(0.5)
    body.now += 11
    assert body.progress.idle() == pytest.approx(10, abs=0.6)


@given(st.lists(st.tuples(st.floats(0, 100), st.booleans(), st.booleans()), max_size=50))
def test_the_time_without_work_is_never_more_than_since_the_last_work_that_was_seen(steps):
    body, last = Body(), 100.0
    for pause, prints, speaks in steps:
        body.now += pause
        body.seen += prints
        if speaks:
            body.progress.moved()
        if prints or speaks:
            last = body.now
        assert body.progress.idle() == pytest.approx(body.now - last, abs=1e-6)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5000000", 5), ("0", 0), ("", 0), ("x", 0), ("-1", 0), ("²", 0), ("9" * 19, 30 * 86400), ("9" * 30, 0)],
)
def test_a_pause_is_asked_for_in_microseconds_and_is_finite(text, seconds):
    assert asked_seconds({"EXTEND_TIMEOUT_USEC": text}) == seconds


async def test_a_beat_tells_how_long_nothing_has_moved_and_what_was_asked_for():
    with short_home() as home, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        path = str(home.parent / "beats")
        listening.bind(path)
        sender = BeatSender(path, "r_1", "token")
        for idle, extend in ((None, 0.0), (lambda: 1.5, 0.0), (lambda: 0.0, 60.0)):
            sender.idle = idle
            sender.beat(extend=extend)
        sender._socket.close()
        told = [parse_notify(listening.recv(4096)) for _ in range(3)]
    keys = ("X_COUNCIL_IDLE_MS", "X_COUNCIL_EXTEND_MS")
    assert [tuple(fields.get(key) for key in keys) for fields in told] == [
        (None, None),
        ("1500", None),
        ("0", "60000"),
    ]


async def test_a_body_that_only_asks_for_time_is_heard():
    with short_home() as home:
        heard = []
        body = BodyBeats(str(home.parent / "body"), heard.append)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
            link.sendto(b"EXTEND_TIMEOUT_USEC=7000000", str(home.parent / "body"))
        await until(lambda: heard)
        body.close()
    assert heard == [{"EXTEND_TIMEOUT_USEC": "7000000"}]


SAYS = (
    "import os, socket, time;"
    "link = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM);"
    "link.sendto(b'{}', os.environ['NOTIFY_SOCKET']);"
    "time.sleep(600)"
)


async def test_a_program_that_hangs_is_told_to_be_stalled_and_not_ended_for_it(home):
    policy = {"parent_heartbeat_interval_seconds": 0.1, "child_timeout_seconds": 30, "stall_seconds": 0.5}
    plan = plan_of(
        child("hangs", "sleep 600", policy=policy),
        child("prints", "while :; do echo x; read y < /dev/zero & sleep 0.05; kill $!; done", policy=policy),
        child("asks", python(SAYS.format("EXTEND_TIMEOUT_USEC=600000000")), policy=policy),
    )
    async with Stage(home, plan) as stage:
        told = await stage.wait(K.STALLED, "hangs")
        assert told.data["seconds"] >= 0.5
        assert stage.sup.board.tables.agents[told.agent].standing == "stalled"
        await until(lambda: min(stage.seat(name).beat_count for name in ("prints", "asks")) >= 15)
        assert stage.seat("hangs").state.phase == "running"
        assert not [event for event in stage.events if event.kind is K.STALLED and "hangs" not in event.agent]


async def test_a_program_that_vouches_for_itself_and_asks_for_time_is_not_silent_meanwhile(home):
    policy = {"parent_heartbeat_interval_seconds": 0.2, "child_timeout_seconds": 30, "beat_source": "body"}
    plan = plan_of(
        child("asks", python(SAYS.format("WATCHDOG=1\\nEXTEND_TIMEOUT_USEC=600000000")), policy=policy),
        child("does-not", python(SAYS.format("WATCHDOG=1")), policy=policy),
    )
    async with Stage(home, plan) as stage:
        await stage.wait(K.ORPHANED, "does-not", cause="silent")
        assert stage.seat("asks").state.phase == "running"
        assert stage.find(K.BEAT_LATE, "asks") is None
