"""Each benchmark runs end to end at a tiny size, prints one JSON object, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from council_tui.bench import main
from council_tui.bench.facts import why_not
from council_tui.runner import guard

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def own_tmp(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Temporary homes are made here, so that what is left can be seen. Short: a socket's path has 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="b-", dir="/tmp") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    """The JSON that a benchmark printed."""
    assert main([*argv, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert found["bench"] == argv[0]
    assert {"cpus", "python", "sqlite"} <= set(found["machine"])
    return found


def nothing_left(folder: Path) -> bool:
    """Whether no temporary home and no process of this test is left."""
    mine = [p for p in guard.descendants(os.getpid()) if guard.marker_of(p.pid) is not None]
    return not mine and not list(folder.glob("council-bench-*"))


def test_a_spawn_benchmark_reports_every_stage_and_leaves_no_process(
    own_tmp: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = run(capsys, "spawn", "--children", "3", "--beats", "0.2")
    (sizes,) = found["runs"]
    assert (sizes["children"], sizes["alive"], sizes["lost"], sizes["survivors"]) == (3, 3, {}, 0)
    stages = ["contract", "fork", "hello", "delegate", "claim", "verify", "accept", "ack"]
    assert list(sizes["stage_ms_p50"]) == stages
    assert all(value is not None and value >= 0 for value in sizes["stage_ms_p50"].values())
    assert sizes["floors"]["fsynced_commits"] == 2 * 3
    assert sizes["deaths"] == 1
    assert sizes["reaped"] == 2
    assert nothing_left(own_tmp)


def test_a_board_benchmark_finds_one_winner_for_every_card(own_tmp: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, "board", "--claims", "6", "--events", "20")
    claims = found["claims"]
    assert (claims["won"], claims["claimed_twice"], claims["unclaimed"]) == (6, 0, 0)
    assert claims["rivals_refused"] == 2 * 3
    assert found["journal"]["replay_events_per_second"] > 0
    assert nothing_left(own_tmp)


def test_a_ledger_benchmark_audits_what_it_has_built(own_tmp: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, "ledger", "--entries", "30", "--memory", "10", "20")
    assert found["entries"] == 30 + 4
    assert found["audit"]["verdict"] == "VALID"
    assert found["proof"]["holds"] is True
    assert set(found["memory"]["peak_rss_mb"]) == {"10", "20"}
    assert nothing_left(own_tmp)


def test_a_console_benchmark_sees_the_cursor_move_and_no_reflow(capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, "console", "--agents", "30", "--cards", "40", "--keys", "4", "--watch", "0.3")
    assert found["room"]["key_to_paint_ms"]["p50"] > 0
    assert found["reference_one_line_app"]["key_to_paint_ms"]["p50"] > 0
    assert found["ticks"]["reflows_per_tick"] == 0


def test_a_size_that_does_not_fit_is_told_in_one_sentence_and_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    too_many = "100000000"
    found = run(capsys, "spawn", "--children", too_many)
    (sizes,) = found["runs"]
    assert sizes["refused"] == why_not(int(too_many)) != ""


def test_without_json_a_benchmark_prints_a_table(own_tmp: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["board", "--claims", "2", "--events", "4"]) == 0
    printed = capsys.readouterr().out
    assert "claims per second" in printed
    assert not printed.lstrip().startswith("{")
