"""The fleet as lines of text: a tree of offices and cards with how each stands, for any width from 40 cells up."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from council_tui.control.swarms import standing as swarm_standing
from council_tui.domain.hierarchy import KINDS, PARENTS
from council_tui.domain.ids import agent_label, agent_type
from council_tui.domain.text import counted, span
from council_tui.headless.signs import (
    ALIVE,
    BAD,
    GOOD,
    HEALTH_STYLE,
    LATE,
    QUIET,
    STRONG,
    TONES,
    Signs,
    clock,
    standing,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from council_tui.control.views import AgentView, CardView, EventView, RoomView

WIDE = 80
"""From this width on a row has room for heartbeats."""
MOST_MEMBERS = 12
"""Of one swarm that have rows of their own."""
MOST_WRONG = 5
"""Of a larger one that have, because they went wrong."""
_WORD = 9
_SPARK = 10


@dataclass(frozen=True)
class Row:
    """A line of the tree: an office, or a card with the agent that has it."""

    prefix: str
    agent: AgentView | None = None
    card: CardView | None = None


def tree(agents: Sequence[AgentView], cards: Sequence[CardView], signs: Signs) -> list[Row]:
    """Hermes, the offices, their cards, and the cards of microsharks below those."""
    by_name = {agent.name: agent for agent in agents}
    offices = {agent.kind: agent for agent in agents if agent.kind in PARENTS}
    labels = {card.label: card.id for card in cards if card.kind == "child"}
    below: dict[str, list[CardView]] = {}
    for card in cards:
        kind = agent_type(card.parent_agent)
        top = kind if kind in offices else labels.get(agent_label(card.parent_agent), "hermes")
        below.setdefault(top, []).append(card)
    rows = [Row("", agent=agent) for agent in agents if agent.kind == "hermes"]

    def hang(key: str, stem: str, first: Iterable[tuple[str, AgentView]] = ()) -> None:
        items: list[tuple[str, AgentView | None, CardView | None]] = [(k, a, None) for k, a in first]
        items += [(card.id, by_name.get(card.agent or ""), card) for card in _worth_a_row(below.get(key, ()))]
        for index, (ident, agent, card) in enumerate(items):
            last = index == len(items) - 1
            rows.append(Row(stem + (signs.elbow if last else signs.tee), agent, card))
            hang(ident, stem + ("   " if last else signs.pipe))

    hang("hermes", "", sorted(offices.items(), key=lambda pair: PARENTS.index(pair[0])))
    return rows


def _worth_a_row(cards: Sequence[CardView]) -> list[CardView]:
    """All but the members of a large swarm: of those a few that went wrong, its parent's row tells of the rest."""
    sizes = Counter(card.swarm for card in cards if card.swarm)
    bad: Counter[str] = Counter()
    shown: list[CardView] = []
    for card in cards:
        if sizes[card.swarm] > MOST_MEMBERS:
            wrong = card.state == "blocked" or (card.state == "failed" and card.fail != "expired")
            bad[card.swarm] += wrong
            if not wrong or bad[card.swarm] > MOST_WRONG:
                continue
        shown.append(card)
    return shown


def fit(text: str, width: int) -> str:
    """Exactly `width` cells; longer text ends in an ellipsis."""
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    return set_cell_size(text, max(0, width - 1)) + "…" if width > 0 else ""


def _office_line(agent: AgentView, prefix: str, width: int, signs: Signs) -> Text:
    office = KINDS[agent.kind]
    style = HEALTH_STYLE[agent.health]
    line = Text(prefix, QUIET)
    line.append(f"{signs.office[agent.kind]} ", style)
    line.append(office.title, STRONG)
    if agent.health not in ("alive", "ended"):
        line.append(f"  {signs.health(agent.health)} {agent.health}", style)
    line.append(f"  {office.duty}", QUIET)
    tail = signs.sparkline(agent.beats, _SPARK) if width >= WIDE else ""
    return _ended_with(line, Text(f"{tail}     " if tail else "", style), width)


def about(card: CardView, agent: AgentView | None) -> str:
    """What is worth saying beside the name of a card."""
    tries = f"try {card.attempt}: " if card.attempt > 1 else ""
    if agent is not None and agent.swarms and not card.reason:
        return tries + "; ".join(f"{swarm.name}: {swarm_standing(swarm)}" for swarm in agent.swarms)
    if card.state == "done":
        return tries + (counted(card.findings, "finding") if card.findings else "")
    if card.reason:
        return tries + card.reason
    if card.after and card.state == "backlog":
        return f"after {', '.join(card.after)}"
    left = ""
    if agent is not None and agent.kind == "microshark" and agent.ttl_seconds is not None:
        left = f"ttl {span(agent.ttl_seconds)}  "
    if agent is not None and agent.status:
        return left + tries + agent.status
    return left + tries + (card.title if card.title != card.label else "")


