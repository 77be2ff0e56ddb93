"""The failure catalogue, rows 20 to 25, and the floods: what agents print, and what is sent instead of messages.

row 20: tests/runner/test_bodies.py::test_ten_megabytes_on_stderr_block_nobody_and_are_digested_whole
row 21: tests/runner/test_bodies.py::test_a_report_is_found_after_any_line_and_without_a_newline,
    tests/supervisor/test_bad_messages.py::test_a_line_of_five_megabytes_is_refused_whole_and_the_next_one_heard
row 22: tests/runner/test_bodies.py::test_bytes_that_are_no_text_are_kept_whole_and_shown_safely,
    tests/runner/test_log.py::test_the_last_line_does_not_depend_on_how_the_output_was_cut,
    tests/supervisor/test_bad_messages.py::test_nonsense_from_a_runner_is_counted_on_its_seat_and_its_next_gate_opens
row 23: ::test_row_23_a_flood_fills_neither_the_disk_nor_its_slice_and_holds_nobody_up,
    ::test_row_23_ten_seconds_of_a_flood_at_full_speed_hold_nobody_up
row 24: ::test_row_24_an_agent_that_prints_its_own_log_fills_nothing,
    tests/supervisor/test_strong.py::test_a_body_sees_neither_the_councils_home_nor_processes_outside
row 25: tests/runner/test_log.py::test_two_files_are_kept_and_each_is_bounded,
    tests/runner/test_bodies.py::test_a_log_is_rotated_and_bounded
item log flood: ::test_row_23_a_flood_fills_neither_the_disk_nor_its_slice_and_holds_nobody_up,
    ::test_row_23_ten_seconds_of_a_flood_at_full_speed_hold_nobody_up
item endless line: ::test_item_a_line_of_a_hundred_megabytes_takes_no_memory_and_the_report_after_it_counts
item binary: ::test_item_every_byte_there_is_comes_through_whole,
    tests/runner/test_bodies.py::test_bytes_that_are_no_text_are_kept_whole_and_shown_safely,
    tests/runner/test_bodies.py::test_escape_sequences_are_kept_on_disk_and_never_acted_on
item malformed messages: ::test_item_ten_thousand_malformed_messages_a_second_hold_nobody_up,
    tests/supervisor/test_bad_messages.py::test_a_flood_of_nonsense_is_journalled_at_its_powers_of_ten,
    tests/supervisor/test_bad_messages.py::test_a_flood_is_answered_no_faster_than_it_is_read
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import time

import pytest
from supervisor.stage import REPORT_SCHEMA, Stage, child, plan_of, play, python, until
from supervisor.wire import Bare

from council_tui.domain.events import EventKind as K
from council_tui.runner.log import ROTATE_AT
from council_tui.supervisor.seat import MISSED
from faults.catalogue import mistakes

MB = 1024 * 1024
CLEAN = {"descendants": [], "open_claims": [], "unsigned_reports": [], "slices": []}
ASKED = {"output_schema": REPORT_SCHEMA}
INTERVAL = 0.5

LONG_LINE = """
import json, os
def runner():
    lines = open("/proc/%d/status" % os.getppid()).read().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))
before = runner()
for _ in range(100):
    os.write(1, b"x" * 1048576)
