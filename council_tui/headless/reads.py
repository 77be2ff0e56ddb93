"""`council board`, `tree`, `agents`, `card`: the board as it lies on disk, shown."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rich.text import Text

from council_tui.control import reading
from council_tui.control.telling import event_view
from council_tui.domain.card import LANES
from council_tui.domain.text import safe
from council_tui.headless import paint
from council_tui.headless.exits import MEANING
from council_tui.headless.printing import show, show_json, width
from council_tui.headless.signs import HEALTH_STYLE, QUIET, STRONG, TONES, Signs, signs_for, standing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from council_tui.board.home import Home
    from council_tui.control.reading import CardPage, Snapshot
    from council_tui.domain.events import Event


def _head(picture: Snapshot) -> Iterator[Text]:
    """Which fleet this is, and whether it runs."""
    fleet = picture.fleet
    name = fleet.name if fleet else "council"
    if picture.owner is not None:
        state = f"runs in process {picture.owner}"
    elif fleet is not None and fleet.ending is not None:
        code = fleet.ending["exit"]
        state = f"ended with exit code {code}: {MEANING.get(code, '')}"
    else:
        state = "ended without a last word; the next start puts it right"
    yield Text.assemble((name, STRONG), (f"  {state}", QUIET))


def _picture(home: Home, json: bool, text: Callable[[Snapshot, Signs], Iterator[Text]]) -> int:
    with reading.Reader(home) as reader:
        picture = reader.snapshot()
    if json:
        from council_tui.headless.lines import snapshot_line

        show_json(snapshot_line(picture))
    else:
        show([*_head(picture), *text(picture, signs_for(sys.stdout))])
    return 0


def _lanes(picture: Snapshot, signs: Signs) -> Iterator[Text]:
    by_name = {agent.name: agent for agent in picture.agents}
    names = min(max((len(c.label) for c in picture.cards), default=0), 28)
    for lane in LANES:
        cards = [card for card in picture.cards if card.state == lane]
        if not cards:
            continue
        yield Text("")
        yield Text(f"{lane.value.upper()}  {len(cards)}", STRONG)
        for card in cards:
            sign, word, style = standing(card, by_name.get(card.agent or ""), signs)
            line = Text.assemble((f"  {card.id}  ", QUIET), (f"{sign} {paint.fit(word, max(9, len(word)))} ", style))
            line.append(paint.fit(card.label, names), STRONG)
            yield line.append(f"  {paint.about(card, by_name.get(card.agent or ''))}", QUIET)


def board(home: Home, *, json: bool) -> int:
    """The cards, lane by lane."""
    return _picture(home, json, _lanes)


def _tree(picture: Snapshot, signs: Signs) -> Iterator[Text]:
    yield Text("")
    yield from paint.tree_lines(paint.tree(picture.agents, picture.cards, signs), width(), signs)


def tree(home: Home, *, json: bool) -> int:
    """Who spawned whom."""
    return _picture(home, json, _tree)


def _agents(picture: Snapshot, signs: Signs) -> Iterator[Text]:
    names = max(len(agent.name) for agent in picture.agents)
    yield Text("")
    for agent in picture.agents:
        state = f"{signs.health(agent.health)} {agent.health:<8} "
        pid = f"pid {agent.pid}" if agent.pid is not None else ""
        line = Text.assemble((state, HEALTH_STYLE[agent.health]), (f"{agent.name:<{names}}", STRONG))
        line.append(f"  {agent.phase:<14} {pid:<11} {agent.card or '':<10}  {agent.enforcement}".rstrip(), QUIET)
        if agent.reason and not agent.ended:
            line.append(f"  {agent.reason}", HEALTH_STYLE[agent.health])
        yield line


def agents(home: Home, *, json: bool) -> int:
    """Every agent with its state, its process and its card."""
    return _picture(home, json, _agents)


def event_text(event: Event, title: Callable[[str], str], signs: Signs) -> Text:
    """One line of the journal."""
    view = event_view(event, title)
    text = f"{signs.tone(view.tone)} {view.text}"
    return Text.assemble((f"{view.at[11:23]}  ", QUIET), (text, TONES[view.tone] if view.tone != "plain" else ""))


def _card(page: CardPage, signs: Signs) -> Iterator[Text]:
    card, envelope = page.card, page.card["order"].get("envelope", {})
    yield Text.assemble((card["plan_id"], STRONG), f"  {safe(card['title'], 200)}")
    yield Text("")
    facts = (
        ("id", card["id"]),
        ("state", " ".join(filter(None, (card["state"], card["fail"] or card["block"])))),
        ("reason", card["reason"]),
        ("parent", card["parent_agent"]),
        ("agent", card["agent"] or "none yet"),
        ("attempt", f"{card['attempt']} of {card['attempts']}"),
        ("after", ", ".join(card["after"])),
        ("ledger", f"entry {card['entry']}" if card["entry"] is not None else "no signed report yet"),
        ("runs", " ".join(card["order"].get("run", ()))),
        ("task", envelope.get("task_description", "")),
        ("band", envelope.get("autonomy_band", "")),
        ("rollback", envelope.get("rollback_plan", "")),
        ("derived", ", ".join(envelope.get("derived", ()))),
        ("advice", card["result"].get("recommendation", "")),
    )
    for name, value in facts:
        if value:
            yield Text.assemble((f"{name:<10}", QUIET), safe(str(value), 600))
    yield from _said(page)
    yield Text("")
    for event in page.events:
        yield event_text(event, lambda _: str(card["plan_id"]), signs)


def _said(page: CardPage) -> Iterator[Text]:
    """Findings, evidence and comments."""
    result = page.card["result"]
    findings = [item for item in result.get("findings", ()) if isinstance(item, dict)]
    if findings:
        yield Text("")
    for item in findings:
        where = f"{item.get('path', '')}:{item.get('line', '')}".strip(":")
        words = item.get("title") or item.get("description") or "finding"
        yield Text.assemble((safe(f"{item.get('severity', 'INFO')!s:<7} ", 20), STRONG), safe(f"{words}  {where}", 400))
    for item in result.get("evidence", ()):
        yield Text.assemble(("evidence  ", QUIET), safe(str(item), 300))
    for comment in page.card["comments"]:
        yield Text.assemble(("comment   ", QUIET), safe(f"{comment['author']}: {comment['text']}", 400))


def card(home: Home, ident: str, *, json: bool) -> int:
    """One card in full, by its id or its name in the plan."""
    with reading.Reader(home) as reader:
        page = reader.card(ident)
    if json:
        from council_tui.headless.lines import card_line

        show_json(card_line(page))
    else:
        show(_card(page, signs_for(sys.stdout)))
    return 0
