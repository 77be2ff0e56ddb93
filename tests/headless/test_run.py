"""`council --run` as a process: its exit codes, its lines, and that it leaves nothing behind."""

from __future__ import annotations

import json
import signal
import subprocess
from typing import TYPE_CHECKING

import jsonschema
import pytest

from council_tui.headless.lines import schema
from headless.command import child, council, objects, running, survivors, until, write_plan

if TYPE_CHECKING:
    from pathlib import Path

    from headless.conftest import Finished

SLEEPER = ("sh", "-c", "exec sleep 40")


def test_a_failed_card_exits_1_and_its_dependant_is_blocked(finished: Finished):
    summary = finished.lines[-1]
    assert (finished.code, summary["exit"]) == (1, 1)
    assert summary["cards"] == {"done": 1, "failed": 1, "blocked": 1}
    assert [card["child"] for card in summary["failed"]] == ["second"]


def test_every_line_matches_the_schema_and_the_seqs_have_no_gap(finished: Finished):
    check = jsonschema.Draft202012Validator(schema())
    for line in finished.lines:
        check.validate(line)
    assert [line["type"] for line in finished.lines[:2]] == ["snapshot", "event"]
    assert finished.lines[-1]["type"] == "summary"
    seqs = [line["seq"] for line in finished.lines[:-1]]
    assert seqs == list(range(seqs[0], seqs[0] + len(seqs)))


def test_nothing_an_agent_says_reaches_standard_output_as_a_control_character(finished: Finished):
    assert finished.stdout.replace("\n", "").isprintable()
    assert finished.stdout.isascii()
    assert "\x1b" not in finished.stderr
    assert "\\u001b[31mred" in finished.stdout


def test_a_dependency_is_done_before_its_dependant_starts(finished: Finished):
    names = {line["card"]: line["data"]["plan_id"] for line in finished.lines if line.get("kind") == "card_created"}
    story = [(line["kind"], names.get(line["card"])) for line in finished.lines if line["type"] == "event"]
    assert story.index(("card_done", "first")) < story.index(("agent_started", "second"))
    assert ("agent_started", "third") not in story


def test_the_summary_carries_ledger_audit_budget_and_report(finished: Finished):
    summary = finished.lines[-1]
    assert summary["ledger"]["verdict"] == "VALID"
    assert summary["audit"] == {"descendants": [], "open_claims": [], "unsigned_reports": [], "slices": []}
    assert summary["report"].endswith(".md")
    assert survivors(finished.lines) == []


def test_progress_goes_to_standard_error_one_line_an_event(finished: Finished):
    assert "first acknowledged" in finished.stderr
    assert "card second failed (error)" in finished.stderr


def test_a_fleet_that_is_done_exits_0_with_a_summary_for_people(tmp_path: Path, home: Path):
    plan = write_plan(tmp_path, child("one", "echo", "hi"))
    done = council("--run", str(plan), home=home)
    assert done.returncode == 0
    assert "small: 1 card, 1 done" in done.stdout
    assert "VALID" in done.stdout
    assert "0, all cards are done and verified" in done.stdout
    assert "opens the control room on it" in done.stdout


def test_a_card_that_only_a_person_releases_exits_3(tmp_path: Path, home: Path):
    plan = write_plan(tmp_path, child("one", "true"), child("two", "true", envelope={"autonomy_band": "NEVER"}))
    done = council("--run", str(plan), "--json", home=home)
    summary = objects(done.stdout)[-1]
    assert (done.returncode, summary["exit"]) == (3, 3)
    assert [(card["child"], card["kind"]) for card in summary["waiting"]] == [("two", "hold")]
    assert summary["cards"]["done"] == 1


def test_a_spent_budget_exits_4(tmp_path: Path, home: Path):
    plan = write_plan(tmp_path, child("one", *SLEEPER), budget={"minutes": 0.01})
    done = council("--run", str(plan), "--json", home=home)
    found = objects(done.stdout)
    assert (done.returncode, found[-1]["budget"]["exhausted"]) == (4, True)
    assert survivors(found) == []


