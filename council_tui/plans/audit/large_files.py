"""What makes a clone slow: big tracked files, binaries, big blobs that only the history still holds."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass

from council_tui.plans.audit.generated import DEBRIS, THIRD_PARTY, built, debris, is_test, third_party
from council_tui.plans.audit.repo import Repo, open_repo, shown
from council_tui.plans.audit.report import Report, Severity, count, progress, run_tool, size

MIB = 1024 * 1024
LARGE = MIB
SMALL = 64 * 1024
"""Below this, a binary is a fixture or a curiosity and costs nobody anything."""
HISTORY_LARGE = 2 * MIB
HISTORY_SECONDS = 40.0
LISTED = 15
LIMITS: tuple[tuple[int, Severity], ...] = ((50 * MIB, "HIGH"), (10 * MIB, "MEDIUM"), (LARGE, "LOW"))
"""From 50 MiB on, large hosting services warn; at 100 MiB they refuse the push."""


@dataclass(frozen=True)
class Blob:
    """One stored file version: where it was, its object name, its size in bytes."""

    path: str
    sha: str
    octets: int


def _severity(octets: int) -> Severity:
    return next((severity for limit, severity in LIMITS if octets >= limit), "INFO")


def head_blobs(repo: Repo) -> list[Blob]:
    """Every file of HEAD (of the index before the first commit) with its size; symbolic links left out."""
    if repo.unborn:
        return _index_blobs(repo)
    found = []
    for record in repo.git("ls-tree", "-r", "-l", "-z", "--full-tree", "HEAD").split(b"\0"):
        head, tab, path = record.partition(b"\t")
        fields = head.split()
        if tab and len(fields) == 4 and fields[0] != b"120000" and fields[3].isdigit():
            found.append(Blob(os.fsdecode(path), fields[2].decode(), int(fields[3])))
    return found


def _index_blobs(repo: Repo) -> list[Blob]:
    found = []
    for entry in repo.tracked() if not repo.bare else ():
        full = os.path.join(repo.root, entry.path)
        if os.path.lexists(full) and not os.path.islink(full):
            found.append(Blob(entry.path, "", os.lstat(full).st_size))
    return found


def history_blobs(repo: Repo) -> tuple[list[Blob], int]:
    """Blobs of 2 MiB and more in any ref's history, biggest first, and how many objects were looked at."""
    deadline = time.monotonic() + HISTORY_SECONDS
    found, seen = [], 0
    with (
        repo.stream("rev-list", "--objects", "--all", "--missing=allow-any") as names,
        repo.stream(
            "cat-file", "--batch-check=%(objecttype) %(objectname) %(objectsize) %(rest)", stdin=names
        ) as sizes,
    ):
        for line in sizes:
            seen += 1
            kind, _, rest = line.rstrip(b"\n").partition(b" ")
            sha, _, rest = rest.partition(b" ")
            octets, _, path = rest.partition(b" ")
            if kind == b"blob" and octets.isdigit() and int(octets) >= HISTORY_LARGE:
                found.append(Blob(os.fsdecode(path), sha.decode(), int(octets)))
            if seen % 4096 == 0 and time.monotonic() > deadline:
                repo.skipped["time"] += 1
                break
    return sorted(found, key=lambda blob: blob.octets, reverse=True), seen


def _overview(repo: Repo, report: Report, blobs: list[Blob]) -> None:
    total = sum(blob.octets for blob in blobs)
    stats = dict(line.split(": ", 1) for line in repo.git("count-objects", "-v").decode().splitlines() if ": " in line)
    stored = (int(stats.get("size-pack", 0)) + int(stats.get("size", 0))) * 1024
    biggest = sorted(blobs, key=lambda blob: blob.octets, reverse=True)[:5]
    report.add(
        "INFO",
        f"{count(len(blobs), 'tracked file')}, {size(total)}; the history is stored in {size(stored)}",
        "Largest: " + (", ".join(f"{shown(b.path)} ({size(b.octets)})" for b in biggest) or "none") + ".",
        [
            f"git ls-tree -r -l HEAD: {len(blobs)} files, {total} bytes",
            f"git count-objects -v: in-pack {stats.get('in-pack', '0')}, loose {stats.get('count', '0')}",
        ],
    )


def _large(report: Report, blobs: list[Blob]) -> None:
    large = sorted((b for b in blobs if b.octets >= LARGE), key=lambda blob: blob.octets, reverse=True)
    for blob in large[:LISTED]:
        report.add(
            _severity(blob.octets),
            f"Large file: {shown(blob.path)} ({size(blob.octets)})",
            "Every clone downloads each version of it; consider Git LFS, a release asset, or a build step.",
            f"{shown(blob.path)}: {blob.octets} bytes in HEAD",
            path=shown(blob.path),
        )
    rest = large[LISTED:]
    if rest:
        report.add(
            "LOW",
            f"{count(len(rest), 'more file')} of 1 MiB and above",
            f"Together {size(sum(b.octets for b in rest))}.",
            [f"{shown(b.path)}: {b.octets} bytes" for b in rest[:LISTED]],
        )


