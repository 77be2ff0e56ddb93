"""The failure catalogue, rows 15 to 19: a process that is shot, broken off or held up around its birth and its end.

row 15: ::test_row_15_who_starts_bodies_has_one_thread_so_none_can_end_and_take_a_body_along
row 16: ::test_row_16_processes_are_started_in_the_places_that_are_known_and_never_from_another_thread
row 17: ::test_row_17_a_runner_shot_while_its_body_starts_leaves_nothing,
    ::test_row_17_two_hundred_runners_shot_while_their_bodies_start_leave_nothing,
    tests/faults/test_supervisor_dies.py::test_a_supervisor_killed_in_the_middle_of_a_birth_leaves_nothing
row 18: ::test_row_18_a_body_is_over_when_it_ends_whoever_holds_its_pipes,
    tests/runner/test_bodies.py::test_whatever_a_program_leaves_behind_is_ended_and_does_not_delay_its_result
row 19: ::test_row_19_a_spawn_that_is_broken_off_at_any_moment_leaves_nothing
"""

from __future__ import annotations

import ast
import asyncio
import os
import shutil
import signal
import time
from datetime import datetime
from pathlib import Path

import pytest
from supervisor.stage import Stage, child, plan_of, play, until

import council_tui
from council_tui.board.board import Draft
from council_tui.containers.sandbox import probe
from council_tui.domain.events import EventKind as K
from council_tui.domain.lifecycle import Signal
from council_tui.runner import guard
from faults.catalogue import mistakes

WHY = probe(shutil.which("bwrap"))
TIERS = ["portable", pytest.param("strong", marks=pytest.mark.skipif(bool(WHY), reason=WHY or "strong"))]
SERVER = "sh -c 'setsid env -i sleep 600 & setsid sleep 600 & wait' & wait"
CLEAN = {"descendants": [], "open_claims": [], "unsigned_reports": [], "slices": []}


@pytest.fixture
def tier(request, monkeypatch):
    if request.param == "strong":
        monkeypatch.delenv("COUNCIL_TIER", raising=False)


def test_every_row_is_shown_by_a_test_that_exists():
    assert mistakes(__file__, range(15, 20)) == []


async def test_row_15_who_starts_bodies_has_one_thread_so_none_can_end_and_take_a_body_along(home):
    async with Stage(home, plan_of(child("body", "sleep 600"))) as stage:
        await stage.wait(K.BODY_STARTED, "body")
        for pid in (stage.seat("body").pid, stage.sup.host.pid):
            assert os.listdir(f"/proc/{pid}/task") == [str(pid)]


STARTERS = {
    # Bodies and runners, each from the only thread of a process of its own.
    "runner/body.py": {"Popen"},
    "hosts/nursery.py": {"fork"},
    # The nursery, which asks for no signal at its parent's death.
    "hosts/local.py": {"Popen"},
    # A supervisor that goes on in the background, in a session of its own.
    "control/background.py": {"Popen"},
    # Over before the call returns.
    "runner/cgroup.py": {"run"},
    "containers/sandbox.py": {"run"},
    "headless/machine.py": {"run"},
    "ledger/verify.py": {"get_context"},
}
CALLS = {
    *("fork", "forkpty", "posix_spawn", "posix_spawnp", "Popen", "create_subprocess_exec", "create_subprocess_shell"),
    *("system", "popen", "spawnv", "spawnl", "check_call", "check_output", "getoutput", "get_context"),
}


