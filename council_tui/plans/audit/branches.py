"""Branches and stashes that somebody may have forgotten. Part of the history card."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from council_tui.plans.audit.repo import Repo, shown
from council_tui.plans.audit.report import Report, count

DAY = 86_400
STALE_DAYS = 90
LONG_LIVED = re.compile(r"(?i)(^|/)(v?\d+([.x-]|$)|gh-pages|stable|release|maint|lts|backport)")
"""Branches that are meant never to be merged."""
LISTED = 15


@dataclass(frozen=True)
class Branch:
    """A branch: its full name, its commit, the time of that commit in seconds."""

    ref: str
    sha: str
    at: int

    @property
    def name(self) -> str:
        """The name as people write it: `topic` or `origin/topic`."""
        return shown(self.ref.split("/", 2)[-1])


def _branches(repo: Repo, *flags: str) -> list[Branch]:
    form = "%(refname)%00%(objectname)%00%(committerdate:unix)%00%(symref)"
    lines = repo.git("for-each-ref", f"--format={form}", *flags, "refs/heads", "refs/remotes").split(b"\n")
    found = []
    for line in lines:
        ref, _, rest = line.partition(b"\0")
        parts = rest.split(b"\0")
        if len(parts) == 3 and not parts[2] and parts[1].isdigit():
            found.append(Branch(os.fsdecode(ref), parts[0].decode(), int(parts[1])))
    return found


def main_branch(repo: Repo) -> str:
    """The branch that others are measured against: the remote's default, else main or master, else HEAD."""
    for ref in ("refs/remotes/origin/HEAD", "refs/heads/main", "refs/heads/master"):
        if repo.git("rev-parse", "-q", "--verify", f"{ref}^{{commit}}", ok=(0, 1, 128)).strip():
            return ref
    return "HEAD"


def _distinct(branches: list[Branch]) -> list[Branch]:
    """A remote's copy of a local branch at the same commit is the same work."""
    local = {b.sha for b in branches if b.ref.startswith("refs/heads/")}
    return [b for b in branches if b.ref.startswith("refs/heads/") or b.sha not in local]


def _list(branches: list[Branch], now: float) -> list[str]:
    return [f"{b.name} {b.sha[:12]}, last commit {int((now - b.at) // DAY)} days ago" for b in branches[:LISTED]]


def audit_branches(repo: Repo, report: Report, now: float) -> None:
    """Report stale unmerged branches, local branches that are merged, a detached HEAD and stashes."""
    if not repo.unborn:
        base = main_branch(repo)
        _unmerged(repo, report, base, now)
        _merged(repo, report, base, now)
        _detached(repo, report)
    _stashes(repo, report, now)


def _unmerged(repo: Repo, report: Report, base: str, now: float) -> None:
    open_ones = _distinct(_branches(repo, f"--no-merged={base}", "--sort=committerdate"))
    open_ones = [b for b in open_ones if not LONG_LIVED.search(b.name)]
    stale = [b for b in open_ones if now - b.at > STALE_DAYS * DAY]
    if stale:
        report.add(
            "LOW",
            f"{count(len(stale), 'unmerged branch', 'unmerged branches')} idle for {STALE_DAYS} days",
            f"Finish, delete or tag them; the oldest first: {', '.join(b.name for b in stale[:LISTED])}.",
            _list(stale, now),
        )
    fresh = [b for b in open_ones if b not in stale]
    if fresh:
        report.add(
            "INFO",
            f"{count(len(fresh), 'branch', 'branches')} in work, not merged yet",
            f"Not contained in {base.removeprefix('refs/')}: {', '.join(b.name for b in fresh[:LISTED])}.",
            _list(fresh, now),
        )


def _merged(repo: Repo, report: Report, base: str, now: float) -> None:
    current = repo.git("symbolic-ref", "-q", "HEAD", ok=(0, 1)).decode("utf-8", "replace").strip()
    done = [
        b
        for b in _branches(repo, f"--merged={base}")
        if b.ref.startswith("refs/heads/") and b.ref not in (base, current, "refs/heads/main", "refs/heads/master")
    ]
    if done:
        report.add(
            "INFO",
            f"{count(len(done), 'local branch is', 'local branches are')} merged and can be deleted",
            f"`git branch -d` loses nothing on: {', '.join(b.name for b in done[:LISTED])}.",
            _list(done, now),
        )


def _detached(repo: Repo, report: Report) -> None:
    if not repo.git("symbolic-ref", "-q", "HEAD", ok=(0, 1)).strip():
        sha = repo.git("rev-parse", "HEAD").decode().strip()[:12]
        text = "Commits made now belong to no branch; `git switch -c NAME` gives them one."
        report.add("INFO", "HEAD is detached", text, f"git symbolic-ref HEAD: none, at {sha}")


def _stashes(repo: Repo, report: Report, now: float) -> None:
    if not repo.git("rev-parse", "-q", "--verify", "refs/stash", ok=(0, 1, 128)).strip():
        return
    log = repo.git("log", "-g", "--format=%ct%x1f%gs", "refs/stash").decode("utf-8", "replace").splitlines()
    stashes = [line.split("\x1f", 1) for line in log if "\x1f" in line]
    if stashes:
        days = int((now - int(stashes[-1][0])) // DAY)
        report.add(
            "LOW",
            f"{count(len(stashes), 'stash', 'stashes')} kept, oldest {count(days, 'day')} old",
            "Stashed work is on no branch and in no backup by push; apply it, or drop it.",
            [f"stash@{{{n}}}: {text}" for n, (_, text) in enumerate(stashes[:LISTED])],
        )
