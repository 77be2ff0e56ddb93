"""Commands that read a home: after a fleet, before any, from a medium that cannot be written, and while one runs."""

from __future__ import annotations

import json
import signal
import subprocess
from typing import TYPE_CHECKING

import jsonschema
import pytest

from council_tui.headless.lines import schema
from headless.command import argv, child, council, objects, running, until, write_plan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from headless.conftest import Answer, Finished

READS = ("board", "tree", "agents", "events", "ledger", "verify")


@pytest.mark.parametrize("command", [[name] for name in READS] + [["card", "first"]])
def test_every_read_prints_objects_that_match_the_schema(
    cli: Callable[..., Answer], command: list[str], finished: Finished
):
    done = cli(*command, "--json", home=finished.home)
    assert done.returncode == 0
    check = jsonschema.Draft202012Validator(schema())
    found = objects(done.stdout)
    assert found
    for line in found:
        check.validate(line)


@pytest.mark.parametrize("command", [[name] for name in READS] + [["card", "first"], ["report"]])
def test_every_read_shows_text_in_which_no_control_character_acts(
    cli: Callable[..., Answer], command: list[str], finished: Finished
):
    shown = cli(*command, home=finished.home).stdout
    assert shown
    assert not any(char in shown for char in ("\x1b", "\x07", "\u202e"))


def test_the_schema_command_prints_the_schema(cli: Callable[..., Answer], tmp_path: Path):
    assert json.loads(cli("schema", home=tmp_path).stdout) == schema()


def test_the_tree_hangs_cards_below_their_offices(cli: Callable[..., Answer], finished: Finished):
    lines = cli("tree", home=finished.home).stdout.splitlines()
    at = {
        word: next(i for i, line in enumerate(lines) if word in line)
        for word in ("OpenClaw", "first", "ZeroClaw", "third")
    }
    assert at["OpenClaw"] < at["first"] < at["ZeroClaw"] < at["third"]


def test_a_card_shows_why_it_failed(cli: Callable[..., Answer], finished: Finished):
    shown = cli("card", "second", home=finished.home).stdout
    assert "exit status 3" in shown
    assert "failed error" in shown


def test_a_card_that_does_not_exist_is_one_sentence(cli: Callable[..., Answer], finished: Finished):
    done = cli("card", "nobody", home=finished.home)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_the_summary_for_people_lists_serious_findings_with_their_place(cli: Callable[..., Answer], finished: Finished):
    shown = cli("report", home=finished.home).stdout
    assert "first" in shown
    assert "HIGH" in cli("card", "first", home=finished.home).stdout


def test_verify_explains_one_entry_and_fails_on_a_changed_ledger(
    cli: Callable[..., Answer], finished: Finished, tmp_path: Path
):
    assert "VALID  lineage:" in cli("verify", "--entry", "6", home=finished.home).stdout
    subprocess.run(["cp", "-r", str(finished.home), str(tmp_path / "copy")], check=True)
    pins = tmp_path / "copy" / "keys" / "pins.json"
    other = json.loads(pins.read_text())
    pins.write_text(json.dumps({**other, "root": other["log"]}))
    done = cli("verify", "--json", home=tmp_path / "copy")
    assert done.returncode == 1
    assert objects(done.stdout)[0]["first_bad"] == 0


@pytest.mark.parametrize("command", [*READS, "report"])
def test_where_nothing_ever_ran_a_read_says_what_to_do(cli: Callable[..., Answer], command: str, tmp_path: Path):
    done = cli(command, home=tmp_path / "none")
    assert (done.returncode, done.stdout) == (2, "")
    assert "council --run repo-audit" in done.stderr
    assert not (tmp_path / "none").exists()


def test_reads_work_on_a_medium_that_nobody_can_write_to(finished: Finished):
    mount = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && shift 0 && exec "$@"'
    words = ["unshare", "-m", "sh", "-c", mount, str(finished.home)]
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this user may not mount")
    for name in ("board", "verify"):
        done = subprocess.run(
            [*words, *argv(name, "--home", str(finished.home))], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_follow_prints_a_snapshot_then_what_happens_then_a_summary(tmp_path: Path, finished: Finished):
    home = tmp_path / "home"
    subprocess.run(["cp", "-r", str(finished.home), str(home)], check=True)
    plan = write_plan(tmp_path, child("later", "true"))
    with running("events", "--follow", "--json", home=home) as process:
        first = until(process, "snapshot")[0]
        council("--run", str(plan), home=home)
        seen = until(process, "fleet_ended")
        process.send_signal(signal.SIGINT)
        rest, told = process.communicate(timeout=20)
    assert [line["seq"] for line in seen] == list(range(first["seq"] + 1, first["seq"] + 1 + len(seen)))
    assert (objects(rest)[-1]["type"], objects(rest)[-1]["exit"]) == ("summary", 0)
    assert (process.returncode, told) == (0, "")


def test_a_reader_who_has_seen_enough_ends_a_read_quietly(finished: Finished):
    line = " ".join(argv("events", "--all", "--home", str(finished.home)))
    done = subprocess.run(f"{line} | head -1", shell=True, capture_output=True, text=True, check=False)
    assert (done.stderr, done.stdout.count("\n")) == ("", 1)
