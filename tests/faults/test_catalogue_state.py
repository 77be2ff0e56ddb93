"""The failure catalogue, rows 26 to 50: what happens to state, identity, clocks and limits.

row 26: ::test_row_26_a_full_disk_keeps_nobody_alive_and_what_happened_is_written_once_there_is_room,
    ::test_row_26_a_start_on_a_full_disk_is_refused_in_one_sentence_and_the_next_one_finds_all_in_order
row 27: ::test_row_27_a_disk_that_was_full_for_a_while_is_waited_out_without_a_restart,
    tests/faults/test_runner_dies.py::test_a_full_disk_ends_the_council_and_everything_it_started
row 28: ::test_row_28_fifty_writers_and_readers_at_once_meet_no_lock,
    ::test_row_28_two_components_that_start_at_once_meet_no_lock,
    tests/bench/test_bench.py::test_a_board_benchmark_finds_one_winner_for_every_card
row 29: tests/runner/test_bodies.py::test_a_body_sees_the_variables_of_the_allow_list_and_no_secret,
    tests/runner/test_bodies.py::test_a_body_has_its_own_session_a_closed_stdin_and_no_descriptor_of_ours,
    tests/supervisor/test_strong.py::test_a_body_sees_neither_the_councils_home_nor_processes_outside,
    tests/board/test_board.py::test_whoever_changed_a_row_behind_our_back_is_found_out,
    tests/headless/test_doctor.py::test_an_old_sqlite_is_a_note_and_no_problem
row 30: ::test_row_30_a_home_on_a_network_file_system_is_refused
row 31: tests/supervisor/test_unkillable.py::test_it_is_told_and_its_card_keeps_the_claim,
    tests/supervisor/test_unkillable.py::test_no_second_run_of_its_card_is_started_meanwhile,
    tests/supervisor/test_unkillable.py::test_it_is_tried_again_after_two_minutes_and_not_before
row 32: ::test_row_32_another_attempt_does_not_inherit_the_silence_of_the_one_before
row 33: ::test_row_33_a_beat_renews_the_lease_and_nothing_else
row 34: tests/faults/test_runner_dies.py::test_a_killed_runner_is_an_orphan_at_once_and_its_body_goes_with_it
row 35: tests/faults/test_catalogue_identity.py::test_row_35_a_changed_host_name_changes_nothing_about_who_is_who,
    tests/supervisor/test_recovery.py::test_pids_of_another_boot_and_reused_ones_are_nobodys
row 36: tests/faults/test_catalogue_identity.py::test_row_36_a_pid_that_was_given_to_somebody_else_is_not_signalled
row 37: tests/faults/test_catalogue_identity.py::test_row_37_a_child_with_a_lower_pid_than_its_parent_is_found
row 38:
    tests/supervisor/test_leftovers.py::test_processes_of_a_run_are_ended_by_marker_and_by_pid_and_those_of_others_are_not,
    tests/faults/test_taken_back.py::test_who_lives_is_taken_back_and_ends_its_work_under_the_same_run
row 39:
    tests/faults/test_supervisor_dies.py::test_nothing_outlives_a_supervisor_that_was_killed_and_the_next_one_puts_it_right
row 40: ::test_row_40_an_orphan_that_holds_the_lock_is_named_and_nothing_is_tried_again
row 41: tests/fleet/test_fleet.py::test_a_failed_attempt_is_tried_again_and_what_waits_for_it_goes_on_waiting,
    tests/fleet/test_retries.py::test_a_card_that_crashes_after_each_acknowledgement_is_tried_five_times_and_no_more,
    tests/fleet/test_brake.py::test_only_what_held_out_takes_off_what_was_counted
row 42: tests/fleet/test_fleet.py::test_limits_hold_over_a_whole_fleet,
    tests/fleet/test_fleet.py::test_a_microshark_that_is_not_in_the_contract_is_not_spawned,
    tests/supervisor/test_handshake.py::test_an_agent_spawns_only_what_its_place_in_the_hierarchy_allows,
    tests/domain/test_rules.py::test_the_tree_is_four_deep_and_microsharks_spawn_nothing
row 43: tests/faults/test_catalogue_clocks.py::test_row_43_who_never_acknowledges_is_an_orphan_at_its_deadline
row 44: tests/faults/test_catalogue_clocks.py::test_row_44_a_long_stall_of_an_agent_that_beats_is_no_death
row 45: tests/fleet/test_fleet.py::test_a_reap_waits_out_its_grace_before_it_kills,
    tests/runner/test_bodies.py::test_a_tree_of_fifty_that_ignores_sigterm_is_dead_after_its_grace
row 46: tests/supervisor/test_reaper.py::test_no_card_ends_before_the_death_is_proved,
    tests/supervisor/test_reaper.py::test_a_runner_that_does_not_answer_is_not_waited_for_for_ever
row 47: tests/faults/test_catalogue_clocks.py::test_row_47_a_wall_clock_that_jumps_orphans_nobody,
    tests/faults/test_supervisor_dies.py::test_a_supervisor_that_was_frozen_blames_nobody
row 48: tests/faults/test_catalogue_clocks.py::test_row_48_after_a_sleep_beats_are_heard_first_and_everyone_has_time
row 49: tests/supervisor/test_strong.py::test_a_machine_without_bubblewrap_says_so,
    tests/supervisor/test_strong.py::test_each_tier_says_what_it_holds_and_refuses_what_it_cannot,
    tests/fleet/test_fleet.py::test_what_the_machine_cannot_enforce_is_blocked_and_no_process_started
row 50: tests/faults/test_catalogue_clocks.py::test_row_50_a_thousand_looks_at_once_are_one_and_read_each_process_once
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import asdict

import pytest
from board.facts import created, opened
from supervisor.stage import Stage, child, gone, plan_of, play, until

from council_tui.board import home as homes
from council_tui.board.board import Draft, load_tables, replay
from council_tui.board.database import Writer, read_only
from council_tui.board.home import Home, OwnerLock
from council_tui.domain.errors import HomeOwned, HomeUnusable
from council_tui.domain.events import EventKind as K
from council_tui.domain.lifecycle import Phase, Signal
from faults.byhand import Clock, beat, ended, standing
from faults.catalogue import mistakes
from faults.namespaces import inside


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
async def bare(home, clock, monkeypatch):
    async with standing(home, clock, monkeypatch) as bare:
        yield bare


def test_every_row_is_shown_by_a_test_or_has_a_reason():
    assert mistakes(__file__, range(26, 51)) == []


# a disk without room, a file that is locked


class Disk:
    """A disk without room for any writer, while it is `full`."""

    def __init__(self, monkeypatch):
        self.full = False
        attempt = Writer._try

        def trial(connection, jobs):
            if not self.full:
                return attempt(connection, jobs)
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            return error

        monkeypatch.setattr(Writer, "_try", staticmethod(trial))


def journalled(home):
    """Kinds of event on disk, in order; the tables beside them say the same."""
    with closing(sqlite3.connect(home.board)) as connection:
        assert asdict(load_tables(connection, archived=True)) == asdict(replay(connection))
        return [kind for (kind,) in connection.execute("SELECT kind FROM journal ORDER BY seq")]


async def test_row_26_a_full_disk_keeps_nobody_alive_and_what_happened_is_written_once_there_is_room(
    home, monkeypatch, tmp_path
):
    disk = Disk(monkeypatch)
    works = f"until [ -e {tmp_path}/go ]; do sleep 0.02; done; echo fine"
    ending = [child(f"ends-{ttl}", "sleep 600", policy={"run_ttl_seconds": ttl / 10}) for ttl in (6, 9, 6000)]
    async with Stage(home, plan_of(*ending, child("works", works))) as stage:
        bodies = [(await stage.wait(K.BODY_STARTED, one["id"])).data["pid"] for one in ending]
        await stage.wait(K.BODY_STARTED, "works")
        disk.full = True
        # Two are judged one after the other, and one is ended by a person.
        seat = stage.seat("ends-6000")
        telling = asyncio.create_task(stage.sup.signal(seat, Signal.CANCELLED, {"reason": "reaped by the operator"}))
        await until(lambda: all(map(gone, bodies)), 10)
        (tmp_path / "go").touch()
        await stage.wait(K.RETURNED, "works")
        assert "reap_started" not in journalled(stage.home)
        disk.full = False
        end = await stage.end()
        await telling
    assert (end.exit, end.cards, end.ledger["verdict"]) == (1, {"failed": 3, "done": 1}, "VALID")
    assert not any(end.audit.values())
    told = journalled(stage.home)
    assert [
        kind for kind in ("reap_started", "reaped", "card_failed", "returned", "card_done") if kind not in told
    ] == []


STARTS = """
import json, os, sys
from pathlib import Path
from council_tui.board import database
from council_tui.domain.errors import CouncilError
from supervisor.stage import child, plan_of, play

