"""The fleet's final report as Markdown: what OpenClaw's office renders and signs."""

from __future__ import annotations

from typing import Any

_SEVERITY = {"CRITICAL": 0, "HIGH": 1, "IMPORTANT": 1, "MEDIUM": 2, "WARNING": 2, "LOW": 3, "INFO": 4}
_SPECIAL = str.maketrans({c: f"\\{c}" for c in "\\`*_{}[]<>#|!~"})
_SHOWN_FINDINGS = 50
_SHOWN_EVIDENCE = 10


def plain(text: object, limit: int = 400) -> str:
    """Untrusted text on one line, with Markdown's own characters escaped."""
    words = " ".join(str(text).split())
    return (words[:limit] + ("…" if len(words) > limit else "")).translate(_SPECIAL)


def code(text: object, limit: int = 400) -> str:
    """Untrusted text as a code span that it cannot leave."""
    words = " ".join(str(text).split())[:limit].replace("`", "'")
    return f"`{words}`"


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
    result = card.get("result", {})
    findings = sorted((f for f in result.get("findings", []) if isinstance(f, dict)), key=_severity)
    if findings:
        lines += ["", f"### {len(findings)} finding{'s' if len(findings) != 1 else ''}", ""]
        lines += [_finding(f) for f in findings[:_SHOWN_FINDINGS]]
        if len(findings) > _SHOWN_FINDINGS:
            lines.append(f"- and {len(findings) - _SHOWN_FINDINGS} more")
    evidence = [e for e in result.get("evidence", []) if isinstance(e, str)]
    if evidence:
        lines += ["", "### Evidence", "", *(f"- {code(e, 300)}" for e in evidence[:_SHOWN_EVIDENCE])]
        if len(evidence) > _SHOWN_EVIDENCE:
            lines.append(f"- and {len(evidence) - _SHOWN_EVIDENCE} more")
    if result.get("recommendation"):
        lines += ["", f"Recommendation: {plain(result['recommendation'], 1000)}"]
    return [*lines, ""]


def render(facts: dict[str, Any]) -> str:
    """The whole report. `facts`: fleet, workdir, at, cards (title, state, agent, entry, reason, result)."""
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
        findings = [f for f in card.get("result", {}).get("findings", []) if isinstance(f, dict)]
        highest = min(findings, key=_severity).get("severity", "INFO") if findings else ""
        entry = card["entry"] if card.get("entry") is not None else ""
        state = card["state"] + (f" ({card['why']})" if card.get("why") else "")
        head.append(f"| {plain(card['title'])} | {plain(state)} | {len(findings)} | {plain(highest, 20)} | {entry} |")
    body = [line for card in cards for line in _card(card)]
    return "\n".join([*head, "", *body]).rstrip() + "\n"
