"""What goes wrong around a council: locks, clocks, long paths, other supervisors, a machine that shows too little.

item a database locked by a backup tool: ::test_a_database_that_a_backup_tool_has_locked_is_waited_for,
    ::test_a_database_that_stays_locked_is_told_in_one_sentence
item a clock that jumps both ways: ::test_a_wall_clock_that_jumps_both_ways_costs_nobody_anything,
    tests/faults/test_catalogue_clocks.py::test_row_47_a_wall_clock_that_jumps_orphans_nobody,
    tests/ledger/test_lineage.py::test_no_clock_that_is_set_and_no_sleep_of_the_machine_ends_a_voice
item suspend and resume:
    tests/faults/test_catalogue_clocks.py::test_row_48_after_a_sleep_beats_are_heard_first_and_everyone_has_time,
    tests/faults/test_supervisor_dies.py::test_a_supervisor_that_was_frozen_blames_nobody,
    ::test_a_machine_that_slept_blames_nobody
item a socket path that is too long: ::test_a_home_with_a_path_that_no_socket_has_room_for_is_used_like_any_other,
    tests/board/test_home.py::test_a_temp_dir_that_is_too_long_for_sockets_is_refused
item a stale lock of a dead supervisor: ::test_a_lock_that_a_dead_supervisor_left_is_nobodys_whoever_has_its_pid,
    tests/faults/test_supervisor_dies.py::test_a_supervisor_killed_in_the_middle_of_a_birth_leaves_nothing
item two supervisors on one home: ::test_of_supervisors_that_start_at_once_one_owns_the_home,
    tests/fleet/test_fleet.py::test_a_second_council_in_a_home_is_refused_and_harms_nothing
item a home without locks: ::test_a_home_without_locks_is_refused_and_nothing_is_started,
    tests/faults/test_catalogue_state.py::test_row_30_a_home_on_a_network_file_system_is_refused
item a changed host name:
    tests/faults/test_catalogue_identity.py::test_row_35_a_changed_host_name_changes_nothing_about_who_is_who
item an unreadable /proc: ::test_a_proc_that_tells_too_little_is_refused_in_one_sentence,
    ::test_a_fleet_runs_where_proc_hides_what_guards_it,
    ::test_a_look_that_fails_while_somebody_is_reaped_proves_nothing_and_is_had_again
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import sqlite3
import subprocess
import time
from contextlib import closing

import pytest
from supervisor.stage import Stage, alive, child, plan_of, play, runs_of, until
from supervisor.wire import Bare

from council_tui.board import home as homes
from council_tui.board.board import load_tables, replay
from council_tui.board.home import Home, OwnerLock
from council_tui.domain.errors import HomeOwned, HomeUnusable
from council_tui.domain.events import EventKind as K
from council_tui.domain.lifecycle import Signal
from council_tui.runner import guard
from council_tui.supervisor import sweep
from council_tui.supervisor.supervisor import Supervisor
from faults.catalogue import mistakes
from faults.killed import Owner
from faults.namespaces import PIDS, inside


def test_every_item_is_shown_by_a_test():
    assert mistakes(__file__, range(0)) == []


async def test_a_database_that_a_backup_tool_has_locked_is_waited_for(home, tmp_path):
    script = f"until [ -e {tmp_path}/go ]; do sleep 0.02; done; echo fine"
    async with Stage(home, plan_of(child("works", script))) as stage:
        await stage.wait(K.BODY_STARTED, "works")
        tools = [sqlite3.connect(path, isolation_level=None) for path in (stage.home.board, stage.home.ledger)]
        for tool in tools:
            tool.execute("BEGIN EXCLUSIVE")
        (tmp_path / "go").touch()
        await stage.wait(K.RETURNED, "works")
        # It was told so, and tries again.
        await until(lambda: stage.sup.board._writer._waited > 0)
        assert not stage.running.done()
        for tool in tools:
            tool.execute("ROLLBACK")
            with closing(sqlite3.connect(":memory:")) as copy:
                tool.backup(copy)
                assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            tool.close()
        end = await stage.end()
    assert (end.exit, end.cards, end.ledger["verdict"]) == (0, {"done": 1}, "VALID")
    with closing(sqlite3.connect(stage.home.board)) as connection:
        assert load_tables(connection, archived=True) == replay(connection)


async def test_a_database_that_stays_locked_is_told_in_one_sentence(home, monkeypatch):
    monkeypatch.setattr("council_tui.board.database.PATIENCE_SECONDS", 0)
    async with Stage(home, plan_of(child("long", "sleep 600"))) as stage:
        body = (await stage.wait(K.BODY_STARTED, "long")).data["pid"]
        with closing(sqlite3.connect(stage.home.board, isolation_level=None)) as tool:
            tool.execute("BEGIN EXCLUSIVE")
            stage.sup.log(stage.seat("long"), K.STATUS, {"text": "at work"})
            with pytest.raises(HomeUnusable, match=r"board\.db could not be written .* locked; end what locks it"):
                await stage.running
            await stage.fleet.drain("the supervisor failed")
        process = guard.read_process(body)
        assert process is None or process.state in "ZX"


async def test_a_wall_clock_that_jumps_both_ways_costs_nobody_anything(home, monkeypatch):
    wall = time.time
    jumps = iter((86400.0, -86400.0))
    plan = plan_of(child("first", "echo one"), child("second", "echo two", after=["first"]), child("long", "sleep 0.5"))
    async with Stage(home, plan) as stage:

        def jump(event):
            if event.kind in (K.BODY_STARTED, K.CARD_DONE) and (off := next(jumps, None)) is not None:
                monkeypatch.setattr(time, "time", lambda: wall() + off)
                at = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(wall() + off))
                monkeypatch.setattr(stage.sup.board, "now", lambda: at)

        stage.sup.board.listen(jump)
        end = await stage.end()
    assert next(jumps, None) is None
    assert (end.exit, end.cards, end.ledger["verdict"]) == (0, {"done": 3}, "VALID")
    assert stage.find(K.ORPHANED) is stage.find(K.EXPIRED) is None
    days = {event.at[:10] for event in stage.events}
    assert len(days) == 3, "yesterday, today and tomorrow"


@pytest.mark.slow
async def test_a_machine_that_slept_blames_nobody(home):
    async with Owner(home) as owner:
        await owner.until_all_work()
        everyone = [p.pid for p in guard.descendants(owner.process.pid)]
        for pid in (owner.process.pid, *everyone):
            os.kill(pid, signal.SIGSTOP)
        # Five intervals of the steady child, in which nothing at all happens.
        await asyncio.sleep(2.5)
        for pid in (*reversed(everyone), owner.process.pid):
            os.kill(pid, signal.SIGCONT)
        ticks = sum(one[0] == "tick" for one in owner.told)
        await owner.wait("tick", count=ticks + 6)
        assert [one for one in owner.told if one[0] in ("orphaned", "expired", "reap_started")] == []
        await owner.kill()
        await until(lambda: alive(runs_of(home)) == [])


def test_a_home_with_a_path_that_no_socket_has_room_for_is_used_like_any_other(home):
    far = home / ("deep" * 40)
    home.mkdir(parents=True)
    played = play(far, plan_of(child("one", "echo one")))
    assert (played.ending.exit, played.ending.ledger["verdict"]) == (0, "VALID")
    assert not far.joinpath("run").exists()
    assert not played.home.runtime.exists(), "nothing is left where its sockets were"


def test_a_lock_that_a_dead_supervisor_left_is_nobodys_whoever_has_its_pid(home):
    place = Home(home)
    place.prepare()
    stranger = subprocess.Popen(["sleep", "600"])
    try:
        (home / "supervisor.lock").write_text(f"{stranger.pid}\n")
        assert OwnerLock(place).held() is None
        assert play(home, plan_of(child("one", "echo one"))).ending.exit == 0
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


async def test_of_supervisors_that_start_at_once_one_owns_the_home(home):
    supervisors = [Supervisor(Home(home)) for _ in range(5)]
    try:
        answers = await asyncio.gather(*(one.open() for one in supervisors), return_exceptions=True)
        assert answers.count(None) == 1
        assert [str(answer) for answer in answers if answer is not None] == [
            f"process {os.getpid()} already runs a council in {home}"
        ] * 4
        assert {type(answer) for answer in answers} == {type(None), HomeOwned}
    finally:
        for one, answer in zip(supervisors, answers, strict=True):
            if answer is None:
                await one.close()
    async with Stage(home, plan_of(child("one", "echo one"))) as stage:
        assert (await stage.end()).exit == 0


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
async def test_a_home_without_locks_is_refused_and_nothing_is_started(home, monkeypatch, number):
    def flock(fd, how):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(homes.fcntl, "flock", flock)
    supervisor = Supervisor(Home(home))
    with pytest.raises(
        HomeUnusable, match=f"cannot lock {home}: {os.strerror(number)}; choose another home with --home"
    ):
        await supervisor.open()
    assert supervisor.host.pid is None
    assert not (home / "board.db").exists()


# a machine that shows too little of its processes

REFUSED = """
import json, os, sys
from pathlib import Path
from council_tui.domain.errors import CouncilError
from supervisor.stage import child, plan_of, play

