"""A small git repository to audit, and one way to run a tool on it the way the fleet does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import council_tui
from council_tui.domain.evidence import check_result
from council_tui.fleet.plan import load_plan

if TYPE_CHECKING:
    from council_tui.domain.envelope import Envelope

WHO = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
}
START = (
    "import runpy, sys; tool = sys.argv.pop(1); sys.path.append(sys.argv.pop(1)); "
    "runpy.run_module('council_tui.plans.audit.' + tool, run_name='__main__', alter_sys=True)"
)
"""`-m` in isolated mode, which also works from a checkout that is not installed."""


@dataclass(frozen=True)
class Outcome:
    """What a tool printed and how it ended."""

    code: int
    lines: list[str]
    result: dict[str, Any]
    stderr: str

    @property
    def findings(self) -> list[dict[str, Any]]:
        return self.result["findings"]

    def titles(self, *severities: str) -> list[str]:
        """Titles of the findings, of these severities or of all."""
        return [f["title"] for f in self.findings if not severities or f["severity"] in severities]

    def one(self, words: str) -> dict[str, Any]:
        """The single finding whose title has these words."""
        found = [f for f in self.findings if words in f["title"]]
        assert len(found) == 1, (words, self.titles())
        return found[0]


def run_tool(tool: str, cwd: Path, *arguments: str, home: Path, env: dict[str, str] | None = None) -> Outcome:
    """Run a tool as the fleet does: isolated, in the user's directory, with a private HOME."""
    checkout = str(Path(council_tui.__file__).parents[1])
    home.mkdir(exist_ok=True)
    measured = {key: value for key, value in os.environ.items() if key.startswith("COVERAGE_")}
    done = subprocess.run(
        [sys.executable, "-I", "-c", START, tool, checkout, *arguments],
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(home), **measured, **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=50,
        check=False,
    )
    lines = done.stdout.decode().splitlines()
    return Outcome(done.returncode, lines, json.loads(lines[-1]), done.stderr.decode())


@dataclass
class Checkout:
    """A repository under construction."""

    root: Path
    clock: int = 1_700_000_000
    environment: dict[str, str] = field(default_factory=lambda: {**os.environ, **WHO})

    def git(self, *args: str, author: str = "Ada") -> str:
        """Run git here, at the repository's own clock."""
        when = {"GIT_AUTHOR_DATE": f"{self.clock} +0000", "GIT_COMMITTER_DATE": f"{self.clock} +0000"}
        done = subprocess.run(
            ["git", "-c", "protocol.file.allow=always", *args],
            cwd=self.root,
            env=self.environment | when | {"GIT_AUTHOR_NAME": author},
            capture_output=True,
            check=True,
        )
        return done.stdout.decode("utf-8", "replace")

    def write(self, path: str, content: str | bytes = "") -> Path:
        """Write a file, with its folders."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    def commit(self, message: str = "change", author: str = "Ada", days: float = 1) -> None:
        """Commit everything, then let time pass."""
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message, author=author)
        self.clock += int(days * 86_400)

    def audit(self, tool: str, *arguments: str, env: dict[str, str] | None = None, cwd: str = "") -> Outcome:
        """Run a tool in the repository and hold its result against the contract of the shipped plan."""
        outcome = run_tool(tool, self.root / cwd, *arguments, home=self.root.parent / "home", env=env)
        check_contract(outcome)
        return outcome


@cache
def contract() -> Envelope:
    """The envelope of the plan's first child; all children share its output schema."""
    return load_plan("repo-audit").orders[0].envelope


def check_contract(outcome: Outcome) -> None:
    """The result keeps the plan's output schema and the evidence rule, and stays small."""
    assert check_result(outcome.result, contract()).problems == ()
    last = len(outcome.result["evidence"])
    assert all(0 <= ref < last for f in outcome.findings for ref in f["evidence_refs"])
    assert len(outcome.lines[-1]) < 256 * 1024
    assert len(outcome.findings) <= 100
