"""A swarm in the hierarchy: its parent's row says how it is, and hundreds of rows wait until they are asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from council_tui.console.widgets.agent_tree import AgentTree
from council_tui.control.views import SwarmView

from .fake import FakeCouncil
from .stage import stage

if TYPE_CHECKING:
    from council_tui.control.views import AgentView

PARENT = "child:frame-swarm.7kq2m9xzw4"


def with_swarm(agents: tuple[AgentView, ...], members: int) -> tuple[AgentView, ...]:
    """The same crew, with a swarm of so many below one of them; one of these is late."""
    shark = next(agent for agent in agents if agent.kind == "microshark" and agent.health == "alive")
    swarm = SwarmView("shark", members, members, living=members, ttl_seconds=252)
    kept = [replace(a, swarms=(swarm,)) if a.name == PARENT else a for a in agents if a.kind != "microshark"]
    sharks = [replace(shark, name=f"microshark:s-{n}.x", label=f"s-{n}") for n in range(members)]
    sharks[7] = replace(sharks[7], health="late")
    return (*kept, *sharks)


def door_with(members: int) -> FakeCouncil:
    door = FakeCouncil()
    door.change(agents=with_swarm(door.view.agents, members))
    return door


async def test_a_large_swarm_begins_closed_below_a_row_that_counts_it_down() -> None:
    async with stage(door=door_with(500)) as opened:
        tree = opened.room.query_one(AgentTree)
        assert not any(name.startswith("microshark:") for name in tree.where)
        row = next(node for node in tree.rows if node.agent.name == PARENT)
        drawn = "".join(text for text, _ in tree.line(row, 0, 120))
        assert "(500)" in drawn
        assert "500 of 500 live, ttl 4m" in drawn


async def test_a_large_swarm_that_a_person_opened_stays_open() -> None:
    async with stage(door=door_with(40)) as opened:
        tree = opened.room.query_one(AgentTree)
        tree.choose(PARENT)
        await opened.press("l")
        assert "microshark:s-3.x" in tree.where
        opened.door.change(agents=with_swarm(opened.door.view.agents, 40))
        await opened.beat()
        assert "microshark:s-3.x" in tree.where


async def test_whoever_looks_for_what_is_bad_finds_it_in_a_closed_swarm() -> None:
    async with stage(door=door_with(40)) as opened:
        tree = opened.room.query_one(AgentTree)
        tree.focus()
        await opened.press("!")
        await opened.beat()
        opened.door.change(agents=opened.door.view.agents)
        await opened.beat()
        assert "microshark:s-7.x" in tree.where
        assert "microshark:s-3.x" not in tree.where


async def test_a_small_swarm_is_open() -> None:
    async with stage(door=door_with(12)) as opened:
        assert "microshark:s-3.x" in opened.room.query_one(AgentTree).where
