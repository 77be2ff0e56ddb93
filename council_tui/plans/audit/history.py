"""Who wrote this repository, how lively it is, where it changes most, and which branches were forgotten."""

from __future__ import annotations

import os
import re
import statistics
import sys
import time
from collections import Counter
from dataclasses import dataclass
from itertools import accumulate, pairwise

from council_tui.plans.audit.branches import audit_branches
from council_tui.plans.audit.repo import Repo, open_repo, shown
from council_tui.plans.audit.report import Report, count, progress, run_tool

DAY = 86_400
LOG_SECONDS = 20.0
CHURN_COMMITS = 1_500
RECENT_DAYS = 365
LISTED = 10
NOISE = (".lock", "-lock.json", "-lock.yaml", ".min.js", ".min.css", "go.sum", ".snap")
CHANGELOG = re.compile(r"(?i)(change(s|log)|history|news|releases?)(\.\w+)?$")
"""Files that change as a consequence of others and would hide the real hot spots."""


@dataclass(frozen=True)
class Commit:
    """One commit as far as the audit cares; `at` is the author's time in seconds."""

    sha: str
    at: int
    author: str
    parents: int
    subject: str


@dataclass
class Change:
    """What one commit did: lines added and removed, and the files it touched."""

    commit: Commit
    added: int = 0
    removed: int = 0
    files: int = 0


def _commit(record: bytes) -> Commit | None:
    parts = record.decode("utf-8", "replace").lstrip("\n").split("\x1f")
    if len(parts) != 5 or not parts[1].lstrip("-").isdigit():
        return None
    return Commit(parts[0], int(parts[1]), parts[2] or "unknown", len(parts[3].split()), parts[4])


FORMAT = "%H%x1f%at%x1f%aN%x1f%P%x1f%s"


def read_commits(repo: Repo) -> list[Commit]:
    """Every commit of HEAD, newest first, as far as git gives them in the time allowed."""
    records = repo.records("log", "-z", f"--format={FORMAT}", "HEAD", seconds=LOG_SECONDS)
    commits = [c for c in map(_commit, records) if c]
    if not commits:
        raise ValueError("; ".join(repo.complaints) or "git log gave no commit")
    return commits


def read_changes(repo: Repo) -> tuple[list[Change], Counter[str]]:
    """Line counts of the newest commits, and how often each file was touched by them."""
    changes: list[Change] = []
    touched: Counter[str] = Counter()
    arguments = (
        "log",
        "-z",
        "--no-merges",
        "--no-renames",
        "--no-textconv",
        "--numstat",
        f"-n{CHURN_COMMITS}",
    )
    for record in repo.records(*arguments, f"--format=%x1e{FORMAT}", "HEAD", seconds=LOG_SECONDS):
        if record.startswith(b"\x1e"):
            commit = _commit(record[1:])
            if commit:
                changes.append(Change(commit))
            continue
        columns = record.lstrip(b"\n").split(b"\t", 2)
        if len(columns) != 3 or not changes:
            continue
        change = changes[-1]
        change.files += 1
        change.added += int(columns[0]) if columns[0].isdigit() else 0
        change.removed += int(columns[1]) if columns[1].isdigit() else 0
        path = os.fsdecode(columns[2])
        if not path.endswith(NOISE) and not CHANGELOG.match(path.rpartition("/")[2]):
            touched[path] += 1
    return changes, touched


def bus_factor(authors: Counter[str]) -> int:
    """How many people wrote half of the commits: the fewest whose absence would stop the work."""
    half = sum(authors.values()) / 2
    running = accumulate(number for _, number in authors.most_common())
    return next((place for place, total in enumerate(running, 1) if total >= half), 0)


def _people(commits: list[Commit]) -> Counter[str]:
    return Counter(c.author for c in commits if not c.author.endswith("[bot]"))


def _names(authors: Counter[str], limit: int = 5) -> str:
    return ", ".join(f"{name} ({number:,})" for name, number in authors.most_common(limit))


