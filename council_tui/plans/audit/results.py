"""What a test run said: counts and failures, from JUnit XML, go's events, or the output's summary lines."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

COLLECTION = "collection failure"
"""pytest's own words for a test file that could not be imported."""
MAX_LINE = 2000
MAX_XML = 32 * 1024 * 1024
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass
class Failure:
    """A test that failed: its name, where, and the first line of why."""

    name: str
    reason: str = ""
    path: str = ""
    line: int = 0


@dataclass
class Counts:
    """How a run ended. `known` is False when the output gave no numbers."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: list[Failure] = field(default_factory=list)
    known: bool = False

    def by_reason(self) -> list[tuple[str, list[Failure]]]:
        """Failures with the same cause together, the most frequent cause first."""
        groups: dict[str, list[Failure]] = {}
        for failure in self.failures:
            groups.setdefault(failure.reason or failure.name, []).append(failure)
        return sorted(groups.items(), key=lambda group: -len(group[1]))

    def words(self) -> str:
        """`12 passed, 1 failed, 2 skipped`."""
        return f"{self.passed:,} passed, {self.failed:,} failed, {self.skipped:,} skipped"


def from_junit(path: Path) -> Counts | None:
    """Counts from a JUnit XML file, or None when there is none that can be read."""
    if not path.is_file() or path.stat().st_size > MAX_XML:
        return None
    if b"<!DOCTYPE" in path.read_bytes()[:4096]:
        return None
    try:
        root = ET.parse(path).getroot()
    except ET.ParseError:
        return None
    counts = Counts(known=True)
    for case in root.iter("testcase"):
        _case(counts, case)
    return counts


def _case(counts: Counts, case: ET.Element) -> None:
    broken = next((e for e in case if e.tag in ("failure", "error")), None)
    if broken is not None:
        counts.failed += 1
        text = broken.text or ""
        where = re.findall(r"(?m)^([^/\s:][^\s:]*\.py):(\d+): ", text)
        name = f"{case.get('classname', '')}::{case.get('name', '')}".strip(":")
        reason = (broken.get("message") or text).strip().split("\n")[0]
        if reason == COLLECTION:
            causes = re.findall(r"(?m)^E +(\S.*)$", text)
            reason = f"{COLLECTION}: {causes[-1]}" if causes else COLLECTION
        path, line = where[-1] if where else ("", "0")
        counts.failures.append(Failure(name, reason, path, int(line)))
    elif case.find("skipped") is not None:
        counts.skipped += 1
    else:
        counts.passed += 1


_TOTALS: tuple[tuple[str, str], ...] = (
    ("passed", r"test result: .*? (\d+) passed"),
    ("failed", r"test result: .*? (\d+) failed"),
    ("skipped", r"test result: .*? (\d+) ignored"),
    ("passed", r"(?m)^# pass (\d+)"),
    ("failed", r"(?m)^# fail (\d+)"),
    ("skipped", r"(?m)^# skipped (\d+)"),
    ("passed", r"(?m)^\s*ℹ pass (\d+)"),
    ("failed", r"(?m)^\s*ℹ fail (\d+)"),
    ("passed", r"(?m)^\s*(\d+) passing\b"),
    ("failed", r"(?m)^\s*(\d+) failing\b"),
    ("skipped", r"(?m)^\s*(\d+) pending\b"),
    ("passed", r"(?m)^\s*Tests:?\s.*?(\d+) passed"),
    ("failed", r"(?m)^\s*Tests:?\s.*?(\d+) failed"),
    ("skipped", r"(?m)^\s*Tests:?\s.*?(\d+) skipped"),
    ("passed", r"(?m)^=+ .*?(\d+) passed"),
    ("failed", r"(?m)^=+ .*?(\d+) failed"),
)
"""The summary lines of cargo, node (TAP and spec), mocha, jest, vitest and pytest."""


def from_output(text: str) -> Counts:
    """Counts from the summary lines that common runners print; several suites in one output add up."""
    plain = "\n".join(line[:MAX_LINE] for line in ANSI.sub("", text).splitlines())
    counts = Counts()
    for name, pattern in _TOTALS:
        numbers = [int(n) for n in re.findall(pattern, plain)]
        if numbers:
            counts.known = True
            setattr(counts, name, getattr(counts, name) + sum(numbers))
    for name in re.findall(r"(?m)^(?:test (\S+) \.\.\. FAILED|not ok \d+ -? ?.*|\s+\d+\) .*)$", plain)[:50]:
        if name:
            counts.failures.append(Failure(name))
    return counts


def from_go(text: str) -> Counts:
    """Counts from `go test -json`."""
    counts = Counts()
    for line in text.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if not isinstance(event, dict) or not event.get("Test"):
            continue
        counts.known = True
        action = event.get("Action")
        if action == "pass":
            counts.passed += 1
        elif action == "skip":
            counts.skipped += 1
        elif action == "fail":
            counts.failed += 1
            counts.failures.append(Failure(f"{event.get('Package', '')}.{event['Test']}"))
    return counts


def tail(text: str, lines: int = 8) -> list[str]:
    """The last lines that say something."""
    return [line.rstrip() for line in ANSI.sub("", text).splitlines() if line.strip()][-lines:]
