"""The board's rules: which lanes there are and which moves between them are legal."""

from __future__ import annotations

from enum import StrEnum

from council_tui.domain.errors import IllegalMove


class CardState(StrEnum):
    """A lane of the board (product.md, "The board")."""

    BACKLOG = "backlog"
    READY = "ready"
    CLAIMED = "claimed"
    RUNNING = "running"
    REVIEW = "review"
    DONE = "done"
    BLOCKED = "blocked"
    FAILED = "failed"
    ARCHIVED = "archived"


class BlockKind(StrEnum):
    """Why a card waits."""

    DEPENDENCY = "dependency"
    NEEDS_INPUT = "needs_input"
    HOLD = "hold"
    CAPABILITY = "capability"
    TRANSIENT = "transient"
    BUDGET = "budget"


class FailKind(StrEnum):
    """How a card failed."""

    REJECTED = "rejected"
    ORPHANED = "orphaned"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    PROTOCOL_VIOLATION = "protocol_violation"
    ERROR = "error"


LANES: tuple[CardState, ...] = (
    CardState.BACKLOG,
    CardState.READY,
    CardState.CLAIMED,
    CardState.RUNNING,
    CardState.REVIEW,
    CardState.DONE,
    CardState.BLOCKED,
    CardState.FAILED,
)
"""The lanes a screen shows, in order."""

OPEN_STATES = frozenset({CardState.BACKLOG, CardState.READY, CardState.CLAIMED, CardState.RUNNING, CardState.REVIEW})
"""States in which the fleet still has something to do for the card."""

OWNED_STATES = frozenset({CardState.CLAIMED, CardState.RUNNING, CardState.REVIEW})
"""States in which exactly one run holds the card's claim."""

WAITING_BLOCKS = frozenset({BlockKind.NEEDS_INPUT, BlockKind.HOLD})
"""Blocks that only a person ends; they make exit code 3."""

RETRYABLE = frozenset({FailKind.ORPHANED, FailKind.PROTOCOL_VIOLATION})
"""Failures of the attempt rather than of the work: a signed ERROR is an answer and is not retried."""

_B, _R, _C, _U, _V = (
    CardState.BACKLOG,
    CardState.READY,
    CardState.CLAIMED,
    CardState.RUNNING,
    CardState.REVIEW,
)
_MOVES: dict[CardState, frozenset[CardState]] = {
    _B: frozenset({_R, CardState.BLOCKED, CardState.FAILED}),
    _R: frozenset({_B, _C, CardState.BLOCKED, CardState.FAILED}),
    _C: frozenset({_R, _U, CardState.BLOCKED, CardState.FAILED}),
    _U: frozenset({_R, _V, CardState.BLOCKED, CardState.FAILED}),
    _V: frozenset({_R, CardState.DONE, CardState.BLOCKED, CardState.FAILED}),
    CardState.DONE: frozenset({CardState.ARCHIVED}),
    CardState.BLOCKED: frozenset({_B, _R, CardState.FAILED, CardState.ARCHIVED}),
    CardState.FAILED: frozenset({_R, CardState.BLOCKED, CardState.ARCHIVED}),
    CardState.ARCHIVED: frozenset(),
}


def can_move(now: CardState, then: CardState) -> bool:
    """Whether a card may go from one lane to another."""
    return then in _MOVES[now]


def check_move(card: str, now: CardState, then: CardState) -> None:
    """Raise `IllegalMove` unless the card may go from `now` to `then`."""
    if not can_move(now, then):
        raise IllegalMove(f"card {card}: {now} > {then} is not a legal move")
