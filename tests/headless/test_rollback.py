"""A ledger that was cut, begun anew or replaced does not pass for the one that a fleet has written."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from council_tui.board.home import Home
from council_tui.ledger import store
from council_tui.ledger.checkpoint import sign_checkpoint
from council_tui.ledger.keys import load_or_create
from council_tui.ledger.merkle import Tree
from headless.command import child, council, objects, write_plan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from headless.conftest import Answer, Finished

PUT_BACK = """
import os, pathlib, sqlite3, time
home = pathlib.Path(os.environ["HERE"])
with sqlite3.connect(home / "ledger.db") as now, sqlite3.connect(home / "earlier.db") as then:
    now.backup(then)
for name in ("ledger.db-wal", "ledger.db-shm"):
    (home / name).unlink()
(home / "earlier.db").replace(home / "ledger.db")
"""


@pytest.fixture
def copy(finished: Finished, tmp_path: Path) -> Home:
    """The home of the finished fleet, to be tampered with."""
    return Home(shutil.copytree(finished.home, tmp_path / "copy", ignore=shutil.ignore_patterns("*.sock")))


def cut(home: Home, size: int) -> None:
    """Drop the tail of the log and sign its head anew, as whoever has the log's key can."""
    key, tree = load_or_create(home.keys / "log.key"), Tree()
    with closing(sqlite3.connect(home.ledger, isolation_level=None)) as db:
        origin = store.meta(db)["origin"]
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f"DROP TRIGGER {name}")
        db.execute("DELETE FROM entry WHERE idx >= ?", (size,))
        db.execute("DELETE FROM node WHERE (idx + 1) << level > ?", (size,))
        for _, leaf, _ in store.entries(db):
            tree.append(leaf)
        db.execute("UPDATE head SET size = ?, note = ?", (size, sign_checkpoint(key, origin, size, tree.root())))
        db.executescript(store.SCHEMA)


def test_a_whole_ledger_is_said_to_lead_from_the_remembered_head(cli: Callable[..., Answer], finished: Finished):
    head = json.loads((finished.home / "keys" / "head.json").read_text())
    done = cli("verify", home=finished.home)
    assert done.returncode == 0
    assert f"the remembered head of {head['size']} entries lies in it" in done.stdout


def test_without_a_remembered_head_a_sound_ledger_is_valid_and_says_so(cli: Callable[..., Answer], copy: Home):
    (copy.keys / "head.json").unlink()
    done = cli("verify", home=copy.root)
    assert (done.returncode, "no remembered head" in done.stdout) == (0, True)


@pytest.mark.parametrize("without", ["head.json", "board.db", ""])
@pytest.mark.parametrize("how", ["cut", "gone"])
def test_a_ledger_that_was_cut_or_removed_is_a_rollback(cli: Callable[..., Answer], copy: Home, how: str, without: str):
    if how == "cut":
        cut(copy, 6)
    else:
        copy.ledger.unlink()
    for path in (copy.keys / without, copy.root / without):
        if without and path.exists():
            path.unlink()
    done = cli("verify", "--json", home=copy.root)
    assert (done.returncode, objects(done.stdout)[0]["verdict"]) == (1, "ROLLBACK")
    assert "ROLLBACK" in cli("verify", home=copy.root).stdout


def test_the_rows_of_a_ledger_that_is_gone_are_not_called_not_yet_written(cli: Callable[..., Answer], copy: Home):
    copy.ledger.unlink()
    done = cli("ledger", home=copy.root)
    assert (done.returncode, "is gone; council verify" in done.stderr) == (2, True)


def test_one_entry_of_a_cut_ledger_is_not_called_valid(cli: Callable[..., Answer], copy: Home):
    assert cli("verify", "--entry", "3", home=copy.root).returncode == 0
    cut(copy, 6)
    done = cli("verify", "--entry", "3", home=copy.root)
    assert (done.returncode, "ROLLBACK  memory" in done.stdout) == (1, True)


def test_no_fleet_goes_on_from_a_ledger_that_is_gone(copy: Home, tmp_path: Path):
    copy.ledger.unlink()
    done = council("--run", str(write_plan(tmp_path, child("one", "true"))), home=copy.root)
    assert (done.returncode, done.stdout) == (2, "")
    assert "ROLLBACK" in done.stderr
    assert f"{copy.keys / 'head.json'}, {copy.board} away to begin anew" in done.stderr
    assert not copy.ledger.exists()


def test_a_body_that_puts_an_earlier_ledger_back_is_found_out_at_the_end(tmp_path: Path):
    home = Home(tmp_path / "h")
    plan = write_plan(tmp_path, child("thief", "env", f"HERE={home.root}", "{python}", "-I", "-c", PUT_BACK))
    done = council("--run", str(plan), "--json", "--home", "here/../h", home=None, cwd=tmp_path)
    summary = objects(done.stdout)[-1]
    assert (done.returncode, summary["ledger"]["verdict"]) == (5, "ROLLBACK")
    again = council("--run", str(plan), "--home", "h", home=None, cwd=tmp_path)
    assert (again.returncode, "ROLLBACK" in again.stderr) == (2, True)


@pytest.mark.parametrize("name", ["pins.json", "head.json"])
@pytest.mark.parametrize("what", ["directory", "damaged"])
def test_damaged_files_beside_the_keys_are_one_sentence(copy: Home, tmp_path: Path, name: str, what: str):
    (copy.keys / name).unlink()
    if what == "directory":
        (copy.keys / name).mkdir()
    else:
        (copy.keys / name).write_text("{")
    for command in (("verify",), ("--run", str(write_plan(tmp_path, child("one", "true"))))):
        done = council(*command, home=copy.root)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert f"{copy.keys / name} is damaged" in done.stderr
