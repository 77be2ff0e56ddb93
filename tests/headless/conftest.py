"""One finished fleet that every reading test shares."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from council_tui import cli as command_line
from headless.command import child, council, objects, write_plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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


@dataclass(frozen=True)
class Answer:
    """What a command answered."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Answer]:
    """A command that starts no fleet, in this process; it stands in `cwd`."""
    monkeypatch.setattr(command_line, "_interrupt_on_signals", lambda: None)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))

    def call(*args: str, home: Path | None = None, cwd: Path | None = None) -> Answer:
        if home is not None:
            monkeypatch.setenv("COUNCIL_HOME", str(home))
        if cwd is not None:
            monkeypatch.chdir(cwd)
        try:
            code = command_line.main(args)
        except SystemExit as end:
            code = int(end.code or 0)
        out, err = capsys.readouterr()
        return Answer(code, out, err)

    return call
