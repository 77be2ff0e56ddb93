"""Runners, offices and the nursery are shot or stopped while a fleet runs."""

from __future__ import annotations

import asyncio
import os
import signal
import time

import pytest
from supervisor.stage import WITHIN, Stage, alive, child, gone, plan_of, python, until

from council_tui.domain.errors import HomeUnusable
from council_tui.domain.events import EventKind as K
from council_tui.domain.lifecycle import Phase, Signal
from council_tui.fleet.brake import CRASHES
from council_tui.runner import guard

BEATING = """
import os, socket, time
link = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
for _ in range(3):
    link.sendto(b"WATCHDOG=1", os.environ["NOTIFY_SOCKET"])
    time.sleep(0.1)
time.sleep(600)
"""


FLEE = """
import os
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
os.execve("/bin/sleep", ["sleep", "617"], {})
"""


async def test_a_killed_runner_is_an_orphan_at_once_and_its_body_goes_with_it(home):
    plan = plan_of(child("victim", "setsid sleep 600 & sleep 600"), child("bystander", "sleep 0.5; echo fine"))
    async with Stage(home, plan) as stage:
        body = (await stage.wait(K.BODY_STARTED, "victim")).data["pid"]
        victim = stage.seat("victim")
        heard = asyncio.get_running_loop().create_future()
        stage.sup.board.listen(lambda e: heard.done() or e.kind is not K.ORPHANED or heard.set_result(time.monotonic()))
        killed = time.monotonic()
        os.kill(victim.pid, signal.SIGKILL)
        # Milliseconds where nothing else runs; the bound is for a machine that is busy.
        assert await heard - killed < 1.0
        failed = await stage.wait(K.CARD_FAILED, "victim")
        assert gone(body)
        assert alive({victim.run}) == []
        assert failed.data["fail"] == "orphaned"
        end = await stage.end()
        assert stage.card("bystander").state == "done"
    assert stage.find(K.ORPHANED, "victim", cause="process_gone") is not None
    assert (end.exit, end.ledger["verdict"]) == (1, "VALID")
    reaped = stage.find(K.REAPED, "victim")
    assert reaped is not None
    assert reaped.data["signal"] == 9


async def test_what_a_killed_runner_leaves_behind_delays_nobody_else(home):
    deaf = "trap '' TERM; while :; do sleep 0.1; done"
    async with Stage(home, plan_of(child("deaf", deaf), child("other", "sleep 0.2; echo fine"))) as stage:
        await stage.wait(K.BODY_STARTED, "deaf")
        await stage.wait(K.BODY_STARTED, "other")
        os.kill(stage.seat("deaf").pid, signal.SIGKILL)
        await stage.wait(K.CARD_DONE, "other")
        assert stage.find(K.REAPED, "deaf") is None
        await stage.wait(K.CARD_FAILED, "deaf")
        assert (await stage.end()).audit["descendants"] == []


async def test_a_dead_office_orphans_its_children_and_nobody_elses(home):
    plan = plan_of(
        child("below", "sleep 600", parent="openfang"),
        child("shark", "sleep 600", parent="below"),
        child("waiting", "echo never", parent="openfang", after=["below"]),
        child("elsewhere", "sleep 1; echo fine", parent="openclaw"),
    )
    async with Stage(home, plan) as stage:
        await stage.wait(K.BODY_STARTED, "below")
        await stage.wait(K.BODY_STARTED, "shark")
        await stage.wait(K.BODY_STARTED, "elsewhere")
        office = stage.fleet.office("openfang")
        runs = {stage.seat(name).run for name in ("below", "shark")}
        os.kill(office.pid, signal.SIGKILL)
        end = await stage.end()
        assert alive(runs) == []
        states = {
            name: (str(stage.card(name).state), stage.card(name).fail) for name in ("below", "shark", "elsewhere")
        }
        assert states == {"below": ("failed", "orphaned"), "shark": ("failed", "orphaned"), "elsewhere": ("done", None)}
        assert stage.card("waiting").block == "dependency"
    for name, cause in (("openfang:", "process_gone"), ("below", "parent_gone"), ("shark", "parent_gone")):
        assert stage.find(K.ORPHANED, name, cause=cause) is not None
    cards = [event.agent.partition(":")[2] for event in stage.events if event.kind is K.CARD_FAILED and event.run]
    assert [name.partition(".")[0] for name in cards] == ["shark", "below", "office"], "leaves first"
    assert (end.exit, end.ledger["verdict"]) == (1, "VALID")


