"""Whose turn it is: a pure look at the board that says which cards move and which may start."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from council_tui.domain.card import OPEN_STATES, RETRYABLE, BlockKind, CardState, FailKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from council_tui.board.projection import Card
    from council_tui.fleet.plan import Limits

RETRY_BASE_SECONDS = 10.0
RETRY_MAX_SECONDS = 300.0


def retry_delay(attempt: int) -> float:
    """Seconds before the next attempt: 10 s doubled with each one, at most 5 minutes."""
    return float(min(RETRY_BASE_SECONDS * 2 ** (attempt - 1), RETRY_MAX_SECONDS))


def may_retry(card: Card, fail: str | None) -> bool:
    """Whether a failed attempt is followed by another: only what is no answer, and only so often."""
    return fail is not None and FailKind(fail) in RETRYABLE and card.attempt < card.attempts


@dataclass
class Turn:
    """What should happen now."""

    ready: list[str] = field(default_factory=list)
    """Cards whose dependencies are done."""
    blocked: list[tuple[str, str]] = field(default_factory=list)
    """Cards that wait for something that will not come, with the reason."""
    start: list[str] = field(default_factory=list)


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


def _free(order_kind: str, parent: str, taken: Mapping[str, int], below: Mapping[str, int], limits: Limits) -> bool:
    if below.get(parent, 0) >= limits.children_per_parent:
        return False
    limit = limits.microsharks if order_kind == "microshark" else limits.concurrency
    return taken.get(order_kind, 0) < limit


def look(
    cards: Mapping[str, Card],
    living: Iterable[tuple[str, str]],
    busy: set[str],
    limits: Limits,
    *,
    paused: bool,
) -> Turn:
    """One look at the board. `living`: (kind, parent agent) of every run below the offices.

    `busy`: cards that have such a run; a card stays ready until the child itself claims it.
    """
    turn = Turn()
    taken: dict[str, int] = {}
    below: dict[str, int] = {}
    for kind, parent in living:
        taken[kind] = taken.get(kind, 0) + 1
        below[parent] = below.get(parent, 0) + 1
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
    if paused:
        return turn
    for card in sorted(waiting, key=lambda c: (-c.priority, c.created)):
        if _free(card.kind, card.parent_agent, taken, below, limits):
            turn.start.append(card.id)
            taken[card.kind] = taken.get(card.kind, 0) + 1
            below[card.parent_agent] = below.get(card.parent_agent, 0) + 1
    return turn


def unfinished(cards: Iterable[Card]) -> bool:
    """Whether the fleet still has something to do without a person."""
    return any(
        card.kind != "office" and (card.state in OPEN_STATES or card.block == BlockKind.TRANSIENT) for card in cards
    )
