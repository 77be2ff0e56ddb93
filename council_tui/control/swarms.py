"""Swarms as screens show them: what was granted, and how many of it live, wait and have ended."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from council_tui.control.views import SwarmView
from council_tui.domain.card import OWNED_STATES, CardState
from council_tui.domain.text import counted, safe, span

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from council_tui.board.projection import Agent, Card, Tables
    from council_tui.control.views import AgentView
    from council_tui.supervisor.seat import Seat

Key = tuple[str, str]
"""(parent agent, swarm)."""


def with_swarms(views: Sequence[AgentView], tables: Tables) -> list[AgentView]:
    """The same agents, each with the swarms that it asked for."""
    parents = {agent.name: agent for agent in tables.agents.values() if agent.swarms}
    if not parents:
        return list(views)
    counts, left = _counts(tables), _left(views, tables)
    return [
        replace(view, swarms=_swarms(parents[view.name], counts, left)) if view.name in parents else view
        for view in views
    ]


def swarm_facts(agent: Agent, tables: Tables, seats: Iterable[Seat], now: float) -> list[tuple[str, str]]:
    """(name, value) for the screen of a parent; nothing for an agent that asked for no swarm."""
    if not agent.swarms:
        return []
    found = _swarms(agent, _counts(tables), _least((_key(tables, s.card), ttl_left(s, now)) for s in seats))
    return [("", "swarms" if len(found) > 1 else "swarm"), *((swarm.name, in_full(swarm)) for swarm in found)]


def _counts(tables: Tables) -> dict[Key, Counter[str]]:
    counts: dict[Key, Counter[str]] = {}
    for card in tables.cards.values():
        if key := _key(tables, card.id):
            counts.setdefault(key, Counter())[_stands(card)] += 1
    return counts


def ttl_left(seat: Seat, now: float) -> float | None:
    """Seconds that an agent may still live; None where nothing bounds it, or before its acknowledgement."""
    state = seat.state
    if state.timing.ttl is None or state.acknowledged is None:
        return None
    # While it is frozen its clocks stand still.
    at = now if state.frozen_since is None else state.frozen_since
    return max(0.0, state.acknowledged + state.timing.ttl - at)


def _left(views: Iterable[AgentView], tables: Tables) -> dict[Key, float]:
    return _least((_key(tables, view.card), view.ttl_seconds) for view in views if not view.ended)


def _key(tables: Tables, card: str | None) -> Key | None:
    """The swarm of a card; None for a card of its own."""
    found = tables.cards.get(card or "")
    member = found.order.get("member") if found is not None else None
    return (found.parent_agent, member["swarm"]) if found is not None and member else None


def _least(times: Iterable[tuple[Key | None, float | None]]) -> dict[Key, float]:
    """Of each swarm the seconds of the member that has least."""
    found: dict[Key, float] = {}
    for key, left in times:
        if key is not None and left is not None:
            found[key] = min(left, found.get(key, left))
    return found


def _stands(card: Card) -> str:
    if card.state in OWNED_STATES:
        return "living"
    if card.state is CardState.DONE:
        return "done"
    if card.state is CardState.FAILED:
        return "expired" if card.fail == "expired" else "failed"
    return "blocked" if card.state is CardState.BLOCKED and card.block != "transient" else "waiting"


def _swarms(agent: Agent, counts: Mapping[Key, Counter[str]], left: Mapping[Key, float]) -> tuple[SwarmView, ...]:
    return tuple(
        SwarmView(
            name=name,
            asked=said["asked"],
            granted=said["granted"],
            reason=safe(said["reason"], 300),
            ttl_seconds=left.get((agent.name, name)),
            **counts.get((agent.name, name), Counter()),
        )
        for name, said in agent.swarms.items()
    )


def standing(swarm: SwarmView) -> str:
    """How a swarm is, shortest first: `30 of 50 live, 12 done, 8 expired, ttl 4m`."""
    if not swarm.granted:
        return f"refused: {swarm.reason}"
    parts = [f"{swarm.living:,} of {swarm.granted:,} live"] if swarm.living or swarm.waiting else []
    if swarm.ttl_seconds is not None:
        parts.append(f"ttl {span(swarm.ttl_seconds)}")
    for many, word in (
        (swarm.waiting, "to come"),
        (swarm.done, "done"),
        (swarm.expired, "expired"),
        (swarm.failed, "failed"),
        (swarm.blocked, "blocked"),
    ):
        if many:
            parts.append(f"{many:,} {word}")
    return ", ".join(parts)


def in_full(swarm: SwarmView) -> str:
    """The same with what was asked for, and why it was not all."""
    if not swarm.granted:
        return f"{counted(swarm.asked, 'microshark')} asked for, {standing(swarm)}"
    why = f" ({swarm.reason})" if swarm.reason else ""
    return f"{swarm.granted:,} of {counted(swarm.asked, 'microshark')} granted{why}; {standing(swarm)}"
