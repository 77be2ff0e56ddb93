"""The three parents as orders: Hermes hands each its standing card, and they are born like any other agent."""

from __future__ import annotations

from council_tui.domain.envelope import Envelope
from council_tui.domain.hierarchy import KINDS, PARENTS
from council_tui.domain.order import Order

_TEMPERS = {"openfang": "ISTJ", "openclaw": "ENFP", "zeroclaw": "INTJ"}
"""Each office's type; the seed leaves them open, so these are ours."""
HEARTBEAT_SECONDS = 2.0


def office_order(kind: str) -> Order:
    """The order by which one of the Council of Three opens its office."""
    office = KINDS[kind]
    return Order(
        id=kind,
        title=f"{office.title}: {office.duty}",
        parent="hermes",
        kind="office",
        retries=0,
        context={
            "inheritance": {"mbti_type": _TEMPERS[kind], "style_guide": kind},
            "lifecycle_policy": {
                "parent_heartbeat_interval_seconds": HEARTBEAT_SECONDS,
                "child_timeout_seconds": 30,
            },
            "memory_slice": {"memory_limit_mb": 16},
        },
        envelope=Envelope(
            task_name=f"office-{kind}",
            task_description=f"Hold {office.title}'s office: take orders, make cards, delegate, and answer for them.",
            time_budget_minutes=7 * 24 * 60,
            evidence_required=False,
            autonomy_band="AUTONOMOUS",
            tools_scope=("spawn", "delegate"),
            rollback_plan="No changes - an office only makes cards",
        ),
    )


OFFICES: tuple[Order, ...] = tuple(office_order(kind) for kind in PARENTS)
