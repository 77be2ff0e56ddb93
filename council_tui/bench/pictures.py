"""A large seeded council that lives: a cycle of pictures, built before anything is measured.

Agents beat at 1 Hz, a tenth of them say something new each second, cards move, and events come at 20 a second.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from council_tui.control.views import AgentView, CardView, EventView, LedgerView, RoomView
from council_tui.domain.card import LANES
from council_tui.domain.errors import Refused
from council_tui.domain.hierarchy import HERMES, KINDS, PARENTS

if TYPE_CHECKING:
    from council_tui.control.views import CouncilDoor

CYCLE = 20
"""Pictures before they repeat; at 4 Hz, five seconds."""
_EVENTS = 500
_NEW_EVENTS = 5
_KEPT_BEATS = 30


def _office(kind: str, children: int) -> AgentView:
    return AgentView(
        name=f"{kind}:office.bench",
        label=KINDS[kind].title,
        kind=kind,
        parent=None if kind == HERMES.kind else f"{HERMES.kind}:office.bench",
        health="alive",
        phase="running",
        children=children,
        age_seconds=0.5,
        beats=(10,) * _KEPT_BEATS,
        beat_count=100,
        beat_seconds=2,
        status=KINDS[kind].duty,
    )


def _child(rng: random.Random, number: int) -> AgentView:
    return AgentView(
        name=f"child:agent-{number:05d}.bench",
        label=f"agent-{number:05d}",
        kind="child",
        parent=f"{PARENTS[number % len(PARENTS)]}:office.bench",
        health="late" if number % 50 == 0 else "alive",
        phase="running",
        card=f"t_{number:08d}",
        run=f"r_{number:011d}",
        pid=10_000 + number,
        age_seconds=rng.random(),
        beats=tuple(rng.randrange(60) for _ in range(_KEPT_BEATS)),
        beat_count=100,
        beat_seconds=1,
        slice_used=rng.randrange(2**25),
        slice_limit=2**26,
        enforcement="portable; soft slice",
        status="working through its list",
        started_seconds=400,
    )


def _card(number: int, agents: int) -> CardView:
    return CardView(
        id=f"t_{number:08d}",
        title=f"Card {number} of the benchmark",
        state=str(LANES[number % len(LANES)]),
        label=f"agent-{number:05d}",
        parent_agent=f"{PARENTS[number % len(PARENTS)]}:office.bench",
        agent=f"child:agent-{number:05d}.bench" if number < agents else None,
        age_seconds=float(number % 600),
    )


def _event(seq: int) -> EventView:
    at = f"2026-01-01T00:{seq // 60 % 60:02d}:{seq % 60:02d}.000Z"
    return EventView(seq, at, "status", "plain", f"agent-{seq % 997:05d}: {seq} of 9999 passed", None)


def _move_on(rng: random.Random, view: RoomView, agents: int) -> RoomView:
    """A quarter of a second later."""
    living = list(view.agents)
    first = len(living) - agents
    for index in range(first + view.version % 4, len(living), 4):
        agent = living[index]
        beats = (*agent.beats[1:], rng.randrange(60))
        living[index] = replace(agent, beats=beats, beat_count=agent.beat_count + 1, age_seconds=0.0)
    for _ in range(max(1, agents // 40)):
        index = rng.randrange(first, len(living))
        living[index] = replace(living[index], status=f"{rng.randrange(9999)} of 9999 passed")
    cards = list(view.cards)
    moved = rng.randrange(len(cards))
    cards[moved] = replace(cards[moved], state=str(LANES[rng.randrange(len(LANES))]))
    last = view.events[-1].seq
    events = (*view.events, *(_event(last + number) for number in range(1, _NEW_EVENTS + 1)))[-_EVENTS:]
    return replace(
        view,
        version=view.version + 1,
        clock=f"00:00:{view.version // 4 % 60:02d}Z",
        agents=tuple(living),
        cards=tuple(cards),
        events=events,
    )


def cycle(agents: int, cards: int, seed: int) -> list[RoomView]:
    """The pictures, in order."""
    rng = random.Random(seed)
    offices = [_office(HERMES.kind, len(PARENTS)), *(_office(kind, agents // len(PARENTS)) for kind in PARENTS)]
    view = RoomView(
        version=1,
        fleet="bench",
        clock="00:00:00Z",
        agents=(*offices, *(_child(rng, number) for number in range(agents))),
        cards=tuple(_card(number, agents) for number in range(cards)),
        events=tuple(_event(seq) for seq in range(1, _EVENTS + 1)),
        ledger=LedgerView(size=3 * agents, root="9f2c" * 16, verdict="VALID", verified=3 * agents),
    )
    found = [view]
    for _ in range(CYCLE - 1):
        found.append(_move_on(rng, found[-1], agents))
    return found


class _Door:
    """Shows the next picture at every pull, so that the screen is measured and not whoever makes pictures."""

    def __init__(self, pictures: list[RoomView]) -> None:
        self._pictures = pictures
        self._shown = 0

    async def room(self) -> RoomView:
        """The next picture, with a version that goes on rising when the cycle begins anew."""
        view = self._pictures[self._shown % len(self._pictures)]
        self._shown += 1
        return replace(view, version=self._shown)

    async def living(self) -> int:
        """Nothing here has to be ended by anyone."""
        return 0

    def __getattr__(self, name: str) -> object:
        raise Refused(name, "a benchmark's council only shows pictures")


def door(pictures: list[RoomView]) -> CouncilDoor:
    """A door that offers what the room pulls and refuses everything else."""
    return cast("CouncilDoor", _Door(pictures))
