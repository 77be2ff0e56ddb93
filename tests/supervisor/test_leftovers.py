"""What a supervisor that is gone left on the machine is ended and removed, and what is not its own is left alone."""

from __future__ import annotations

import json
import os
import signal

import pytest

from council_tui.board.home import Home
from council_tui.domain.errors import Refused
from council_tui.runner import guard
from council_tui.supervisor import leftovers, slices
from council_tui.supervisor.leftovers import (
    NURSERY,
    SLICES,
    clear_directories,
    end_nurseries,
    end_strays,
    former_nurseries,
    note_nursery,
    note_slice,
)
from supervisor.stage import until
from supervisor.test_slices import nested


@pytest.fixture
def place(home):
    place = Home(home)
    place.prepare()
    return place


def born(process):
    return guard.read_process(process.pid).start_time


async def test_processes_of_a_run_are_ended_by_marker_and_by_pid_and_those_of_others_are_not(sleepers):
    mine, marked, stranger, reused = sleepers(), sleepers(COUNCIL_RUN="r_1"), sleepers(COUNCIL_RUN="r_9"), sleepers()
    await until(lambda: guard.marker_of(marked.pid) == "r_1" and guard.marker_of(stranger.pid) == "r_9")
    # The pid of the second was given to another program since.
    await end_strays({"r_1": (mine.pid, born(mine)), "r_2": (reused.pid, 1)})
    assert (mine.wait(), marked.wait()) == (-15, -15)
    assert stranger.poll() is reused.poll() is None


async def test_a_stray_that_ignores_sigterm_and_one_that_is_stopped_are_ended_too(sleepers, monkeypatch):
    monkeypatch.setattr(leftovers, "GRACE_SECONDS", 0.2)
    deaf = sleepers("sh", "-c", "trap '' TERM; echo; sleep 600; sleep 600", COUNCIL_RUN="r_1")
    stopped = sleepers(COUNCIL_RUN="r_1")
    os.kill(stopped.pid, signal.SIGSTOP)
    await until(lambda: guard.descendants(deaf.pid))
    await end_strays({"r_1": (deaf.pid, born(deaf))})
    assert (deaf.wait(), stopped.wait()) == (-9, -15)


async def test_a_nursery_that_nobody_needs_is_ended_and_nobody_else(place, sleepers, monkeypatch):
    monkeypatch.setattr(leftovers, "GRACE_SECONDS", 0.2)
    left, reused, elsewhere = sleepers(), sleepers(), sleepers()
    os.kill(left.pid, signal.SIGSTOP)
    note_nursery(place, left.pid)
    with (place.runtime / NURSERY).open("a") as file:
        file.write("nonsense\n[1]\n{}\n")
        # The pid was given to another program since; and the same pid and start time of another boot.
        file.write(json.dumps({"pid": reused.pid, "start_time": 1, "boot_id": guard.boot_id()}) + "\n")
        file.write(json.dumps({"pid": elsewhere.pid, "start_time": born(elsewhere), "boot_id": "another"}) + "\n")
    former = former_nurseries(place)
    assert [process.pid for process in former] == [left.pid]
    await end_nurseries(former)
    assert left.wait() == -9
    assert reused.poll() is elsewhere.poll() is None
    note_nursery(place, reused.pid, alone=True)
    assert [process.pid for process in former_nurseries(place)] == [reused.pid]


def test_whatever_stands_in_place_of_a_note_is_replaced_and_not_followed(place, tmp_path):
    (tmp_path / "kept").write_text("kept")
    (place.runtime / NURSERY).symlink_to(tmp_path / "kept")
    (place.runtime / SLICES).mkdir()
    note_nursery(place, os.getpid())
    note_slice(place, "r_1", "/tmp/none", made=True)
    assert (tmp_path / "kept").read_text() == "kept"
    assert [process.pid for process in former_nurseries(place)] == [os.getpid()]


def test_slices_and_sockets_that_nobody_holds_are_removed_however_they_were_left(place):
    used = place.slices / "r_1"
    for folder in (used, place.slices / "r_2" / "data", place.bodies / "r_3" / "x"):
        folder.mkdir(parents=True)
    nested(place.slices / "r_2" / "data", "d", 1500)
    (place.bodies / "r_2").touch()
    clear_directories(place, frozenset({str(used)}))
    assert [*place.slices.iterdir(), *place.bodies.iterdir()] == [used]


def test_a_slice_in_a_place_of_the_plans_own_is_removed_if_it_was_made_here_and_nobody_holds_it(place, tmp_path):
    for run, name in (("r_1", "left"), ("r_2", "held")):
        note_slice(place, run, str(tmp_path / name), made=False)
        note_slice(place, run, slices.make(str(tmp_path / name), []), made=True)
        (tmp_path / name / "data" / "file").write_text("x")
    held = frozenset({str(tmp_path / "held")})
    clear_directories(place, held)
    assert [path.name for path in tmp_path.iterdir()] == ["held"]
    clear_directories(place, frozenset())
    assert list(tmp_path.iterdir()) == [], "it is still known after the second start"
    assert not (place.runtime / SLICES).exists()


def test_a_slice_whose_making_was_interrupted_goes_and_a_directory_that_was_there_before_stays(place, tmp_path):
    (tmp_path / "half" / "ctl").mkdir(parents=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis").write_text("x")
    for run, name in (("r_1", "half"), ("r_2", "mine")):
        note_slice(place, run, str(tmp_path / name), made=False)
    with pytest.raises(Refused, match="exists already"):
        slices.make(str(tmp_path / "mine"), [])
    with (place.runtime / SLICES).open("a") as file:
        file.write('nonsense\n[1]\n{"run": "r_3", "path": 7}\n')
    clear_directories(place, frozenset())
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert (tmp_path / "mine" / "thesis").read_text() == "x"
