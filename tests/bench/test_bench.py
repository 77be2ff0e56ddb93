"""Each benchmark runs end to end at a tiny size, prints one JSON object, and leaves nothing behind."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from council_tui.bench import main
from council_tui.bench.facts import why_not
from council_tui.bench.spawn import measure, slopes
from council_tui.runner import guard
from council_tui.supervisor.limits import find_tier
from council_tui.supervisor.supervisor import TICK_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def own_tmp(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Temporary homes are made here, so that what is left can be seen. Short: a socket's path has 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="b-", dir="/tmp") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        monkeypatch.setenv("TMPDIR", folder)
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


SLOW_MACHINE = 5.0
"""Seconds that a busy machine may need for what takes a quarter of one; no test is a stop watch."""


def shape(value: Any) -> Any:
    """The keys of nested groups, without their values."""
    return {key: shape(inner) if isinstance(inner, dict) else None for key, inner in value.items()}


STAGES = dict.fromkeys(["contract", "fork", "hello", "delegate", "claim", "verify", "accept", "ack"])
SPREAD = dict.fromkeys(["p50", "p99"])
LOAD = dict.fromkeys(["beats_per_second", "supervisor_cpu_percent", "agents_cpu_percent"])
SPAWN_RUN = {
    **dict.fromkeys(["tier", "children", "alive"]),
    "lost": {},
    **dict.fromkeys(["missing", "seconds", "handshakes_per_second", "seconds_per_child"]),
    "start_supervisor_cpu_seconds": None,
    "start_to_acknowledged_ms": SPREAD,
    "stage_ms_p50": STAGES,
    "stage_ms_p99": STAGES,
    **dict.fromkeys(["runner_pss_mb", "agent_pss_mb", "supervisor_rss_mb"]),
    "beating": LOAD,
    "deaths": None,
    "death_to_orphaned_ms": SPREAD,
    **dict.fromkeys(["silences", "silence_seconds"]),
    "silence_to_orphaned_late_ms": SPREAD,
    "deep_reap": dict.fromkeys(
        ["processes", "grace_seconds", "proved_dead_beyond_grace_ms", "settled_beyond_grace_ms", "survivors"]
    ),
    **dict.fromkeys(["reaped", "reap_all_seconds", "reap_all_supervisor_cpu_seconds", "survivors"]),
    "idle": {"beat_seconds": None, **LOAD},
    "per_child": dict.fromkeys(
        ["start_seconds", "start_supervisor_cpu_seconds", "beating_cpu_percent", "reap_seconds", "supervisor_rss_kb"]
    ),
    "floors": dict.fromkeys(
        [
            "fsynced_commits",
            "fsynced_commit_bytes",
            "fsynced_commits_seconds",
            "bare_processes_seconds",
            "ratio_to_commits",
            "ratio_to_processes",
            "ratio_to_both",
        ]
    ),
}
"""What programs that read the JSON may count on."""


def test_a_spawn_benchmark_measures_all_it_promises_and_leaves_no_process(
    own_tmp: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short = ("--beats", "0.2", "--interval", "0.2", "--grace", "0.2")
    found = run(capsys, "spawn", "--children", "4", "--tier", "portable", *short)
    (sizes,) = found["runs"]
    assert shape(sizes) == SPAWN_RUN
    assert (sizes["tier"], sizes["children"], sizes["alive"], sizes["survivors"]) == ("portable", 4, 4, 0)
    assert all(0 <= value <= sizes["stage_ms_p99"][stage] for stage, value in sizes["stage_ms_p50"].items())
    assert sizes["floors"]["fsynced_commits"] == 2 * 4
    assert (sizes["deaths"], sizes["silences"], sizes["reaped"]) == (2, 1, 1)
    assert (sizes["deep_reap"]["processes"], sizes["deep_reap"]["survivors"]) == (50, 0)
    assert sizes["deep_reap"]["proved_dead_beyond_grace_ms"] > -1000 * TICK_SECONDS
    assert sizes["silence_to_orphaned_late_ms"]["p50"] > 0
    assert nothing_left(own_tmp)


@pytest.mark.slow
def test_a_deaf_tree_is_proved_dead_soon_after_its_whole_grace_in_each_tier_of_this_machine(
    own_tmp: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COUNCIL_TIER")
    found = run(capsys, "spawn", "--children", "10", "--beats", "1")
    measured = [sizes for sizes in found["runs"] if "refused" not in sizes]
    assert [sizes["tier"] for sizes in measured] == (["portable", "strong"] if find_tier().strong else ["portable"])
    for sizes in measured:
        assert (sizes["alive"], sizes["survivors"], sizes["deep_reap"]["survivors"]) == (10, 0, 0)
        assert sizes["deep_reap"]["processes"] == (50 if sizes["tier"] == "portable" else 52)
        assert -1000 * TICK_SECONDS < sizes["deep_reap"]["proved_dead_beyond_grace_ms"] < 1000 * SLOW_MACHINE
    assert nothing_left(own_tmp)


def test_a_tier_that_this_machine_has_not_is_told_and_the_other_one_is_no_worse_for_it() -> None:
    options = argparse.Namespace(tier=("strong",), children=[4, 3, 4], beats=1, interval=1, grace=1)
    found = measure(options)
    why = "no strong mode here: COUNCIL_TIER asks for it"
    assert found == {
        "runs": [{"tier": "strong", "children": count, "refused": why} for count in (3, 4)],
        "slope": [],
    }


def test_a_slope_compares_what_a_child_costs_within_one_tier() -> None:
    runs = [
        {"tier": "portable", "children": 10, "per_child": {"start_seconds": 0.01, "reap_seconds": 0.0}},
        {"tier": "portable", "children": 50, "refused": "too many"},
        {"tier": "portable", "children": 100, "per_child": {"start_seconds": 0.02, "reap_seconds": 0.1}},
        {"tier": "strong", "children": 10, "per_child": {"start_seconds": 0.01, "reap_seconds": 0.1}},
    ]
    assert slopes(runs) == [{"tier": "portable", "from": 10, "to": 100, "start_seconds": 2.0, "reap_seconds": None}]


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
    found = run(capsys, "spawn", "--children", too_many, "--tier", "portable")
    (sizes,) = found["runs"]
    assert sizes["refused"] == why_not(int(too_many)) != ""


def test_without_json_a_benchmark_prints_a_table(own_tmp: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["board", "--claims", "2", "--events", "4"]) == 0
    printed = capsys.readouterr().out
    assert "claims per second" in printed
    assert not printed.lstrip().startswith("{")
