"""Whether a newcomer finds a way in: README, changelog, contributing, and what was left to do."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass

from council_tui.plans.audit.generated import debris, is_test, third_party
from council_tui.plans.audit.markdown import parse, plain
from council_tui.plans.audit.repo import Repo, open_repo, shown
from council_tui.plans.audit.report import Report, count, progress, run_tool

BLAME_SECONDS = 4.0
BLAMED = 40
DAY = 86_400
OLD_DAYS = 365
LISTED = 12
_MARK = re.compile(rb"(?:#|//|/\*|\*|<!--|--|;|%)\s*@?(TODO|FIXME|XXX|HACK)\b[:( ]")

_SECTIONS = (
    ("how to install it", r"install|set.?up|getting started|quick.?start|requirements|build|download|deploy"),
    (
        "how to use it",
        r"us(e|age|ing)|example|quick.?start|getting started|tutorial|how to|commands?|run(ning)?|demo|guide",
    ),
)
_PLACES = ("", ".github/", "docs/")
_GUIDES = (
    (
        "changelog",
        r"(change(s|log)|history|news|releases?)(\.\w+)?$",
        "Users cannot see what changed between versions.",
    ),
    ("contributing guide", r"contributing(\.\w+)?$", "Newcomers do not learn how to propose a change."),
    ("security policy", r"security(\.\w+)?$", "Whoever finds a hole does not learn where to report it."),
)


@dataclass(frozen=True)
class Mark:
    """A note that something is left to do."""

    path: str
    line: int
    word: str
    text: str


def _readme(repo: Repo, report: Report, paths: list[str], links: dict[str, str]) -> None:
    top = [p for place in _PLACES for p in paths if re.fullmatch(rf"(?i){re.escape(place)}readme(\.\w+)?", p)]
    if not top:
        text = "Whoever opens the repository does not learn what it is for; add a README.md at the top."
        report.add("MEDIUM", "No README", text, "git ls-files: no README at the top, in .github or docs")
        return
    path = next((p for p in top if p.lower().endswith(".md")), top[0])
    text = (repo.read(links.get(path, path)) or b"").decode("utf-8-sig", "replace")
    words = len(text.split())
    if path.lower().endswith((".md", ".markdown")):
        titles = [name for _, title, _ in parse(text).headings if (name := plain(title))]
    else:
        titles = re.findall(r"(?m)^(\S.*)\n[=\-~^\"#*]{3,}\s*$", text)
    proof = f"{shown(path)}: {words} words; headings: {', '.join(titles[:LISTED]) or 'none'}"
    report.add(
        "INFO",
        f"README: {count(words, 'word')}, {count(len(titles), 'heading')}",
        f"In {shown(path)}.",
        proof,
        path=shown(path),
    )
    if words < 40:
        advice = "Say what it is for, how to install it, and one example."
        report.add("LOW", "The README is very short", advice, proof, path=shown(path))
        return
    # The whole text counts, not only headings: many good READMEs say it in a sentence.
    missing = [what for what, pattern in _SECTIONS if not re.search(rf"(?i)\b(?:{pattern})", text)]
    if missing:
        report.add(
            "LOW",
            f"The README does not say {' or '.join(missing)}",
            "No heading or sentence about it.",
            proof,
            path=shown(path),
        )


def _guides(repo: Repo, report: Report, paths: list[str]) -> None:
    tags = repo.git("for-each-ref", "--count=1", "--format=%(refname)", "refs/tags").strip()
    there, missing = [], []
    for what, pattern, why in _GUIDES:
        found = [p for place in _PLACES for p in paths if re.fullmatch(rf"(?i){re.escape(place)}{pattern}", p)]
        if found:
            there.append(shown(found[0]))
        elif what == "changelog" and tags:
            report.add(
                "LOW",
                "No changelog",
                why + " There are tagged releases.",
                "git ls-files: none; git tag: has tags",
            )
        else:
            missing.append((what, why))
    if there:
        report.add(
            "INFO",
            f"Guides: {', '.join(there)}",
            "Found where people look for them.",
            [f"git ls-files: {p}" for p in there],
        )
    if missing:
        names = ", ".join(what for what, _ in missing)
        report.add("INFO", f"No {names}", " ".join(why for _, why in missing), f"git ls-files: no {names}")


def find_marks(repo: Repo) -> list[Mark]:
    """TODO, FIXME, XXX and HACK in comments of the committed files that are the project's own."""
    arguments = (
        "grep",
        "-n",
        "-I",
        "-z",
        "--full-name",
        "--no-textconv",
        "-w",
        "-E",
        "-e",
        "TODO|FIXME|XXX|HACK",
        "HEAD",
    )
    found = []
    for line in repo.git(*arguments, "--", ":(top)", ok=(0, 1)).split(b"\n"):
        name, _, rest = line.removeprefix(b"HEAD:").partition(b"\0")
        number, _, text = rest.replace(b"\0", b":", 1).partition(b":")
        match = _MARK.search(text[:400])
        path = os.fsdecode(name)
        if match and number.isdigit() and not (debris(path) or third_party(path) or is_test(path)):
            words = text.strip().decode("utf-8", "replace")[:160]
            found.append(Mark(path, int(number), match.group(1).decode(), words))
    return found


