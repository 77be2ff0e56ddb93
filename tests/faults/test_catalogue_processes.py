"""The failure catalogue, rows 1 to 14: processes that are left over, never collected, or without anyone above them.

row 01: ::test_row_01_a_server_behind_a_wrapper_is_gone_with_the_agent_that_started_it
row 02: ::test_row_02_after_fifty_agents_that_leave_servers_nothing_has_grown
row 03: tests/runner/test_bodies.py::test_whatever_a_program_leaves_behind_is_ended_and_does_not_delay_its_result,
    tests/faults/test_runner_dies.py::test_a_body_that_clears_its_marker_and_flees_its_session_is_ended_all_the_same
row 04: ::test_row_04_an_agent_that_has_said_all_and_stays_is_ended_at_its_time_to_live,
    ::test_row_04_a_runner_that_has_reported_and_stays_is_ended_and_its_card_is_done
row 05: ::test_row_05_a_loop_that_an_agent_leaves_running_is_ended_with_it
row 06: ::test_row_06_a_reap_empties_one_tree_and_leaves_its_siblings_as_it_was
row 07: ::test_row_07_a_reap_needs_no_fork_and_no_memory_to_speak_of
row 08: tests/runner/test_bodies.py::test_a_body_has_its_own_session_a_closed_stdin_and_no_descriptor_of_ours,
    ::test_row_08_every_body_leads_a_group_and_a_session_of_its_own
row 09: tests/runner/test_bodies.py::test_what_is_adopted_does_not_pile_up_as_zombies,
    ::test_row_09_five_thousand_that_lose_their_parents_leave_no_zombies
row 10: ::test_row_10_collecting_strangers_takes_no_exit_status_from_the_body
row 11: ::test_row_11_every_way_to_stop_an_agent_leaves_how_it_ended_on_its_run
row 12: ::test_row_12_after_a_time_to_live_the_process_table_has_no_trace_of_the_agent
row 13:
    tests/faults/test_supervisor_dies.py::test_nothing_outlives_a_supervisor_that_was_killed_and_the_next_one_puts_it_right
row 14: ::test_row_14_a_supervisor_that_the_kernel_ends_for_memory_leaves_nothing
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from supervisor.stage import Stage, alive, child, plan_of, play, python, short_home, until
from supervisor.wire import Bare

from council_tui.containers.sandbox import probe
from council_tui.domain.events import EventKind as K
from council_tui.domain.lifecycle import Phase, Signal
from council_tui.runner import guard
from faults.catalogue import mistakes
from faults.shortage import group, no_memory

WHY = probe(shutil.which("bwrap"))
TIERS = ["portable", pytest.param("strong", marks=pytest.mark.skipif(bool(WHY), reason=WHY or "strong"))]
REPORT = '{"status": "DONE", "findings": [], "evidence": ["all said"]}'
ASKED = {"output_schema": {"type": "object", "required": ["status", "findings", "evidence"]}}
SERVER = "sh -c 'setsid env -i sleep 600 & setsid sleep 600 & wait' & wait"
CLEAN = {"descendants": [], "open_claims": [], "unsigned_reports": [], "slices": []}

LOOP = """
setsid sh -c 'while :; do :; done' &
while [ "$(cut -d' ' -f14 /proc/$!/stat)" -lt 2 ]; do sleep 0.01; done
echo $!
"""
ADOPTED = """
import os, sys
for _ in range(int(sys.argv[1])):
    if os.fork() == 0:
        if os.fork() == 0:
            os._exit(0)
        os._exit(0)
    os.wait()
zombies = 0
for name in os.listdir("/proc"):
    if name.isdigit():
        try:
            fields = open("/proc/%s/stat" % name).read().rpartition(")")[2].split()
        except OSError:
            continue
        zombies += fields[0] == "Z" and int(fields[1]) == os.getppid()
print("zombies", zombies)
sys.exit(7)
"""


@pytest.fixture
def tier(request, monkeypatch):
    if request.param == "strong":
        monkeypatch.delenv("COUNCIL_TIER", raising=False)


def same(process):
    now = guard.read_process(process.pid)
    return now is not None and now.start_time == process.start_time and now.state not in "ZX"


async def tree_of(stage, name, size):
    """The living processes below an agent's runner, once there are so many."""
    await stage.wait(K.BODY_STARTED, f":{name}.")
    pid = stage.seat(name).pid
    await until(lambda: len(guard.descendants(pid)) >= size)
    return guard.descendants(pid)


def cancel(stage, name):
    return stage.sup.signal(stage.seat(name), Signal.CANCELLED, {"reason": "reaped by the operator"})


def test_every_row_is_shown_by_a_test_that_exists():
    assert mistakes(__file__, range(1, 15)) == []


