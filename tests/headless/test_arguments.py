"""What `council` answers before anything is started."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from headless.command import council, write_plan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from headless.conftest import Answer

HEAVY = ("pydantic", "textual", "rich", "nacl", "asyncio", "yaml", "sqlite3", "platformdirs", "jsonschema")
_HELP = """
import sys
from council_tui.cli import main
try:
    main({argv!r})
except SystemExit as end:
    print(end.code, *(name for name in {heavy!r} if name in sys.modules))
"""


@pytest.mark.parametrize("argv", [["--help"], ["board", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(argv: list[str]):
    code = _HELP.format(argv=argv, heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0"


def test_help_lists_examples_and_every_exit_code(cli: Callable[..., Answer], tmp_path: Path):
    shown = cli("--help", home=tmp_path).stdout
    assert "council --run repo-audit" in shown
    assert all(f"\n  {code} " in shown for code in (0, 1, 2, 3, 4, 5, 70, 130))


def test_help_does_not_list_what_is_not_built(cli: Callable[..., Answer], tmp_path: Path):
    shown = cli("--help", home=tmp_path).stdout
    assert not any(word in shown for word in ("roundtable", "approvals", "search", "doctor", "--strict"))


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["--jsn"], "unknown: --jsn; did you mean --json?"),
        (["bord"], "there is no command 'bord'; did you mean board?"),
        (["--run"], "--run: needs a value"),
        (["--run", "repo-adit"], "did you mean 'repo-audit'?"),
        (["--run", "x", "--timeout", "soon"], "'soon' is no number of seconds above 0"),
        (["--run", "x", "--timeout", "nan"], "'nan' is no number of seconds above 0"),
        (["--run", "x", "--timeout", "-1"], "'-1' is no number of seconds above 0"),
        (["--run", "x", "--demo"], "--demo belongs to the control room"),
        (["--run", "x", "--dry-run", "--timeout", "1"], "--dry-run runs nothing"),
        (["--run", "x", "board"], "give one"),
        (["--json"], "--json needs --run PLAN"),
        (["--dry-run"], "--dry-run needs --run PLAN"),
        (["--timeout", "3"], "--timeout needs --run PLAN"),
        (["board", "--ascii"], "unknown: --ascii"),
        (["--ascii", "board"], "belong to the control room"),
        (["verify", "--entry", "-1"], "is no index of an entry"),
        (["plans", "repo-adit"], "did you mean 'repo-audit'?"),
        ([], "this is not a terminal; use council --run PLAN"),
        (["--demo"], "this is not a terminal; use council --run PLAN"),
    ],
)
def test_a_wrong_command_line_is_refused_in_one_sentence(
    cli: Callable[..., Answer], args: list[str], sentence: str, tmp_path: Path
):
    done = cli(*args, home=tmp_path / "home", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_every_mistake_of_a_plan_is_told_with_its_line_and_nothing_starts(cli: Callable[..., Answer], tmp_path: Path):
    plan = write_plan(tmp_path, {"id": "a b", "parnt": "zeroclaw"})
    home = tmp_path / "home"
    done = cli("--run", str(plan), home=home)
    assert done.returncode == 2
    assert done.stdout == ""
    assert all(line.startswith(f"{plan}:") for line in done.stderr.splitlines())
    assert "did you mean 'parent'?" in done.stderr
    assert not home.exists()


def test_shipped_plans_are_listed_and_printed(cli: Callable[..., Answer], tmp_path: Path):
    listed = cli("plans", home=tmp_path).stdout
    assert [line.split()[0] for line in listed.splitlines()] == ["demo", "handshake-drill", "repo-audit"]
    assert "council: 1\nname: repo-audit" in cli("plans", "repo-audit", home=tmp_path).stdout


def test_home_may_stand_before_or_behind_a_command(cli: Callable[..., Answer], tmp_path: Path):
    for args in (["--home", "h1", "board"], ["board", "--home", "h1"]):
        assert "h1" in cli(*args, home=None, cwd=tmp_path).stderr


def test_a_home_that_cannot_be_made_is_one_sentence_that_names_home(tmp_path: Path):
    plan = write_plan(tmp_path, {"id": "a", "parent": "zeroclaw", "run": ["true"]})
    blocked = tmp_path / "file"
    blocked.write_text("")
    done = council("--run", str(plan), home=blocked / "home")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--home" in done.stderr
    assert done.stderr.count("\n") == 1
