"""While this machine is short of memory nothing more is born; what lives goes on and is reaped as ever."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from supervisor.stage import Stage, child, plan_of, until

from council_tui.domain.events import EventKind as K
from council_tui.domain.lifecycle import Signal
from council_tui.fleet.gate import LOOK_SECONDS
from council_tui.fleet.memory import Memory, MemoryGate, read_memory
from fleet.clocks import Ahead

PLENTY = Memory(4000, 0.0)


class Machine:
    """Memory as a test says it stands."""

    def __init__(self, now: Memory = PLENTY) -> None:
        self.now, self.looks = now, 0

    def __call__(self) -> Memory:
        self.looks += 1
        return self.now


def looked(gate, machine, *steps):
    """What the gate says after each of these, a second apart."""
    said = []
    for second, memory in enumerate(steps):
        machine.now = memory
        said.append(bool(gate.look(float(second))))
    return said


def test_it_closes_below_the_floor_and_opens_only_well_above_it():
    machine = Machine()
    gate = MemoryGate(256, 25, machine)
    steps = [Memory(free, 0.0) for free in (300, 256, 255, 256, 300, 319, 320, 300, 256)]
    assert looked(gate, machine, *steps) == [False, False, True, True, True, True, False, False, False]


def test_it_closes_above_the_pressure_and_opens_at_half_of_it():
    machine = Machine()
    gate = MemoryGate(256, 20, machine)
    steps = [Memory(4000, pressure) for pressure in (20, 20.1, 20, 10.1, 10, 20)]
    assert looked(gate, machine, *steps) == [False, True, True, True, False, False]


def test_the_reason_names_the_limit():
    assert MemoryGate(256, 25, Machine(Memory(101.4, 0.0))).look(0) == (
        "101 MiB of memory free, 256 wanted (limits.memory_floor_mb)"
    )
    assert MemoryGate(256, 25, Machine(Memory(4000, 60.0))).look(0) == (
        "memory pressure is 60 %, above 25 % (limits.memory_pressure)"
    )


def test_what_this_machine_does_not_tell_closes_nothing_and_no_floor_is_no_floor():
    assert MemoryGate(256, 25, Machine(Memory())).look(0) == ""
    assert MemoryGate(0, 25, Machine(Memory(0, 0.0))).look(0) == ""


def test_it_looks_once_a_second_however_often_it_is_asked():
    machine = Machine()
    gate = MemoryGate(256, 25, machine)
    for now in (0.0, 0.1, 0.5, 0.99, LOOK_SECONDS, 1.5):
        gate.look(now)
    assert machine.looks == 2


def test_it_knows_since_when_it_has_been_closed():
    machine = Machine(Memory(1, 0.0))
    gate = MemoryGate(256, 25, machine)
    assert gate.closed_for(0) == 0
    for now in (5.0, 6.0, 7.0):
        gate.look(now)
    assert gate.closed_for(10) == 5
    machine.now = PLENTY
    gate.look(10.0)
    assert gate.closed_for(11) == 0


AMOUNTS = st.none() | st.floats(0, 1e6)


@given(st.lists(st.builds(Memory, AMOUNTS, st.none() | st.floats(0, 100)), max_size=30), st.integers(0, 1000))
def test_it_never_opens_on_what_would_close_it(steps, floor):
    machine = Machine()
    gate = MemoryGate(floor, 25, machine)
    for said, memory in zip(looked(gate, machine, *steps), steps, strict=True):
        short = memory.available_mb is not None and memory.available_mb < floor
        assert said or not (short or (memory.pressure or 0) > 25)


def files_of(root, files):
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


MEMINFO = "MemTotal:       24000000 kB\nMemFree:  1000 kB\nMemAvailable:    2048000 kB\n"
PRESSURE = "some avg10=12.50 avg60=3.00 avg300=1.00 total=1\nfull avg10=9.00 avg60=1.00 avg300=0.00 total=1\n"


def test_it_reads_what_the_kernel_tells(tmp_path):
    files_of(tmp_path, {"proc/meminfo": MEMINFO, "proc/pressure/memory": PRESSURE, "proc/self/cgroup": "1:cpu:/x\n"})
    assert read_memory(tmp_path) == Memory(2000, 12.5)


def test_where_a_cgroup_holds_us_its_room_counts(tmp_path):
    group = {
        "proc/meminfo": MEMINFO,
        "proc/self/cgroup": "1:cpu:/other\n0::/box\n",
        "sys/fs/cgroup/box/memory.max": f"{1000 * 1024 * 1024}\n",
        "sys/fs/cgroup/box/memory.current": f"{900 * 1024 * 1024}\n",
        "sys/fs/cgroup/box/memory.stat": f"anon 5\ninactive_file {300 * 1024 * 1024}\n",
    }
    assert read_memory(files_of(tmp_path, group)).available_mb == 400
    (tmp_path / "sys/fs/cgroup/box/memory.max").write_text("max\n")
    assert read_memory(tmp_path).available_mb == 2000


def test_a_kernel_that_tells_nothing_or_nonsense_stops_nobody(tmp_path):
    assert read_memory(tmp_path) == Memory()
    nonsense = {"proc/meminfo": "MemAvailable: lots\n", "proc/pressure/memory": "some avg10=? total=\n"}
    assert read_memory(files_of(tmp_path, nonsense)) == Memory()


def test_this_machine_can_be_read():
    assert (read_memory().available_mb or 1) > 0


FULL = Memory(1, 0.0)
FLOOR = {"memory_floor_mb": 1024 * 1024}


async def test_cards_wait_for_memory_visibly_and_go_on_when_there_is_some(home):
    plan = plan_of(child("first", "sleep 600"), child("later", "echo later"), limits={"concurrency": 1})
    async with Stage(home, plan) as stage:
        await stage.wait(K.BODY_STARTED)
        running = stage.seat("first")
        machine = Machine(FULL)
        stage.fleet.holds._gates["memory"]._read = machine
        held = await stage.wait(K.BIRTHS_HELD, cause="memory")
        assert stage.fleet.holds.reason == held.data["reason"]
        await stage.sup.signal(running, Signal.CANCELLED, {"reason": "by a person"})
        await running.ended.wait()
        await until(lambda: stage.fleet.waits == {stage.card("later").id: held.data["reason"]})
        assert not stage.running.done()
        machine.now = PLENTY
        await stage.wait(K.CARD_DONE, "later")
    kinds = [event.kind for event in stage.events]
    assert (kinds.count(K.BIRTHS_HELD), kinds.count(K.BIRTHS_GO_ON)) == (1, 1)


async def test_a_fleet_without_a_person_does_not_wait_for_memory_for_ever(home):
    clock = Ahead()
    stage = Stage(home, plan_of(child("one", "true"), child("two", "true", after=["one"]), limits=FLOOR))
    stage.sup.clock = clock
    async with stage:
        await stage.wait(K.BIRTHS_HELD)
        clock.by += 601
        end = await stage.end()
        one = stage.card("one")
    assert (end.exit, end.cards) == (1, {"failed": 1, "blocked": 1})
    assert one.reason.startswith("after 10 min still: ")
    assert one.reason.endswith("(limits.memory_floor_mb)")


@pytest.mark.parametrize("cause", ["memory", "births"])
async def test_whatever_holds_births_a_drain_ends_everything(home, cause):
    limits = FLOOR if cause == "memory" else {"births_per_parent": 1, "children_per_parent": 1}
    async with Stage(home, plan_of(child("one", "true"), child("two", "true"), limits=limits)) as stage:
        await stage.wait(K.BIRTHS_HELD, cause=cause)
        await stage.fleet.drain("enough")
        end = await stage.end()
    assert set(end.cards) <= {"done", "failed"}