os.environ["COUNCIL_TIER"] = "portable"
try:
    play(Path(sys.argv[1]), plan_of(child("one", "echo one")))
except CouncilError as error:
    print(json.dumps(str(error)))
"""

HIDDEN = """
import asyncio, json, os, sys
from pathlib import Path
from supervisor.stage import Stage, alive, child, plan_of, runs_of
from council_tui.domain.events import EventKind as K
from council_tui.runner import guard

async def main(home):
    deaf = "trap '' TERM; setsid sleep 600 & while :; do sleep 0.1; done"
    plan = plan_of(
        child("deaf", deaf, policy={"run_ttl_seconds": 0.5, "grace_seconds": 0.2}),
        child("leaves", "setsid sleep 600 &"),
    )
    async with Stage(home, plan) as stage:
        await stage.wait(K.BODY_STARTED, "deaf")
        seen = guard.read_process(stage.seat("deaf").pid)
        end = await stage.end()
    print(json.dumps([seen, end.cards, sum(map(len, end.audit.values())), end.ledger["verdict"], alive(runs_of(home))]))

os.environ["COUNCIL_TIER"] = "portable"
asyncio.run(main(Path(sys.argv[1])))
"""


@pytest.mark.parametrize(
    ("mount", "file"),
    [
        ("mount -t tmpfs none /proc", "self/stat"),
        ("mount -t proc -o subset=pid proc /proc", "sys/kernel/random/boot_id"),
    ],
)
def test_a_proc_that_tells_too_little_is_refused_in_one_sentence(home, mount, file):
    told = inside(("--pid", "--fork", "--mount"), REFUSED, str(home), first=mount)
    assert told.startswith(f"cannot read /proc/{file}: No such file or directory; ")
    assert "mount it whole" in told


def test_a_fleet_runs_where_proc_hides_what_guards_it(home):
    # As for an ordinary user: without capabilities, a process that keeps its memory to itself is not to be seen.
    mount = "mount -t proc -o hidepid=2,gid=4242 proc /proc"
    bare = ("setpriv", "--bounding-set", "-all")
    seen, cards, left, verdict, living = inside(PIDS, HIDDEN, str(home), first=mount, wrapper=bare)
    assert seen is None, "its runner cannot be looked at"
    assert (cards, left, verdict, living) == ({"failed": 1, "done": 1}, 0, "VALID", [])


async def test_a_look_that_fails_while_somebody_is_reaped_proves_nothing_and_is_had_again(home, monkeypatch):
    monkeypatch.setattr(sweep, "AGAIN_SECONDS", 0.0)
    look, failures = guard.all_marked, [errno.EACCES, errno.ENFILE, errno.EMFILE]

    def all_marked():
        if failures:
            raise OSError(failures[-1], os.strerror(failures.pop()))
        return look()

    async with Bare(home) as bare:
        office = await (await bare.office()).begin()
        monkeypatch.setattr(guard, "all_marked", all_marked)
        await bare.sup.signal(office.seat, Signal.CANCELLED, {"reason": "reaped by the operator"})
        async with asyncio.timeout(20):
            await office.seat.ended.wait()
        assert failures == []
        card = bare.sup.board.tables.cards[office.seat.card]
        assert (card.state, card.fail, card.claim) == ("failed", "cancelled", None)


FILES = ("run/nursery", "run/cgroups", "run/slices.noted", "plan.json")
NEEDED = ("supervisor.lock", "logs/runners.log", "keys/hermes.key", "keys/head.json", "board.db", "ledger.db")


@pytest.mark.parametrize("name", [*FILES, *NEEDED])
async def test_a_fifo_in_the_place_of_a_homes_file_keeps_no_start_waiting(home, name):
    place = Home(home)
    place.prepare()
    os.mkfifo(home / name)
    sup = Supervisor(place)
    if name in NEEDED:
        with pytest.raises(HomeUnusable, match=name.rpartition("/")[2]):
            await sup.open()
        (home / name).unlink()
        return
    await sup.open()
    await sup.close()