print()
print(json.dumps({"status": "DONE", "findings": [], "evidence": ["seen"], "before": before, "after": runner()}))
"""
ANY_BYTE = "import os; [os.write(1 + n % 2, bytes(range(256)) * 37) for n in range(400)]"
OWN_LOG = (
    'log="$COUNCIL_SLICE/../../../../logs/$COUNCIL_RUN/output.log"; echo seed; for i in $(seq 40); do cat "$log"; done'
)


def test_every_row_is_shown_by_a_test_that_exists():
    assert mistakes(__file__, range(20, 26)) == []


async def flooded(home, seconds):
    """A fleet with a flood of output, one into a slice, and somebody who only beats; bytes of output."""
    flood = f'yes & sleep {seconds}; kill $!; wait; printf "\\nthe end\\n"'
    into_slice = 'while head -c 65536 /dev/zero; do sleep 0.01; done >> "$COUNCIL_SLICE/flood"'
    plan = plan_of(
        child("flood", flood),
        child("fills", into_slice, context={"memory_slice": {"memory_limit_mb": 1}}),
        child("calm", f"sleep {seconds}; echo fine", policy={"parent_heartbeat_interval_seconds": INTERVAL}),
    )
    async with Stage(home, plan) as stage:
        await stage.wait(K.BODY_STARTED, ":calm.")
        calm = stage.seat("calm")
        end = await stage.end()
        flood = stage.card("flood")
        folder = stage.home.logs / flood.run
        sizes = {file.name: file.stat().st_size for file in folder.iterdir()}
    assert set(sizes) == {"output.log", "output.log.1"}
    assert max(sizes.values()) <= ROTATE_AT
    assert (folder / "output.log").read_bytes().endswith(b"\nthe end\n")
    assert stage.find(K.SLICE_BREACHED, ":fills.") is not None
    assert {name: (str(stage.card(name).state), stage.card(name).fail) for name in ("flood", "fills", "calm")} == {
        "flood": ("done", None),
        "fills": ("failed", "protocol_violation"),
        "calm": ("done", None),
    }
    assert calm.beat_count >= seconds / INTERVAL - 1
    assert MISSED not in calm.beats
    assert [event.agent for event in stage.events if event.kind is K.ORPHANED] == []
    assert (end.audit, end.ledger["verdict"]) == (CLEAN, "VALID")
    printed = re.search(r"\((\d+) bytes\)", " ".join(flood.result["evidence"]))
    return int(printed[1])


async def test_row_23_a_flood_fills_neither_the_disk_nor_its_slice_and_holds_nobody_up(home):
    assert await flooded(home, 1.5) > 2 * ROTATE_AT, "more than the log keeps"


@pytest.mark.slow
async def test_row_23_ten_seconds_of_a_flood_at_full_speed_hold_nobody_up(home):
    # Hundreds of megabytes a second where nothing else runs; the bound is for a machine that is busy.
    assert await flooded(home, 10) > 10 * 50e6


def test_row_24_an_agent_that_prints_its_own_log_fills_nothing(home):
    played = play(home, plan_of(child("echoes", OWN_LOG)))
    assert played.cards["echoes"].state == "done"
    folder = played.home.logs / played.cards["echoes"].run
    assert max(file.stat().st_size for file in folder.iterdir()) <= ROTATE_AT
    assert len(list(folder.iterdir())) <= 2


def test_item_a_line_of_a_hundred_megabytes_takes_no_memory_and_the_report_after_it_counts(home):
    played = play(home, plan_of(child("long", python(LONG_LINE), envelope=ASKED)))
    long = played.cards["long"]
    assert long.state == "done"
    assert long.result["after"] - long.result["before"] < 32, "megabytes"
    assert played.output("long").endswith(b"}\n")
    assert (played.ending.audit, played.ending.ledger["verdict"]) == (CLEAN, "VALID")


def test_item_every_byte_there_is_comes_through_whole(home):
    played = play(home, plan_of(child("binary", python(ANY_BYTE))))
    sent = bytes(range(256)) * 37 * 400
    assert sorted(played.output("binary")) == sorted(sent)
    digest = hashlib.sha256(played.output("binary")).hexdigest()
    assert f"output sha256 {digest} ({len(sent)} bytes)" in played.cards["binary"].result["evidence"]
    assert not re.search("[\x00-\x1f\x7f]", played.cards["binary"].result["evidence"][-1])


def _pour(link, count):
    """So many lines that are no messages, a hundred every hundredth of a second."""
    link.setblocking(True)
    began = time.monotonic()
    with link:
        for number in range(count // 100):
            link.sendall(b'{"jsonrpc": "2.0", "id": 1, "method": 5}\n' * 50 + b"\xff\xfe nonsense\n" * 50)
            time.sleep(max(0.0, began + (number + 1) * 0.01 - time.monotonic()))


async def test_item_ten_thousand_malformed_messages_a_second_hold_nobody_up(home):
    async with Bare(home) as bare:
        floods = await (await bare.office()).begin()
        calm = await (await bare.office("zeroclaw")).begin()
        link = floods.peer.socket_info("socket").dup()
        pouring = asyncio.create_task(asyncio.to_thread(_pour, link, 10_000))
        waited = []
        while not pouring.done():
            asked = time.monotonic()
            await calm.call("status", text="still heard")
            waited.append(time.monotonic() - asked)
            await asyncio.sleep(0.01)
        await until(lambda: floods.seat.refused == 10_000)
        # A millisecond where nothing else runs; the bound is for a machine that is busy.
        assert max(waited) < 0.5
        await floods.call("status", text="heard all the same")
        told = [event.data["count"] for event in bare.events if event.kind is K.MESSAGE_REFUSED]
        assert told == [1, 10, 100, 1000, 10_000]
        assert (bare.sup.hearing.strangers, calm.seat.refused, bare.sup.failed.done()) == (0, 0, False)
