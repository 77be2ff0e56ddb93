"""How a fleet ended, for a person: every card, what is worth reading, and what to do next."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from rich.text import Text

from council_tui.control.swarms import in_full
from council_tui.domain.text import counted, safe
from council_tui.headless.exits import MEANING
from council_tui.headless.paint import counts, fit, tree
from council_tui.headless.signs import BAD, GOOD, LATE, QUIET, STRONG, Signs, clock, standing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from council_tui.control.reading import FindingView, Snapshot
    from council_tui.control.views import AgentView, CardView

MOST_FINDINGS = 15
_SEVERITY = {"HIGH": BAD, "MEDIUM": LATE}


def _card(card: CardView, agent: AgentView | None, names: int, signs: Signs) -> Text:
    sign, word, style = standing(card, None, signs)
    line = Text.assemble((f"{sign} {fit(word, max(10, len(word)))} ", style), (fit(card.label, names), STRONG))
    tries = f"{counted(card.attempt, 'attempt')}  " if card.attempt > 1 else ""
    about = card.reason if card.state != "done" else (counted(card.findings, "finding") if card.findings else "")
    if agent is not None and agent.swarms:
        about = "; ".join([about, *(f"{swarm.name}: {in_full(swarm)}" for swarm in agent.swarms)]).removeprefix("; ")
    return line.append(f"  {tries}{about}".rstrip(), QUIET)


def _finding(finding: FindingView, names: int) -> Text:
    where = f"  {finding.where}" if finding.where else ""
    return Text.assemble(
        (f"{finding.severity:<6}  ", _SEVERITY[finding.severity]),
        (fit(finding.child, names), QUIET),
        f"  {finding.title}",
        (where, STRONG),
    )


def _findings(found: tuple[FindingView, ...], names: int) -> Iterator[Text]:
    if not found:
        return
    tally = Counter(f.severity for f in found)
    yield Text("")
    yield Text(f"Worth reading: {', '.join(f'{n} {severity}' for severity, n in tally.items())}", STRONG)
    yield from (_finding(finding, names) for finding in found[:MOST_FINDINGS])
    if len(found) > MOST_FINDINGS:
        yield Text(f"and {len(found) - MOST_FINDINGS} more in the report", QUIET)


def _audit(audit: dict[str, Any]) -> Iterator[Text]:
    for key, words in (
        ("descendants", "still alive"),
        ("open_claims", "still claimed"),
        ("unsigned_reports", "done without a signed report"),
        ("slices", "not cleared away"),
    ):
        if left := audit.get(key):
            yield Text(f"{words}: {', '.join(map(str, left))}", BAD)


def summary(picture: Snapshot, elapsed: float, command: str, signs: Signs) -> Iterator[Text]:
    """The lines that standard output ends with. `command`: how to open the control room on this home."""
    fleet = picture.fleet
    if fleet is None or fleet.ending is None:
        return
    end = fleet.ending
    names = min(max((len(c.label) for c in picture.cards), default=0), 28)
    rows = tree(picture.agents, picture.cards, signs)
    head = Text.assemble((fleet.name, STRONG), f": {counted(len(picture.cards), 'card')}")
    for count, word, style in counts(picture.cards):
        head.append(", ").append(f"{count} {word}", style)
    yield head.append(f" in {clock(elapsed)}")
    yield Text("")
    yield from (_card(row.card, row.agent, names, signs) for row in rows if row.card is not None)
    yield from _findings(picture.findings, names)
    yield Text("")
    yield from _audit(end["audit"])
    if end["report"]:
        yield Text.assemble(("report  ", QUIET), safe(end["report"], 400))
    ledger = end["ledger"]
    style = GOOD if ledger["verdict"] == "VALID" else BAD
    size = f", {ledger['size']} entries, every signature and lineage checked"
    yield Text.assemble(("ledger  ", QUIET), (ledger["verdict"], style), size if style == GOOD else "")
    code = end["exit"]
    why = f": {safe(end['reason'], 200)}" if end["reason"] else ""
    words = f"{code}, {MEANING.get(code, '')}{why}"
    yield Text.assemble(("exit    ", QUIET), (words, GOOD if code == 0 else LATE if code == 3 else BAD))
    yield Text.assemble(("next    ", QUIET), (command, STRONG), " opens the control room on it")
