"""The look that is shared: it begins after whoever it answers has asked, and after a moment of calm."""

from __future__ import annotations

import asyncio
import threading

import pytest

from council_tui.runner.guard import Process
from council_tui.supervisor import sweep
from council_tui.supervisor.sweep import Sweep
from supervisor.stage import until


def process(pid):
    return Process(pid, 1, "S", 7, pid)


@pytest.fixture
def seen(monkeypatch):
    """What each look finds, in turn; a look with a gate waits at it, in a thread."""
    monkeypatch.setattr(sweep, "FEW", 0)
    looks: list[tuple[dict[str, list[Process]], threading.Event | None]] = []
    began: list[int] = []

    def look():
        found, gate = looks[len(began)]
        began.append(1)
        if gate is not None:
            gate.wait(10)
        return found

    monkeypatch.setattr(sweep, "_by_run", look)
    return looks, began


async def test_who_asks_while_a_look_is_under_way_is_answered_by_the_next(seen):
    looks, began = seen
    gate = threading.Event()
    looks += [({"r_1": [process(1)], "r_2": [process(2)]}, gate), ({"r_2": []}, None)]
    shared = Sweep()
    first = asyncio.create_task(shared.living("r_1"))
    await until(lambda: began)
    second = asyncio.create_task(shared.living("r_2"))
    await asyncio.sleep(0)
    gate.set()
    assert [one.pid for one in await first] == [1]
    assert await second == [], "what the earlier look saw of it may have been long ago"


async def test_all_who_ask_before_a_look_begins_share_it(seen):
    looks, began = seen
    looks += [({f"r_{n}": [process(n)] for n in range(50)}, None)]
    shared = Sweep()
    found = await asyncio.gather(*(shared.living(f"r_{n}") for n in range(50)), shared.living("r_gone"))
    assert [[one.pid for one in each] for each in found] == [*([n] for n in range(50)), []]
    assert len(began) == 1


async def test_who_asks_first_is_not_kept_waiting_by_those_who_go_on_asking(seen, monkeypatch):
    looks, began = seen
    monkeypatch.setattr(sweep, "CALM_SECONDS", 5.0)
    monkeypatch.setattr(sweep, "LONGEST_SECONDS", 0.05)
    looks += [({}, None)] * 2
    shared = Sweep()
    asked = [asyncio.create_task(shared.living("r_1"))]
    async with asyncio.timeout(4):
        while not asked[0].done():
            asked.append(asyncio.create_task(shared.living("r_1")))
            await asyncio.sleep(0.005)
    assert began
    await asyncio.gather(*asked)
