"""What must hold before a process exists: a contract, a slice of one's own, and a machine that can keep it."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import pytest

from council_tui.domain.contract import SpawnContext
from council_tui.domain.errors import Refused
from council_tui.domain.events import EventKind as K
from council_tui.domain.lifecycle import Signal
from council_tui.hosts.local import HostFailed
from council_tui.supervisor import limits, slices
from council_tui.supervisor.leftovers import clear_directories
from supervisor.stage import until
from supervisor.wire import Bare

PORTABLE = limits.portable("not asked for")


@pytest.fixture
async def bare(home):
    async with Bare(home) as bare:
        yield bare


def test_a_slice_is_made_private_and_cleared_whole(tmp_path):
    path = tmp_path / "deep" / "slice"
    slices.make(str(path), [])
    assert {stat.S_IMODE((path / part).stat().st_mode) for part in ("", "ctl", "data")} == {0o700}
    locked = path / "data" / "locked"
    locked.mkdir()
    (locked / "file").write_text("x")
    (path / "data" / "link").symlink_to("/")
    locked.chmod(0)
    assert slices.remove(str(path))
    assert not path.exists()
    assert slices.remove(str(path)), "clearing twice is the same as clearing once"


def test_a_slice_is_a_new_directory(tmp_path):
    with pytest.raises(Refused, match="exists already"):
        slices.make(str(tmp_path), [])
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(Refused, match="exists already"):
        slices.make(str(tmp_path / "link"), [])


@pytest.mark.parametrize(
    ("wanted", "taken"), [("a/b", "a"), ("a", "a/b"), ("a", "a"), ("link/b", "a"), ("a/b", "link")]
)
def test_a_slice_overlaps_no_other_by_any_name(tmp_path, wanted, taken):
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with pytest.raises(Refused, match="overlaps the slice"):
        slices.make(str(tmp_path / wanted), [str((tmp_path / taken).resolve())])


def test_a_slice_that_cannot_be_made_says_why(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Refused, match="cannot be created: Not a directory"):
        slices.make(str(tmp_path / "file" / "slice"), [])


def context(**more) -> SpawnContext:
    return SpawnContext.model_validate(
        {
            "parent_id": "openclaw:office.1",
            "spawn_ts": "2026-05-11T13:20:00Z",
            "task_reference": "t_1",
            "memory_slice": {"shared_memory_path": "/tmp/slice", **more.pop("memory_slice", {})},
            "kanban_handoff": {"parent_task_id": "t_0"},
            **more,
        }
    )


def test_what_this_machine_cannot_forbid_is_refused_when_it_is_required():
    forbidding = {"forbidden_capabilities": ["network", "mutate"]}
    with pytest.raises(Refused, match="cannot keep a program from: network, mutate"):
        limits.enforcement(context(inheritance=forbidding), PORTABLE)
    assert (
        limits.enforcement(context(inheritance=forbidding, enforcement="declared-only"), PORTABLE)
        == "portable; soft slice; declared only: no network, no mutate"
    )
    assert limits.enforcement(context(), PORTABLE) == "portable; soft slice"


def test_the_words_for_many_bans_stay_short():
    many = {"forbidden_capabilities": [f"capability-{number}" for number in range(20)]}
    assert len(limits.enforcement(context(inheritance=many, enforcement="declared-only"), PORTABLE)) <= limits.MAX_WORDS


def test_a_hard_ceiling_is_refused_where_bytes_can_only_be_counted_afterwards():
    with pytest.raises(Refused, match=r"memory_slice\.ceiling"):
        limits.enforcement(context(memory_slice={"ceiling": "hard"}), PORTABLE)


@pytest.mark.parametrize(
    ("asked", "rule"),
    [
        ({"memory_slice": {"shared_memory_path": "{home}/keys"}}, "exists already"),
        ({"memory_slice": {"shared_memory_path": "{slice}/data/mine"}}, "overlaps the slice"),
        ({"memory_slice": {"memory_limit_mb": 1, "ceiling": "hard"}}, r"memory_slice\.ceiling"),
        ({"inheritance": {"forbidden_capabilities": ["network"]}, "enforcement": "required"}, "cannot keep a program"),
    ],
)
async def test_a_spawn_that_is_refused_starts_no_process_and_leaves_no_slice(bare, asked, rule):
    office = await (await bare.office()).begin()
    where = {"{home}": str(bare.sup.home.root), "{slice}": office.seat.slice}
    filled = {
        family: {key: _fill(value, where) for key, value in facts.items()} if isinstance(facts, dict) else facts
        for family, facts in asked.items()
    }
    order = bare.order()
    order = order.model_copy(update={"context": {**order.context, **filled}})
    before = set(bare.sup.home.slices.iterdir())
    with pytest.raises((Refused, Exception), match=rule):
        await bare.child(office, order)
    assert set(bare.sup.home.slices.iterdir()) == before
    assert len(bare.host.specs) == len(bare.sup.seats) == 1


def _fill(value, where):
    for name, real in where.items():
        value = value.replace(name, real) if isinstance(value, str) else value
    return value


async def test_a_slice_of_the_plans_own_choice_is_used_and_cleared(bare, home):
    office = await (await bare.office()).begin()
    path = home.parent / "chosen"
    order = bare.order(context={"memory_slice": {"shared_memory_path": str(path)}})
    child = await (await bare.child(office, order)).begin()
    assert Path(child.seat.slice) == path
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    await bare.sup.signal(child.seat, Signal.CANCELLED, {"reason": "enough"})
    await child.seat.ended.wait()
    assert not path.exists()


async def test_a_parent_that_writes_a_wider_contract_than_its_own_is_refused(bare):
    office = await (await bare.office()).begin()
    child = await (await bare.child(office)).begin()
    small = bare.order().model_copy(update={"id": "shark", "kind": "microshark", "parent": "kid"})
    honest = child.answers["contract"]

    def wide(params):
        answer = honest(params)
        answer["context"]["inheritance"]["core_capabilities"] = ["everything"]
        return answer

    child.answers["contract"] = wide
    with pytest.raises(Refused, match="is not the parent's to give"):
        await bare.child(child, small)


async def test_a_parent_that_names_another_as_the_parent_is_refused(bare):
    office = await (await bare.office()).begin()
    other = await (await bare.office("zeroclaw")).begin()
    honest = office.answers["contract"]

    def stolen(params):
        answer = honest(params)
        answer["context"] |= {"parent_id": other.seat.agent, "parent_type": "zeroclaw"}
        return answer

    office.answers["contract"] = stolen
    with pytest.raises(Refused, match="is not the parent of this card"):
        await bare.child(office)


async def test_a_host_that_cannot_start_a_process_leaves_nothing_behind(bare):
    bare.host.fault = HostFailed("this machine cannot start another process: Cannot allocate memory")
    with pytest.raises(HostFailed, match="cannot start another"):
        await bare.office()
    assert bare.sup.seats == {}
    assert list(bare.sup.home.slices.iterdir()) == []


async def test_a_run_that_is_cancelled_before_its_process_exists_still_ends(bare):
    bare.host.gate.clear()
    spawning = asyncio.create_task(bare.office())
    await until(lambda: bare.sup.seats)
    seat = next(iter(bare.sup.seats.values()))
    await bare.sup.signal(seat, Signal.CANCELLED, {"reason": "never mind"})
    bare.host.gate.set()
    office = await spawning
    await office.connect()
    with pytest.raises(Exception, match=r"closed|out of order|reap"):
        await office.begin()
    office.leave()
    async with asyncio.timeout(20):
        await seat.ended.wait()
    assert bare.sup.board.tables.cards[seat.card].fail == "cancelled"


async def test_a_run_that_is_cancelled_and_whose_process_cannot_be_started_ends_too(bare):
    bare.host.gate.clear()
    bare.host.fault = HostFailed("no memory")
    spawning = asyncio.create_task(bare.office())
    await until(lambda: bare.sup.seats)
    seat = next(iter(bare.sup.seats.values()))
    await bare.sup.signal(seat, Signal.CANCELLED, {"reason": "never mind"})
    bare.host.gate.set()
    with pytest.raises(HostFailed):
        await spawning
    async with asyncio.timeout(20):
        await seat.ended.wait()


async def test_a_spawn_says_who_whose_child_and_what_is_enforced(bare):
    office = await (await bare.office()).begin()
    child = await bare.child(office)
    told = bare.find(K.AGENT_STARTED, child.seat.agent)
    assert told is not None
    assert told.data["parent"] == office.seat.agent
    assert told.data["pid"] == os.getpid()
    assert told.data["enforcement"] == "portable; soft slice"
    assert told.data["contract"]["sha256"] == child.seat.context.sha256()


async def test_a_slice_in_a_place_of_the_plans_own_is_known_before_the_journal_has_the_run(bare, tmp_path):
    """Whoever dies between the two has to find it again; it would keep the next attempt from being born."""
    office = await (await bare.office()).begin()
    own = tmp_path / "own"
    bare.host.gate.clear()
    order = bare.order(context={"memory_slice": {"shared_memory_path": str(own)}})
    born = asyncio.create_task(bare.child(office, order))
    await until(lambda: bare.find(K.CARD_READY) and own.exists())
    clear_directories(bare.sup.home, frozenset())
    assert not own.exists()
    bare.host.gate.set()
    await born
