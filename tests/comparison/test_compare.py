"""The whole comparison, small: against the floor alone in the fast suite, with us in it in the slow one."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from comparison import trial
from comparison.compare import main
from comparison.peers import MAKERS, Peer

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nobody waits for what never comes; and afterwards no folder of a trial is there."""
    before = set(Path("/tmp").glob("cmp-*"))
    monkeypatch.setattr(trial, "SETTLE_SECONDS", 0.1)
    monkeypatch.setattr(trial, "LEFT_SECONDS", 0.3)
    yield
    assert set(Path("/tmp").glob("cmp-*")) == before


def compared(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    assert main(["--rounds", "1", "--watch", "0.05", "--json", *argv]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_the_floor_replaces_what_is_killed_and_leaves_everything_behind_when_it_dies(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = compared(capsys, "--peers", "floor", "--children", "2", "4")
    assert [(run["children"], run["killed"], run["left_after_kill"]) for run in found["runs"]] == [(2, 2, 2), (4, 4, 4)]
    assert all(run["supervisor_rss_mb"] > 1 for run in found["runs"])
    assert found["containment"] == {"floor": {"escaped_stop": "0ABCD", "escaped_kill": "0ABCD"}}
    assert len(found["growth"]) == 1


def test_a_supervisor_that_starts_nothing_is_told_with_its_last_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Peer("floor", "1", lambda folder, count, argv: ["sh", "-c", "echo out of luck; sleep 60"])
    monkeypatch.setitem(MAKERS, "floor", lambda cache: broken)
    monkeypatch.setattr(trial, "patience", lambda count: 0.2)
    assert main(["--rounds", "1", "--peers", "floor", "--children", "2"]) == 1
    shown = capsys.readouterr().out
    assert "floor at 2: 2 children: not within 0.2 s; it said: out of luck" in shown


@pytest.mark.slow
def test_a_council_replaces_what_is_killed_and_leaves_nothing_behind_when_it_dies(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "LEFT_SECONDS", 20.0)
    found = compared(capsys, "--peers", "council-portable", "--children", "3")
    (run,) = found["runs"]
    assert (run["killed"], run["left_after_kill"]) == (3, 0)
    assert found["containment"] == {"council-portable": {"escaped_stop": "", "escaped_kill": ""}}
    assert not list(Path(tempfile.gettempdir()).glob("council-bench-*"))
