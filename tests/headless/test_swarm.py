"""A swarm on the command line: rehearsed, told as it runs, and summed up in one line however large it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jsonschema
import pytest

from council_tui.control.views import AgentView, CardView, SwarmView
from council_tui.headless import paint
from council_tui.headless.lines import schema
from council_tui.headless.signs import UNICODE
from headless.command import child, council, objects, write_plan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from headless.conftest import Answer


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """A child that asks for more than there may be, and takes what it gets."""
    probe = child("probe", "sh", "-c", "test $1 != 2", "sh", "{index}", parent="keeper", count=20, at_least=2)
    return write_plan(tmp_path, child("keeper", "true"), probe, limits={"microsharks": 14})


def test_a_rehearsal_says_how_many_there_would_be(cli: Callable[..., Answer], plan: Path, tmp_path: Path):
    done = cli("--run", str(plan), "--dry-run", home=tmp_path / "home")
    assert "probe  a swarm of 20 microsharks of keeper" in done.stdout
    assert "14 of 20, while no other microshark lives" in done.stdout
    assert "asked for 20; limits.microsharks is 14" in done.stdout
    assert "15 would start, 0 would wait" in done.stdout


def test_a_rehearsal_as_json_has_what_was_asked_for_and_what_is_granted(
    cli: Callable[..., Answer], plan: Path, tmp_path: Path
):
    (found,) = objects(cli("--run", str(plan), "--dry-run", "--json", home=tmp_path / "home").stdout)
    jsonschema.validate(found, schema())
    assert found["limits"]["microsharks"] == 14
    assert [(part["count"], part["granted"]) for part in found["children"]] == [(None, None), (20, 14)]


def test_a_swarm_that_ran_is_in_the_events_in_the_picture_and_in_one_line_of_the_summary(
    cli: Callable[..., Answer], plan: Path, tmp_path: Path
):
    home = tmp_path / "home"
    ran = council("--run", str(plan), "--json", home=home)
    lines = objects(ran.stdout)
    shape = jsonschema.Draft202012Validator(schema())
    for line in lines:
        shape.validate(line)
    (told,) = [line for line in lines if line.get("kind") == "swarm_granted"]
    assert (told["data"]["asked"], told["data"]["granted"]) == (20, 14)
    assert lines[-1]["cards"] == {"done": 14, "failed": 1}
    (picture,) = objects(cli("agents", "--json", home=home).stdout)
    shape.validate(picture)
    (keeper,) = [agent for agent in picture["agents"] if agent["swarms"]]
    (swarm,) = keeper["swarms"]
    assert (keeper["label"], swarm["granted"], swarm["done"], swarm["failed"]) == ("keeper", 14, 13, 1)
    assert {card["swarm"] for card in picture["cards"]} == {"", "probe"}
    tree = cli("tree", home=home).stdout
    assert "probe: 13 done, 1 failed" in tree
    rows = [line for line in tree.splitlines() if "probe-" in line]
    assert len(rows) == 1, "of a large swarm only what went wrong has a row"
    assert "probe-2" in rows[0]


KEEPER = AgentView(
    "child:keeper.1",
    "keeper",
    "child",
    "zeroclaw:o.1",
    "alive",
    "running",
    swarms=(SwarmView("probe", 9, 9, living=9),),
)


def shark(number: int, state: str = "running", **more: object) -> CardView:
    """A member of a swarm."""
    return CardView(f"t_{number}", "x", state, f"p-{number}", KEEPER.name, swarm="probe", kind="microshark", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(("members", "rows"), [(12, 12), (13, 0)])
def test_a_small_swarm_has_all_its_rows_and_a_large_one_none(members: int, rows: int):
    keeper = CardView("t_k", "x", "running", "keeper", "zeroclaw:o.1", agent=KEEPER.name)
    shown = paint.tree((KEEPER,), (keeper, *(shark(n) for n in range(members))), UNICODE)
    assert sum(1 for row in shown if row.card is not None and row.card.swarm) == rows
    assert "probe: 9 of 9 live" in paint.about(keeper, KEEPER)


def test_of_a_large_swarm_a_few_that_went_wrong_keep_their_rows_and_who_expired_does_not():
    wrong = [shark(n, "failed", fail="error") for n in range(8)] + [shark(9, "blocked", block="hold")]
    expired = [shark(n, "failed", fail="expired") for n in range(20, 40)]
    shown = paint.tree((KEEPER,), (*expired, *wrong), UNICODE)
    assert [row.card.label for row in shown if row.card is not None] == [f"p-{n}" for n in range(paint.MOST_WRONG)]


def test_a_microshark_that_lives_counts_down():
    agent = AgentView("microshark:p-1.1", "p-1", "microshark", KEEPER.name, "alive", "running", ttl_seconds=252.0)
    assert paint.about(shark(1), agent) == "ttl 4m  x"
