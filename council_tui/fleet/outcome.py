"""The exit code of a fleet: which of several truths is told first (product.md, "Exit codes")."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from council_tui.domain.card import WAITING_BLOCKS, BlockKind, CardState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from council_tui.board.projection import Card

DONE, FAILED, BAD_INPUT, WAITING, BUDGET, UNCLEAN, INTERNAL, INTERRUPTED = 0, 1, 2, 3, 4, 5, 70, 130


@dataclass(frozen=True)
class Ending:
    """How a fleet ended: what the summary says and the exit code follows from."""

    exit: int
    cards: dict[str, int]
    failed: tuple[dict[str, Any], ...] = ()
    waiting: tuple[dict[str, Any], ...] = ()
    ledger: dict[str, Any] = field(default_factory=dict)
    audit: dict[str, Any] = field(default_factory=dict)
    budget: dict[str, Any] = field(default_factory=dict)
    report: str | None = None
    """Path of the fleet's report."""
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        """The fields of the summary line."""
        return {
            "exit": self.exit,
            "cards": self.cards,
            "failed": list(self.failed),
            "waiting": list(self.waiting),
            "ledger": self.ledger,
            "audit": self.audit,
            "budget": self.budget,
            "report": self.report,
            "reason": self.reason,
        }


def clean(audit: dict[str, Any], ledger: dict[str, Any]) -> bool:
    """Whether nothing is left: no process, claim, unsigned report or file, and a ledger that verifies."""
    left = any(audit.get(key) for key in ("descendants", "open_claims", "unsigned_reports", "slices"))
    return not left and ledger.get("verdict") == "VALID"


def ending(
    cards: Iterable[Card],
    *,
    audit: dict[str, Any],
    ledger: dict[str, Any],
    budget: dict[str, Any],
    interrupted: bool = False,
    fault: str = "",
    report: str | None = None,
) -> Ending:
    """Weigh everything; of several codes 130, 70, 2, 5, 4, 1, 3, 0 the first that applies wins."""
    own = [card for card in cards if card.kind != "office"]
    failed = [c for c in own if c.state is CardState.FAILED or c.block == BlockKind.CAPABILITY]
    waiting = [c for c in own if c.block in WAITING_BLOCKS]
    spent = any(c.block == BlockKind.BUDGET for c in own) or budget.get("exhausted", False)
    stuck = [c for c in own if c.state is not CardState.DONE and c not in failed and c not in waiting]
    code = DONE
    for applies, value in (
        (interrupted, INTERRUPTED),
        (bool(fault), INTERNAL),
        (not clean(audit, ledger), UNCLEAN),
        (spent, BUDGET),
        (bool(failed), FAILED),
        (bool(waiting), WAITING),
        (bool(stuck), FAILED),
    ):
        if applies:
            code = value
            break
    return Ending(
        exit=code,
        cards=dict(Counter(str(c.state) for c in own)),
        failed=tuple(_line(c, str(c.fail or c.block)) for c in failed),
        waiting=tuple(_line(c, str(c.block)) for c in waiting),
        ledger=ledger,
        audit=audit,
        budget=budget,
        report=report,
        reason=fault,
    )


def _line(card: Card, kind: str) -> dict[str, Any]:
    return {
        "card": card.id,
        "child": card.plan_id,
        "kind": kind,
        "reason": card.reason,
        "attempts": card.attempt,
    }
