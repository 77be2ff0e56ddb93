"""What a council does when this machine has no more to give: nothing is lost, and whoever waits is told why.

item disk full, journal: tests/faults/test_runner_dies.py::test_a_full_disk_ends_the_council_and_everything_it_started,
    tests/supervisor/test_reaper.py::test_a_disk_that_fails_keeps_nobody_alive,
    ::test_item_a_disk_that_is_full_for_a_while_costs_log_text_and_nothing_else
item disk full, log: ::test_item_a_disk_that_is_full_for_a_while_costs_log_text_and_nothing_else,
    tests/runner/test_log.py::test_a_rotation_that_fails_keeps_the_log_and_the_program_going,
    tests/runner/test_log.py::test_a_log_whose_folder_cannot_be_had_is_begun_as_soon_as_it_can
item disk full, slice: ::test_item_a_disk_that_is_full_for_a_while_costs_log_text_and_nothing_else,
    tests/supervisor/test_strong.py::test_the_ceiling_is_a_wall_at_exactly_its_size,
    tests/supervisor/test_births.py::test_a_slice_that_cannot_be_made_says_why
item disk full, at the start: ::test_item_a_home_that_is_full_at_the_start_is_told_in_a_sentence_that_names_its_disk,
    ::test_item_a_disk_that_keeps_the_offices_from_opening_is_named,
    tests/ledger/test_keys.py::test_a_disk_that_is_full_leaves_no_half_of_a_key
item read-only home: ::test_item_a_home_on_a_medium_that_nobody_can_write_to_is_refused_and_still_read,
    tests/headless/test_reads.py::test_reads_work_on_a_medium_that_nobody_can_write_to
item descriptors: ::test_item_without_a_descriptor_left_an_agent_is_still_ended_and_proved_dead,
    tests/runner/test_reserve.py::test_without_a_descriptor_a_guard_still_sees_names_and_kills,
    tests/runner/test_reserve.py::test_who_cannot_look_says_so_and_calls_nobody_dead,
    tests/supervisor/test_door.py::test_without_descriptors_whoever_connects_waits_and_the_terminal_is_left_alone,
    tests/supervisor/test_clearing.py::test_without_descriptors_nothing_is_concluded_and_the_slice_goes_later,
    tests/fleet/test_open_files.py::test_cards_wait_visibly_while_descriptors_are_short_and_go_on_afterwards,
    tests/hosts/test_descriptors.py::test_a_council_takes_all_it_can_get_and_its_programs_keep_what_it_was_given,
    ::test_item_a_fleet_that_meets_its_limit_of_open_files_is_slower_and_nothing_else
item threads: tests/supervisor/test_workers.py::test_a_machine_without_another_thread_still_reaps_and_closes,
    tests/supervisor/test_workers.py::test_a_machine_that_gives_too_few_is_refused_in_one_sentence_and_none_stays
item process table: ::test_item_a_full_process_table_fails_what_would_be_born_and_nothing_else,
    tests/supervisor/test_births.py::test_a_host_that_cannot_start_a_process_leaves_nothing_behind,
    tests/hosts/test_nursery.py::test_a_full_process_table_is_told_in_a_sentence_and_leaves_nothing_open
item memory: ::test_item_without_memory_who_would_be_born_is_told_as_lost_and_nobody_else_is,
    tests/faults/test_catalogue_processes.py::test_row_07_a_reap_needs_no_fork_and_no_memory_to_speak_of,
    tests/faults/test_catalogue_processes.py::test_row_14_a_supervisor_that_the_kernel_ends_for_memory_leaves_nothing
"""

from __future__ import annotations

import asyncio
import json
import shlex

import pytest
from headless.command import child as command
from headless.command import write_plan
from hosts.test_descriptors import limited
from supervisor.stage import Stage, alive, child, plan_of, until

from council_tui.board.board import Board
from council_tui.board.home import Home
from council_tui.domain.errors import HomeUnusable
from council_tui.domain.events import EventKind as K
from council_tui.domain.lifecycle import Signal
from council_tui.fleet.fleet import Fleet
from council_tui.runner import guard
from council_tui.supervisor.supervisor import Supervisor
from faults.catalogue import mistakes
from faults.namespaces import inside
from faults.shortage import group, no_descriptors, no_memory

CLEAN = {"descendants": [], "open_claims": [], "unsigned_reports": [], "slices": []}

