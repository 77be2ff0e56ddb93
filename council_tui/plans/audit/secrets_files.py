"""Strings that look like secrets in the files as they are now. Never prints one."""

from __future__ import annotations

import sys
from collections import defaultdict
from itertools import islice

from council_tui.plans.audit.generated import debris, is_lock, is_test
from council_tui.plans.audit.repo import Entry, Repo, is_binary, open_repo, shown
from council_tui.plans.audit.report import Report, Severity, count, progress, run_tool
from council_tui.plans.audit.secret_patterns import Hit, find_secrets

MAX_HITS = 200
MAX_SCAN = 1024 * 1024
"""Bytes of one file that are looked at; longer files are data, and the rest is counted as not read."""


def severity_of(hit: Hit, path: str) -> Severity:
    """A secret among tests, examples or documentation is most likely made up."""
    if not is_test(path):
        return hit.severity
    return "INFO" if hit.generic else "LOW"


def scan(repo: Repo, entries: list[Entry]) -> dict[str, list[tuple[Entry, Hit]]]:
    """All hits, grouped by the digest of the secret, so that one secret in ten files is one finding."""
    found: dict[str, list[tuple[Entry, Hit]]] = defaultdict(list)
    for number, entry in enumerate(entries, 1):
        if number % 2000 == 0:
            progress(f"{number:,} of {len(entries):,} files scanned")
        if is_lock(entry.path) or debris(entry.path):
            continue
        data = repo.read(entry.path, MAX_SCAN)
        if data and not is_binary(data):
            for hit in islice(find_secrets(data, entry.path), MAX_HITS):
                found[hit.digest].append((entry, hit))
    return found


def _report_secret(report: Report, places: list[tuple[Entry, Hit]]) -> None:
    places = sorted(places, key=lambda place: is_test(place[0].path))
    entry, hit = places[0]
    where = [f"{shown(e.path)}:{h.line}" for e, h in places]
    also = f" Also at {', '.join(where[1:4])}{' and more' if len(where) > 4 else ''}." if len(where) > 1 else ""
    untracked = "" if entry.tracked else " The file is not tracked yet: the next `git add .` would take it."
    report.add(
        severity_of(hit, entry.path),
        f"{hit.kind[0].upper()}{hit.kind[1:]} in {shown(entry.path)}",
        f"It {hit.description()}.{also}{untracked}",
        f"{where[0]}: {hit.kind}, {hit.description()}",
        path=shown(entry.path),
        line=hit.line,
    )


def _report_fixtures(report: Report, places: list[tuple[Entry, Hit]]) -> None:
    files = sorted({shown(entry.path) for entry, _ in places})
    report.add(
        "INFO",
        f"{count(len(places), 'made-up secret')}, probably, in {count(len(files), 'test or example file')}",
        "Random strings that are named like secrets; make sure that none is real: " + ", ".join(files[:8]),
        [f"{shown(e.path)}:{h.line}: {h.description()}" for e, h in places[:15]],
    )


def work(report: Report) -> None:
    """Fill the report with what looks like a secret in tracked and not yet tracked files."""
    repo = open_repo()
    entries = repo.files()
    progress(f"scanning {count(len(entries), 'file')} for secrets")
    found = scan(repo, entries)
    made_up = []
    for places in found.values():
        if all(hit.generic and is_test(entry.path) for entry, hit in places):
            made_up.append(places[0])
        else:
            _report_secret(report, places)
    if made_up:
        _report_fixtures(report, made_up)
    repo.report_skipped(report)
    real = sum(1 for f in report.findings if f.severity in ("HIGH", "MEDIUM"))
    report.recommendation = (
        f"Revoke {count(real, 'secret')} first, then clean the files; what was pushed stays known."
        if real
        else "Nothing to revoke: no real-looking secret in the files."
    )
    report.add(
        "INFO",
        f"{count(len(entries), 'file')} scanned",
        "Lock files, binaries and installed packages are passed over; of a file the first MiB is read.",
        f"git ls-files: {len(entries)} files; different strings that look like secrets: {len(found)}",
    )


if __name__ == "__main__":
    sys.exit(run_tool(work))