def test_a_timeout_ends_every_agent_before_the_audit_looks(tmp_path: Path, home: Path):
    stubborn = ("sh", "-c", "trap : TERM; while :; do sleep 0.1; done")
    quick = {"lifecycle_policy": {"grace_seconds": 0.5}}
    plan = write_plan(tmp_path, child("one", *stubborn, spawn_context=quick))
    done = council("--run", str(plan), "--json", "--timeout", "0.5", home=home)
    found = objects(done.stdout)
    assert (done.returncode, found[-1]["audit"]["descendants"]) == (1, [])
    assert "--timeout" in found[-1]["failed"][0]["reason"]
    assert survivors(found) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_drains_the_fleet_and_exits_130(number: signal.Signals, tmp_path: Path, home: Path):
    plan = write_plan(tmp_path, child("one", *SLEEPER), child("two", *SLEEPER, parent="openclaw"))
    with running("--run", str(plan), "--json", home=home) as process:
        found = until(process, "body_started")
        process.send_signal(number)
        rest, told = process.communicate(timeout=40)
    found += objects(rest)
    assert (process.returncode, found[-1]["exit"]) == (130, 130)
    assert found[-1]["audit"]["open_claims"] == []
    assert f"{number.name}: ending every agent in order" in told
    assert survivors(found) == []


def test_a_second_ctrl_c_is_answered_and_changes_nothing(tmp_path: Path, home: Path):
    stubborn = ("sh", "-c", "trap : TERM; while :; do sleep 0.1; done")
    quick = {"lifecycle_policy": {"grace_seconds": 1}}
    plan = write_plan(tmp_path, child("one", *stubborn, spawn_context=quick))
    with running("--run", str(plan), "--json", home=home) as process:
        found = until(process, "body_started")
        process.send_signal(signal.SIGINT)
        found += until(process, "signalled")
        process.send_signal(signal.SIGINT)
        rest, told = process.communicate(timeout=40)
    found += objects(rest)
    assert process.returncode == 130
    assert "still ending the agents in order" in told
    assert survivors(found) == []


def test_ctrl_c_while_the_fleet_opens_leaves_nothing(tmp_path: Path, home: Path):
    plan = write_plan(tmp_path, child("one", *SLEEPER))
    with running("--run", str(plan), "--json", home=home) as process:
        found = until(process, "snapshot")
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=40)
    found += objects(rest)
    assert (process.returncode, found[-1]["type"], found[-1]["exit"]) == (130, "summary", 130)
    assert survivors(found) == []


def test_a_reader_that_leaves_ends_the_fleet_quietly(tmp_path: Path, home: Path):
    plan = write_plan(tmp_path, child("one", *SLEEPER))
    with running("--run", str(plan), "--json", home=home) as process:
        found = until(process, "body_started")
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        told = process.stderr.read()
        process.wait(40)
    assert process.returncode == 130
    assert "Traceback" not in told
    assert "BrokenPipe" not in told
    assert survivors(found) == []


def test_a_home_that_another_process_runs_is_refused_with_its_pid(tmp_path: Path, home: Path):
    plan = write_plan(tmp_path, child("one", *SLEEPER))
    with running("--run", str(plan), "--json", home=home) as process:
        found = until(process, "body_started")
        other = council("--run", str(plan), "--json", home=home)
        assert other.returncode == 2
        assert f"process {process.pid} already runs a council" in other.stderr
        assert "attaches" in other.stderr
        assert objects(other.stdout)[-1]["exit"] == 2
        seen = json.loads(council("tree", "--json", home=home).stdout)
        assert seen["owner"] == process.pid
        assert {a["health"] for a in seen["agents"]} == {"alive"}
        assert "one" in council("board", home=home).stdout
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=40)
    assert survivors(found) == []


def test_a_run_finds_its_home_in_the_repository_it_stands_in(tmp_path: Path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    plan = write_plan(tmp_path, child("one", "true"))
    (tmp_path / "sub").mkdir()
    done = council("--run", str(plan), home=None, cwd=tmp_path / "sub")
    assert done.returncode == 0
    assert (tmp_path / ".council" / "board.db").is_file()
    status = subprocess.run(
        ["git", "-C", str(tmp_path), "status", "--short"], capture_output=True, text=True, check=True
    )
    assert ".council" not in status.stdout
    assert "small" in council("board", home=None, cwd=tmp_path).stdout