WAITS = 'while [ ! -e "$COUNCIL_SLICE/go" ]; do sleep 0.05; done; echo fine'
FULL = """
import json, os, sys
from pathlib import Path
os.environ["COUNCIL_TIER"] = "portable"
from supervisor.stage import child, plan_of, play
home = Path(sys.argv[1])
fill, gone = home / "fill", home / "gone"
fills = f'''
dd if=/dev/zero of={fill} bs=64k 2>/dev/null
yes | head -c 300000
echo x > "$COUNCIL_SLICE/x" && [ -s "$COUNCIL_SLICE/x" ] || echo "its slice is full"
sleep 0.5
rm {fill}; touch {gone}
echo y > "$COUNCIL_SLICE/y" && [ -s "$COUNCIL_SLICE/y" ] && echo "its slice has room"
'''
# Its whole life from here on is written while there is no room, and so has to be written later.
meanwhile = f"while [ ! -e {fill} ]; do sleep 0.05; done; sleep 0.1; echo over"
played = play(home, plan_of(child("fills", fills), child("meanwhile", meanwhile)))
print(json.dumps({
    "exit": played.ending.exit, "audit": played.ending.audit, "verdict": played.ending.ledger["verdict"],
    "evidence": played.cards["fills"].result["evidence"], "log": played.output("fills").decode()[-60:],
    "states": [card.state for card in played.cards.values()], "events": [event.seq for event in played.events],
}))
"""

COMMANDS = """
import json, subprocess, sys
answers = []
for arguments in json.loads(sys.argv[1]):
    done = subprocess.run([sys.executable, "-m", "council_tui", *arguments], capture_output=True, text=True)
    answers.append([done.returncode, done.stdout, done.stderr])
print(json.dumps(answers))
"""


NEARLY_FULL = """
import json, os, subprocess, sys
home, plan = sys.argv[1:]
told = []
def run():
    argv = [sys.executable, "-m", "council_tui", "--home", home, "--run", plan]
    done = subprocess.run(argv, capture_output=True, text=True)
    told.append([done.returncode, done.stderr])
def fill(left):
    open(f"{home}/fill", "wb").close()
    room = os.statvfs(home)
    with open(f"{home}/fill", "wb") as file:
        file.write(bytes(room.f_bavail * room.f_frsize - left))
fill(0)
run()
fill(4096)
run()
os.unlink(f"{home}/fill")
run()
told.pop()
fill(4096)
run()
print(json.dumps(told))
"""

MANY = """
import asyncio, json, os, sys
from pathlib import Path
os.environ["COUNCIL_TIER"] = "portable"
from council_tui.domain.events import EventKind as K
from council_tui.fleet import gate
from supervisor.stage import Stage, child, plan_of
gate.LOOK_SECONDS = 0.02
async def main():
    # Each lives for a while, so that they meet.
    limits = {"concurrency": 40, "children_per_parent": 40}
    plan = plan_of(*(child(f"n{n}", "sleep 1") for n in range(40)), limits=limits)
    async with Stage(Path(sys.argv[1]), plan) as stage:
        end = await stage.end()
        held = sorted({event.data["cause"] for event in stage.events if event.kind is K.BIRTHS_HELD})
    print(json.dumps({"exit": end.exit, "cards": end.cards, "audit": end.audit, "verdict": end.ledger["verdict"],
                      "held": held}))
asyncio.run(main())
"""


def test_every_item_is_shown_by_a_test_that_exists():
    assert mistakes(__file__, range(0)) == []


def test_item_a_disk_that_is_full_for_a_while_costs_log_text_and_nothing_else(home):
    home.mkdir(mode=0o700)
    mount = f"mount -t tmpfs -o size=16m,mode=0700 none {shlex.quote(str(home))}"
    told = inside(("--mount",), FULL, str(home), first=mount)
    assert (told["exit"], told["audit"], told["verdict"]) == (0, CLEAN, "VALID")
    assert set(told["states"]) == {"done"}
    assert told["events"] == list(range(1, len(told["events"]) + 1))
    assert told["log"].endswith("its slice has room\n")
    assert told["evidence"][-1].endswith(" bytes of its output are not in the log: No space left on device")
    assert "its slice is full" in told["evidence"][-2]


def test_item_a_home_on_a_medium_that_nobody_can_write_to_is_refused_and_still_read(home, tmp_path):
    plan = write_plan(tmp_path, command("one", "echo", "hi"))
    asked = [["--home", str(home), *words] for words in (["--run", str(plan)], ["board", "--json"], ["verify"])]
    asyncio.run(_one_fleet(home))
    place = shlex.quote(str(home))
    mount = f"mount --bind {place} {place} && mount -o remount,ro,bind {place}"
    run, board, verify = inside(("--mount",), COMMANDS, json.dumps(asked), first=mount)
    assert run == [2, "", f"council: cannot use {home} as home: Read-only file system; choose another with --home\n"]
    assert board[0] == 0
    assert '"one"' in board[1]
    assert verify[0] == 0
    assert verify[1].startswith("VALID")