def _card_line(row: Row, card: CardView, names: int, width: int, signs: Signs) -> Text:
    sign, word, style = standing(card, row.agent, signs)
    line = Text(row.prefix, QUIET)
    line.append(f"{sign} {fit(word, max(_WORD, cell_len(word)))} ", style)
    line.append(fit(card.label, names), STRONG)
    line.append(f"  {about(card, row.agent)}", style if card.state == "failed" else QUIET)
    agent = row.agent
    live = agent is not None and agent.pid is not None and agent.started_seconds > 0
    beats = signs.sparkline(agent.beats, _SPARK) if agent is not None and live and width >= WIDE else ""
    age = span(agent.started_seconds if agent is not None and live else None)
    return _ended_with(line, Text.assemble((beats, style), (f"{age:>5}" if live else "", QUIET)), width)


def _ended_with(line: Text, tail: Text, width: int) -> Text:
    """Cut a line so that what belongs at its right end fits."""
    line.truncate(max(1, width - tail.cell_len - 1), overflow="ellipsis", pad=True)
    line.append(" ")
    return line.append_text(tail)


def tree_lines(rows: Sequence[Row], width: int, signs: Signs) -> list[Text]:
    """A line for each row."""
    names = max((cell_len(row.card.label) for row in rows if row.card), default=0)
    names = min(names, max(10, width // 3))
    lines: list[Text] = []
    for row in rows:
        if row.card is not None:
            lines.append(_card_line(row, row.card, names, width, signs))
        elif row.agent is not None:
            lines.append(_office_line(row.agent, row.prefix, width, signs))
    return lines


def _fewer(rows: list[Row], room: int) -> tuple[list[Row], int]:
    """At most `room` rows: what is done goes first, then what has not begun; how many went."""
    if len(rows) <= room:
        return rows, 0
    for quiet in ({"done"}, {"done", "backlog", "ready"}):
        kept = [row for row in rows if row.card is None or row.card.state not in quiet]
        if len(kept) <= room:
            # Some of the quiet ones still fit; the newest of them are the most interesting.
            spare = room - len(kept)
            extra = [r for r in rows if r.card is not None and r.card.state in quiet][-spare:] if spare else []
            return [row for row in rows if row in kept or row in extra], len(rows) - len(kept) - len(extra)
    return kept[:room], len(rows) - room


def counts(cards: Iterable[CardView]) -> list[tuple[int, str, str]]:
    """(count, word, style) for each way cards stand, without those that are zero."""
    tally = Counter(_bucket(card) for card in cards)
    styles = {"done": GOOD, "running": ALIVE, "failed": BAD, "needs you": LATE, "blocked": LATE, "to come": QUIET}
    return [(tally[word], word, style) for word, style in styles.items() if tally[word]]


def _bucket(card: CardView) -> str:
    if card.state in ("done", "failed"):
        return card.state
    if card.state == "blocked":
        if card.block in ("hold", "needs_input"):
            return "needs you"
        return "failed" if card.block == "capability" else "to come" if card.block == "transient" else "blocked"
    return "running" if card.state in ("claimed", "running", "review") else "to come"


def _bar(cards: Sequence[CardView], width: int, signs: Signs) -> Text:
    """How far the fleet is, in proportion."""
    bar = Text()
    total = max(1, len(cards))
    for count, word, style in sorted(counts(cards), key=lambda part: part[1] == "running"):
        if word != "to come":
            sign = signs.rest_bar if word == "running" else signs.done_bar
            bar.append(sign * max(1, round(count * width / total)), style)
    bar.truncate(width)
    bar.append(signs.rest_bar * max(0, width - bar.cell_len), QUIET)
    return bar


def _head(room: RoomView, elapsed: float, width: int) -> Text:
    held = "  paused" if room.paused else "  births wait" if room.holding else ""
    line = Text.assemble((room.fleet, STRONG), (held, LATE))
    for count, word, style in counts(room.cards):
        line.append(f"  {count} {word}", style)
    return _ended_with(line, Text(clock(elapsed), STRONG), width)


def _foot(room: RoomView, minutes: float | None, note: str, width: int, signs: Signs) -> Text:
    parts = [note, counted(room.ledger.size, "ledger entry", "ledger entries")]
    if minutes is not None:
        parts.append(f"budget {minutes:g} min")
    line = Text(f" {signs.dot} ".join(parts), QUIET)
    line.truncate(width, overflow="ellipsis")
    return line


def _last(events: Sequence[EventView], width: int, signs: Signs) -> Text:
    if not events:
        return Text("")
    event = events[-1]
    line = Text(f"{signs.tone(event.tone)} {event.text}", TONES[event.tone])
    line.truncate(width, overflow="ellipsis")
    return line


def frame(
    room: RoomView, *, width: int, height: int, elapsed: float, minutes: float | None, note: str, signs: Signs
) -> list[Text]:
    """The whole display, at most `height` lines of at most `width` cells."""
    rows, left = _fewer(tree(room.agents, room.cards, signs), max(4, height - 6))
    lines = [_head(room, elapsed, width), _bar(room.cards, width, signs), *tree_lines(rows, width, signs)]
    if left:
        lines.append(Text(f"   and {left} more", QUIET))
    return [*lines, _last(room.events, width, signs), _foot(room, minutes, note, width, signs)]
