"""`--dry-run`: everything is told, nothing is touched."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import jsonschema
import pytest

from council_tui.headless.lines import schema
from headless.command import ENVELOPE, child, objects, write_plan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from headless.conftest import Answer


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """One that starts, one that waits for a person, one that this machine refuses, one without its program."""
    return write_plan(
        tmp_path,
        child("plain", "echo", "hi"),
        child("held", "true", envelope={"autonomy_band": "NEVER"}),
        child("hard", "true", spawn_context={"memory_slice": {"memory_limit_mb": 8, "ceiling": "hard"}}),
        child("lost", "no-such-program-anywhere", after=["plain"]),
        child("clamped", "true", parent="openclaw", envelope={"action_class": "MUTATE", "risk_tier": "HIGH"}),
    )


def test_dry_run_says_what_would_happen_and_makes_nothing(cli: Callable[..., Answer], plan: Path, tmp_path: Path):
    home = tmp_path / "home"
    done = cli("--run", str(plan), "--dry-run", home=home)
    assert done.returncode == 0
    assert "2 would start" not in done.stdout
    assert "3 would start, 1 would wait for a person, 1 would be refused here." in done.stdout
    assert "echo hi" in done.stdout
    assert "task_name, output_schema (not in the plan, made from the command)" in done.stdout
    assert "no program 'no-such-program-anywhere'" in done.stdout
    assert not home.exists()


def test_dry_run_tells_limits_and_how_this_machine_would_hold_them(cli: Callable[..., Answer], tmp_path: Path):
    limits = {"memory_mb": 256, "processes": 32}
    plan = write_plan(
        tmp_path,
        child("soft", "true", spawn_context={"resource_limits": limits}),
        child("cores", "true", spawn_context={"resource_limits": {"cpus": 1.5}}),
        child("below", "true", parent="soft", spawn_context={"resource_limits": {"processes": 8}}),
    )
    shown = cli("--run", str(plan), "--dry-run", home=tmp_path / "home").stdout
    assert "256 MiB of memory, 32 processes and threads\n" in shown
    assert "256 MiB of memory, 8 processes and threads\n" in shown
    assert "soft slice; soft limits" in shown
    assert "resource_limits.cpus: nothing on this machine holds it (COUNCIL_TIER asks for it)" in shown


def test_dry_run_as_json_matches_the_schema_and_names_band_and_enforcement(
    cli: Callable[..., Answer], plan: Path, tmp_path: Path
):
    done = cli("--run", str(plan), "--dry-run", "--json", home=tmp_path / "home")
    (found,) = objects(done.stdout)
    jsonschema.validate(found, schema())
    by_name = {part["id"]: part for part in found["children"]}
    assert by_name["plain"]["enforcement"].startswith("portable")
    assert (by_name["held"]["hold"], by_name["held"]["band"]) == (True, "NEVER")
    assert by_name["hard"]["refused"].startswith("memory_slice.ceiling")
    assert (by_name["clamped"]["declared_band"], by_name["clamped"]["band"]) == ("AUTONOMOUS", "PROPOSE_ONLY")
    assert by_name["lost"]["after"] == ["plain"]
    assert by_name["plain"]["envelope"]["tools_scope"] == ENVELOPE["tools_scope"]


def test_a_shipped_plan_rehearses_without_a_refusal(cli: Callable[..., Answer], tmp_path: Path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    done = cli("--run", "repo-audit", "--dry-run", home=tmp_path / "home", cwd=tmp_path)
    assert "9 would start, 0 would wait for a person, 0 would be refused here." in done.stdout


def test_mistakes_are_objects_with_json(cli: Callable[..., Answer], tmp_path: Path):
    plan = write_plan(tmp_path, {"id": "x"})
    done = cli("--run", str(plan), "--dry-run", "--json", home=tmp_path / "home")
    (found,) = objects(done.stdout)
    jsonschema.validate(found, schema())
    assert done.returncode == 2
    assert {"field", "line", "message"} == set(found["mistakes"][0])
