"""Secrets that were committed once: in the added lines of the newest commits. Never prints one.

What is deleted from the files is still in every clone; this tool finds what the file scan cannot see.
"""

from __future__ import annotations

import os
import re
import sys
import time
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from council_tui.plans.audit.generated import debris, is_lock
from council_tui.plans.audit.repo import Repo, open_repo, shown
from council_tui.plans.audit.report import Report, count, progress, run_tool
from council_tui.plans.audit.secret_patterns import Hit, find_secrets
from council_tui.plans.audit.secrets_files import MAX_HITS, severity_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedReader

COMMITS = 1_000
SECONDS = 20.0
MACHINE_MADE = ("svg", "map", "snap", "lock", "min.js", "min.css")
"""Endings that programs write: much text, no secrets."""
MAX_HUNK = 512 * 1024
"""Bytes kept of one run of added lines."""
MAX_LINE = 64 * 1024
_HUNK = re.compile(rb"@@ -\S+ \+(\d+)")


@dataclass(frozen=True)
class Added:
    """A run of lines that one commit added: where it begins and the text itself."""

    sha: str
    day: str
    path: str
    line: int
    text: bytes


@dataclass
class Progressed:
    """How far the search came."""

    commits: int = 0
    octets: int = 0
    complete: bool = True


def added_lines(output: BufferedReader, state: Progressed, deadline: float) -> Iterator[Added]:
    """Cut the output of `git log -p -U0` into runs of added lines, until its end or `deadline`."""
    sha, day, path, start = "", "", "", 0
    lines: list[bytes] = []
    held = 0
    while raw := output.readline(MAX_LINE):
        state.octets += len(raw)
        if raw.startswith(b"+") and start:
            if held < MAX_HUNK:
                lines.append(raw[1:])
                held += len(raw)
            continue
        if lines:
            yield Added(sha, day, path, start, b"".join(lines))
            lines, held = [], 0
        if raw.startswith(b"\x1e"):
            sha, day = raw[1:].decode("ascii", "replace").split()[:2]
            start, state.commits = 0, state.commits + 1
            if time.monotonic() > deadline:
                state.complete = False
                return
        elif raw.startswith(b"+++ "):
            path = _target(raw[4:])
        elif match := _HUNK.match(raw):
            start = int(match.group(1)) or 1
        elif raw.startswith(b"diff --git "):
            start = 0
    if lines:
        yield Added(sha, day, path, start, b"".join(lines))


def _target(raw: bytes) -> str:
    name = raw.rstrip(b"\t\r\n")
    return os.fsdecode(name[2:] if name.startswith(b"b/") else name)


def find_in_history(repo: Repo, state: Progressed) -> dict[str, tuple[Added, Hit]]:
    """The oldest commit inside the window for each secret, by digest."""
    found: dict[str, tuple[Added, Hit]] = {}
    arguments = (
        "log",
        "--all",
        f"-n{COMMITS}",
        "-p",
        "-U0",
        "--no-ext-diff",
        "--no-textconv",
        "--no-renames",
    )
    form = ("--no-merges", "--diff-filter=AM", "--format=%x1e%H %as", "--dst-prefix=b/")
    skipped = (f":(top,exclude)*.{ending}" for ending in MACHINE_MADE)
    with repo.stream(*arguments, *form, "--", ":(top)", *skipped) as output:
        for added in added_lines(output, state, time.monotonic() + SECONDS):
            if is_lock(added.path) or debris(added.path):
                continue
            for hit in islice(find_secrets(added.text, added.path), MAX_HITS):
                found[hit.digest] = (added, hit)
        if not state.complete:
            repo.skipped["time"] += 1
    return found


def _still_there(repo: Repo, added: Added, hit: Hit) -> bool:
    if repo.bare:
        return False
    data = repo.read(added.path)
    return bool(data and hit.value in data)


def _report(report: Report, added: Added, hit: Hit) -> None:
    path, line = shown(added.path), added.line + hit.line - 1
    report.add(
        severity_of(hit, added.path),
        f"{hit.kind[0].upper()}{hit.kind[1:]} in the history of {path}",
        f"Commit {added.sha[:12]} of {added.day} added it; it {hit.description()}. "
        "It is no longer in that file, but in every clone.",
        f"git show {added.sha[:12]} -- {path}: line {line}, {hit.kind}, {hit.description()}",
        path=path,
        line=line,
    )


def work(report: Report) -> None:
    """Fill the report with secrets that only the history holds."""
    repo = open_repo(work_tree=False)
    state = Progressed()
    progress(f"scanning the lines added by the last {COMMITS:,} commits")
    found = {} if repo.unborn else find_in_history(repo, state)
    made_up = still = 0
    for added, hit in found.values():
        severity = severity_of(hit, added.path)
        if severity == "INFO":
            made_up += 1
        elif _still_there(repo, added, hit):
            still += 1
        else:
            _report(report, added, hit)
    real = sum(1 for f in report.findings if f.severity in ("HIGH", "MEDIUM"))
    repo.report_complaints(report)
    reach = "" if state.complete else f" The search ended after {SECONDS:.0f} s; older commits were not read."
    report.add(
        "INFO",
        f"{count(state.commits, 'commit')} scanned, {count(real, 'real-looking secret')} only in the history",
        f"{count(still, 'other is', 'others are')} still in the files and listed there; "
        f"{count(made_up, 'string')} among tests and examples passed over.{reach}",
        f"git log --all -n {COMMITS} -p: {state.commits} commits, {state.octets:,} bytes of changes",
    )
    report.recommendation = (
        f"Revoke {count(real, 'secret')}: deleting the line did not take it back."
        if real
        else "Nothing to revoke in the part of the history that was read."
    )


if __name__ == "__main__":
    sys.exit(run_tool(work))