async def test_row_01_a_server_behind_a_wrapper_is_gone_with_the_agent_that_started_it(home):
    async with Stage(home, plan_of(child("agent", SERVER))) as stage:
        tree = await tree_of(stage, "agent", 4)
        run = stage.seat("agent").run
        await cancel(stage, "agent")
        await stage.wait(K.CARD_FAILED, "agent")
        assert [process for process in tree if same(process)] == []
        assert alive({run}) == []
        end = await stage.end()
    assert (end.audit, end.ledger["verdict"]) == (CLEAN, "VALID")


async def test_row_02_after_fifty_agents_that_leave_servers_nothing_has_grown(home):
    left = "setsid sleep 600 & setsid env -i sleep 600 & echo done"
    plan = plan_of(child("first", left), *(child(f"n{n}", left, after=["first"]) for n in range(50)))
    async with Stage(home, plan) as stage:
        await stage.wait(K.CARD_DONE, ":first.")
        council = {stage.sup.host.pid, *(seat.pid for seat in stage.sup.seats.values() if seat.label != "first")}
        before = {pid: len(os.listdir(f"/proc/{pid}/fd")) for pid in (stage.sup.host.pid, os.getpid())}
        async with asyncio.timeout(30):
            await stage.running
        assert {process.pid for process in guard.descendants(os.getpid())} == council
        assert alive(set(stage.sup.board.tables.runs)) == []
        for pid, count in before.items():
            assert len(os.listdir(f"/proc/{pid}/fd")) <= count, "no descriptor is kept for an agent that is over"
        assert (await stage.end()).audit == CLEAN
    assert {card.state for card in stage.sup.board.tables.cards.values()} == {"done"}


@pytest.fixture(scope="module")
def fleet():
    """What ends by itself, or at its time to live."""
    server = f"setsid sleep 600 & echo $!; echo '{REPORT}'; sleep 600"
    with short_home() as home:
        yield play(
            home,
            plan_of(
                child("stays", server, envelope=ASKED, policy={"run_ttl_seconds": 1}),
                child("loops", LOOP),
                child("adopted", python(ADOPTED, "300")),
            ),
        )


def test_row_04_an_agent_that_has_said_all_and_stays_is_ended_at_its_time_to_live(fleet):
    assert fleet.cards["stays"].fail == "expired"
    assert fleet.cards["stays"].entry is None, "it was not done, and nothing says so"
    assert b"all said" in fleet.output("stays")
    assert (fleet.ending.audit, fleet.ending.ledger["verdict"]) == (CLEAN, "VALID")


async def test_row_04_a_runner_that_has_reported_and_stays_is_ended_and_its_card_is_done(home):
    now = [1000.0]
    async with Bare(home, lambda: now[0]) as bare:
        office = await (await bare.office()).begin()
        await office.returned()
        await office.call("report", entry=office.ascension())
        assert office.seat.state.phase is Phase.CLOSING
        now[0] += office.seat.state.timing.grace + 0.1
        await bare.sup.tick()
        async with asyncio.timeout(20):
            await office.seat.ended.wait()
        card = bare.sup.board.tables.cards[office.seat.card]
        assert [method for method, _ in office.told] == ["reap"]
        assert (card.state, card.entry is not None) == ("done", True)


def test_row_05_a_loop_that_an_agent_leaves_running_is_ended_with_it(fleet):
    assert fleet.cards["loops"].state == "done"
    assert "1 process was left behind by the program and ended" in fleet.cards["loops"].result["evidence"]
    assert guard.read_process(int(fleet.output("loops"))) is None


async def test_row_06_a_reap_empties_one_tree_and_leaves_its_siblings_as_it_was(home):
    async with Stage(home, plan_of(child("one", SERVER), child("two", SERVER))) as stage:
        one, two = await tree_of(stage, "one", 4), await tree_of(stage, "two", 4)
        await cancel(stage, "one")
        await stage.wait(K.CARD_FAILED, ":one.")
        assert [process for process in one if same(process)] == []
        assert [process for process in two if not same(process)] == []
        assert stage.card("two").state == "running"


