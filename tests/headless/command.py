"""The `council` command as a process, and plans that are over in a moment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import yaml

from council_tui.runner import guard

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ENVELOPE = {
    "task_description": "A step of a test.",
    "time_budget_minutes": 1,
    "autonomy_band": "AUTONOMOUS",
    "tools_scope": ["exec"],
    "rollback_plan": "No changes - read-only",
}
SECONDS = 50


def child(name: str, *run: str, parent: str = "zeroclaw", **more: Any) -> dict[str, Any]:
    """A child of a plan."""
    return {"id": name, "parent": parent, "run": list(run), "retries": 0, **more}


def write_plan(folder: Path, *children: dict[str, Any], **more: Any) -> Path:
    """A plan file with these children."""
    plan = {"council": 1, "name": "small", "defaults": {"envelope": ENVELOPE}, "children": list(children), **more}
    path = folder / "plan.yaml"
    path.write_text(yaml.safe_dump(plan), encoding="utf-8")
    return path


def _environment(home: Path | None) -> dict[str, str]:
    names = ("COUNCIL_HOME", "PYTHONUTF8")
    env = {key: value for key, value in os.environ.items() if key not in names}
    return {**env, "PYTHONUTF8": "1", **({"COUNCIL_HOME": str(home)} if home is not None else {})}


def argv(*args: str) -> list[str]:
    """The command line of a council."""
    return [sys.executable, "-m", "council_tui", *args]


def council(*args: str, home: Path | None, cwd: Path | None = None, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        argv(*args),
        env={**_environment(home), **more},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=SECONDS,
        check=False,
    )


@contextmanager
def running(*args: str, home: Path) -> Iterator[subprocess.Popen[str]]:
    """A command that is still running; it is killed when the test is through with it."""
    process = subprocess.Popen(
        argv(*args),
        env=_environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    with process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def until(process: subprocess.Popen[str], kind: str) -> list[dict[str, Any]]:
    """Read objects up to the first of this type or kind of event."""
    found: list[dict[str, Any]] = []
    assert process.stdout is not None
    for line in process.stdout:
        found.append(json.loads(line))
        if kind in (found[-1]["type"], found[-1].get("kind")):
            return found
    raise AssertionError(f"no {kind} in {len(found)} lines")


def objects(text: str) -> list[dict[str, Any]]:
    """JSON Lines."""
    return [json.loads(line) for line in text.splitlines()]


def survivors(found: list[dict[str, Any]]) -> list[int]:
    """Processes that carry the marker of a run that these events tell of."""
    runs = {line["run"] for line in found if line.get("run")}
    return [process.pid for process, run in guard.all_marked() if run in runs]
