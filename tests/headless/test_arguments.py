"""What `council` answers before anything is started."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import jsonschema
import pytest

from council_tui.fleet import plan as plan_file
from council_tui.headless.lines import schema
from headless.command import council, objects, write_plan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from headless.conftest import Answer, Finished

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
    assert not any(word in shown for word in ("roundtable", "approvals", "search", "--strict"))


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
        (["board", "--ascii"], "--ascii does not belong to board; see council board --help"),
        (["board", "--run", "demo"], "--run does not belong to board; see council board --help"),
        (["board", "--jsno"], "unknown: --jsno; did you mean --json? Else see council board --help"),
        (["board", "--follow"], "unknown: --follow; see council board --help"),
        (["--follow", "events"], "--follow belongs behind events; see council events --help"),
        (["bench", "--jsno", "spawn"], "unknown: --jsno; did you mean --json? Else see council bench spawn --help"),
        (["board", "extra"], "unknown: extra; see council board --help"),
        (["--home", "h", "bench", "spawn"], "--home does not belong to it"),
        (["bench"], "expected BENCHMARK; see council bench --help"),
        (["bench", "spwan"], "there is no benchmark 'spwan'; did you mean spawn? Else see council bench --help"),
        (["bench", "spawn", "--jsno"], "unknown: --jsno; did you mean --json? Else see council bench spawn --help"),
        (["bench", "spawn", "--children", "x"], "'x' is no whole number above 0"),
        (["bench", "spawn", "--beats", "9999"], "is more than an hour"),
        (["--ascii", "board"], "belongs to the control room"),
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


def test_every_command_that_prints_takes_json(cli: Callable[..., Answer], finished: Finished):
    check = jsonschema.Draft202012Validator(schema())
    listed = objects(cli("plans", "--json").stdout)
    (one,) = objects(cli("plans", "demo", "--json").stdout)
    (report,) = objects(cli("--json", "report", home=finished.home).stdout)
    for line in (*listed, one, report):
        check.validate(line)
    assert [line["name"] for line in listed] == ["demo", "handshake-drill", "repo-audit"]
    assert (listed[0]["yaml"], one["yaml"]) == (None, cli("plans", "demo").stdout)
    assert report["markdown"].startswith("#")
    assert json.loads(cli("schema", "--json").stdout) == schema()


def test_no_refusal_suggests_what_was_typed_or_what_is_not_valid_there(cli: Callable[..., Answer], tmp_path: Path):
    for command in ("board", "tree", "agents", "events", "ledger", "verify", "report", "plans", "schema", "doctor"):
        for flag in ("--run", "--demo", "--ascii", "--timeout", "--jso", "--entri", "--folow"):
            told = cli(command, flag, home=tmp_path).stderr
            guess = told.partition("did you mean ")[2].partition("?")[0]
            assert guess != flag
            assert not guess or guess in cli(command, "--help", home=tmp_path).stdout


def test_with_json_the_mistakes_of_a_plan_are_told_once(cli: Callable[..., Answer], tmp_path: Path):
    plan = write_plan(tmp_path, {"id": "a b", "parnt": "zeroclaw"})
    done = cli("--run", str(plan), "--json", home=tmp_path / "home")
    (line,) = objects(done.stdout)
    assert (done.returncode, line["type"]) == (2, "mistakes")
    count = len(line["mistakes"])
    assert done.stderr == f"council: {plan} has {count} mistakes; nothing was started\n"


@pytest.mark.parametrize(("term", "said"), [("dumb", "TERM is dumb"), ("", "TERM is not set")])
def test_a_terminal_that_cannot_place_text_is_refused_with_the_way_out(
    cli: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, term: str, said: str
):
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setenv("TERM", term)
    done = cli("--demo", home=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"council: this terminal cannot place text ({said}); use council --run PLAN\n"


def test_an_interrupt_before_the_start_says_that_nothing_was_started(
    cli: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    def interrupted(source: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(plan_file, "load_plan", interrupted)
    done = cli("--run", "demo", home=tmp_path)
    assert (done.returncode, done.stderr) == (130, "council: interrupted before anything was started\n")
