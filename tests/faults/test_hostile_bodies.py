"""Programs that do not want to end, and whoever ends them shot half-way: one fleet, and nobody is left of it.

item SIGTERM ignored: ::test_what_ignores_every_polite_signal_is_killed_after_its_grace,
    tests/runner/test_bodies.py::test_a_tree_of_fifty_that_ignores_sigterm_is_dead_after_its_grace
item double fork, setsid and closed descriptors: ::test_what_ignores_every_polite_signal_is_killed_after_its_grace,
    tests/runner/test_bodies.py::test_whatever_a_program_leaves_behind_is_ended_and_does_not_delay_its_result,
    tests/faults/test_runner_dies.py::test_a_body_that_clears_its_marker_and_flees_its_session_is_ended_all_the_same
item fork storm: ::test_a_fork_storm_is_ended_and_so_is_a_program_that_forks_while_it_is_killed
item a body that forks while it is being killed:
    ::test_a_fork_storm_is_ended_and_so_is_a_program_that_forks_while_it_is_killed,
    tests/faults/test_hoppers.py::test_chains_that_hop_from_process_to_process_do_not_outlive_their_run
item a stopped process: tests/runner/test_bodies.py::test_a_stopped_program_is_woken_to_hear_its_sigterm,
    ::test_stopped_processes_with_zombies_below_them_are_ended_and_delay_no_result,
    tests/faults/test_runner_dies.py::test_a_stopped_runner_falls_silent_and_is_reaped_with_its_body
item pid reuse:
    tests/faults/test_catalogue_identity.py::test_row_36_a_pid_that_was_given_to_somebody_else_is_not_signalled
item a zombie: ::test_stopped_processes_with_zombies_below_them_are_ended_and_delay_no_result,
    tests/runner/test_bodies.py::test_what_is_adopted_does_not_pile_up_as_zombies
item a reaper that is itself killed half-way:
    ::test_a_runner_that_is_shot_while_it_ends_its_body_leaves_the_rest_to_others,
    ::test_a_supervisor_that_is_shot_in_the_middle_of_a_reap_leaves_it_to_the_next_one
"""

from __future__ import annotations

import os
import shutil
import signal

import pytest
from supervisor.stage import Stage, alive, child, plan_of, play, python, runs_of, short_home, until

from council_tui.containers.sandbox import probe
from council_tui.domain.events import EventKind as K
from council_tui.domain.lifecycle import Signal
from council_tui.runner import guard
from faults.catalogue import mistakes
from faults.killed import Owner

MARK = "hostile-in-a-test"
WHY = probe(shutil.which("bwrap"))

PRELUDE = """
import os, signal, sys, time
end = time.monotonic() + 20  # whatever goes wrong with a test, its programs do not stay

def deaf():
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)

def lives():
    return time.monotonic() < end
"""

DEAF = """
deaf()
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    os.closerange(0, 256)
    os.execve(sys.executable, [sys.executable, "-I", "-S", "-c", DAEMON, sys.argv[1]], ENVIRONMENT)
os.wait()
while lives():
    time.sleep(0.1)
"""

DAEMON = PRELUDE + "deaf()\nwhile lives():\n    time.sleep(0.1)\n"

STORM = """
deaf()
for _ in range(40):
    if os.fork() == 0:
        os.setsid()
        while lives():
            pid = os.fork()
            if pid == 0:
                os._exit(0)
            os.waitpid(pid, 0)
        os._exit(0)
while lives():
    time.sleep(0.1)
"""

HYDRA = """
def again(depth):
    # Whoever loses its child has another one at once.
    while lives():
        pid = os.fork()
        if pid == 0:
            deaf()
            again(depth - 1) if depth else time.sleep(20)
            os._exit(0)
        os.waitpid(pid, 0)

def more(*ignored):
    for _ in range(5):
        if os.fork() == 0:
            deaf()
            again(1)
            os._exit(0)

signal.signal(signal.SIGTERM, more)
for _ in range(5):
    if os.fork() == 0:
        again(2)
        os._exit(0)
while lives():
    time.sleep(0.1)
"""

ZOMBIES = """
stopped = os.fork()
if stopped == 0:
    os.setsid()
    for _ in range(20):
        dead = os.fork()
        if dead == 0:
            os._exit(0)
        os.waitid(os.P_PID, dead, os.WEXITED | os.WNOWAIT)
    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(20)
    os._exit(0)
os.waitpid(stopped, os.WUNTRACED)
print("left with twenty dead below a sleeper")
"""

SHORT = {"run_ttl_seconds": 0.8, "grace_seconds": 0.3}


HIDDEN, KNOWN = "{}", "os.environ"


def hostile(name, code, environment=HIDDEN, **policy):
    whole = PRELUDE + code.replace("DAEMON", repr(DAEMON)).replace("ENVIRONMENT", environment)
    return child(name, python(whole, MARK), policy=policy or None)


