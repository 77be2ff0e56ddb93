"""What the door shows of a living council, and what it does."""

import hashlib
import os

import pytest

from council_tui.board.home import Home
from council_tui.control import reading
from council_tui.control.attach import Attached
from council_tui.control.council import Council
from council_tui.control.views import CouncilGone, RoomView, SpawnDraft
from council_tui.domain.errors import CouncilError, HomeOwned, Refused
from council_tui.runner import guard
from tests.control.conftest import until


def agent(room: RoomView, label: str):
    return next(a for a in room.agents if a.label == label)


def card(room: RoomView, label: str):
    return next(c for c in room.cards if c.label == label)


def held(room: RoomView) -> bool:
    return any(a.label == "silent" and a.health == "held" for a in room.agents)


async def test_the_room_shows_tree_board_and_what_waits(council: Council):
    room = await until(council, held)
    assert [a.label for a in room.agents[:4]] == ["Hermes", "OpenFang", "OpenClaw", "ZeroClaw"]
    assert agent(room, "idle").parent == agent(room, "ZeroClaw").name
    assert card(room, "risky").block == "hold"
    assert card(room, "later").state == "backlog"
    assert room.waiting == 2
    assert room.note == "a note"
    assert not room.attached


async def test_beats_arrive_and_raise_the_version(council: Council):
    first = await until(council, lambda room: any(a.label == "idle" and a.health == "alive" for a in room.agents))
    later = await until(council, lambda room: agent(room, "idle").beat_count > agent(first, "idle").beat_count)
    assert later.version > first.version
    assert agent(later, "idle").age_seconds is not None


async def test_reaping_a_held_orphan_fails_its_card_and_leaves_nothing(council: Council):
    room = await until(council, held)
    name = agent(room, "silent").name
    preview = await council.preview_reap(name)
    assert any("sleep" in process.command for process in preview.processes)
    await council.reap(name)
    await council.reap(name)
    room = await until(council, lambda room: card(room, "silent").state == "failed" and agent(room, "silent").ended)
    assert card(room, "silent").fail == "orphaned"
    assert (agent(room, "silent").health, agent(room, "silent").fail) == ("orphan", "orphaned")
    with pytest.raises(Refused, match="not alive"):
        await council.preview_reap(name)


async def test_detail_tells_the_contract_the_history_and_the_processes(council: Council):
    room = await until(council, lambda room: any(e.text.startswith("idle runs") for e in room.events))
    found = await council.detail(agent(room, "idle").name)
    facts = dict(found.facts)
    assert facts["mbti type"] == "ISTJ"
    assert len(facts["sha256"]) == 64
    assert any("acknowledged" in line for line in found.history)
    assert any("sleep 600" in process.command for process in found.processes)
    on_card = await council.detail(card(room, "idle").id)
    assert ("command", "sleep 600") in on_card.facts
    with pytest.raises(Refused):
        await council.detail("t_nothing")


async def test_an_agent_that_ended_badly_says_why_and_how_long_it_lived(council: Council):
    await council.spawn(SpawnDraft("zeroclaw", "wrong", ("sh", "-c", "exit 3"), heartbeat_seconds=0.2))
    room = await until(council, lambda room: any(a.label == "wrong" and a.ended and a.fail for a in room.agents))
    wrong = agent(room, "wrong")
    assert wrong.fail == "error"
    assert wrong.reason.startswith("exit status 3")
    assert wrong.reason == card(room, "wrong").reason
    assert wrong.lived_seconds is not None
    assert room.failed == 1
    facts = dict((await council.detail(wrong.name)).facts)
    assert (facts["outcome"], facts["reason"]) == ("error", wrong.reason)
    with reading.Reader(council.home) as reader:
        hello = next(e for e in reader.events(0) if e.kind == "hello" and e.agent == wrong.name)
        assert facts["key"] == hashlib.sha256(bytes.fromhex(hello.data["public_key"])).hexdigest()[:32]
        read = next(a for a in reader.snapshot().agents if a.name == wrong.name)
    assert (read.ended, read.fail, read.reason) == (True, "error", wrong.reason)


async def test_the_agents_screen_says_what_it_is_held_to_and_how_full_its_slice_is(council: Council):
    draft = SpawnDraft("zeroclaw", "kept", ("sleep", "60"), forbidden_capabilities=("network",), heartbeat_seconds=0.2)
    await council.spawn(draft)
    room = await until(council, lambda room: any(a.label == "kept" and a.health == "alive" for a in room.agents))
    facts = dict((await council.detail(agent(room, "kept").name)).facts)
    assert facts["enforcement"] == "portable; soft slice; declared only: no network"
    assert facts["slice"] == "0.0 of 64 MiB used, soft ceiling"


async def test_cards_that_failed_in_an_earlier_fleet_are_not_this_fleets_failures(home: Home):
    first = Council(home)
    await first.open()
    first.dispatch()
    await first.spawn(SpawnDraft("zeroclaw", "wrong", ("false",), heartbeat_seconds=0.2))
    assert (await until(first, lambda room: room.failed == 1)).waiting == 0
    await first.drain()
    await first.end()
    await first.close()
    second = Council(home)
    await second.open()
    room = await second.room()
    assert (card(room, "wrong").state, room.failed) == ("failed", 0)
    await second.close()