async def test_row_07_a_reap_needs_no_fork_and_no_memory_to_speak_of(home, monkeypatch):
    deaf = "trap '' TERM; for i in $(seq 24); do setsid sh -c \"trap '' TERM; sleep 600; :\" & done; wait"
    async with Stage(home, plan_of(child("leaky", deaf, policy={"grace_seconds": 0.3}))) as stage:
        await tree_of(stage, "leaky", 49)
        seat = stage.seat("leaky")

        def forbidden(*_args, **_more):
            raise BlockingIOError(11, "Resource temporarily unavailable")

        for name in ("fork", "posix_spawn"):
            monkeypatch.setattr(os, name, forbidden)
        monkeypatch.setattr(subprocess, "Popen", forbidden)
        with no_memory(seat.pid, stage.sup.host.pid, os.getpid(), room=32 * 1024 * 1024):
            await cancel(stage, "leaky")
            await stage.wait(K.CARD_FAILED, "leaky")
        assert alive({seat.run}) == []
        reaped = stage.find(K.REAPED, "leaky")
        assert (reaped.data["signal"], reaped.data["survivors"]) == (9, [])
        end = await stage.end()
    assert (end.audit, end.ledger["verdict"]) == (CLEAN, "VALID")


@pytest.mark.parametrize("tier", TIERS, indirect=True)
async def test_row_08_every_body_leads_a_group_and_a_session_of_its_own(home, tier):
    async with Stage(home, plan_of(child("body", "sleep 600"))) as stage:
        pid = (await stage.wait(K.BODY_STARTED, "body")).data["pid"]
        await until(lambda: os.getpgid(pid) == pid)
        assert os.getsid(pid) == pid
        # So this reaches exactly the body, and it is there to be reached.
        os.killpg(pid, 0)


@pytest.mark.slow
def test_row_09_five_thousand_that_lose_their_parents_leave_no_zombies(home):
    played = play(home, plan_of(child("adopted", python(ADOPTED, "5000"))))
    assert int(played.output("adopted").split()[1]) <= 5
    assert played.cards["adopted"].reason.startswith("exit status 7")
    assert played.ending.audit == CLEAN


def test_row_10_collecting_strangers_takes_no_exit_status_from_the_body(fleet):
    assert fleet.cards["adopted"].reason.startswith("exit status 7")
    assert int(fleet.output("adopted").split()[1]) <= 5


async def test_row_11_every_way_to_stop_an_agent_leaves_how_it_ended_on_its_run(home):
    quick = {"grace_seconds": 0.3}
    bodies = {
        "polite": ("trap 'exit 7' TERM; echo up; while :; do sleep 0.02; done", (7, None)),
        "plain": ("echo up; exec sleep 600", (None, 15)),
        "deaf": ("trap '' TERM; echo up; sleep 600; sleep 600", (None, 9)),
    }
    plan = plan_of(
        *(child(name, run, policy=quick) for name, (run, _) in bodies.items()),
        child("late", "echo up; exec sleep 600", policy={**quick, "run_ttl_seconds": 1}),
    )
    async with Stage(home, plan) as stage:
        await stage.wait(K.CARD_FAILED, "late", fail="expired")
        for name in bodies:
            log = stage.home.logs / stage.seat(name).run / "output.log"
            await until(lambda log=log: log.exists() and b"up" in log.read_bytes())
        await cancel(stage, "plain")
        await stage.fleet.drain("enough")
        runs = stage.sup.board.tables.runs
        ended = {name: runs[stage.card(name).run] for name in (*bodies, "late")}
    assert {name: (run.exit_status, run.signal) for name, run in ended.items()} == {
        **{name: how for name, (_, how) in bodies.items()},
        "late": (None, 15),
    }


def test_row_12_after_a_time_to_live_the_process_table_has_no_trace_of_the_agent(fleet):
    body, runner = fleet.first("stays", K.BODY_STARTED).data["pid"], fleet.first("stays", K.AGENT_STARTED).data["pid"]
    server = int(fleet.output("stays").split()[0])
    assert [pid for pid in (body, runner, server) if Path(f"/proc/{pid}").exists()] == []


OWNER = Path(__file__).with_name("owner.py")
HUNGRY = """
import runpy, signal, sys
signal.signal(signal.SIGUSR2, lambda *_: b"x" * (1 << 29))
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.slow
async def test_row_14_a_supervisor_that_the_kernel_ends_for_memory_leaves_nothing(home):
    owner = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", HUNGRY, str(OWNER), str(home)), stdout=asyncio.subprocess.PIPE, limit=10**7
    )
    told = []
    while sum(one[0] == "body_started" for one in told) < 4:
        told.append(json.loads(await owner.stdout.readline()))
    with group("memory", "memory.max", "memory.limit_in_bytes") as memory:
        memory.limit(64 * 1024 * 1024)
        memory.take(owner.pid)
        owner.send_signal(signal.SIGUSR2)
        await owner.wait()
    assert owner.returncode == -signal.SIGKILL
    runs = {one[2] for one in told if one[2]}
    await until(lambda: alive(runs) == [])
    pids = [one[3]["pid"] for one in told if one[0] in ("nursery", "agent_started", "body_started")]
    await until(lambda: not [pid for pid in pids if (found := guard.read_process(pid)) and found.state not in "ZX"])
