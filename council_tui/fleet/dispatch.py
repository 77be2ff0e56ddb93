"""Whose turn it is: a pure look at the board that says which cards move and which may start."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from council_tui.domain.card import OPEN_STATES, BlockKind, CardState
from council_tui.domain.hierarchy import PARENTS
from council_tui.domain.ids import agent_label, agent_type
from council_tui.domain.text import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from council_tui.board.projection import Card
    from council_tui.fleet.plan import Limits


@dataclass
class Turn:
    """What should happen now."""

    ready: list[str] = field(default_factory=list)
    """Cards whose dependencies are done."""
    blocked: list[tuple[str, str]] = field(default_factory=list)
    """Cards that wait for something that will not come, with the reason."""
    start: list[str] = field(default_factory=list)
    waits: dict[str, str] = field(default_factory=dict)
    """Cards whose turn it is and that a limit keeps, with the limit in words."""
    paced: str = ""
    """Why agents are not born as fast as they could be; empty while no card waits for that."""


def _stuck(card: Card, by_name: Mapping[str, Card], busy: set[str]) -> str | None:
    for name in card.after:
        other = by_name.get(name)
        # A run that is not settled yet may still be followed by another attempt.
        if other is None or other.id in busy:
            continue
        if other.state is CardState.FAILED:
            return f"needs {name}, which failed"
        if other.state is CardState.BLOCKED and other.block != BlockKind.TRANSIENT:
            return f"needs {name}, which is blocked"
    return None


def _released(card: Card, by_name: Mapping[str, Card]) -> bool:
    return all(name in by_name and by_name[name].state is CardState.DONE for name in card.after)


class _Room:
    """What is still free, counted down while cards get their turn."""

    def __init__(self, living: Iterable[tuple[str, ...]], births: Mapping[str, int], limits: Limits) -> None:
        self._limits = limits
        self._taken: Counter[str] = Counter()
        self._below: Counter[str] = Counter()
        self._swarms: set[tuple[str, str]] = set()
        for kind, parent, *swarm in living:
            self._seat(kind, parent, swarm[0] if swarm else "")
        self._births = Counter(births)
        self._born = sum(births.values())
        self._full: dict[tuple[str, str, str], str] = {}
        """Why no agent of a kind fits below a parent any more: in one look, what is full stays full."""
        self.paced = ""

    def _seat(self, kind: str, parent: str, swarm: str) -> None:
        """Below its parent a whole swarm counts as one: Hermes granted its number."""
        self._taken[kind] += 1
        if not swarm or (parent, swarm) not in self._swarms:
            self._below[parent] += 1
        if swarm:
            self._swarms.add((parent, swarm))

    def take(self, card: Card) -> str:
        """Take a place for the agent of a card; why there is none, or nothing."""
        kind, parent = card.kind, card.parent_agent
        swarm, of = swarm_of(card)
        why = self._full.get((kind, parent, swarm)) or self._crowded(kind, parent, swarm)
        if not why and (why := self._hurried(parent, of)):
            self.paced = why
        if why:
            self._full[kind, parent, swarm] = why
            return why
        self._seat(kind, parent, swarm)
        self._births[parent] += 1
        self._born += 1
        return ""

    def _crowded(self, kind: str, parent: str, swarm: str) -> str:
        limits, below, taken = self._limits, self._below[parent], self._taken[kind]
        if below >= limits.children_per_parent and (parent, swarm) not in self._swarms:
            return f"{counted(below, 'agent lives', 'agents live')} below its parent (limits.children_per_parent)"
        if kind == "microshark":
            live = counted(taken, "microshark lives", "microsharks live")
            return f"{live} (limits.microsharks)" if taken >= limits.microsharks else ""
        live = counted(taken, "child lives", "children live")
        return f"{live} (limits.concurrency)" if taken >= limits.concurrency else ""

    def _hurried(self, parent: str, granted: int) -> str:
        """A limit never holds back the first agents, as many as may live at once, or as were granted in one swarm."""
        limits = self._limits
        if self._births[parent] >= max(limits.births_per_parent, limits.children_per_parent + granted):
            who = agent_type(parent) if agent_type(parent) in PARENTS else agent_label(parent)
            born = counted(self._births[parent], "birth")
            return f"{born} below {who} within a minute (limits.births_per_parent)"
        if self._born >= max(limits.births_per_minute, limits.concurrency + limits.microsharks):
            return f"{counted(self._born, 'birth')} within a minute (limits.births_per_minute)"
        return ""


def swarm_of(card: Card) -> tuple[str, int]:
    """(name, how many were granted) of the swarm that a card's agent is a member of; ("", 0) for one of its own."""
    member = card.order.get("member") or {}
    return str(member.get("swarm", "")), int(member.get("of", 0))


def look(
    cards: Mapping[str, Card],
    living: Iterable[tuple[str, ...]],
    busy: set[str],
    limits: Limits,
    *,
    births: Mapping[str, int] = MappingProxyType({}),
    held: str = "",
) -> Turn:
    """One look at the board. `living`: (kind, parent agent, swarm if any) of every run below the offices.

    `busy`: cards that have such a run; a card stays ready until the child itself claims it. `births`: those of
    the last minute by parent. `held`: why nothing may start now, or nothing.
    """
    turn = Turn()
    waiting: list[Card] = []
    by_name = {card.plan_id: card for card in cards.values() if card.kind != "office"}
    for card in cards.values():
        if card.kind == "office" or card.id in busy:
            continue
        if card.state is CardState.BACKLOG:
            reason = _stuck(card, by_name, busy)
            if reason is not None:
                turn.blocked.append((card.id, reason))
            elif _released(card, by_name):
                turn.ready.append(card.id)
                waiting.append(card)
        elif card.state is CardState.READY:
            waiting.append(card)
    room = _Room(living, births, limits)
    for card in sorted(waiting, key=lambda c: (-c.priority, c.created)):
        if why := held or room.take(card):
            turn.waits[card.id] = why
        else:
            turn.start.append(card.id)
    turn.paced = room.paced
    return turn


def unfinished(cards: Iterable[Card]) -> bool:
    """Whether the fleet still has something to do without a person."""
    return any(
        card.kind != "office" and (card.state in OPEN_STATES or card.block == BlockKind.TRANSIENT) for card in cards
    )
