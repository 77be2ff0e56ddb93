"""`council doctor`: what it tells, what makes it fail, and that it leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import jsonschema
import pytest

from council_tui.domain.errors import CouncilError
from council_tui.headless import doctor, machine
from council_tui.headless.lines import schema
from council_tui.supervisor.limits import Tier, find_tier
from headless.command import objects

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from headless.conftest import Answer, Finished


def told(cli: Callable[..., Answer], home: Path) -> tuple[int, dict[str, Any]]:
    """The exit code and the object, held against the schema."""
    done = cli("doctor", "--json", home=home)
    (line,) = objects(done.stdout)
    jsonschema.Draft202012Validator(schema()).validate(line)
    return done.returncode, line


def test_a_sound_machine_is_told_and_nothing_is_made(cli: Callable[..., Answer], tmp_path: Path):
    code, line = told(cli, tmp_path / "home")
    assert (code, line["problems"], line["leftovers"]) == (0, [], [])
    assert line["tier"]["name"] == find_tier().name
    assert line["versions"]["textual"].count(".") == 2
    assert line["limits"]["agents"] > 0
    assert (line["home"]["exists"], line["home"]["writable"]) == (False, True)
    assert list(tmp_path.iterdir()) == []


def test_portable_mode_says_why_and_that_it_forbids_nothing(
    cli: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("COUNCIL_TIER", "portable")
    _, line = told(cli, tmp_path)
    assert (line["tier"]["name"], line["tier"]["forbidden"]) == ("portable", [])
    assert "COUNCIL_TIER" in line["tier"]["why"]
    shown = cli("doctor", home=tmp_path).stdout
    assert "portable: COUNCIL_TIER asks for it" in shown
    assert "declared-only" in shown


@pytest.mark.parametrize("rules", [b"", b"a filter"])
def test_strong_mode_names_what_it_holds_and_what_it_does_not(monkeypatch: pytest.MonkeyPatch, rules: bytes):
    monkeypatch.setattr(machine.seccomp, "rules", lambda: rules)
    part = machine.tier_part(Tier("strong", "/usr/bin/bwrap"))
    assert part.forbidden == ["network", "write"]
    assert any("hard ceiling" in item for item in part.enforces)
    assert any("AF_VSOCK" in item for item in part.enforces) is bool(rules)
    assert any("AF_VSOCK" in item for item in part.cannot) is not bool(rules)
    assert any("elsewhere than in /run" in item for item in part.cannot)


@pytest.mark.parametrize(
    ("tier", "limits"),
    [
        (Tier("portable", "", "no bubblewrap"), {"memory": "soft", "processes": "soft", "cpus": "none"}),
        (Tier("portable", "", "", {"cpus": "/g"}), {"memory": "soft", "processes": "soft", "cpus": "soft"}),
        (
            Tier("strong", "/b", "", {"memory": "/g"}, {"cpus": "busy"}),
            {"memory": "hard", "processes": "soft", "cpus": "none"},
        ),
    ],
)
def test_each_limit_is_told_to_be_hard_soft_or_not_held_and_why(tier: Tier, limits: dict[str, str]):
    part = machine.tier_part(tier)
    assert part.limits == limits
    for how in ("hard", "soft"):
        names = ", ".join(name for name in limits if limits[name] == how)
        assert [item.rpartition(": ")[2] for item in part.enforces if f"({how} limits)" in item] == (
            [names] if names else []
        )
    open_ones = [item for item in part.cannot if item.startswith("a limit of ")]
    assert [item.split()[3] for item in open_ones] == [name for name in limits if limits[name] == "none"]
    assert all("no bubblewrap" in item or "busy" in item for item in open_ones)


def test_an_agent_takes_more_processes_in_strong_mode(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(machine, "_soft", lambda which: None)
    monkeypatch.setattr(machine, "_number", lambda path: 32768)
    strong, portable = machine.limits_part(strong=True), machine.limits_part(strong=False)
    assert portable.agents >= 2 * strong.agents - 1
    assert strong.by == "kernel.pid_max"


def test_open_files_count_up_to_the_hard_limit_and_a_plan_that_wants_more_is_said_to_be_refused(
    cli: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(machine.descriptors.resource, "getrlimit", lambda which: (64, 300))
    _, line = told(cli, tmp_path)
    assert (line["limits"]["open_files"], line["limits"]["agents"]) == (300, 200)
    shown = cli("doctor", home=tmp_path).stdout
    assert "at most 200 agents at once, bounded by open files (ulimit -Hn)" in shown
    assert "a plan that may want more at once is refused" in shown


@pytest.mark.parametrize(("sqlite", "noted"), [("3.51.2", True), ("3.51.3", False), ("3.9.2", True)])
def test_an_old_sqlite_is_a_note_and_no_problem(
    cli: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sqlite: str, noted: bool
):
    monkeypatch.setattr(machine.sqlite3, "sqlite_version", sqlite)
    code, line = told(cli, tmp_path / "home")
    assert code == 0
    assert any("single writer" in note for note in line["notes"]) is noted


def test_a_home_that_cannot_be_made_is_a_problem(cli: Callable[..., Answer], tmp_path: Path):
    (tmp_path / "file").write_text("")
    code, line = told(cli, tmp_path / "file" / "home")
    assert code == 1
    assert "choose another home with --home" in line["problems"][0]


def test_a_home_that_others_may_look_into_is_a_problem(cli: Callable[..., Answer], tmp_path: Path):
    (tmp_path / "home").mkdir(mode=0o755)
    code, line = told(cli, tmp_path / "home")
    assert code == 1
    assert "chmod 700" in line["problems"][0]


def test_what_is_left_of_an_earlier_council_is_a_problem_that_names_its_processes(
    cli: Callable[..., Answer], finished: Finished
):
    assert told(cli, finished.home)[0] == 0
    run = next(line["run"] for line in finished.lines if line.get("run"))
    left = subprocess.Popen(["sleep", "600"], env={**os.environ, "COUNCIL_RUN": run})
    other = subprocess.Popen(["sleep", "600"], env={**os.environ, "COUNCIL_RUN": "r_of_another_home"})
    try:
        code, line = told(cli, finished.home)
        shown = cli("doctor", home=finished.home).stdout
    finally:
        for process in (left, other):
            process.kill()
            process.wait()
    assert (code, line["leftovers"]) == (1, [{"pid": left.pid, "name": "sleep", "run": run}])
    assert f"process {left.pid} (sleep) of run {run}" in shown


def test_a_board_that_cannot_be_read_is_a_problem(cli: Callable[..., Answer], tmp_path: Path):
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "board.db").write_text("no database")
    code, line = told(cli, home)
    assert code == 1
    assert "cannot be read" in line["problems"][0]


def test_a_home_on_a_network_file_system_and_a_proc_that_tells_too_little_are_problems(
    cli: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    def unreadable() -> str:
        raise CouncilError("cannot read /proc/self/stat: Permission denied; mount it whole")

    monkeypatch.setattr(doctor, "network_file_system", lambda path: "nfs4")
    monkeypatch.setattr(doctor.guard, "boot_id", unreadable)
    code, line = told(cli, tmp_path / "home")
    assert code == 1
    assert line["problems"][0].startswith("cannot read /proc/self/stat")
    assert line["problems"][1].endswith("/home lies on a network file system (nfs4); choose another home with --home")


def test_a_small_terminal_and_a_locale_without_utf8_are_notes():
    terminal = machine.terminal_part().model_copy(update={"columns": 60, "rows": 20, "encoding": "ascii"})
    versions = machine.versions_part(Tier("portable"), "8.2.8").model_copy(update={"sqlite": "3.99.0"})
    first, second = doctor._notes(versions, terminal)
    assert "80x24" in first
    assert "ASCII" in second
