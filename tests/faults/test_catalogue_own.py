"""What was found here besides the catalogue's rows: floods of descriptors, full queues, forged acknowledgements.

own BARRIER: tests/supervisor/test_bad_messages.py::test_descriptors_that_come_with_a_datagram_are_closed,
    ::test_own_descriptors_that_flood_a_body_or_the_council_are_closed
own back-pressure: ::test_own_a_full_queue_of_beats_stops_no_runner_and_the_next_beat_gets_through,
    tests/runner/test_beats.py::test_a_flood_is_read_no_faster_than_anyone_needs
own json-status-fd: ::test_own_what_the_wrapper_tells_in_pieces_is_put_together
own vsock: tests/containers/test_seccomp.py::test_af_vsock_and_io_uring_are_not_there_for_a_real_program,
    tests/containers/test_seccomp.py::test_the_families_are_the_four_and_af_vsock_is_none_of_them
own inodes: tests/supervisor/test_strong.py::test_more_files_than_the_slice_may_have_end_the_run
own cgroup: tests/containers/test_sandbox.py::test_cgroups_can_be_looked_at_and_not_be_left
own SCM_RIGHTS: ::test_own_descriptors_that_flood_a_body_or_the_council_are_closed
own hopper: tests/faults/test_hoppers.py::test_chains_that_hop_from_process_to_process_do_not_outlive_their_run
own nofile: ::test_own_a_council_out_of_descriptors_fails_a_card_and_goes_on,
    tests/faults/test_exhaustion.py::test_item_without_a_descriptor_left_an_agent_is_still_ended_and_proved_dead
own forged acknowledgement: ::test_own_an_acknowledgement_that_another_agent_forged_moves_nothing,
    tests/supervisor/test_handshake.py::test_an_acknowledgement_of_another_run_is_none
own two claims: tests/supervisor/test_handshake.py::test_a_card_is_claimed_once_and_only_by_the_run_it_belongs_to,
    tests/board/test_board.py::test_a_second_claim_of_a_card_is_refused
"""

from __future__ import annotations

import array
import asyncio
import os
import socket
from contextlib import suppress

import pytest
from supervisor.stage import Stage, child, plan_of, until
from supervisor.wire import Bare

from council_tui.domain.events import EventKind as K
from council_tui.domain.lifecycle import Phase
from council_tui.runner.beats import BeatSender, BodyBeats
from council_tui.runner.body import Body
from council_tui.runner.log import OutputLog
from faults.catalogue import mistakes
from faults.shortage import no_descriptors

MANY = 200
"""Descriptors in one message; the kernel allows 253 (SCM_MAX_FD)."""


def test_every_finding_is_shown_by_a_test_or_has_a_reason():
    assert mistakes(__file__, range(0)) == []


@pytest.fixture
async def bare(home):
    async with Bare(home) as bare:
        yield bare


def open_files():
    return len(os.listdir("/proc/self/fd"))


def flood(path, kind, count, text=b"BARRIER=1\n"):
    """Messages that carry descriptors, and a read end that tells when the last copy of them is closed."""
    read, write = os.pipe2(os.O_NONBLOCK)
    with socket.socket(socket.AF_UNIX, kind) as link:
        link.connect(str(path))
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [write] * MANY))]
        for _ in range(count):
            with suppress(BrokenPipeError):
                link.sendmsg([text], rights)
    os.close(write)
    return read


async def closed_again(read, before):
    async def ended():
        return await asyncio.to_thread(os.read, read, 1)

    os.set_blocking(read, True)
    async with asyncio.timeout(20):
        assert await ended() == b"", "whoever waits for its barrier goes on"
    os.close(read)
    await until(lambda: open_files() <= before)


@pytest.mark.parametrize("where", ["beats", "stream", "body"])
async def test_own_descriptors_that_flood_a_body_or_the_council_are_closed(bare, home, where):
    body = BodyBeats(str(home.parent / "body"), lambda fields: None)
    # What a first message makes lazily is no leak.
    await closed_again(await asyncio.to_thread(flood, home.parent / "body", socket.SOCK_DGRAM, 1), open_files())
    before = open_files()
    path, kind = {
        "beats": (bare.sup.home.beats, socket.SOCK_DGRAM),
        "stream": (bare.sup.home.socket, socket.SOCK_STREAM),
        "body": (home.parent / "body", socket.SOCK_DGRAM),
    }[where]
    read = await asyncio.to_thread(flood, path, kind, 30)
    await closed_again(read, before)
    body.close()


async def test_own_a_full_queue_of_beats_stops_no_runner_and_the_next_beat_gets_through(home):
    home.parent.mkdir(exist_ok=True)
    path = str(home.parent / "beats")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as council:
        council.bind(path)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as flooder:
            with suppress(BlockingIOError):
                while True:
                    flooder.sendto(b"x", path)
            sender = BeatSender(path, "r_1", "token")
            sender.beat()
            heard = []

            def look():
                with suppress(BlockingIOError):
                    while True:
                        heard.append(council.recv(4096))
                return heard[-1:] != [b"x"]

            await until(look)
            sender._socket.close()
    assert b"X_COUNCIL_RUN=r_1" in heard[-1]
    assert set(heard[:-1]) == {b"x"}


async def test_own_what_the_wrapper_tells_in_pieces_is_put_together(tmp_path):
    body = Body(OutputLog(tmp_path))
    read, write = os.pipe2(os.O_NONBLOCK)
    body._status_fd = read
    for byte in b'{ "child-pid": 4711, "ipc-namespace": 1 }\n{ "exit-code": 0 }\n':
        os.write(write, bytes([byte]))
        body._read_status()
    assert body.inside == 4711
    os.close(write)
    body._read_status()
    assert body._status_fd is None


async def test_own_an_acknowledgement_that_another_agent_forged_moves_nothing(bare):
    office = await bare.office()
    await office.connect()
    await office.hello()
    await office.claim()
    await office.call("verified")
    await office.call("accept", entry=office.acceptance())
    # Word for word the right one, written by somebody else of the same user.
    office.acknowledged()
    await bare.sup.tick()
    card = bare.sup.board.tables.cards[office.seat.card]
    assert (office.seat.state.phase, card.state) == (Phase.ACCEPTED, "claimed")
    assert bare.find(K.ACKNOWLEDGED) is None
    await office.call("acknowledge")
    assert card.state == "running"


async def test_own_a_council_out_of_descriptors_fails_a_card_and_goes_on(home):
    hasty = {"parent_heartbeat_interval_seconds": 0.4, "child_timeout_seconds": 0.8}
    async with Stage(home, plan_of(child("lives", "sleep 600"))) as stage:
        await stage.wait(K.BODY_STARTED, "lives")
        # As for a birth that had begun when they ran out: a later one would wait.
        stage.fleet.holds._gates.pop("descriptors")
        with no_descriptors():
            await stage.fleet.submit(plan_of(child("starved", "echo fine", policy=hasty)).orders[0])
            failed = await stage.wait(K.CARD_FAILED, "starved")
            assert not stage.running.done()
        assert failed.data["reason"] == "no acknowledgement within 0.8 s (it got as far as starting)"
        await stage.fleet.submit(plan_of(child("next", "echo fine")).orders[0])
        await stage.wait(K.CARD_DONE, "next")
        assert stage.seat("lives").state.phase is Phase.RUNNING
        await stage.fleet.drain("enough")
        end = await stage.end()
    assert (end.cards, end.ledger["verdict"], end.audit["descendants"]) == ({"failed": 2, "done": 1}, "VALID", [])