async def test_an_office_that_dies_is_opened_again_and_takes_over_the_cards_that_wait_below_it(home):
    plan = plan_of(
        child("first", "sleep 0.5; echo fine", parent="openclaw"),
        child("lost", "sleep 600", parent="openfang"),
        child("waiting", "echo fine", parent="openfang", after=["first"]),
    )
    async with Stage(home, plan) as stage:
        await stage.wait(K.BODY_STARTED, "lost")
        before = stage.fleet.office("openfang")
        os.kill(before.pid, signal.SIGKILL)
        end = await stage.end()
        assert {name: str(stage.card(name).state) for name in ("first", "lost", "waiting")} == {
            "first": "done",
            "lost": "failed",
            "waiting": "done",
        }
        assert stage.card("waiting").parent_agent != before.agent
        assert (end.exit, end.ledger["verdict"], end.audit["descendants"]) == (1, "VALID", [])


async def test_an_office_that_keeps_dying_is_given_up_and_what_waits_below_it_says_so(home):
    plan = plan_of(
        child("long", "sleep 600", parent="openclaw"), child("waiting", "echo x", parent="openfang", after=["long"])
    )
    async with Stage(home, plan) as stage:
        await stage.wait(K.BODY_STARTED, "long")
        for _ in range(CRASHES):
            await until(lambda: stage.fleet.office("openfang") is not None)
            office = stage.fleet.office("openfang")
            os.kill(office.pid, signal.SIGKILL)
            async with asyncio.timeout(WITHIN):
                await office.ended.wait()
        assert stage.fleet.office("openfang") is None
        await stage.fleet.drain("enough")


async def test_a_stopped_runner_falls_silent_and_is_reaped_with_its_body(home, monkeypatch):
    monkeypatch.setattr("council_tui.supervisor.reaper.ANSWER_SLACK", 0.2)
    policy = {"parent_heartbeat_interval_seconds": 0.3, "grace_seconds": 0.2}
    async with Stage(home, plan_of(child("victim", "sleep 600", policy=policy))) as stage:
        body = (await stage.wait(K.BODY_STARTED, "victim")).data["pid"]
        os.kill(stage.seat("victim").pid, signal.SIGSTOP)
        await stage.wait(K.ORPHANED, "victim", cause="silent")
        await stage.wait(K.SIGNALLED, "victim", signal="SIGKILL")
        await stage.wait(K.CARD_FAILED, "victim")
        assert gone(body)


async def test_a_body_that_vouches_for_itself_is_held_when_it_stops_and_then_reaped(home):
    policy = {
        "beat_source": "body",
        "parent_heartbeat_interval_seconds": 0.3,
        "orphan_policy": "hold",
        "hold_seconds": 600,
    }
    async with Stage(home, plan_of(child("quiet", python(BEATING), policy=policy))) as stage:
        body = (await stage.wait(K.BODY_STARTED, "quiet")).data["pid"]
        await stage.wait(K.HELD, "quiet")
        await until(lambda: guard.read_process(body).state == "T")
        seat = stage.seat("quiet")
        assert seat.state.phase is Phase.HELD
        assert not gone(seat.pid), "its runner goes on"
        await stage.sup.signal(seat, Signal.CANCELLED, {"reason": "reaped by the operator"})
        failed = await stage.wait(K.CARD_FAILED, "quiet")
        assert failed.data["fail"] == "orphaned"
        assert gone(body)


async def test_a_held_orphan_that_nobody_decides_about_is_reaped_at_its_deadline(home):
    policy = {
        "beat_source": "body",
        "parent_heartbeat_interval_seconds": 0.2,
        "orphan_policy": "hold",
        "hold_seconds": 0.3,
    }
    async with Stage(home, plan_of(child("quiet", python(BEATING), policy=policy))) as stage:
        end = await stage.end()
        assert stage.card("quiet").fail == "orphaned"
    assert stage.kinds("quiet").count("held") == 1
    assert end.audit["descendants"] == []


async def test_a_force_reap_spares_the_sibling_and_may_be_asked_for_twice(home):
    plan = plan_of(child("one", "sleep 600 & sleep 600"), child("two", "sleep 1; echo fine"))
    async with Stage(home, plan) as stage:
        await stage.wait(K.BODY_STARTED, "one")
        body = (await stage.wait(K.BODY_STARTED, "two")).data["pid"]
        seat = stage.seat("one")
        words = {"reason": "reaped by the operator"}
        await asyncio.gather(*(stage.sup.signal(seat, Signal.CANCELLED, words) for _ in range(3)))
        await stage.wait(K.CARD_FAILED, "one")
        assert not gone(body) or stage.find(K.RETURNED, "two") is not None
        await stage.end()
        assert stage.card("two").state == "done"
    assert [stage.kinds("one").count(kind) for kind in ("reap_started", "reaped", "revoked")] == [1, 1, 1]


