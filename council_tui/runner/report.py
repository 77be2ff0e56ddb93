"""The fleet's final report as Markdown: what OpenClaw's office renders and signs."""

from __future__ import annotations

from typing import Any

_SEVERITY = {"CRITICAL": 0, "HIGH": 1, "IMPORTANT": 1, "MEDIUM": 2, "WARNING": 2, "LOW": 3, "INFO": 4}
_SPECIAL = str.maketrans({c: f"\\{c}" for c in "\\`*_{}[]<>#|!~"})
MOST = ((50, 10), (20, 5), (8, 3), (3, 1), (0, 0))
"""(findings, evidence) that are shown of one card; a fleet with much to tell goes on to the next pair."""
_LONGEST = 400


def plain(text: object, limit: int = 400) -> str:
    """Untrusted text on one line, with Markdown's own characters escaped."""
    words = " ".join(str(text).split())
    return (words[:limit] + ("…" if len(words) > limit else "")).translate(_SPECIAL)


def code(text: object, limit: int = 400) -> str:
    """Untrusted text as a code span that it cannot leave."""
    words = " ".join(str(text).split())[:limit].replace("`", "'")
    return f"`{words}`"


def _cut(text: object, limit: int = _LONGEST) -> str:
    """As much of a text as is ever shown, and one character more where that is not all."""
    return " ".join(str(text).split())[: limit + 1]


def brief(result: dict[str, Any], findings: int, evidence: int) -> dict[str, Any]:
    """What a report shows of a result, however large that is: the gravest findings, and how many there were."""
    found = sorted((f for f in result.get("findings") or () if isinstance(f, dict)), key=_severity)
    said = [e for e in result.get("evidence") or () if isinstance(e, str)]
    keys = ("severity", "title", "description", "path", "line")
    out: dict[str, Any] = {
        "findings": [{key: _cut(one[key]) for key in keys if one.get(key)} for one in found[:findings]],
        "findings_total": len(found),
        "highest": _cut(found[0].get("severity", "INFO"), 20) if found else "",
        "evidence": [_cut(one) for one in said[:evidence]],
        "evidence_total": len(said),
    }
    if result.get("recommendation"):
        out["recommendation"] = _cut(result["recommendation"], 1000)
    return out


def _severity(finding: dict[str, Any]) -> int:
    return _SEVERITY.get(str(finding.get("severity", "INFO")).upper(), 4)


def _finding(finding: dict[str, Any]) -> str:
    title = finding.get("title") or finding.get("description") or "finding"
    where = finding.get("path")
    line = finding.get("line")
    place = f" at {code(f'{where}:{line}' if line else where)}" if where else ""
    text = f"- **{plain(finding.get('severity', 'INFO'), 20)}** {plain(title, 200)}{place}"
    description = finding.get("description")
    return f"{text}\n  {plain(description)}" if description and description != title else text


def _card(card: dict[str, Any]) -> list[str]:
    lines = [f"## {plain(card['title'])}", ""]
    entry = f", entry {card['entry']} of the ledger" if card.get("entry") is not None else ""
    lines.append(f"{plain(card['state'])} by {code(card['agent'] or 'nobody')}{entry}")
    if card.get("reason"):
        lines.append(f"\nReason: {plain(card['reason'])}")
    result = card["result"]
    if total := result["findings_total"]:
        lines += ["", f"### {total} finding{'s' if total != 1 else ''}", ""]
        lines += [_finding(f) for f in result["findings"]]
        if total > len(result["findings"]):
            lines.append(f"- and {total - len(result['findings'])} more")
    if total := result["evidence_total"]:
        lines += ["", "### Evidence", "", *(f"- {code(e, 300)}" for e in result["evidence"])]
        if total > len(result["evidence"]):
            lines.append(f"- and {total - len(result['evidence'])} more")
    if result.get("recommendation"):
        lines += ["", f"Recommendation: {plain(result['recommendation'], 1000)}"]
    return [*lines, ""]


def render(facts: dict[str, Any]) -> str:
    """The report. `facts`: fleet, workdir, at, cards (title, state, why, agent, entry, reason, brief result)."""
    cards = facts["cards"]
    counts: dict[str, int] = {}
    for card in cards:
        counts[card["state"]] = counts.get(card["state"], 0) + 1
    head = [
        f"# {plain(facts['fleet'])}",
        "",
        f"{plain(facts['at'])}, in {code(facts['workdir'])}: "
        + ", ".join(f"{number} {state}" for state, number in sorted(counts.items())),
        "",
        "| card | state | findings | highest | ledger |",
        "|---|---|---|---|---|",
    ]
    for card in cards:
        total, highest = card["result"]["findings_total"], card["result"]["highest"]
        entry = card["entry"] if card.get("entry") is not None else ""
        state = card["state"] + (f" ({card['why']})" if card.get("why") else "")
        head.append(f"| {plain(card['title'])} | {plain(state)} | {total} | {plain(highest, 20)} | {entry} |")
    body = [line for card in cards for line in _card(card)]
    return "\n".join([*head, "", *body]).rstrip() + "\n"