def test_item_a_home_that_is_full_at_the_start_is_told_in_a_sentence_that_names_its_disk(home, tmp_path):
    plan = write_plan(tmp_path, command("one", "echo", "hi"))
    home.mkdir(mode=0o700)
    mount = f"mount -t tmpfs -o size=2m,mode=0700 none {shlex.quote(str(home))}"
    told = inside(("--mount",), NEARLY_FULL, str(home), str(plan), first=mount)
    assert [code for code, _ in told] == [2, 2, 2]
    for (_, said), file in zip(told, ("supervisor.lock", "run/nursery", "plan.json"), strict=True):
        way_out = "make room there, then start again"
        assert said == f"council: cannot write {home}/{file}: No space left on device; {way_out}\n"


async def test_item_a_disk_that_keeps_the_offices_from_opening_is_named(home, monkeypatch):
    monkeypatch.setattr("council_tui.fleet.opening.OFFICE_PATIENCE", -1)
    monkeypatch.setattr(Board, "trouble", "board.db cannot be written: database or disk is full")
    sup = Supervisor(Home(home))
    await sup.open()
    try:
        with pytest.raises(HomeUnusable) as caught:
            await Fleet(sup).start()
    finally:
        await sup.close()
    assert str(caught.value).startswith("board.db cannot be written: database or disk is full, so ")
    assert str(caught.value).endswith(" could not open; make room there, then start again")


def test_item_a_fleet_that_meets_its_limit_of_open_files_is_slower_and_nothing_else(home):
    told = json.loads(limited(MANY, str(home), soft=64, hard=64))
    assert told == {"exit": 0, "cards": {"done": 40}, "audit": CLEAN, "verdict": "VALID", "held": ["descriptors"]}


async def _one_fleet(home):
    async with Stage(home, plan_of(child("one", "echo hi"))) as stage:
        assert (await stage.end()).exit == 0


async def test_item_without_a_descriptor_left_an_agent_is_still_ended_and_proved_dead(home):
    deaf = "trap '' TERM; setsid sleep 600 & sleep 600; sleep 600"
    plan = plan_of(child("agent", deaf, policy={"grace_seconds": 0.2}), child("lives", WAITS))
    async with Stage(home, plan) as stage:
        await stage.wait(K.BODY_STARTED, "agent")
        await stage.wait(K.BODY_STARTED, "lives")
        seat = stage.seat("agent")
        await until(lambda: len(guard.descendants(seat.pid)) >= 3)
        tree = guard.descendants(seat.pid)
        with no_descriptors():
            await stage.sup.signal(seat, Signal.CANCELLED, {"reason": "reaped by the operator"})
            await stage.wait(K.CARD_FAILED, "agent")
            assert [process for process in tree if guard.read_process(process.pid) is not None] == []
            assert alive({seat.run}) == []
        go_on(stage)
        end = await stage.end()
        assert (stage.card("agent").fail, stage.card("lives").state) == ("cancelled", "done")
    assert (end.audit["descendants"], end.audit["open_claims"], end.ledger["verdict"]) == ([], [], "VALID")


def go_on(stage):
    """Let the child that waits go on."""
    (stage.home.slices / stage.seat("lives").run / "data" / "go").touch()


async def settled(stage, name, run="echo fine"):
    """Submit an order, a small one, and wait until its card has gone as far as it gets; (state, reason)."""
    await stage.fleet.submit(plan_of(child(name, run)).orders[0])
    await until(lambda: stage.card(name).state in ("done", "failed", "blocked"))
    return str(stage.card(name).state), stage.card(name).reason


async def test_item_a_full_process_table_fails_what_would_be_born_and_nothing_else(home):
    with group("pids", "pids.max") as table:
        async with Stage(home, plan_of(child("lives", WAITS))) as stage:
            await stage.wait(K.BODY_STARTED, "lives")
            table.take(stage.sup.host.pid)
            table.limit(1)
            state, why = await settled(stage, "no-runner")
            assert (state, why) == (
                "failed",
                "this machine cannot start another process: Resource temporarily unavailable",
            )
            table.limit(2)
            assert await settled(stage, "no-body") == ("failed", "cannot start sh: Resource temporarily unavailable")
            table.limit(None)
            assert (await settled(stage, "next"))[0] == "done"
            go_on(stage)
            end = await stage.end()
            assert stage.card("lives").state == "done"
        assert (end.audit, end.ledger["verdict"]) == (CLEAN, "VALID")


async def test_item_without_memory_who_would_be_born_is_told_as_lost_and_nobody_else_is(home):
    async with Stage(home, plan_of(child("lives", WAITS))) as stage:
        await stage.wait(K.BODY_STARTED, "lives")
        with no_memory(stage.sup.host.pid, room=0):
            # Its contract is larger than what a nursery has set aside by chance.
            state, why = await settled(stage, "starved", ["true", *(["y" * 1000] * 500)])
        assert state == "failed"
        assert why.startswith("its runner ended with ")
        assert (await settled(stage, "next"))[0] == "done"
        go_on(stage)
        end = await stage.end()
        assert stage.card("lives").state == "done"
    assert (end.audit, end.ledger["verdict"]) == (CLEAN, "VALID")
