"""A swarm: many microsharks that a parent asks for in one contract, and how many Hermes grants of it.

Microshark count, time to live and budget are Hermes' to grant (the dodecahedron constrains the swarm). The
rule is a pure function, so that a rehearsal and a real fleet say the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from council_tui.domain.hierarchy import MICROSHARK_TTL_SECONDS
from council_tui.domain.order import Member, Order
from council_tui.domain.text import counted

SHORTEST_SECONDS = 1.0
"""What a budget must leave for anybody to be started."""
_MILLI = 1000


@dataclass(frozen=True)
class Room:
    """What a fleet leaves for more microsharks at one moment."""

    limit: int
    """`limits.microsharks`."""
    taken: int = 0
    """Microsharks that live, or that were granted and are still to come."""
    seconds: float | None = None
    """Left of the fleet's budget; None where it has none."""

    @property
    def free(self) -> int:
        """How many more there may be."""
        return max(0, self.limit - self.taken)


@dataclass(frozen=True)
class SwarmGrant:
    """Hermes' answer to a parent that asked for a swarm; nothing granted is a refusal."""

    granted: int
    ttl_seconds: float
    """What each member may live at the most, after it has acknowledged."""
    reason: str = ""
    """Why it is less than was asked for; empty when it is not."""


def decide(order: Order, room: Room) -> SwarmGrant:
    """How many members a swarm gets, and for how long: never more than was asked for or than there is room for.

    Less than was asked for is granted only down to the order's `at_least`; below that it is nothing at all.
    """
    asked = order.count or 0
    ttl, short = _time(order, room)
    if short and ttl < SHORTEST_SECONDS:
        return SwarmGrant(0, 0.0, short)
    granted = min(asked, room.free)
    if granted == asked:
        return SwarmGrant(granted, ttl, short)
    few = _few(asked, room)
    least = asked if order.at_least is None else order.at_least
    if granted == 0 or granted < least:
        needs = f"; it needs at least {least}" if order.at_least is not None else ""
        return SwarmGrant(0, 0.0, few + needs)
    return SwarmGrant(granted, ttl, "; ".join(filter(None, (few, short))))


def asked_ttl(order: Order) -> float:
    """Seconds that a microshark of this order may live, as far as its plan and the hierarchy say."""
    policy = order.context.get("lifecycle_policy") or {}
    return float(min(policy.get("run_ttl_seconds") or MICROSHARK_TTL_SECONDS, MICROSHARK_TTL_SECONDS))


def _time(order: Order, room: Room) -> tuple[float, str]:
    """(time to live, why it is shorter than was asked for): nobody of a swarm outlives the fleet's budget."""
    asked = asked_ttl(order)
    if room.seconds is None or room.seconds >= asked:
        return asked, ""
    # Down to the millisecond: rounded up it would be more than is left.
    left = math.floor(max(0.0, room.seconds) * _MILLI) / _MILLI
    return left, f"the budget leaves {left:g} s of the {asked:g} s that each may live"


def _few(asked: int, room: Room) -> str:
    taken = f", of which {counted(room.taken, 'is', 'are')} taken" if room.taken else ""
    return f"asked for {asked:,}; limits.microsharks is {room.limit:,}{taken}"


def member_id(swarm: str, index: int) -> str:
    """What the board calls a member, counted from 1: `probe-7`."""
    return f"{swarm}-{index}"


def members(order: Order, grant: SwarmGrant) -> tuple[Order, ...]:
    """The orders of the granted members. Raises pydantic's ValidationError when a name gets too long.

    `{index}` and `{count}` in the command, the title and the task become the member's number and how many there
    are: digits in place, never through a shell.
    """
    return tuple(_member(order, index, grant) for index in range(1, grant.granted + 1))


def _member(order: Order, index: int, grant: SwarmGrant) -> Order:
    def filled(text: str) -> str:
        return text.replace("{index}", str(index)).replace("{count}", str(grant.granted))

    name = member_id(order.id, index)
    title = filled(order.title)
    if title == order.title:
        title = name if title == order.id else f"{title} ({index} of {grant.granted})"
    policy = {**(order.context.get("lifecycle_policy") or {}), "run_ttl_seconds": grant.ttl_seconds}
    task = filled(order.envelope.task_description)
    return Order.model_validate(
        {
            **{field: getattr(order, field) for field in type(order).model_fields},
            "id": name,
            "title": title,
            "run": tuple(filled(word) for word in order.run),
            "context": {**order.context, "lifecycle_policy": policy},
            "envelope": order.envelope.model_copy(update={"task_description": task}),
            "count": None,
            "at_least": None,
            "member": Member(swarm=order.id, index=index, of=grant.granted),
        }
    )