def oldest(repo: Repo, marks: list[Mark]) -> tuple[list[tuple[int, Mark]], bool]:
    """Marks with the time their line was written, oldest first, and whether all were looked at in time."""
    deadline = time.monotonic() + BLAME_SECONDS
    dated = []
    for mark in marks[:BLAMED]:
        left = deadline - time.monotonic()
        if left <= 0:
            break
        lines = f"{mark.line},{mark.line}"
        try:
            raw = repo.git("blame", "--no-textconv", "--porcelain", "-L", lines, "HEAD", "--", mark.path, seconds=left)
        except subprocess.TimeoutExpired:
            break
        if match := re.search(rb"(?m)^author-time (\d+)$", raw):
            dated.append((int(match.group(1)), mark))
    return sorted(dated, key=lambda pair: pair[0]), len(dated) == len(marks)


def _marks(repo: Repo, report: Report, now: float) -> None:
    marks = find_marks(repo)
    if not marks:
        return
    by_word = ", ".join(f"{n} {w}" for w in ("FIXME", "TODO", "HACK", "XXX") if (n := sum(m.word == w for m in marks)))
    files = len({m.path for m in marks})
    dated, complete = ([], False) if repo.shallow else oldest(repo, sorted(marks, key=lambda m: m.word != "FIXME"))
    old = [(at, m) for at, m in dated if now - at > OLD_DAYS * DAY]
    text = f"{by_word} in {count(files, 'file')}."
    if dated:
        scope = "" if complete else f" of the {len(dated)} that were dated"
        days = count(int((now - dated[0][0]) // DAY), "day")
        text += f" The oldest{scope} was written {days} ago; {len(old)} are older than a year."
    shown_marks = [(at, m) for at, m in dated[:LISTED]] or [(0, m) for m in marks[:LISTED]]
    report.add(
        "LOW" if old else "INFO",
        f"{count(len(marks), 'note')} left to do ({by_word})",
        text + (" Do them, turn them into issues, or drop them." if old else ""),
        [
            f"{shown(m.path)}:{m.line}: {m.text}" + (f" ({int((now - at) // DAY)} days)" if at else "")
            for at, m in shown_marks
        ],
        path=shown(shown_marks[0][1].path),
        line=shown_marks[0][1].line,
    )


def work(report: Report) -> None:
    """Fill the report with what the documentation has and lacks."""
    repo = open_repo()
    links = repo.links()
    paths = [*(entry.path for entry in repo.files()), *links]
    progress("reading README and guides")
    _readme(repo, report, paths, links)
    _guides(repo, report, paths)
    if not repo.unborn:
        progress("looking for notes left to do")
        _marks(repo, report, time.time())
    repo.report_skipped(report)
    todo = [f.title for f in report.findings if f.severity != "INFO"]
    report.recommendation = f"Look at: {'; '.join(todo)}." if todo else "Nothing to do."


if __name__ == "__main__":
    sys.exit(run_tool(work))