def _age(seconds: float) -> str:
    days = max(0, int(seconds // DAY))
    if not days:
        return "less than a day"
    if days >= 730:
        return f"{days / 365.25:.0f} years"
    return count(days, "day") if days < 60 else count(days // 30, "month")


def _overview(repo: Repo, report: Report, commits: list[Commit], now: float) -> None:
    authors = _people(commits)
    # Author dates can lie (a wrong clock): the extremes of the sorted times, never below zero.
    times = sorted(c.at for c in commits)
    more = "At least " if repo.skipped["time"] else ""
    span, first, last = (_age(s) for s in (times[-1] - times[0], now - times[0], now - times[-1]))
    report.add(
        "INFO",
        f"{more}{count(len(commits), 'commit')} by {count(len(authors), 'author')} in {span}",
        f"First commit {first} ago, last one {last} ago. Most commits: {_names(authors)}.",
        [
            f"git log HEAD: {len(commits)} commits, newest {commits[0].sha[:12]}",
            f"authors: {_names(authors, 10)}",
        ],
    )
    if repo.shallow:
        report.add(
            "INFO",
            "The clone is shallow",
            "Every count is of the commits that are here; `git fetch --unshallow` gets the rest.",
            "git rev-parse --is-shallow-repository: true",
        )


def _cadence(report: Report, commits: list[Commit], now: float) -> None:
    ages = [(now - c.at) / DAY for c in commits]
    spans = {days: sum(1 for age in ages if age <= days) for days in (30, 90, 365)}
    text = ", ".join(f"{number:,} in {days} days" for days, number in spans.items())
    times = sorted(c.at for c in commits)
    gaps = [later - earlier for earlier, later in pairwise(times)]
    pace = (
        f" Half of all pauses between commits are shorter than {statistics.median(gaps) / 3600:.1f} hours."
        if gaps
        else ""
    )
    report.add(
        "INFO",
        f"{count(spans[365], 'commit')} in the last 365 days",
        f"Commits counted back from now: {text}.{pace}",
        f"git log --format=%at HEAD: {text}",
    )
    quiet = min(ages)
    if quiet > RECENT_DAYS:
        report.add(
            "LOW",
            f"No commit for {_age(quiet * DAY)}",
            "The project may be finished or abandoned; its dependencies and instructions have aged since.",
            f"newest commit: {commits[0].sha[:12]} {commits[0].subject}",
        )


def _bus(report: Report, commits: list[Commit]) -> None:
    newest = max(c.at for c in commits)
    recent = [c for c in commits if newest - c.at <= RECENT_DAYS * DAY]
    authors = _people(recent)
    factor, total = bus_factor(authors), sum(authors.values())
    if total < 20:
        return
    leader, most = authors.most_common(1)[0]
    alone = factor == 1 and len(authors) > 1
    report.add(
        "LOW" if alone else "INFO",
        f"Bus factor {factor} in the last active year",
        f"{count(factor, 'person', 'people')} wrote half of {total:,} commits; "
        f"{leader} alone {100 * most // total} %." + (" Knowledge of this code rests on one person." if alone else ""),
        f"commits of the 365 days before the newest one: {_names(authors, 10)}",
    )


def _hot_spots(report: Report, changes: list[Change], touched: Counter[str]) -> None:
    top = [(p, n) for p, n in touched.most_common(LISTED) if n >= 3]
    if top:
        report.add(
            "INFO",
            f"Most changed: {shown(top[0][0])} ({top[0][1]} of {count(len(changes), 'commit')})",
            "These files change most often; tests and reviews pay off here first: "
            + ", ".join(f"{shown(p)} ({n})" for p, n in top),
            [f"{shown(p)}: touched by {n} of the last {len(changes)} commits" for p, n in top],
        )


def _largest(report: Report, changes: list[Change]) -> None:
    # A first commit (or the edge of a shallow clone) adds everything: no news.
    real = [c for c in changes if c.commit.parents]
    top = sorted(real, key=lambda c: c.added + c.removed, reverse=True)[:5]
    top = [c for c in top if c.added + c.removed >= 1_000]
    if top:
        report.add(
            "INFO",
            f"Largest commits: up to {top[0].added + top[0].removed:,} lines",
            f"{count(len(top), 'commit')} of the last {len(changes):,} changed 1,000 lines or more and "
            "were hard to review whole.",
            [
                f"{c.commit.sha[:12]} +{c.added} -{c.removed} in {count(c.files, 'file')}: {c.commit.subject}"
                for c in top
            ],
        )


def work(report: Report) -> None:
    """Fill the report with the facts of the history."""
    repo = open_repo(work_tree=False)
    now = time.time()
    if repo.unborn:
        report.add("INFO", "No commits yet", "The current branch has no commit.", "git rev-parse --verify HEAD: none")
    else:
        progress("reading the commits")
        commits = read_commits(repo)
        _overview(repo, report, commits, now)
        _cadence(report, commits, now)
        _bus(report, commits)
        progress(f"counting changed lines of the last {min(len(commits), CHURN_COMMITS):,} commits")
        changes, touched = read_changes(repo)
        _hot_spots(report, changes, touched)
        _largest(report, changes)
    progress("looking at the branches")
    audit_branches(repo, report, now)
    repo.report_skipped(report)
    report.recommendation = _advice(report)


def _advice(report: Report) -> str:
    todo = [f.title for f in report.findings if f.severity != "INFO"]
    return "Look at: " + "; ".join(todo) + "." if todo else "Nothing to do; the history is in order."


if __name__ == "__main__":
    sys.exit(run_tool(work))