os.environ["COUNCIL_TIER"] = "portable"
database.OPENING_SECONDS = database.PATIENCE_SECONDS = 0
folder, plan, told = Path(sys.argv[1]), plan_of(child("one", "echo one")), []
filler = os.open(folder / "filler", os.O_WRONLY | os.O_CREAT)
for pages in (0, 1, 6, 24):
    size = 65536
    os.lseek(filler, 0, os.SEEK_END)
    while size:
        try:
            os.write(filler, bytes(size))
        except OSError:
            size //= 2
    os.ftruncate(filler, os.fstat(filler).st_size - 4096 * pages)
    try:
        play(folder / "h", plan)
    except CouncilError as error:
        told.append(str(error))
os.ftruncate(filler, 0)
end = play(folder / "h", plan).ending
print(json.dumps([told, end.exit, end.ledger["verdict"]]))
"""


def test_row_26_a_start_on_a_full_disk_is_refused_in_one_sentence_and_the_next_one_finds_all_in_order(tmp_path):
    mount = f"mount -t tmpfs -o size=3m none {tmp_path}"
    told, code, verdict = inside(("--mount",), STARTS, str(tmp_path), first=mount)
    assert len(told) == 4
    assert [line for line in told if not line.endswith("; make room there, then start again")] == []
    assert (code, verdict) == (0, "VALID")


FILL = """
import asyncio, json, os, sqlite3, sys
from contextlib import closing
from pathlib import Path
from board.facts import created, opened
from supervisor.stage import until

