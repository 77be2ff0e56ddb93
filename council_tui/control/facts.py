"""Facts of an agent or a card as (name, value) pairs; an empty name starts a group with the value as heading."""

from __future__ import annotations

from typing import TYPE_CHECKING

from council_tui.control.rows import end_of
from council_tui.domain.card import CardState
from council_tui.domain.heartbeat import Standing, standing
from council_tui.domain.text import safe, span

if TYPE_CHECKING:
    from council_tui.board.projection import Agent, Card, Run
    from council_tui.supervisor.seat import Seat

MIB = 1024 * 1024


def end_facts(run: Run | None, agent: Agent) -> list[tuple[str, str]]:
    """How it ended, and what it said of itself last; nothing of one that has not ended."""
    lived, fail, reason = end_of(run)
    if run is None or lived is None:
        return []
    facts = [("", "end"), ("outcome", fail.replace("_", " ") or "done")]
    if reason:
        facts.append(("reason", reason))
    facts.append(("lived", f"{lived:.0f} s" if lived >= 1 else "under a second"))
    return [*facts, ("said last", agent.status)] if agent.status else facts


def standing_of(seat: Seat, now: float) -> Standing:
    """Whether a living agent hangs, and how. `now`: on the supervisor's clock."""
    state = seat.state
    if state.frozen_since is not None:
        now = state.frozen_since
    silence = None if state.last_beat is None else now - state.last_beat
    idle = None if state.progress is None else now - state.progress
    gone = seat.exited.is_set() and seat.unkillable is None
    return standing(silence, state.timing.interval, idle=idle, stall=state.timing.stall, gone=gone)


def standing_facts(seat: Seat, now: float) -> list[tuple[str, str]]:
    """How a living agent stands, when it last got on with its work, and what of it will not die."""
    facts = [("stands", str(standing_of(seat, now)))]
    if seat.state.progress is not None:
        idle = max(0.0, now - seat.state.progress)
        facts.append(("work seen", f"{span(idle)} ago; stalled after {seat.state.timing.stall:g} s without"))
    left = why_not_over(seat, now)
    return [*facts, ("will not die", left)] if left else facts


def why_not_over(seat: Seat, now: float) -> str:
    """Why the end of an agent does not come, in a sentence; nothing while it may."""
    if seat.unkillable is not None:
        return seat.unkillable.reason(now)
    return "something below it will not die" if seat.stuck.is_set() else ""


def slice_facts(seat: Seat) -> list[tuple[str, str]]:
    """How full its slice is, and what it says of itself."""
    used, limit = seat.slice_used, seat.context.memory_slice.limit_bytes
    kind = "hard" if "hard slice" in seat.enforcement else "soft"
    return [
        ("slice", f"{used / MIB:,.1f} of {limit / MIB:,.0f} MiB used, {kind} ceiling"),
        ("status", seat.status or "none"),
    ]


def contract_facts(contract: dict[str, object]) -> list[tuple[str, str]]:
    """The families as the agent's screen shows them."""
    facts: list[tuple[str, str]] = []
    for family in ("memory_slice", "resource_limits", "inheritance", "kanban_handoff", "lifecycle_policy"):
        values = contract.get(family)
        if not isinstance(values, dict):
            continue
        facts.append(("", family.replace("_", " ")))
        for key, value in values.items():
            if value not in (None, "", []):
                shown = ", ".join(str(v) for v in value) if isinstance(value, list) else str(value)
                facts.append((key.replace("_", " "), safe(shown, 300)))
    if "sha256" in contract:
        facts += [("", "contract"), ("sha256", str(contract["sha256"]))]
    return facts


def result_lines(card: Card) -> tuple[str, ...]:
    """What a card's report found, and its evidence."""
    lines: list[str] = []
    for finding in card.result.get("findings", ()):
        if isinstance(finding, dict):
            where = f"{finding.get('path', '')}:{finding.get('line', '')}".strip(":")
            words = finding.get("title") or finding.get("description") or "finding"
            lines.append(safe(f"{finding.get('severity', 'INFO')}  {words}  {where}", 300))
    lines += [safe(f"evidence  {item}", 300) for item in card.result.get("evidence", ()) if isinstance(item, str)]
    if card.state is CardState.DONE and not lines:
        lines.append("no findings")
    return tuple(lines)