async def test_without_its_nursery_a_council_ends_and_leaves_nothing(home):
    async with Stage(home, plan_of(child("one", "trap '' TERM; sleep 600; sleep 600"))) as stage:
        body = (await stage.wait(K.BODY_STARTED, "one")).data["pid"]
        runner = stage.seat("one").pid
        os.kill(stage.sup.host.pid, signal.SIGKILL)
        with pytest.raises(HomeUnusable, match="the nursery has ended"):
            await stage.running
    assert gone(body)
    assert gone(runner)


async def test_a_runner_killed_after_its_nursery_takes_its_body_along(home):
    async with Stage(home, plan_of(child("one", "sleep 600"))) as stage:
        body = (await stage.wait(K.BODY_STARTED, "one")).data["pid"]
        runner = stage.seat("one").pid
        os.kill(stage.sup.host.pid, signal.SIGKILL)
        await until(lambda: gone(stage.sup.host.pid))
        os.kill(runner, signal.SIGKILL)
        await stage.wait(K.CARD_FAILED, "one", fail="orphaned")
        assert gone(body)


async def test_a_full_disk_ends_the_council_and_everything_it_started(home, monkeypatch):
    monkeypatch.setattr("council_tui.board.database.PATIENCE_SECONDS", 0)
    async with Stage(home, plan_of(child("one", "sleep 600"), child("two", "sleep 600", parent="openclaw"))) as stage:
        bodies = [(await stage.wait(K.BODY_STARTED, name)).data["pid"] for name in ("one", "two")]
        # The next page that the board needs is not there any more.
        await stage.sup.board._writer.submit(lambda db: db.execute("PRAGMA max_page_count = 1").fetchone())
        for _ in range(100):
            stage.sup.log(stage.seat("one"), K.STATUS, {"text": "x" * 4000})
        with pytest.raises(Exception, match="full"):
            await stage.running
    assert all(gone(body) for body in bodies)


async def test_a_body_that_clears_its_marker_and_flees_its_session_is_ended_all_the_same(home):
    async with Stage(home, plan_of(child("flees", python(FLEE)))) as stage:
        end = await stage.end()
        assert end.exit == 0
    left = [p.pid for p in guard.all_processes() if _argv(p.pid) == b"sleep\x00617\x00"]
    assert left == []


def _argv(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


FLOOD = """
import os, socket
path = os.path.join(os.path.dirname(os.path.dirname(os.environ["NOTIFY_SOCKET"])), "beats.sock")
link = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
forged = b"WATCHDOG=1\\nX_COUNCIL_RUN=r_x\\nX_COUNCIL_TOKEN=x\\n" + b"A=1\\n" * 900
while True:
    try:
        link.sendto(forged, path)
    except OSError:
        pass
"""


async def test_an_agent_whose_beats_are_lost_is_late_and_not_reaped(home):
    policy = {"parent_heartbeat_interval_seconds": 0.6}
    async with Stage(home, plan_of(child("drowned", "sleep 1.8; echo fine", policy=policy))) as stage:
        await stage.wait(K.BODY_STARTED, "drowned")
        # What a flood does to the datagrams of one agent, without the flood.
        seat = stage.seat("drowned")
        seat.beat_token = "another"
        await stage.wait(K.BEAT_LATE, "drowned")
        end = await stage.end()
        assert (end.exit, stage.card("drowned").state) == (0, "done")
    assert stage.find(K.ORPHANED) is None


async def test_a_flood_of_forged_beats_costs_nobody_his_life(home):
    policy = {"parent_heartbeat_interval_seconds": 1.5, "grace_seconds": 0.1}
    flooders = [child(f"flood-{n}", python(FLOOD), policy=policy) for n in range(2)]
    async with Stage(home, plan_of(*flooders, child("calm", "sleep 3.5; echo fine", policy=policy))) as stage:
        await stage.wait(K.CARD_DONE, "calm")
        # A flooder may take its own runner's share of the machine; nobody else pays for it.
        assert [e.agent for e in stage.events if e.kind is K.ORPHANED and ":flood-" not in (e.agent or "")] == []
        await stage.fleet.drain("enough")
    assert stage.sup.beats.refused > 1000


async def test_a_fleet_whose_nursery_is_stopped_goes_on(home, monkeypatch):
    for name in ("PING_SECONDS", "WAKE_SECONDS"):
        monkeypatch.setattr(f"council_tui.hosts.local.{name}", 0.2)
    plan = plan_of(child("first", "sleep 0.3"), child("second", "echo fine", after=["first"]))
    async with Stage(home, plan) as stage:
        await stage.wait(K.BODY_STARTED, "first")
        os.kill(stage.sup.host.pid, signal.SIGSTOP)
        assert (await stage.end()).exit == 0