@pytest.mark.parametrize("orderly", [True, False])
async def test_an_attached_front_end_says_how_its_council_ended(council: Council, orderly: bool):
    door = await Attached.open(council.home)
    await door.room()
    assert await door.ended() == ""
    if orderly:
        await council.drain()
        said = f"fleet room has ended with exit code {(await council.end()).exit}"
    else:
        said = f"process {door.owner}, which ran this council, has ended without closing its fleet"
    await council.close()
    for _again in range(2):
        with pytest.raises(CouncilGone, match=said):
            await door.room()
    assert await door.ended() == said
    await door.close()


async def test_an_attached_front_end_names_the_process_that_took_the_home_over(home: Home):
    first = Council(home)
    await first.open()
    door = await Attached.open(home)
    await first.end()
    await first.close()
    door.owner += 1  # here both would be this process
    second = Council(home)
    await second.open()
    assert f"process {os.getpid()} runs one here now" in await door.ended()
    await second.close()
    await door.close()


async def test_a_draft_is_held_against_the_rules_and_then_spawned(council: Council):
    bad = await council.check_draft(SpawnDraft("openclaw", "Bad Label", ("no-such-program-here",), mbti_type="ENTP-X"))
    assert {field for field, _ in bad.problems} >= {"label", "run", "inheritance.mbti_type"}
    both = SpawnDraft("openclaw", "both", ("true",), core_capabilities=("net",), forbidden_capabilities=("net",))
    assert any("core and forbidden" in rule for _, rule in (await council.check_draft(both)).problems)
    good = SpawnDraft("openclaw", "said-hello", ("echo", "hello"), heartbeat_seconds=0.2)
    check = await council.check_draft(good)
    assert not check.problems
    assert "spawn_context:" in check.contract
    ident = await council.spawn(good)
    room = await until(council, lambda room: any(c.id == ident and c.state == "done" for c in room.cards))
    assert card(room, "said-hello").entry is not None
    with pytest.raises(Refused, match="already"):
        await council.spawn(good)


async def test_paused_dispatch_starts_nothing_until_it_goes_on(council: Council):
    await council.pause(True)
    ident = await council.spawn(SpawnDraft("zeroclaw", "patient", ("true",), heartbeat_seconds=0.2))
    room = await until(council, lambda room: any(c.id == ident and c.state == "ready" for c in room.cards))
    assert room.paused
    await council.pause(False)
    await until(council, lambda room: any(c.id == ident and c.state == "done" for c in room.cards))


async def test_a_second_council_attaches_and_acts_through_the_first(council: Council):
    await until(council, held)
    with pytest.raises(HomeOwned):
        await Council(council.home).open()
    door = await Attached.open(council.home)
    room = await door.room()
    assert room.attached
    assert (await door.room()) is not None
    assert await door.living() == 0
    name = agent(room, "silent").name
    assert (await door.preview_reap(name)).label == "silent"
    assert (await door.detail(name)).title == "silent"
    await door.pause(True)
    assert (await council.room()).paused
    await door.pause(False)
    ident = await door.spawn(SpawnDraft("openclaw", "from-afar", ("true",), heartbeat_seconds=0.2))
    await until(council, lambda room: any(c.id == ident and c.state == "done" for c in room.cards))
    await door.reap(name)
    await until(council, lambda room: card(room, "silent").state == "failed")
    assert (await door.verify()).verdict == "VALID"
    before = await council.living()
    outcome = await door.drain()
    assert (outcome.ended, outcome.left, await council.living()) == (before, 0, 0)
    with pytest.raises(CouncilError, match="takes no such order"):
        await door.stop(at_once=False)
    with pytest.raises(CouncilError, match="leaves it to nobody"):
        await door.take_over()
    await door.close()


async def test_the_ledger_is_shown_and_verified(council: Council):
    ident = await council.spawn(SpawnDraft("zeroclaw", "proof", ("true",), heartbeat_seconds=0.2))
    room = await until(council, lambda room: any(c.id == ident and c.state == "done" for c in room.cards))
    rows = await council.entries()
    assert {row.kind for row in rows} >= {"delegation", "acceptance", "ascension", "observation", "revocation"}
    entry = card(room, "proof").entry
    one = await council.verify(entry)
    assert one.verdict == "VALID"
    assert one.lines
    assert (await council.verify()).checked == (await council.room()).ledger.size


async def test_a_drain_ends_everything_and_says_how_much(council: Council):
    await until(council, held)
    outcome = await council.drain()
    assert (outcome.ended, outcome.left) == (2, 0)
    end = await council.end()
    assert end.audit == {"descendants": [], "open_claims": [], "unsigned_reports": [], "slices": []}
    assert end.ledger["verdict"] == "VALID"


async def test_a_supervisor_that_cannot_go_on_says_so_instead_of_showing_an_old_picture(council: Council):
    assert council.sup.failed is not None
    council.sup.failed.set_exception(OSError("the disk is gone"))
    with pytest.raises(CouncilError, match="the disk is gone"):
        await council.room()


async def test_a_frozen_agent_stands_still_is_orphaned_by_nothing_and_goes_on(council: Council):
    room = await until(council, lambda room: any(e.text.startswith("idle runs") for e in room.events))
    name = agent(room, "idle").name
    await council.freeze(name, True)
    await until(council, lambda room: agent(room, "idle").health == "frozen")
    seat = council.sup.by_agent[name]
    while {p.state for p in guard.descendants(seat.pid or 0)} != {"T"}:
        await council.sup.tick()
    await council.freeze(name, False)
    room = await until(council, lambda room: agent(room, "idle").health == "alive")
    while "T" in {p.state for p in guard.descendants(seat.pid or 0)}:
        await council.sup.tick()
    with pytest.raises(Refused, match="an office is not frozen"):
        await council.freeze(agent(room, "ZeroClaw").name, True)
