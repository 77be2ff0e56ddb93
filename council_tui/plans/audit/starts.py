"""Whether a test run was a test run at all: a runner that could not begin says nothing about the tests."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from council_tui.plans.audit.results import ANSI, COLLECTION, Counts

if TYPE_CHECKING:
    from council_tui.plans.audit.pythons import Python
    from council_tui.plans.audit.suites import Suite

_MODULE = re.compile(r"No module named '?([\w.]+)")
_SAID = re.compile(r"(?m)^(?:E +|ERROR: |\S+: error: )(\S.*)$")
_NEVER_BEGAN = (2, 3, 4)
"""pytest's exit statuses for a broken-off run, an error of its own, and a command line or conftest it cannot use."""
_RAN = re.compile(r"(?m)^Ran [1-9]\d* test")
"""unittest's own words; it prints no counts that could be read."""


@dataclass(frozen=True)
class NotStarted:
    """Why no test was run, and what a person can do about it; both are whole sentences."""

    title: str
    """Follows the suite's name: `could not be started: ...`."""
    advice: str


_SIGNS: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (re.compile("you're using offline mode"), "the crates are not there", "Fetch them with `cargo fetch`."),
    (
        re.compile("module lookup disabled by GOPROXY=off"),
        "the Go modules are not there",
        "Fetch them with `go mod download`.",
    ),
    (
        re.compile(r"(?:ERR_MODULE_NOT_FOUND|MODULE_NOT_FOUND|Cannot find module)"),
        "a package is not there",
        "Install the packages with the project's package manager.",
    ),
    (
        re.compile(r"No module named '?([\w.]+)"),
        "no module {0} in the Python that it runs with",
        "Install it there.",
    ),
    (
        re.compile(r"(?m)^(?:.*: )?([\w.+-]+): (?:command )?not found$"),
        "the program {0} is not installed",
        "Install {0}, or the packages that bring it.",
    ),
    (
        re.compile(r"(?m)^make: ([\w.+-]+): No such file or directory$"),
        "the program {0} is not installed",
        "Install {0}, or the packages that bring it.",
    ),
)
"""What runners other than pytest print when they were not able to begin."""


def why_not_started(suite: Suite, status: int, output: str, counts: Counts) -> NotStarted | None:
    """Why this run ended before its first test, or None when tests were run."""
    if status == 0 or counts.passed or any(not f.reason.startswith(COLLECTION) for f in counts.failures):
        return None
    output = ANSI.sub("", output)
    if suite.python is not None:
        return _pytest(suite, suite.python, status, output, counts)
    return None if counts.failed or _RAN.search(output) else _other(status, output)


def _other(status: int, output: str) -> NotStarted | None:
    for pattern, why, advice in _SIGNS:
        if found := pattern.search(output):
            return NotStarted(f"could not be started: {why.format(*found.groups())}", advice.format(*found.groups()))
    return None


def _pytest(suite: Suite, python: Python, status: int, output: str, counts: Counts) -> NotStarted | None:
    collection = [f.reason.removeprefix(COLLECTION).strip(": ") for f in counts.failures]
    if not collection and status not in _NEVER_BEGAN and counts.known:
        return None
    if "unrecognized arguments: --cov" in output:
        return _no_module("pytest_cov", python, python.install("pytest-cov"))
    missing = next((m for m in map(_MODULE.search, [*collection, output]) if m), None)
    if missing is not None:
        return _no_module(missing.group(1), python, python.install("pytest"))
    if collection:
        files = "1 file" if len(collection) == 1 else f"{len(collection)} files"
        return NotStarted(f"could not be started: {files} cannot be imported", f"The first says: {collection[0]}.")
    if status not in _NEVER_BEGAN:
        return None
    said = _SAID.findall(output)
    return NotStarted(
        f"could not be started: it ended with exit status {status} before the first test",
        f"It says: {said[-1]}." if said else f"Try `{suite.shown}` by hand.",
    )


def _no_module(name: str, python: Python, command: str) -> NotStarted:
    advice = f"Install the project and what its tests need: `{command}`."
    return NotStarted(f"could not be started: no module {name} in {python.shown}", advice)
