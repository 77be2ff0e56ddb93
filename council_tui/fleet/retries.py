"""What the end of an attempt is followed by: another one and when, a pause that nobody counts, or none any more."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from council_tui.board.board import Draft
from council_tui.domain.card import RETRYABLE, BlockKind, CardState, FailKind
from council_tui.domain.events import EventKind
from council_tui.domain.rate_limit import MOST_TIMES, rate_limited
from council_tui.domain.text import counted, safe
from council_tui.fleet.brake import HOLDS, IN_WORDS, SUSTAINED_SECONDS, WINDOW_SECONDS, Brake

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from council_tui.board.projection import Card
    from council_tui.domain.lifecycle import Outcome
    from council_tui.supervisor.seat import Seat
    from council_tui.supervisor.supervisor import Supervisor

K = EventKind
RETRY_BASE_SECONDS = 10.0
RETRY_MAX_SECONDS = 300.0
_SLACK = 0.1
"""Seconds after which the brake is open for certain, whatever a float makes of the moment itself."""


def retry_delay(attempt: int) -> float:
    """Seconds before the next attempt: 10 s doubled with each one, at most 5 minutes."""
    return float(min(RETRY_BASE_SECONDS * 2 ** (attempt - 1), RETRY_MAX_SECONDS))


def may_retry(card: Card, fail: str | None) -> bool:
    """Whether a failed attempt is followed by another: only what is no answer, and only so often."""
    return fail is not None and FailKind(fail) in RETRYABLE and card.attempt < card.attempts


def what_runs(order: Mapping[str, Any]) -> str:
    """What a card has in common with all others that run the same, for the brake and for people."""
    run = order.get("run") or ()
    return f"`{shlex.join(run)}`" if run else f"{order.get('container')} {order.get('fault') or ''}".strip()


@dataclass(frozen=True)
class Kept:
    """A card that may not start now."""

    reason: str
    for_good: bool


class Retries:
    """Keeps the times of one fleet. `over`: whether nothing is tried again any more."""

    def __init__(self, supervisor: Supervisor, over: Callable[[], bool]) -> None:
        self._sup = supervisor
        self._over = over
        self._brake = Brake()
        self._due: dict[str, float] = {}
        """When a card's turn comes again, on the supervisor's clock."""

    def resume(self) -> None:
        """Take up what waits and count what has failed lately, where the board knows of it from before."""
        tables, now = self._sup.board.tables, self._sup.clock()
        wall = datetime.fromisoformat(self._sup.board.now())
        for run in tables.runs.values():
            card = tables.cards.get(run.card)
            if card is None or run.ended is None or run.outcome not in RETRYABLE:
                continue
            ago = (wall - datetime.fromisoformat(run.ended)).total_seconds()
            if 0 <= ago < WINDOW_SECONDS:
                self._brake.failed(card.id, now - ago)
                self._brake.failed(what_runs(card.order), now - ago)
        for card in list(tables.cards.values()):
            if card.block == BlockKind.TRANSIENT and card.kind != "office":
                self._due.setdefault(card.id, now + retry_delay(max(1, card.attempt)))
            elif card.state is CardState.FAILED and may_retry(card, card.fail):
                # It failed while there was no fleet to say what follows.
                self._again(card)

    def _again(self, card: Card) -> None:
        parent = self._sup.by_agent.get(card.parent_agent)
        if parent is not None and parent.can_parent and not self._brake.would_close(card.id, self._sup.clock()):
            delay = retry_delay(card.attempt)
            self._later(card, delay, K.CARD_RETRY, {"attempt": card.attempt, "delay_seconds": delay})

    def delay(self, seat: Seat, outcome: Outcome) -> float | None:
        """Seconds after which a run that ends like this is followed by another; None when it is not."""
        card = self._sup.board.tables.cards.get(seat.card)
        if card is None or self._over() or seat.parent not in self._sup.by_agent:
            return None
        if outcome.block is BlockKind.TRANSIENT:
            asked = rate_limited(card.result, card.result.get("exit_status"))
            return asked if card.limited < MOST_TIMES else None
        if not may_retry(card, outcome.fail) or self._loops(seat):
            return None
        return retry_delay(card.attempt)

    def _loops(self, seat: Seat) -> bool:
        return not self._sustained(seat) and self._brake.would_close(seat.card, self._sup.clock())

    def _sustained(self, seat: Seat) -> bool:
        began = seat.state.acknowledged
        return began is not None and self._sup.clock() - began >= SUSTAINED_SECONDS

    def settled(self, seat: Seat) -> bool:
        """Decide what follows on the end of a run; whether the card is over with it."""
        card, outcome = self._sup.board.tables.cards.get(seat.card), seat.state.outcome
        if card is None or outcome is None:
            return True
        delay = self.delay(seat, outcome)
        if outcome.block is BlockKind.TRANSIENT:
            self._turned_away(card, delay)
            return delay is None
        loops = may_retry(card, outcome.fail) and self._loops(seat)
        if outcome.fail is None and outcome.block is None:
            self._brake.sustained(what_runs(card.order))
        elif not self._over() and seat.parent in self._sup.by_agent:
            self._count(seat, card, outcome)
        if delay is not None:
            held = self._brake.held(what_runs(card.order), self._sup.clock())
            data = {"attempt": card.attempt, "delay_seconds": round(max(delay, held), 1)}
            self._later(card, max(delay, held), K.CARD_RETRY, {**data, "why": IN_WORDS} if held > delay else data)
        elif loops:
            self._fail(card, str(outcome.fail), f"{IN_WORDS}; the last one: {outcome.reason}")
        return delay is None

    def _count(self, seat: Seat, card: Card, outcome: Outcome) -> None:
        """An attempt that crashed counts for its card and for what it ran; an answer, good or bad, does not."""
        crashed = outcome.fail is FailKind.ERROR and seat.body_status[1] is not None
        if outcome.fail not in RETRYABLE and not crashed:
            return
        now, command = self._sup.clock(), what_runs(card.order)
        for what, words in ((card.id, card.plan_id), (command, command)):
            if self._sustained(seat):
                self._brake.sustained(what)
            if self._brake.failed(what, now):
                held = round(self._brake.held(what, now), 1)
                data = {"of": safe(words, 200), "reason": IN_WORDS, "held_seconds": held}
                self._sup.board.append(Draft(K.CRASH_LOOP, self._sup.hermes, card.id, None, data))

    def _turned_away(self, card: Card, delay: float | None) -> None:
        if delay is None:
            if not self._over():
                self._fail(card, FailKind.ERROR, f"rate limited, and tried again {counted(card.limited, 'time')}")
            return
        self._later(card, delay, K.RATE_LIMITED, {"times": card.limited + 1, "delay_seconds": delay})

    def _later(self, card: Card, delay: float, kind: EventKind, data: dict[str, Any]) -> None:
        self._due[card.id] = self._sup.clock() + delay
        until = {"until": self._wall(delay)}
        self._sup.board.append(Draft(kind, self._sup.hermes, card.id, None, {**data, **until}))

    def _wall(self, seconds: float) -> str:
        """The time of day in so many seconds, for people."""
        at = datetime.fromisoformat(self._sup.board.now()) + timedelta(seconds=seconds)
        return f"{at:%H:%M:%S}Z"

    def _fail(self, card: Card, fail: str, reason: str) -> None:
        data = {"fail": str(fail), "reason": safe(reason, 300)}
        self._sup.board.append(Draft(K.CARD_FAILED, self._sup.hermes, card.id, None, data))

    def may_reopen(self, kind: str) -> bool:
        """Count one death of an office; whether it is to be opened again."""
        now, what = self._sup.clock(), f"office {kind}"
        self._brake.failed(what, now)
        return not self._over() and not self._brake.held(what, now)

    def kept(self, card: Card) -> Kept | None:
        """Whether the brake keeps a card from starting, and why; its turn then comes again by itself."""
        now, command = self._sup.clock(), what_runs(card.order)
        seconds = self._brake.held(command, now)
        if not seconds:
            return None
        words = f"{IN_WORDS} of {safe(command, 80)}"
        if self._brake.given_up(command):
            return Kept(f"{words}, {HOLDS} times over", for_good=True)
        self._due[card.id] = now + seconds + _SLACK
        return Kept(f"{words}; next try at {self._wall(seconds)}", for_good=False)

    def due(self) -> list[str]:
        """Cards whose time has come; each is told once."""
        now, cards = self._sup.clock(), self._sup.board.tables.cards
        come = [name for name, at in self._due.items() if at <= now]
        for name in come:
            del self._due[name]
        return [name for name in come if (card := cards.get(name)) and card.block == BlockKind.TRANSIENT]

    def next_in(self, at_most: float) -> float:
        """Seconds until the next card's time comes, if that is sooner."""
        return max(0.0, min([at_most, *(at - self._sup.clock() for at in self._due.values())]))
