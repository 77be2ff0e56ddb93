"""The one way an audit tool speaks: progress while it works, one JSON object as its last line.

Every tool shares the limits here, so a card stays readable and a report stays small whatever the
repository holds.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from council_tui.domain.text import safe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Severity = Literal["HIGH", "MEDIUM", "LOW", "INFO"]

SEVERITIES: tuple[Severity, ...] = ("HIGH", "MEDIUM", "LOW", "INFO")
"""Worst first, the order in which findings are listed."""

MAX_FINDINGS = 100
MAX_BYTES = 250_000
"""Bytes of the JSON line; findings at the end of the list give way first."""
MAX_TITLE = 160
MAX_TEXT = 600
MAX_EVIDENCE = 300


class Blocked(Exception):
    """The tool cannot begin; its text is one sentence that says what is missing and what to do."""


@dataclass(frozen=True)
class Finding:
    """One thing a person would want to know, with what shows it to be true."""

    severity: Severity
    title: str
    description: str
    evidence: tuple[str, ...]
    path: str = ""
    line: int = 0


@dataclass
class Report:
    """What a tool has found so far."""

    findings: list[Finding] = field(default_factory=list)
    recommendation: str = ""

    def add(
        self,
        severity: Severity,
        title: str,
        description: str,
        evidence: str | Iterable[str],
        path: str = "",
        line: int = 0,
    ) -> None:
        """Record one finding; `evidence` is what a reader can check, `path` is relative to the repository."""
        proof = (evidence,) if isinstance(evidence, str) else tuple(evidence)
        self.findings.append(Finding(severity, title, description, proof, path, line))

    def result(self) -> dict[str, Any]:
        """The finished result: worst findings first, at most 100, under 256 KiB, nothing dropped silently."""
        ordered = sorted(self.findings, key=lambda f: SEVERITIES.index(f.severity))
        kept = ordered if len(ordered) <= MAX_FINDINGS else ordered[: MAX_FINDINGS - 1]
        while True:
            body = _body(kept, ordered[len(kept) :], self.recommendation)
            if len(json.dumps(body)) <= MAX_BYTES or not kept:
                return body
            kept = kept[: len(kept) * 3 // 4]


def _body(kept: list[Finding], dropped: list[Finding], recommendation: str) -> dict[str, Any]:
    if dropped:
        kept = [*kept, _left_out(dropped)]
    evidence: dict[str, int] = {}
    findings = [_as_json(finding, evidence) for finding in kept]
    body: dict[str, Any] = {"status": "DONE", "findings": findings, "evidence": list(evidence)}
    body["recommendation"] = safe(recommendation or "Nothing to do.", MAX_TEXT * 2)
    body["left_out"] = len(dropped)
    return body


def _left_out(dropped: list[Finding]) -> Finding:
    counts = Counter(f.severity for f in dropped)
    parts = ", ".join(f"{counts[s]} {s}" for s in SEVERITIES if counts[s])
    return Finding(
        "INFO",
        f"{len(dropped)} more findings were left out",
        f"Not listed here: {parts}.",
        (f"left out: {parts}",),
    )


def _as_json(finding: Finding, evidence: dict[str, int]) -> dict[str, Any]:
    refs = [evidence.setdefault(safe(item, MAX_EVIDENCE), len(evidence)) for item in finding.evidence]
    out: dict[str, Any] = {
        "severity": finding.severity,
        "title": safe(finding.title, MAX_TITLE),
        "description": safe(finding.description, MAX_TEXT),
        "evidence_refs": refs,
    }
    if finding.path:
        out["path"] = safe(finding.path, 300)
    if finding.line:
        out["line"] = finding.line
    return out


def progress(text: str) -> None:
    """Say what is going on: a line on stdout, and a STATUS datagram where a supervisor listens."""
    line = safe(text, 200)
    print(line, flush=True)
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    name = "\0" + address[1:] if address.startswith("@") else address
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as channel:
        try:
            channel.sendto(f"STATUS={line}".encode(), name)
        except OSError as error:
            # sd_notify(3): a supervisor that does not listen is no reason to stop working.
            print(f"no status sent: {error.strerror}", file=sys.stderr)


def run_tool(work: Callable[[Report], None]) -> int:
    """Run one tool to its last line. Returns the exit status: 0 unless the tool itself failed."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    report, code = Report(), 0
    try:
        work(report)
        body = report.result()
    except Blocked as reason:
        body = _stopped("BLOCKED", str(reason))
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        body, code = _stopped("ERROR", f"{type(error).__name__}: {error}"), 1
    print(json.dumps(body), flush=True)
    return code


def _stopped(status: Literal["BLOCKED", "ERROR"], reason: str) -> dict[str, Any]:
    text = safe(reason, MAX_TEXT)
    return {"status": status, "findings": [], "evidence": [text], "recommendation": text}


def count(number: int, one: str, many: str = "") -> str:
    """A number with its noun: `1 file`, `1,204 files`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def size(octets: int) -> str:
    """Bytes for people: `34 B`, `1.5 MiB`."""
    value = float(octets)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            break
        value /= 1024
    return f"{octets} B" if unit == "B" else f"{value:.1f} {unit}"