def starts(path):
    """The names of the calls in a file that start a process; `run` counts when it is subprocess's."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            whose = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
            if node.func.attr in CALLS or (whose, node.func.attr) == ("subprocess", "run"):
                found.add(node.func.attr)
            assert "preexec_fn" not in {keyword.arg for keyword in node.keywords}, f"{path}: it stops the whole parent"
    return found


def test_row_16_processes_are_started_in_the_places_that_are_known_and_never_from_another_thread():
    top = Path(council_tui.__file__).parent
    # Benchmarks and the tools of shipped plans are programs of their own: the former compare, the latter are bodies.
    files = [path for path in top.rglob("*.py") if path.relative_to(top).parts[0] not in ("bench", "plans")]
    found = {str(path.relative_to(top)): started for path in files if (started := starts(path))}
    assert found == STARTERS


def shoot(runner, delay):
    """SIGKILL a runner so many seconds after it has started its first process."""
    seen = guard.read_process(runner)
    while seen is not None and not guard.children_of(runner):
        seen = guard.read_process(runner)
    time.sleep(delay)
    if seen is not None:
        guard.send(seen, signal.SIGKILL)


async def shot_while_starting(home, count, monkeypatch):
    # What fails so often would otherwise not be tried on and on.
    monkeypatch.setattr("council_tui.fleet.brake.CRASHES", count + 1)
    plan = plan_of(
        *(child(f"n{n}", SERVER, policy={"grace_seconds": 0.2}) for n in range(count)), limits={"concurrency": 4}
    )
    async with Stage(home, plan) as stage:
        for number in range(count):
            runner = (await stage.wait(K.AGENT_STARTED, f":n{number}.")).data["pid"]
            await asyncio.to_thread(shoot, runner, number % 13 * 0.00025)
            await stage.wait(K.CARD_FAILED, f":n{number}.")
        end = await stage.end()
        assert {card.fail for card in stage.sup.board.tables.cards.values() if card.kind == "child"} == {"orphaned"}
    assert (end.audit, end.ledger["verdict"]) == (CLEAN, "VALID")


@pytest.mark.parametrize("tier", TIERS, indirect=True)
async def test_row_17_a_runner_shot_while_its_body_starts_leaves_nothing(home, tier, monkeypatch):
    await shot_while_starting(home, 6, monkeypatch)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("tier", TIERS, indirect=True)
async def test_row_17_two_hundred_runners_shot_while_their_bodies_start_leave_nothing(home, tier, monkeypatch):
    await shot_while_starting(home, 100, monkeypatch)


def test_row_18_a_body_is_over_when_it_ends_whoever_holds_its_pipes(home):
    end = "{python} -I -S -c 'import time; print(time.time())'"
    held = f"trap '' TERM; setsid sleep 600 & exec {end}"
    played = play(home, plan_of(child("ends", end), child("held", held, policy={"grace_seconds": 0.2})))
    for name in ("ends", "held"):
        ended = float(played.output(name))
        told = datetime.fromisoformat(played.first(name, K.RETURNED).at).timestamp()
        # Its grace and a busy machine's time, and not the ten minutes for which the pipe is held.
        assert told - ended < 5


async def test_row_19_a_spawn_that_is_broken_off_at_any_moment_leaves_nothing(home):
    async with Stage(home) as stage:
        office = stage.fleet.office("zeroclaw")
        order = plan_of(child("kid", "sleep 600")).orders[0]
        council = {stage.sup.host.pid, *(seat.pid for seat in stage.sup.seats.values())}
        stage.fleet.paused = True
        fds = len(os.listdir("/proc/self/fd"))
        done = turns = 0
        while done < 3:
            one = order.model_copy(update={"id": f"kid-{turns}"})
            card = await stage.sup.make_card(office, one)
            stage.sup.board.append(Draft(K.CARD_READY, stage.sup.hermes, card))
            spawning = asyncio.create_task(stage.sup.births.spawn(card))
            for _ in range(turns):
                await asyncio.sleep(0)
            done += spawning.done()
            spawning.cancel()
            await asyncio.wait({spawning})
            turns += 1
        for seat in [seat for seat in stage.sup.seats.values() if seat.kind == "child"]:
            stage.sup.background(stage.sup.signal(seat, Signal.CANCELLED, {"reason": "enough"}))
        await until(lambda: {process.pid for process in guard.descendants(os.getpid())} == council)
        await until(lambda: all(seat.kind != "child" for seat in stage.sup.seats.values()))
        await until(lambda: len(os.listdir("/proc/self/fd")) <= fds)
        assert {path.name for path in stage.home.slices.iterdir()} == set(stage.sup.seats)