async def main(folder):
    board = await opened(Path(folder, "board.db"))
    await board.append(created("before"))
    filler, size = os.open(folder + "/filler", os.O_WRONLY | os.O_CREAT), 65536
    while size:
        try:
            os.write(filler, bytes(size))
        except OSError:
            size //= 2
    late = [board.append(created(f"c{number}", title="x" * 4000)) for number in range(200)]
    await until(lambda: board._writer._waited > 0)
    stuck = not any(one.done() for one in late)
    os.ftruncate(filler, 0)
    await asyncio.gather(*late)
    failure = str(board.failure)
    await board.close()
    with closing(sqlite3.connect(folder + "/board.db")) as db:
        sound, = db.execute("PRAGMA integrity_check").fetchone()
        count, = db.execute("SELECT count(*) FROM cards").fetchone()
    print(json.dumps([stuck, failure, sound, count]))

asyncio.run(main(sys.argv[1]))
"""


def test_row_27_a_disk_that_was_full_for_a_while_is_waited_out_without_a_restart(tmp_path):
    mount = f"mount -t tmpfs -o size=3m none {tmp_path}"
    assert inside(("--mount",), FILL, str(tmp_path), first=mount) == [True, "None", "ok", 201]


async def test_row_28_fifty_writers_and_readers_at_once_meet_no_lock(tmp_path):
    board = await opened(tmp_path / "board.db")
    done = asyncio.Event()

    async def write(name):
        for number in range(10):
            await board.append(created(f"{name}-{number}"))

    async def read():
        seen = 0
        async with read_only(tmp_path / "board.db") as reader:
            while not done.is_set():
                async with reader.execute("SELECT count(*) FROM journal") as rows:
                    (count,) = await rows.fetchone()
                    assert count >= seen
                    seen = count

    readers = [asyncio.create_task(read()) for _ in range(5)]
    await asyncio.gather(*(write(f"w{number}") for number in range(50)))
    done.set()
    await asyncio.gather(*readers)
    assert board.failure is None
    await board.close()
    with closing(sqlite3.connect(tmp_path / "board.db")) as connection:
        assert connection.execute("SELECT count(*) FROM cards").fetchone() == (500,)


async def test_row_28_two_components_that_start_at_once_meet_no_lock(tmp_path):
    for number in range(10):
        path = tmp_path / f"{number}.db"
        writers = [Writer(path, "CREATE TABLE IF NOT EXISTS t (n INTEGER)") for _ in range(2)]
        await asyncio.gather(*(writer.start() for writer in writers))
        await asyncio.gather(*(w.submit(lambda db: db.execute("INSERT INTO t VALUES (1)")) for w in writers * 5))
        await asyncio.gather(*(writer.close() for writer in writers))
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("SELECT count(*) FROM t").fetchone() == (10,)


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs"])
def test_row_30_a_home_on_a_network_file_system_is_refused(tmp_path, monkeypatch, kind):
    where = tmp_path.stat().st_dev
    lines = [
        f"21 1 {os.major(where)}:{os.minor(where)} / /home rw,relatime shared:1 - {kind} server:/x rw",
        "22 1 0:1 / /proc rw - proc proc rw",
    ]
    monkeypatch.setattr(homes, "_MOUNTS", tmp_path / "mountinfo")
    (tmp_path / "mountinfo").write_text("\n".join(lines) + "\n")
    with pytest.raises(HomeUnusable, match=rf"network file system \({kind}\).*--home"):
        Home(tmp_path / "h").prepare()
    (tmp_path / "mountinfo").write_text("\n".join(reversed(lines)).replace(kind, "ext4") + "\n")
    Home(tmp_path / "h").prepare()


# what holds a card, and for how long


async def test_row_32_another_attempt_does_not_inherit_the_silence_of_the_one_before(bare, clock):
    first = await (await bare.office(parent_heartbeat_interval_seconds=20)).begin()
    await beat(first)
    await bare.sup.signal(first.seat, Signal.CANCELLED, {"reason": "enough"})
    card = await ended(first)
    clock.now += 7200
    bare.sup.board.append(Draft(K.CARD_RETRY, None, card.id, None, {"attempt": 1, "delay_seconds": 1.0}))
    second = await (await bare.born(card.id)).begin()
    for later in (0, 20, 20):
        clock.now += later
        await bare.sup.tick()
        assert second.seat.state.phase is Phase.RUNNING
    assert card.attempt == 2
    clock.now += 0.1
    await bare.sup.tick()
    assert (await ended(second)).fail == "orphaned"


async def test_row_33_a_beat_renews_the_lease_and_nothing_else(bare, clock):
    office = await (await bare.office(parent_heartbeat_interval_seconds=20, run_ttl_seconds=1000)).begin()
    lease = bare.find(K.CLAIMED, office.seat.agent).data["lease_seconds"]
    while clock.now < office.seat.opened + 1000 - lease:
        clock.now += lease
        await bare.sup.tick()
        assert office.seat.state.phase is Phase.RUNNING
        await beat(office)
    clock.now = office.seat.opened + 999.9
    await bare.sup.tick()
    assert office.seat.state.phase is Phase.RUNNING
    await beat(office)
    clock.now = office.seat.opened + 1000
    await bare.sup.tick()
    assert (await ended(office)).fail == "expired"


HOLDER = """
import fcntl, os, sys
for name in sys.argv[1:]:
    fcntl.flock(os.open(name, os.O_RDONLY), fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_row_40_an_orphan_that_holds_the_lock_is_named_and_nothing_is_tried_again(home):
    place = Home(home)
    place.prepare()
    lock = home / "supervisor.lock"
    # Who wrote the lock is long gone.
    lock.write_text("4194305\n")
    orphan = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", HOLDER, str(home), str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with orphan:
        assert orphan.stdout.readline() == b"held\n"
        with pytest.raises(HomeOwned, match=f"process {orphan.pid} already runs a council in {home}"):
            play(home, plan_of(child("one", "echo one")))
        assert lock.read_text() == "4194305\n"
        orphan.stdin.close()
    assert OwnerLock(place).held() is None
    assert play(home, plan_of(child("one", "echo one"))).ending.exit == 0
