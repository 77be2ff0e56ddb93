"""What a killed supervisor left on the board and on the machine is put right, and strangers are left alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess

import pytest
from board.facts import K, created, happened, opened, started

from council_tui.board.home import Home
from council_tui.domain.card import CardState
from council_tui.runner import guard
from council_tui.supervisor.recovery import NURSERY, former_nurseries, note_nursery, recover
from supervisor.stage import until
from supervisor.test_slices import nested


@pytest.fixture
async def board(home):
    place = Home(home)
    place.prepare()
    board = await opened(place.board)
    yield board
    await board.close()


@pytest.fixture
def sleepers():
    found = []

    def start(**env):
        process = subprocess.Popen(["sleep", "600"], env={"PATH": os.environ["PATH"], **env})
        found.append(process)
        return process

    yield start
    for process in found:
        process.kill()
        process.wait()


revoked = []


async def revoke(agent, reason):
    revoked.append(agent)
    return len(revoked)


def begun(card, run, pid=4242, start_time=1, boot=None, where=None):
    draft = started(card, run)
    facts = {"pid": pid, "start_time": start_time, "boot_id": boot or guard.boot_id()}
    draft.data.update(facts, slice=where or f"/tmp/none-{run}")
    return [created(card), happened(K.CARD_READY, card), draft]


def states(board):
    return {card.id: (str(card.state), card.fail) for card in board.tables.cards.values()}


async def test_every_open_run_is_an_orphan_and_every_card_that_waited_is_told(board, home):
    revoked.clear()
    board.append(
        *begun("working", "r_1"),
        happened(K.CLAIMED, "working", "r_1"),
        happened(K.ACKNOWLEDGED, "working", "r_1"),
        *begun("born", "r_2"),
        created("backlog"),
        created("ready"),
        happened(K.CARD_READY, "ready"),
        *begun("again", "r_3"),
        happened(K.CARD_FAILED, "again", "r_3"),
        happened(K.CARD_RETRY, "again"),
        *begun("once-more", "r_4"),
        happened(K.CARD_FAILED, "once-more", "r_4"),
        happened(K.CARD_RETRY, "once-more"),
        happened(K.CARD_READY, "once-more"),
        created("asks"),
        happened(K.CARD_BLOCKED, "asks"),
        created("over"),
        happened(K.CARD_FAILED, "over", fail="error"),
    )
    lines = await recover(board, Home(home), revoke)
    assert states(board) == {
        "working": ("failed", "orphaned"),
        "born": ("failed", "orphaned"),
        "backlog": ("failed", "cancelled"),
        "ready": ("failed", "cancelled"),
        "again": ("failed", "cancelled"),
        "once-more": ("failed", "cancelled"),
        "asks": ("blocked", None),
        "over": ("failed", "error"),
    }
    assert len(lines) == 2
    assert sorted(revoked) == ["child:born.r_2", "child:working.r_1"]
    assert not [card for card in board.tables.cards.values() if card.claim or card.state is CardState.READY]
    assert await recover(board, Home(home), revoke) == [], "recovering twice is the same as recovering once"


async def test_processes_of_the_dead_fleet_are_ended_and_those_of_others_are_not(board, home, sleepers):
    mine, marked, stranger, reused = sleepers(), sleepers(COUNCIL_RUN="r_1"), sleepers(COUNCIL_RUN="r_9"), sleepers()
    found = guard.read_process(mine.pid)
    assert found is not None
    await until(lambda: guard.marker_of(marked.pid) == "r_1" and guard.marker_of(stranger.pid) == "r_9")
    board.append(
        *begun("one", "r_1", mine.pid, found.start_time),
        # The pid was given to another program since.
        *begun("two", "r_2", reused.pid, 1),
        # The same pid and start time, before the machine was started anew.
        *begun("three", "r_3", stranger.pid, guard.read_process(stranger.pid).start_time, boot="another"),
    )
    await recover(board, Home(home), revoke)
    assert (mine.wait(), marked.wait()) == (-15, -15)
    assert stranger.poll() is reused.poll() is None
    assert {state for state, _ in states(board).values()} == {"failed"}


async def test_slices_and_sockets_that_were_left_are_removed(board, home):
    place = Home(home)
    (place.slices / "r_1" / "data").mkdir(parents=True)
    (place.bodies / "r_1").touch()
    await recover(board, place, revoke)
    assert list(place.slices.iterdir()) == list(place.bodies.iterdir()) == []


async def test_a_slice_nested_without_end_and_a_folder_for_a_socket_stop_no_start(board, home):
    place = Home(home)
    deep = place.slices / "r_1" / "data"
    deep.mkdir(parents=True)
    nested(deep, "d", 1500)
    (place.bodies / "r_1" / "x").mkdir(parents=True)
    board.append(*begun("one", "r_1", where=str(place.slices / "r_1")))
    await recover(board, place, revoke)
    assert list(place.slices.iterdir()) == list(place.bodies.iterdir()) == []


async def test_a_nursery_that_a_dead_supervisor_left_is_ended_and_nobody_else(board, home, sleepers, monkeypatch):
    monkeypatch.setattr("council_tui.supervisor.recovery.GRACE_SECONDS", 0.2)
    place = Home(home)
    left, reused = sleepers(), sleepers()
    os.kill(left.pid, signal.SIGSTOP)
    note_nursery(place, left.pid)
    with (place.runtime / NURSERY).open("a") as file:
        file.write("nonsense\n[1]\n")
        # The pid was given to another program since.
        file.write(json.dumps({"pid": reused.pid, "start_time": 1, "boot_id": guard.boot_id()}) + "\n")
    former = former_nurseries(place)
    assert [process.pid for process in former] == [left.pid]
    await recover(board, place, revoke, former)
    assert left.wait() == -9
    assert reused.poll() is None
    note_nursery(place, reused.pid, alone=True)
    assert [process.pid for process in former_nurseries(place)] == [reused.pid]
