"""One finished fleet that every reading test shares."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headless.command import child, council, objects, write_plan

if TYPE_CHECKING:
    from collections.abc import Iterator

HOSTILE = "\x1b[31mred\x07 [bold]loud[/bold] \u202eevil"


@dataclass(frozen=True)
class Finished:
    """A home in which a fleet has ended, and what its run printed."""

    home: Path
    code: int
    lines: list[dict[str, Any]]
    stdout: str
    stderr: str


@pytest.fixture(scope="session")
def finished() -> Iterator[Finished]:
    """A fleet of three: one done with findings, one failed, one that waits for the failed one."""
    with tempfile.TemporaryDirectory(prefix="cli-", dir="/tmp") as folder:
        result = {
            "status": "DONE",
            "findings": [
                {"severity": "HIGH", "title": HOSTILE, "path": "a.py", "line": 7, "evidence_refs": [0]},
                {"severity": "LOW", "title": "small", "evidence_refs": [0]},
            ],
            "evidence": ["looked at a.py"],
        }
        script = f"import json; print(json.dumps({result!r}))"
        plan = write_plan(
            Path(folder),
            child("second", "sh", "-c", "exit 3", after=["first"]),
            child("first", "{python}", "-I", "-c", script, parent="openclaw"),
            child("third", "true", after=["second"]),
        )
        home = Path(folder) / "home"
        done = council("--run", str(plan), "--json", home=home)
        yield Finished(home, done.returncode, objects(done.stdout), done.stdout, done.stderr)