def _built(report: Report, blobs: list[Blob]) -> None:
    groups: dict[str, list[Blob]] = defaultdict(list)
    for blob in blobs:
        kind = built(blob.path)
        if kind and not third_party(blob.path) and (blob.octets >= SMALL or not is_test(blob.path)):
            groups[kind].append(blob)
    for kind, members in groups.items():
        members.sort(key=lambda blob: blob.octets, reverse=True)
        total = sum(b.octets for b in members)
        report.add(
            "LOW" if kind != "media" and total >= SMALL else "INFO",
            f"{count(len(members), 'file')} tracked: {kind} ({size(total)})",
            "Binary files cannot be reviewed or merged, and each change stores them whole."
            + ("" if kind == "media" else " Build or download them instead, or say in the README why they are here."),
            [f"{shown(b.path)}: {b.octets} bytes" for b in members[:LISTED]],
            path=shown(members[0].path) if len(members) == 1 else "",
        )


def _by_folder(report: Report, blobs: list[Blob]) -> None:
    left: Counter[tuple[str, str]] = Counter()
    vendored: Counter[tuple[str, str]] = Counter()
    for blob in blobs:
        if found := debris(blob.path):
            left[found] += 1
        elif found := third_party(blob.path):
            vendored[found] += 1
    for (place, kind), number in left.most_common(LISTED):
        report.add(
            "LOW",
            f"{DEBRIS[kind]} tracked: {shown(place)} ({count(number, 'file')})",
            f"`git rm -r --cached {shown(place)}` and a line in .gitignore keep it out.",
            f"git ls-tree -r HEAD: {number} files under {shown(place)}",
            path=shown(place),
        )
    for (place, kind), number in vendored.most_common(LISTED):
        report.add(
            "INFO",
            f"{THIRD_PARTY[kind]}: {shown(place)} ({count(number, 'file')})",
            "Code or output kept in the repository; it is not looked at as your own.",
            f"git ls-tree -r HEAD: {number} files under {shown(place)}",
            path=shown(place),
        )


def _history(repo: Repo, report: Report, blobs: list[Blob]) -> None:
    current = {blob.sha for blob in blobs}
    old, seen = history_blobs(repo)
    by_path: dict[str, list[Blob]] = defaultdict(list)
    for blob in old:
        if blob.sha not in current:
            by_path[blob.path].append(blob)
    ranked = sorted(by_path.items(), key=lambda item: -sum(b.octets for b in item[1]))
    for path, versions in ranked[:LISTED]:
        total = sum(b.octets for b in versions)
        report.add(
            "MEDIUM" if total >= 10 * MIB else "LOW",
            f"Only in the history: {shown(path) or 'a file without a name'} ({size(total)})",
            f"{count(len(versions), 'old version')} that HEAD lacks; every full clone downloads them. "
            "Removing them rewrites the history (git filter-repo).",
            [f"blob {b.sha[:12]} {shown(b.path)}: {b.octets} bytes" for b in versions[:3]],
            path=shown(path),
        )
    if repo.skipped["time"] or len(ranked) > LISTED:
        more = max(0, len(ranked) - LISTED)
        report.add(
            "INFO",
            f"The history was searched through {count(seen, 'object')}",
            f"{count(more, 'more old file')} of 2 MiB and above not listed."
            + (" The search ended at its time limit." if repo.skipped["time"] else ""),
            f"git rev-list --objects --all | git cat-file --batch-check: {seen} objects",
        )


def work(report: Report) -> None:
    """Fill the report with what takes space in the tree and in the history."""
    repo = open_repo(work_tree=False)
    progress("measuring the tracked files")
    blobs = head_blobs(repo)
    _overview(repo, report, blobs)
    _large(report, blobs)
    _built(report, blobs)
    _by_folder(report, blobs)
    progress("measuring the history")
    _history(repo, report, blobs)
    repo.report_skipped(report)
    heavy = [f.title for f in report.findings if f.severity in ("HIGH", "MEDIUM")]
    light = sum(1 for f in report.findings if f.severity == "LOW")
    report.recommendation = (
        f"Move out of git first: {'; '.join(heavy[:3])}."
        if heavy
        else f"{count(light, 'small thing')} to tidy up; nothing is urgent."
        if light
        else "Nothing to do; the repository is lean."
    )


if __name__ == "__main__":
    sys.exit(run_tool(work))
