"""Nothing in a plan can be without an end: every limit has a finite default and takes no infinite value."""

from __future__ import annotations

import json
from dataclasses import asdict
from math import isfinite

import pytest
from supervisor.stage import child, plan_of

from council_tui.domain.contract import LifecyclePolicy, SpawnContext
from council_tui.domain.hierarchy import MICROSHARK_TTL_SECONDS, child_kind
from council_tui.domain.lifecycle import Timing
from council_tui.domain.order import materialise
from council_tui.domain.rate_limit import MOST_SECONDS, MOST_TIMES
from council_tui.fleet.brake import HOLDS, WINDOW_SECONDS
from council_tui.fleet.gate import PATIENCE_SECONDS
from council_tui.fleet.plan import Limits, parse_plan
from council_tui.fleet.retries import RETRY_MAX_SECONDS
from fleet.plans import mistakes

ENDLESS = [".inf", "-.inf", ".nan", "1e308", "-1", "null"]
OPTIONAL = {"acceptance_window_seconds", "run_ttl_seconds", "patience_seconds"}
"""What may be left empty, for there is another limit above it."""


def numbers(model) -> list[str]:
    """The fields of a family that are a number."""
    plain = json.loads(json.dumps(model.model_json_schema()["properties"]))
    return [name for name, said in plain.items() if "number" in json.dumps(said) or '"integer"' in json.dumps(said)]


def plan_with(section: str, name: str, value: str) -> str:
    head = {
        "limits": f"limits: {{{name}: {value}}}\ndefaults:\n",
        "budget": f"budget: {{{name}: {value}}}\ndefaults:\n",
        "lifecycle_policy": f"defaults:\n  lifecycle_policy: {{{name}: {value}}}\n",
        "retries": f"defaults:\n  retries: {value}\n",
        "envelope": "defaults:\n",
    }[section]
    minutes = value if section == "envelope" else "5"
    return (
        f"council: 1\nname: endless\n{head}  envelope: {{time_budget_minutes: {minutes}, autonomy_band: AUTONOMOUS, "
        "tools_scope: [exec], rollback_plan: No changes}\n"
        "children:\n  - {id: a, parent: zeroclaw, run: 'true'}\n"
    )


@pytest.mark.parametrize("value", ENDLESS)
@pytest.mark.parametrize("name", list(asdict(Limits())))
def test_no_limit_of_a_plan_is_without_an_end(name, value):
    assert [mistake.field for mistake in mistakes(plan_with("limits", name, value))] == [f"limits.{name}"]


@pytest.mark.parametrize("value", ENDLESS)
@pytest.mark.parametrize("name", numbers(LifecyclePolicy))
def test_no_time_of_a_policy_is_without_an_end(name, value):
    if value == "null" and name in OPTIONAL:
        return
    assert mistakes(plan_with("lifecycle_policy", name, value))


@pytest.mark.parametrize("value", ENDLESS)
@pytest.mark.parametrize("section", ["budget", "retries", "envelope"])
def test_no_budget_and_no_number_of_attempts_is_without_an_end(section, value):
    if value == "null" and section != "envelope":
        return
    assert mistakes(plan_with(section, "minutes", value))


def test_every_default_is_finite_and_above_zero():
    assert all(isfinite(value) and value > 0 for value in asdict(Limits()).values())
    waits = (RETRY_MAX_SECONDS, MOST_SECONDS * MOST_TIMES, WINDOW_SECONDS * HOLDS, PATIENCE_SECONDS)
    assert all(isfinite(value) for value in waits)


@pytest.mark.parametrize("parent", ["zeroclaw", "keeper"])
def test_every_agent_of_a_plan_has_a_life_that_ends(parent):
    one = child("one", "true", parent=parent, policy={"run_ttl_seconds": None})
    plan = plan_of(child("keeper", "true"), one)
    order = next(order for order in plan.orders if order.id == "one")
    context: SpawnContext = materialise(
        order,
        parent_id="child:keeper.1",
        parent=None,
        parent_task="t",
        task="t",
        slice_path="/tmp/x",
        spawn_ts="2026-05-11T13:20:00Z",
    )
    life = Timing.of(context.lifecycle_policy, order.envelope.time_budget_minutes * 60).ttl
    assert life is not None
    assert life <= (MICROSHARK_TTL_SECONDS if order.kind == "microshark" else 7 * 86400)


def test_the_tree_ends_with_the_microsharks_and_a_plan_without_limits_has_them_all():
    assert child_kind("microshark") is None
    text = plan_with("limits", "concurrency", "8").replace("limits: {concurrency: 8}\n", "")
    assert parse_plan(text, "plain.yaml").limits == Limits()
