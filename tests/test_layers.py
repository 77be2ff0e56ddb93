"""Each row imports only rows below it, and what a process does not need it does not load."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def test_the_import_contracts_hold():
    tool = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([tool, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def loaded(*modules: str) -> set[str]:
    """Top-level names in `sys.modules` after these imports, and the rows of this package."""
    code = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    names = done.stdout.split()
    return {name.partition(".")[0] for name in names} | {name for name in names if name.startswith("council_tui.")}


@pytest.mark.parametrize(
    ("modules", "forbidden"),
    [
        (["council_tui.control.council"], {"textual"}),
        (["council_tui.supervisor.supervisor", "council_tui.fleet.fleet"], {"textual", "rich"}),
        (
            ["council_tui.runner.main", "council_tui.hosts.nursery"],
            {
                "textual",
                "rich",
                "aiosqlite",
                "sqlite3",
                "psutil",
                "yaml",
                "council_tui.board",
                "council_tui.supervisor",
                "council_tui.fleet",
                "council_tui.control",
            },
        ),
        (["council_tui.hosts.local"], {"textual", "rich", "aiosqlite", "council_tui.board"}),
        (
            ["council_tui.domain.contract", "council_tui.domain.lifecycle", "council_tui.domain.card"],
            {"asyncio", "sqlite3", "council_tui.board", "council_tui.ledger", "council_tui.runner"},
        ),
        (["council_tui.board.board"], {"textual", "rich", "council_tui.runner", "council_tui.supervisor"}),
    ],
)
def test_a_process_loads_no_more_than_its_row_needs(modules, forbidden):
    assert loaded(*modules) & forbidden == set()


def test_the_headless_front_end_loads_no_textual():
    headless = ROOT / "council_tui" / "headless"
    modules = sorted(f"council_tui.headless.{file.stem}" for file in headless.glob("*.py") if file.stem != "__init__")
    if modules:
        assert "textual" not in loaded(*modules)
