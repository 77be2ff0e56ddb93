"""What hangs, what waits and what will not die is seen in every picture, and a person can act on it."""

from __future__ import annotations

import asyncio

import pytest

from council_tui.control import reading
from council_tui.control.council import Council, Options
from council_tui.domain.events import EventKind as K
from council_tui.domain.lifecycle import Signal
from council_tui.fleet.plan import parse_plan
from council_tui.headless.lines import snapshot_line
from council_tui.runner.guard import Process
from council_tui.supervisor import reaper

from .conftest import until
from .test_council import agent, card

PLAN = """\
council: 1
name: troubles
limits: {concurrency: 1, births_per_parent: 1, children_per_parent: 1}
defaults:
  lifecycle_policy:
    {parent_heartbeat_interval_seconds: 0.1, child_timeout_seconds: 10, grace_seconds: 0, stall_seconds: 0.3}
  envelope: {time_budget_minutes: 5, autonomy_band: AUTONOMOUS, tools_scope: [exec], rollback_plan: No changes}
  retries: 0
children:
  - {id: hangs, parent: zeroclaw, run: [sleep, "600"], priority: 1}
  - {id: waits, parent: zeroclaw, run: ["true"]}
"""
UNDYING = 4_194_304


class Undying:
    """A look at all processes that finds one which no signal reaches."""

    def __init__(self) -> None:
        self.left = [Process(UNDYING, 1, "D", 7, 1)]

    async def living(self, run: str) -> list[Process]:
        return self.left


@pytest.fixture
async def council(home):
    opened = Council(home, Options(plan=parse_plan(PLAN, "troubles.yaml")))
    await opened.open()
    opened.dispatch()
    yield opened
    await opened.close()


def stalled(room):
    return any(one.health == "stalled" for one in room.agents)


def facts_of(detail):
    return dict(detail.facts)


def on_disk(council):
    with reading.Reader(council.home) as reader:
        return reader.snapshot()


async def test_a_stalled_agent_is_told_apart_everywhere(council):
    room = await until(council, stalled)
    one = agent(room, "hangs")
    assert (one.standing, one.phase, one.ended) == ("stalled", "running", False)
    assert one.counted_seconds == one.idle_seconds >= 0.3
    facts = facts_of(await council.detail(one.name))
    assert facts["stands"] == "stalled"
    assert facts["work seen"].endswith("stalled after 0.3 s without")
    line = next(a for a in snapshot_line(on_disk(council)).agents if a.label == "hangs")
    assert (line.health, line.standing) == ("stalled", "stalled")


async def test_why_a_card_waits_is_on_the_card(council):
    room = await until(council, lambda room: any(c.reason for c in room.cards))
    assert card(room, "waits").reason == "1 agent lives below its parent (limits.children_per_parent)"
    await council.pause(True)
    room = await until(council, lambda room: card(room, "waits").reason == "dispatch is paused")
    assert agent(room, "Hermes").phase == "paused"


async def test_births_that_are_held_are_seen_where_a_pause_is(council):
    await until(council, stalled)
    await council.reap(agent(await council.room(), "hangs").name)
    room = await until(council, lambda room: room.holding)
    words = "1 birth below zeroclaw within a minute (limits.births_per_parent)"
    hermes = agent(room, "Hermes")
    assert (room.holding, card(room, "waits").reason, hermes.phase, hermes.status) == (
        words,
        words,
        "births wait",
        words,
    )
    assert facts_of(await council.detail(hermes.name))["births wait"] == words


async def test_what_will_not_die_is_shown_and_a_person_has_it_tried_again(council, monkeypatch):
    monkeypatch.setattr(reaper, "PROOF_SECONDS", 1.0)
    await until(council, stalled)
    name = agent(await council.room(), "hangs").name
    seat, council.sup.reaper._sweep = council.sup.by_agent[name], Undying()
    await council.sup.signal(seat, Signal.CANCELLED, {"reason": "enough"})
    room = await until(council, lambda room: agent(room, "hangs").reason)
    one = agent(room, "hangs")
    words = f"1 process will not die (pid {UNDYING}); next try in "
    assert (one.phase, one.ended, card(room, "hangs").state) == ("reaping", False, "running")
    assert one.reason.startswith(words)
    assert facts_of(await council.detail(name))["will not die"].startswith(words)
    assert (await council.preview_reap(name)).note.endswith("reaped by you it is tried at once")
    line = next(a for a in snapshot_line(on_disk(council)).agents if a.label == "hangs")
    assert (line.phase, line.standing, line.reason) == ("reaping", "silent", f"{words}120 s")
    council.sup.reaper._sweep.left = []
    await council.reap(name)
    async with asyncio.timeout(20):
        await seat.ended.wait()
    room = await council.room()
    assert (card(room, "hangs").state, agent(room, "hangs").standing) == ("failed", "dead")
    assert [event.kind for event in (await council.room()).events].count(K.UNKILLABLE) == 1
