"""Views made of the board's rows alone, for whoever reads them without a supervisor beside."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from council_tui.control.swarms import with_swarms
from council_tui.control.views import AgentView, CardView
from council_tui.domain.card import WAITING_BLOCKS
from council_tui.domain.heartbeat import Standing
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
_HANGS: dict[str, Health] = {"late": "late", "stalled": "stalled"}
_BEFORE = ("starting", "greeted", "delegated", "claimed", "verified", "accepted")


def health_of(agent: Agent, outcome: str | None, *, alive: bool) -> Health:
    """One word for a row. `outcome`: its run's; `alive`: whether a supervisor owns the home now."""
    if outcome is None and (not agent.ended or agent.phase == "reaping"):
        if not alive:
            return "orphan"
        found = "offered" if agent.phase in _BEFORE else _PHASE_HEALTH.get(agent.phase, "failed")
        return _HANGS.get(agent.standing, found) if found == "alive" else found
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
    below = [_agent(tables, agent, above, children.get(agent.name, 0), alive) for agent, above in shown]
    return (top, *with_swarms(below, tables))


def _agent(tables: Tables, agent: Agent, parent: str, children: int, alive: bool) -> AgentView:
    run = tables.runs.get(agent.run)
    # Its runner may be gone while something of it will not die.
    left = agent.ended and agent.phase != "reaping"
    ended = left or (run is not None and run.ended is not None)
    lived, fail, reason = end_of(run)
    if run is not None and not ended:
        reason = safe(run.reason, 300)
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
        ttl_seconds=_ttl(tables, agent, run) if alive and not ended else None,
        enforcement=agent.enforcement,
        status=agent.status,
        ended=ended or not alive,
        lived_seconds=lived,
        fail=fail,
        reason=reason,
        standing=str(agent.standing if ended or alive else Standing.UNKNOWN),
    )


def _ttl(tables: Tables, agent: Agent, run: Run | None) -> float | None:
    """Seconds left to live by the clock of the wall, as far as the board knows; None while its clocks stand still."""
    if run is None or run.acknowledged is None or agent.phase == "frozen":
        return None
    card = tables.cards.get(run.card)
    minutes = card.order.get("envelope", {}).get("time_budget_minutes") if card and card.kind != "office" else None
    limits = [run.contract.get("lifecycle_policy", {}).get("run_ttl_seconds"), minutes and minutes * 60]
    known = [limit for limit in limits if limit is not None]
    lived = (datetime.now(UTC) - datetime.fromisoformat(run.acknowledged)).total_seconds()
    return max(0.0, min(known) - lived) if known else None


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


def card_view(card: Card, now: datetime, waits: str = "") -> CardView:
    """A card of the board as screens show it. `waits`: why it does not start though its turn has come."""
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
        reason=safe(card.reason or waits, 300),
        after=tuple(card.after),
        kind=card.kind,
        swarm=(card.order.get("member") or {}).get("swarm", ""),
        priority=card.priority,
        findings=card.findings,
        entry=card.entry,
        age_seconds=max(0.0, age),
    )