def left():
    return [process.pid for process in guard.all_processes() if MARK.encode() in _argv(process.pid)]


def _argv(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


HOSTILE = plan_of(
    hostile("deaf", DEAF, **SHORT),
    hostile("storm", STORM, **SHORT),
    hostile("hydra", HYDRA, **SHORT),
    hostile("zombies", ZOMBIES),
    child("meek", "echo fine"),
)


@pytest.fixture(scope="module")
def fleet():
    with short_home() as home:
        yield play(home, HOSTILE)


def test_every_kind_of_hostile_body_is_shown_by_a_test():
    assert mistakes(__file__, range(0)) == []


def test_a_hostile_fleet_leaves_nothing_and_its_ledger_holds(fleet):
    assert left() == []
    assert fleet.ending.audit == {"descendants": [], "open_claims": [], "unsigned_reports": [], "slices": []}
    assert (fleet.ending.ledger["verdict"], fleet.ending.exit) == ("VALID", 1)
    assert fleet.cards["meek"].state == "done", "what others do costs nobody his work"


def test_what_ignores_every_polite_signal_is_killed_after_its_grace(fleet):
    assert fleet.cards["deaf"].fail == "expired"
    # The program, and the daemon that hid its environment, its session and its parents.
    assert len(fleet.first("deaf", K.REAP_STARTED).data["pids"]) == 2
    assert fleet.first("deaf", K.REAPED).data == {"exit_status": None, "signal": 9, "survivors": []}


@pytest.mark.parametrize("name", ["storm", "hydra"])
def test_a_fork_storm_is_ended_and_so_is_a_program_that_forks_while_it_is_killed(fleet, name):
    assert (fleet.cards[name].state, fleet.cards[name].fail) == ("failed", "expired")
    assert fleet.first(name, K.REAPED).data == {"exit_status": None, "signal": 9, "survivors": []}


def test_stopped_processes_with_zombies_below_them_are_ended_and_delay_no_result(fleet):
    assert fleet.cards["zombies"].state == "done"
    assert fleet.cards["zombies"].result["evidence"][-1] == "1 process was left behind by the program and ended"


@pytest.mark.slow
@pytest.mark.skipif(bool(WHY), reason=WHY or "strong")
def test_in_strong_mode_the_same_fleet_leaves_nothing_either(home, monkeypatch):
    monkeypatch.delenv("COUNCIL_TIER", raising=False)
    played = play(home, HOSTILE)
    assert left() == []
    assert not any(played.ending.audit.values())
    assert played.ending.ledger["verdict"] == "VALID"
    fates = {name: played.cards[name].fail or str(played.cards[name].state) for name in ("deaf", "storm", "hydra")}
    assert set(fates.values()) == {"expired"}
    assert {played.cards[name].state for name in ("zombies", "meek")} == {"done"}


# Nobody knows whose a daemon without an environment is, so it has five seconds, the grace of anybody's.
DAEMONS = [KNOWN, pytest.param(HIDDEN, marks=pytest.mark.slow)]


@pytest.mark.parametrize("environment", DAEMONS, ids=["known", "hidden"])
async def test_a_runner_that_is_shot_while_it_ends_its_body_leaves_the_rest_to_others(home, environment):
    plan = plan_of(hostile("deaf", DEAF, environment, grace_seconds=0.4), child("meek", "sleep 0.3; echo fine"))
    async with Stage(home, plan) as stage:
        await stage.wait(K.BODY_STARTED, "deaf")
        await stage.wait(K.BODY_STARTED, "meek")
        seat = stage.seat("deaf")
        await until(lambda: len(left()) == 2)
        await stage.sup.signal(seat, Signal.CANCELLED, {"reason": "reaped by the operator"})
        await stage.wait(K.SIGNALLED, "deaf")
        os.kill(seat.pid, signal.SIGKILL)
        end = await stage.end()
        assert left() == []
        assert (stage.card("deaf").state, stage.card("deaf").fail) == ("failed", "cancelled")
        assert stage.card("meek").state == "done"
    assert [stage.kinds("deaf").count(kind) for kind in ("reap_started", "reaped", "revoked", "card_failed")] == [1] * 4
    assert not any(end.audit.values())
    assert end.ledger["verdict"] == "VALID"


@pytest.mark.parametrize("environment", DAEMONS, ids=["known", "hidden"])
@pytest.mark.parametrize("moment", ["signalled", pytest.param("slice_cleared", marks=pytest.mark.slow)])
async def test_a_supervisor_that_is_shot_in_the_middle_of_a_reap_leaves_it_to_the_next_one(home, moment, environment):
    async with Owner(home, hostile("deaf", DEAF, environment, run_ttl_seconds=0.3, grace_seconds=0.3)) as owner:
        await owner.wait(moment, "deaf")
        await owner.kill()
    async with Stage(home, plan_of(child("next", "echo next"))) as stage:
        assert (await stage.end()).exit == 0
        assert left() == []
    assert alive(runs_of(home)) == []
