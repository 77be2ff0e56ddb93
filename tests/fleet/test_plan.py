"""Good plans: what they become."""

import pytest
from domain.samples import ENVELOPE, SPAWN_CONTEXT

from council_tui.domain.authority import clearance
from council_tui.domain.contract import Inheritance, SpawnContext, check_narrowing
from council_tui.domain.envelope import DERIVED_SCHEMA
from council_tui.domain.hierarchy import PARENTS
from council_tui.domain.order import FAULTS, materialise
from council_tui.fleet.plan import Limits, load_plan, parse_plan, shipped_plans, shipped_summary
from fleet.plans import HEAD, plan_of

PRODUCT = """\
council: 1
name: release-readiness
limits: {concurrency: 8, children_per_parent: 5, microsharks: 50}
budget: {minutes: 30}
defaults:
  lifecycle_policy:
    {parent_heartbeat_interval_seconds: 5, child_timeout_seconds: 60, requires_acknowledgement: true}
children:
  - id: unit-tests
    parent: zeroclaw
    container: command
    run: ["python3", "-m", "pytest", "-q"]
    envelope: {task_name: run-unit-tests, task_description: "...", time_budget_minutes: 10,
               evidence_required: true, autonomy_band: AUTONOMOUS, tools_scope: [exec, read],
               rollback_plan: "No changes - read-only"}
"""


def indented(block: str, by: int) -> str:
    return "".join(" " * by + line if line.strip() else line for line in block.splitlines(keepends=True))


def test_a_plan_becomes_orders():
    plan = parse_plan(PRODUCT, "plan.yaml")
    assert (plan.name, plan.source, plan.limits, plan.budget_minutes) == (
        "release-readiness",
        "plan.yaml",
        Limits(8, 5, 50),
        30,
    )
    (order,) = plan.orders
    assert order.run == ("python3", "-m", "pytest", "-q")
    assert order.envelope.derived == ("output_schema",)
    assert order.context["lifecycle_policy"]["child_timeout_seconds"] == 60


@pytest.mark.parametrize("wrapped", [True, False])
def test_the_seeds_blocks_load_unchanged(wrapped):
    context = SPAWN_CONTEXT if wrapped else SPAWN_CONTEXT.replace("spawn_context:\n", "").replace("\n  ", "\n")
    text = (
        "council: 1\nname: seed\nchildren:\n  - id: visual\n    parent: openclaw\n    run: make visual\n"
        "    spawn_context:" + indented(context, 6) + "    envelope:\n" + indented(ENVELOPE, 6)
    )
    (order,) = parse_plan(text, "seed").orders
    assert order.context["memory_slice"] == {
        "shared_memory_path": "/run/user/1000/council/memory-slice-xyz",
        "memory_limit_mb": 512,
    }
    assert order.context["inheritance"]["core_capabilities"] == ["terminal", "file", "search"]
    assert order.envelope.task_name == "stable-lowercase-identifier"
    assert order.envelope.derived == ()
    assert order.run == ("make", "visual")


def test_the_parent_may_be_named_by_the_seeds_block_alone():
    text = (
        "council: 1\nname: seed\nchildren:\n  - id: visual\n    run: make visual\n    spawn_context:"
        + indented(SPAWN_CONTEXT, 6)
        + "    envelope:\n"
        + indented(ENVELOPE, 6)
    )
    assert parse_plan(text, "seed").orders[0].parent == "openclaw"


def test_what_a_command_child_leaves_out_is_derived_and_listed():
    (order,) = plan_of("- {id: a--b, title: Look, parent: openfang, run: [echo, hello world]}").orders
    assert order.envelope.derived == ("task_name", "task_description", "output_schema")
    assert order.envelope.task_name == "a-b"
    assert order.envelope.task_description == "Look. Run: echo 'hello world'"
    assert order.envelope.output_schema == DERIVED_SCHEMA
    assert not order.envelope.schema_declared


def test_defaults_lie_below_what_a_child_says():
    plan = plan_of(
        """
        - {id: plain, parent: zeroclaw, run: "true"}
        - id: own
          parent: zeroclaw
          run: "true"
          retries: 3
          envelope: {time_budget_minutes: 1}
          spawn_context: {enforcement: required, lifecycle_policy: {child_timeout_seconds: 9}}
        """,
        head="""\
council: 1
name: x
defaults:
  retries: 1
  enforcement: declared-only
  container: command
  memory_slice: {memory_limit_mb: 8}
  lifecycle_policy: {parent_heartbeat_interval_seconds: 2, child_timeout_seconds: 20}
  envelope:
    {time_budget_minutes: 5, autonomy_band: AUTONOMOUS, tools_scope: [exec], rollback_plan: No changes}
children:
""",
    )
    plain, own = plan.orders
    assert (plain.retries, own.retries) == (1, 3)
    assert (plain.context["enforcement"], own.context["enforcement"]) == ("declared-only", "required")
    assert plain.context["memory_slice"] == {"memory_limit_mb": 8}
    assert own.context["lifecycle_policy"] == {
        "parent_heartbeat_interval_seconds": 2,
        "child_timeout_seconds": 9,
    }
    assert own.envelope.time_budget_minutes == 1


