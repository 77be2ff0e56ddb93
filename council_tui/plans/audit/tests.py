"""Run the project's own tests within a bounded time and say how they ended.

They run in place, because that is where they work; bytecode, caches and build results are sent to a
temporary folder, and what the tests still left in the project is named.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from council_tui.plans.audit.repo import Repo, open_repo, shown
from council_tui.plans.audit.report import MAX_TITLE, Report, count, progress, run_tool
from council_tui.plans.audit.results import Counts, from_go, from_junit, from_output, tail
from council_tui.plans.audit.starts import why_not_started
from council_tui.plans.audit.suites import Suite, find_suites, toolchain_environment

NESTED = "COUNCIL_AUDIT_NESTED"
SECONDS = 240.0
TICK = 10.0
KEPT_OUTPUT = 4 * 1024 * 1024
LISTED = 30


@dataclass(frozen=True)
class Run:
    """One finished or ended run: exit status, seconds, the last 4 MiB of output."""

    status: int
    seconds: float
    output: str
    overran: bool

    def ending(self) -> str:
        """`exit status 1`, or which signal ended it."""
        return f"exit status {self.status}" if self.status >= 0 else f"signal {-self.status}"


def run_bounded(argv: tuple[str, ...], folder: str, scratch: Path, limit: float) -> Run:
    """Run a command in a session of its own; at `limit` seconds its whole process group is killed."""
    log = scratch / "output"
    began = time.monotonic()
    with log.open("wb") as sink:
        process = subprocess.Popen(
            argv,
            cwd=folder,
            env=toolchain_environment(scratch) | {NESTED: "1"},
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            overran = not _ended(process.pid, began, limit, argv[0])
        finally:
            # Before the leader is reaped: after that its id could be somebody else's.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    with log.open("rb") as source:
        source.seek(max(0, log.stat().st_size - KEPT_OUTPUT))
        text = source.read().decode("utf-8", "replace")
    return Run(process.returncode, time.monotonic() - began, text, overran)


def _ended(pid: int, began: float, limit: float, name: str) -> bool:
    """Whether the process ends by itself in time; it stays a zombie, so that its id stays its own."""
    watch = os.pidfd_open(pid)
    try:
        while (left := began + limit - time.monotonic()) > 0:
            if select.select([watch], [], [], min(TICK, left))[0]:
                return True
            progress(f"{Path(name).name} has been running for {time.monotonic() - began:.0f} s")
    finally:
        os.close(watch)
    return False


def _counts(suite: Suite, run: Run, scratch: Path) -> Counts:
    if suite.name == "pytest":
        return from_junit(scratch / "pytest.xml") or from_output(run.output)
    return from_go(run.output) if suite.name == "go test" else from_output(run.output)


def report_run(report: Report, suite: Suite, run: Run, counts: Counts, limit: float) -> None:
    """Say how one run ended; failing tests are findings of their own, those with one cause together."""
    numbers = counts.words() if counts.known else "no counts in its output"
    proof = [f"{suite.shown}: {run.ending()} after {run.seconds:.1f} s, {numbers}", *tail(run.output)]
    if run.overran:
        text = f"It did not end within {limit:.0f} s; its whole process group was killed."
        report.add("MEDIUM", f"{suite.name} overran {limit:.0f} s", text, proof)
    elif run.status == 0:
        report.add("INFO", f"{suite.name} passes: {numbers}", f"It took {run.seconds:.1f} s.", proof)
    elif suite.name == "pytest" and run.status == 5:
        text = f"pytest is set up ({suite.because}), but collects nothing."
        report.add("LOW", "pytest found no tests", text, proof)
    elif cause := why_not_started(suite, run.status, run.output, counts):
        text = f"No test was run, so this says nothing about the tests. {cause.advice}"
        report.add("MEDIUM", f"{suite.name} {cause.title}", text, proof)
    else:
        text = f"`{suite.shown}` ended with {run.ending()} after {run.seconds:.1f} s."
        told = numbers if counts.known else run.ending()
        report.add("HIGH", f"{suite.name} fails: {told}", f"{text} {_first_step(counts)}", proof)
        _report_failures(report, suite, counts)


def _first_step(counts: Counts) -> str:
    if not counts.failures:
        return "Read the end of its output, which is in the evidence, and mend what it names."
    return f"Mend the failing tests; start with {counts.by_reason()[0][1][0].name}."


def _report_failures(report: Report, suite: Suite, counts: Counts) -> None:
    for reason, group in counts.by_reason()[:LISTED]:
        first = group[0]
        more = f" and {len(group) - 1} more" if len(group) > 1 else ""
        report.add(
            "MEDIUM",
            f"Failing test: {first.name}{more}",
            reason if reason != first.name else "See the output.",
            [f"{suite.name}: {f.name}: {f.reason or 'failed'}" for f in group[:5]],
            path=first.path,
            line=first.line,
        )


def _status(repo: Repo) -> set[str]:
    raw = repo.git("status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames")
    return {os.fsdecode(item[3:]) for item in raw.split(b"\0") if item}


def _traces(report: Report, before: set[str], after: set[str]) -> None:
    left = sorted(shown(path) for path in after - before)
    if left:
        report.add(
            "LOW",
            f"The tests leave {count(len(left), 'file')} in the project",
            "They were written or changed by the test run: " + ", ".join(left[:10]),
            [f"git status: {path}" for path in left[:10]],
        )


def _run_suite(repo: Repo, report: Report, suite: Suite, scratch: Path, limit: float) -> None:
    if suite.missing:
        proof = f"{suite.because}; wanted: {suite.shown}"
        title = f"Tests were not run: {suite.missing}"
        whole = f"{title}; {suite.advice[:1].lower()}{suite.advice[1:].rstrip('.')}"
        text = f"{suite.name} is set up here: {suite.because}."
        if len(whole) <= MAX_TITLE:
            report.add("MEDIUM", whole, text, proof)
        else:
            report.add("MEDIUM", title, f"{text} {suite.advice}", proof)
        return
    progress(f"running {suite.name} (at most {limit:.0f} s)")
    run = run_bounded(suite.argv, repo.root, scratch, limit)
    report_run(report, suite, run, _counts(suite, run, scratch), limit)


def work(report: Report, seconds: float = SECONDS) -> None:
    """Find the project's test suites and run them, all together at most `seconds`."""
    repo = open_repo()
    if os.environ.get(NESTED):
        report.add("INFO", "Not run inside a test run", "The tests would start themselves again.", f"{NESTED} is set")
        return
    deadline = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(prefix="council-tests-", ignore_cleanup_errors=True) as folder:
        scratch = Path(folder)
        suites = find_suites(repo, scratch)
        before = _status(repo)
        for suite in suites:
            _run_suite(repo, report, suite, scratch, max(1.0, deadline - time.monotonic()))
        _traces(report, before, _status(repo))
    if not suites:
        report.add(
            "MEDIUM",
            "No test setup found",
            "No pytest, package.json test script, Cargo, Go or `make test` at the top of the project.",
            "looked for pytest.ini, pyproject.toml, tests/, package.json, Cargo.toml, go.mod, Makefile",
        )
    report.recommendation = _advice(report)


def _advice(report: Report) -> str:
    bad = next((f for severity in ("HIGH", "MEDIUM") for f in report.findings if f.severity == severity), None)
    return f"{bad.title}. {bad.description}" if bad else "Nothing to do."


def main(arguments: list[str]) -> int:
    """`--seconds N` bounds the run (default 240)."""
    seconds = float(arguments[1]) if arguments[:1] == ["--seconds"] and len(arguments) == 2 else SECONDS
    return run_tool(lambda report: work(report, seconds))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
