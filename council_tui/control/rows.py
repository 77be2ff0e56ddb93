"""Views made of the board's rows alone, for whoever reads them without a supervisor beside."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from council_tui.control.views import AgentView, CardView
from council_tui.domain.card import WAITING_BLOCKS
from council_tui.domain.hierarchy import PARENTS
from council_tui.domain.text import safe

if TYPE_CHECKING:
    from council_tui.board.projection import Agent, Card, Run, Tables
    from council_tui.control.views import Health

_PHASE_HEALTH: dict[str, Health] = {
    "running": "alive",
    "returned": "alive",
    "reported": "alive",
    "held": "held",
    "frozen": "frozen",
    "orphaned": "orphan",
}
_BEFORE = ("starting", "greeted", "delegated", "claimed", "verified", "accepted")


def health_of(agent: Agent, outcome: str | None, *, alive: bool) -> Health:
    """One word for a row. `outcome`: its run's; `alive`: whether a supervisor owns the home now."""
    if not agent.ended and outcome is None:
        if not alive:
            return "orphan"
        return "offered" if agent.phase in _BEFORE else _PHASE_HEALTH.get(agent.phase, "failed")
    return ended_health(outcome)


def ended_health(outcome: str | None) -> Health:
    """One word for an agent that is gone, by the outcome of its run."""
    if outcome in (None, "done"):
        return "ended"
    if outcome == "orphaned":
        return "orphan"
    return "waiting" if outcome in WAITING_BLOCKS else "failed"


def agents_of(tables: Tables, hermes: str, *, alive: bool) -> tuple[AgentView, ...]:
    """Hermes, its three offices as they were opened last, and everything below them."""
    newest: dict[str, str] = {agent.kind: agent.name for agent in tables.agents.values() if agent.kind in PARENTS}
    shown: list[tuple[Agent, str]] = []
    for agent in tables.agents.values():
        if newest.get(agent.kind, agent.name) != agent.name:
            continue
        parent = agent.parent or ""
        # Children of an earlier session's office hang below the one that holds that office now.
        above = hermes if agent.kind in PARENTS else newest.get(parent.partition(":")[0], parent)
        shown.append((agent, above))
    children: dict[str, int] = {}
    for _, parent in shown:
        children[parent] = children.get(parent, 0) + 1
    order = {kind: index for index, kind in enumerate(PARENTS)}
    shown.sort(key=lambda pair: order.get(pair[0].kind, len(order)))
    top = AgentView(
        name=hermes,
        label="Hermes",
        kind="hermes",
        parent=None,
        health="alive" if alive else "ended",
        phase="dispatching" if alive else "ended",
        children=children.get(hermes, 0),
    )
    return (top, *(_agent(tables, agent, above, children.get(agent.name, 0), alive) for agent, above in shown))


def _agent(tables: Tables, agent: Agent, parent: str, children: int, alive: bool) -> AgentView:
    run = tables.runs.get(agent.run)
    ended = agent.ended or (run is not None and run.ended is not None)
    lived, fail, reason = end_of(run)
    return AgentView(
        name=agent.name,
        label=agent.label,
        kind=agent.kind,
        parent=parent,
        health=health_of(agent, run.outcome if run else None, alive=alive),
        phase=agent.phase if ended or alive else f"{agent.phase}, supervisor gone",
        card=agent.card,
        run=agent.run,
        pid=run.pid if run is not None and not ended else None,
        children=children,
        enforcement=agent.enforcement,
        status=agent.status,
        ended=ended or not alive,
        lived_seconds=lived,
        fail=fail,
        reason=reason,
    )


def end_of(run: Run | None) -> tuple[float | None, str, str]:
    """(seconds lived, fail or block kind, why) of a run; nothing of one that has not ended."""
    if run is None or run.ended is None:
        return None, "", ""
    lived = (datetime.fromisoformat(run.ended) - datetime.fromisoformat(run.started)).total_seconds()
    fail = "" if run.outcome in (None, "done") else run.outcome
    return max(0.0, lived), fail, safe(run.reason, 300)


def cards_of(tables: Tables) -> tuple[CardView, ...]:
    """Every card but the offices' own, in the order in which they were made."""
    now = datetime.now(UTC)
    cards = sorted((c for c in tables.cards.values() if c.kind != "office"), key=lambda c: c.created)
    return tuple(card_view(card, now) for card in cards)


def card_view(card: Card, now: datetime) -> CardView:
    """A card of the board as screens show it."""
    age = (now - datetime.fromisoformat(card.moved)).total_seconds()
    return CardView(
        id=card.id,
        title=safe(card.title, 200),
        state=str(card.state),
        label=card.plan_id,
        parent_agent=card.parent_agent,
        agent=card.agent,
        run=card.run,
        attempt=card.attempt,
        block=card.block,
        fail=card.fail,
        reason=safe(card.reason, 300),
        after=tuple(card.after),
        kind=card.kind,
        priority=card.priority,
        findings=card.findings,
        entry=card.entry,
        age_seconds=max(0.0, age),
    )