def test_limits_in_the_defaults_are_those_of_children_and_a_microshark_has_its_parents():
    head = HEAD.replace("defaults:\n", "defaults:\n  resource_limits: {memory_mb: 512, processes: 64}\n")
    plan = plan_of(
        """
        - {id: usual, parent: zeroclaw, run: "true"}
        - id: small
          parent: zeroclaw
          run: "true"
          spawn_context: {resource_limits: {memory_mb: 64, cpus: 0.5}}
        - {id: below, parent: small, run: "true"}
        """,
        head,
    )
    usual, small, below = (order.context.get("resource_limits") for order in plan.orders)
    assert usual == {"memory_mb": 512, "processes": 64}
    assert small == {"memory_mb": 64, "processes": 64, "cpus": 0.5}
    assert below is None


def test_microsharks_follow_their_parent_and_inherit_from_it():
    plan = plan_of(
        """
        - {id: shark, parent: keeper, run: sleep 1}
        - {id: other, parent: openclaw, run: "true", after: [keeper]}
        - id: keeper
          parent: zeroclaw
          run: "true"
          spawn_context: {inheritance: {core_capabilities: [file, exec], forbidden_capabilities: [network]}}
        - id: little
          parent: keeper
          run: "true"
          after: [shark]
          spawn_context: {inheritance: {forbidden_capabilities: [network, exec]}}
        """
    )
    assert [(order.id, order.kind) for order in plan.orders] == [
        ("other", "child"),
        ("keeper", "child"),
        ("shark", "microshark"),
        ("little", "microshark"),
    ]
    keeper = Inheritance.model_validate(plan.orders[1].context["inheritance"])
    context = born(plan.orders[3], keeper)
    assert context.inheritance.core_capabilities == ("file",)
    assert check_narrowing(keeper, context.inheritance) == []


def born(order, parent=None) -> SpawnContext:
    office = order.parent if order.kind == "child" else "child"
    return materialise(
        order,
        parent_id=f"{office}:x.abc",
        parent=parent,
        parent_task="t_p",
        task="t_c",
        slice_path="/run/slices/x",
        spawn_ts="2026-05-11T13:20:00Z",
    )


def test_anchors_and_merge_keys_work():
    plan = plan_of(
        """
        - &one {id: one, parent: zeroclaw, run: &argv [echo, hi], labels: [a]}
        - {<<: *one, id: two, run: *argv}
        """
    )
    assert [(order.id, order.run, order.labels) for order in plan.orders] == [
        ("one", ("echo", "hi"), ("a",)),
        ("two", ("echo", "hi"), ("a",)),
    ]


def test_an_unquoted_time_is_text_and_still_a_time():
    (order,) = plan_of(
        """
        - id: a
          parent: zeroclaw
          run: "true"
          title: 2026-05-11
          spawn_context: {spawn_ts: 2026-05-11T13:20:00Z}
        """
    ).orders
    assert order.title == "2026-05-11"


@pytest.mark.parametrize("name", ["demo", "handshake-drill", "repo-audit"])
def test_a_shipped_plan_loads_by_its_name_and_can_be_born(name):
    assert name in shipped_plans()
    assert shipped_summary(name)
    plan = load_plan(name)
    inherited: dict[str, Inheritance] = {}
    for order in plan.orders:
        context = born(order, inherited.get(order.parent))
        inherited[order.id] = context.inheritance
        assert context.inheritance.problems() == []
        assert check_narrowing(inherited.get(order.parent), context.inheritance) == []
    assert {order.parent for order in plan.orders if order.kind == "child"} == set(PARENTS)


def test_the_drill_shows_every_fault_and_lets_nothing_be_tried_twice():
    plan = load_plan("handshake-drill")
    assert {order.fault for order in plan.orders if order.fault} == set(FAULTS)
    assert {order.attempts for order in plan.orders} == {1}
    assert len(plan.orders) == 10
    assert not any(clearance(order.envelope).hold for order in plan.orders)
    assert sum(order.kind == "microshark" for order in plan.orders) == 1


def test_the_demo_keeps_one_orphan_and_parks_one_card_for_the_operator():
    plan = load_plan("demo")
    held = [o.id for o in plan.orders if o.context["lifecycle_policy"].get("orphan_policy") == "hold"]
    assert held == ["went-quiet"]
    assert [order.id for order in plan.orders if clearance(order.envelope).hold] == ["rotate-keys"]


def test_every_python_in_a_shipped_plan_compiles():
    for name in ("demo", "handshake-drill"):
        for order in load_plan(name).orders:
            if order.run[:3] == ("{python}", "-I", "-c"):
                compile(order.run[3], f"{name}:{order.id}", "exec")


def test_a_plan_is_read_from_a_path_with_a_byte_order_mark(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + PRODUCT.replace("\n", "\r\n").encode())
    assert load_plan(path).source == str(path)


def test_a_file_goes_before_a_shipped_plan_and_a_folder_does_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo").mkdir()
    assert load_plan("demo").name == "demo"
    (tmp_path / "demo").rmdir()
    (tmp_path / "demo").write_text(PRODUCT)
    assert load_plan("demo").name == "release-readiness"


def test_a_thousand_children_are_read_in_one_go():
    children = "".join(
        f"- {{id: c{n}, parent: zeroclaw, run: 'true', after: [{f'c{n - 1}' if n else ''}]}}\n" for n in range(1000)
    )
    assert len(plan_of(children).orders) == 1000
