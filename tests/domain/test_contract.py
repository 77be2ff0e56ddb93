"""The spawn context's five families (seed: council-of-three)."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from council_tui.domain.contract import (
    MBTI,
    Inheritance,
    LifecyclePolicy,
    MemorySlice,
    ResourceLimits,
    SpawnContext,
    check_limits,
    check_narrowing,
)
from council_tui.domain.errors import Refused
from council_tui.domain.order import Order, materialise
from domain.samples import context_block, envelope

NAMES = st.frozensets(st.sampled_from(["terminal", "file", "search", "network", "exec"]))


def test_the_seed_block_loads_unchanged():
    context = SpawnContext.model_validate(context_block())
    assert context.parent_type == "openclaw"
    assert context.memory_slice.limit_bytes == 512 * 1024 * 1024
    assert context.inheritance.problems() == []
    assert context.kanban_handoff.child_task_claim is None
    assert context.lifecycle_policy.window == 300


def test_the_digest_covers_every_family_and_survives_a_round_trip():
    context = SpawnContext.model_validate(context_block())
    again = SpawnContext.model_validate(context.model_dump(mode="json"))
    assert again.sha256() == context.sha256()
    other = SpawnContext.model_validate(context_block(task_reference="t_other"))
    assert other.sha256() != context.sha256()


def test_a_contract_without_limits_keeps_the_shape_and_the_digest_that_it_always_had():
    context = SpawnContext.model_validate(context_block())
    assert "resource_limits" not in context.model_dump(mode="json")
    assert "resource_limits" not in context.model_dump_json()
    limited = context.model_copy(update={"resource_limits": ResourceLimits(memory_mb=64)})
    assert limited.model_dump(mode="json").keys() - context.model_dump(mode="json").keys() == {"resource_limits"}
    assert limited.sha256() != context.sha256()
    assert SpawnContext.model_validate(limited.model_dump(mode="json")) == limited


@pytest.mark.parametrize(
    "limits", [{"memory_mb": 3}, {"processes": 0}, {"cpus": 0}, {"cpus": float("inf")}, {"cpu": 1}, {"ceiling": "soft"}]
)
def test_a_limit_leaves_room_for_something_and_is_finite(limits):
    with pytest.raises(ValidationError):
        ResourceLimits.model_validate(limits)


def test_limits_are_told_as_people_read_them():
    assert ResourceLimits().told() == ""
    every = ResourceLimits(memory_mb=512, processes=64, cpus=0.5, ceiling="hard")
    assert every.told() == "512 MiB of memory, 64 processes and threads, 0.5 of a core; hard ceiling"
    assert ResourceLimits(cpus=2).told() == "2 cores"
    assert every.names == ("memory", "processes", "cpus")


SOME = st.none() | st.integers(1, 9)


@given(SOME, SOME, SOME, SOME)
def test_limits_only_get_narrower_down_the_tree(most, cores, asked, wanted):
    parent, child = ResourceLimits(processes=most, cpus=cores), ResourceLimits(processes=asked, cpus=wanted)
    narrower = all(up is None or (own is not None and own <= up) for up, own in ((most, asked), (cores, wanted)))
    assert (check_limits(parent, child) == []) == narrower
    assert check_limits(None, child) == []


def test_a_hard_ceiling_stays_hard_and_no_limits_at_all_are_wider_than_any():
    hard = ResourceLimits(memory_mb=64, ceiling="hard")
    assert [found.field for found in check_limits(hard, ResourceLimits(memory_mb=8))] == ["resource_limits.ceiling"]
    assert [found.field for found in check_limits(ResourceLimits(memory_mb=64), None)] == ["resource_limits.memory_mb"]


@pytest.mark.parametrize("good", ["ENTP", "ENTP-T", "ISFJ-A", "INTJ"])
def test_a_type_with_or_without_its_identity_letter_is_taken(good):
    assert Inheritance(mbti_type=good).problems() == []


@pytest.mark.parametrize("bad", ["ENTP-X", "entp", "ENTPT", "ENTP-", "XNTP", "", "ENTP-T\n", " ENTP"])
def test_a_malformed_type_is_refused_with_its_field(bad):
    (problem,) = Inheritance(mbti_type=bad).problems()
    assert problem.field == "inheritance.mbti_type"


def test_there_are_forty_eight_types():
    base = [a + b + c + d for a in "EI" for b in "NS" for c in "TF" for d in "JP"]
    assert sum(bool(MBTI.match(kind + tail)) for kind in base for tail in ("", "-A", "-T")) == 48


def test_a_type_outside_the_parents_list_is_refused():
    (problem,) = Inheritance(mbti_type="ENTP-T").problems(frozenset({"ISTJ"}))
    assert "allow-list" in problem.rule


def test_a_capability_cannot_be_core_and_forbidden():
    both = Inheritance(core_capabilities=("file", "network"), forbidden_capabilities=("network",))
    (problem,) = both.problems()
    assert problem.field == "inheritance.core_capabilities"
    assert "network" in problem.rule


@given(NAMES, NAMES, NAMES, NAMES)
def test_narrowing_passes_exactly_what_only_shrinks_and_only_forbids_more(core, banned, child_core, child_banned):
    parent = Inheritance(core_capabilities=tuple(core), forbidden_capabilities=tuple(banned))
    child = Inheritance(core_capabilities=tuple(child_core), forbidden_capabilities=tuple(child_banned))
    assert (check_narrowing(parent, child) == []) == (child_core <= core and banned <= child_banned)


def test_the_three_parents_hold_an_open_grant():
    assert check_narrowing(None, Inheritance(core_capabilities=("anything",))) == []


@pytest.mark.parametrize("path", ["relative/path", "/a/../b", "/", "//", "/a\0b"])
def test_a_slice_path_is_absolute_below_the_root_and_plain(path):
    with pytest.raises(ValidationError, match="absolute path below the root"):
        MemorySlice(shared_memory_path=path)


@pytest.mark.parametrize("limit", [0, -1, 2**40])
def test_a_slice_has_a_finite_ceiling_above_zero(limit):
    with pytest.raises(ValidationError):
        MemorySlice(shared_memory_path="/run/slice", memory_limit_mb=limit)


@pytest.mark.parametrize(
    "policy",
    [
        {"parent_heartbeat_interval_seconds": 300},
        {"parent_heartbeat_interval_seconds": 0},
        {"child_timeout_seconds": float("inf")},
        {"child_timeout_seconds": float("nan")},
        {"acceptance_window_seconds": 301},
        {"grace_seconds": -1},
        {"run_ttl_seconds": 0},
        {"unheard_of": 1},
    ],
)
def test_a_lifecycle_policy_holds_together(policy):
    with pytest.raises(ValidationError):
        LifecyclePolicy.model_validate(policy)


def test_an_acceptance_window_narrows_the_timeout():
    assert LifecyclePolicy(acceptance_window_seconds=20).window == 20


@pytest.mark.parametrize(
    "changes",
    [
        {"parent_type": "zeroclaw"},
        {"spawn_ts": "2026-05-11T13:20:00"},
        {"spawn_ts": "2026-05-11T13:20:00+02:00"},
        {"parent_id": "no colon"},
        {"parent_id": "openclaw:x\n"},
        {"memory_slice": None},
        {"surprise": 1},
    ],
)
def test_identity_has_to_agree_with_itself(changes):
    with pytest.raises(ValidationError):
        SpawnContext.model_validate(context_block(**changes))


@pytest.mark.parametrize("when", [datetime(2026, 5, 11, 13, 20), datetime(2026, 5, 11, 13, 20, tzinfo=UTC)])
def test_a_time_that_yaml_read_by_itself_is_utc(when):
    assert SpawnContext.model_validate(context_block(spawn_ts=when)).spawn_ts.utcoffset() is not None


def order(**changes):
    fields = {
        "id": "unit-tests",
        "title": "Unit tests",
        "parent": "zeroclaw",
        "run": ("true",),
        "envelope": envelope(),
    }
    return Order.model_validate(fields | changes)


def born(made, parent=None):
    return materialise(
        made,
        parent_id="zeroclaw:office.abc",
        parent=parent,
        parent_task="t_parent",
        task="t_child",
        slice_path="/run/slices/unit-tests",
        spawn_ts="2026-05-11T13:20:00Z",
    )


def test_an_order_without_a_context_becomes_a_whole_contract():
    context = born(order())
    assert context.parent_type == "zeroclaw"
    assert context.memory_slice.shared_memory_path == "/run/slices/unit-tests"
    assert context.kanban_handoff.parent_task_id == "t_parent"


def test_identity_and_handoff_are_the_parents_to_state():
    context = born(order(context=context_block()))
    assert (context.parent_id, context.task_reference) == ("zeroclaw:office.abc", "t_child")
    assert context.memory_slice.memory_limit_mb == 512
    assert context.memory_slice.shared_memory_path.endswith("memory-slice-xyz")


def test_what_the_parent_forbids_is_forbidden_below_it():
    parent = Inheritance(core_capabilities=("file", "terminal"), forbidden_capabilities=("network",))
    inherited = born(order(context={"inheritance": {"forbidden_capabilities": ["terminal"]}}), parent).inheritance
    assert inherited.core_capabilities == ("file",)
    assert set(inherited.forbidden_capabilities) == {"network", "terminal"}
    assert check_narrowing(parent, inherited) == []
    assert inherited.problems() == []


@pytest.mark.parametrize(("asked", "given_"), [(None, 300), (20, 20), (9000, 300)])
def test_a_microshark_always_has_a_time_to_live(asked, given_):
    policy = {} if asked is None else {"run_ttl_seconds": asked}
    context = born(order(kind="microshark", context={"lifecycle_policy": policy}))
    assert context.lifecycle_policy.run_ttl_seconds == given_


def test_a_child_has_no_time_to_live_unless_it_asks():
    assert born(order()).lifecycle_policy.run_ttl_seconds is None


def test_a_broken_contract_is_refused_with_field_and_rule():
    with pytest.raises(Refused) as refused:
        born(order(context={"memory_slice": {"memory_limit_mb": 0}}))
    assert refused.value.field == "spawn_context.memory_slice.memory_limit_mb"


@pytest.mark.parametrize(
    ("changes", "attempts"),
    [
        ({}, 3),
        ({"envelope": envelope(action_class="MUTATE", rollback_plan="git checkout .")}, 1),
        ({"retries": 0}, 1),
        ({"retries": 4}, 5),
    ],
)
def test_only_what_changes_nothing_is_tried_again_by_itself(changes, attempts):
    assert order(**changes).attempts == attempts


def test_what_an_order_does_not_limit_is_limited_as_its_parent_is():
    limits = ResourceLimits(memory_mb=64, processes=8, ceiling="hard")
    given = {"parent_id": "child:a.1", "parent": None, "parent_task": "t_0", "task": "t_1"}
    place = {"slice_path": "/s", "spawn_ts": "2026-01-01T00:00:00Z", "limits": limits}
    assert materialise(order(), **given, **place).resource_limits == limits
    own = order(context={"resource_limits": {"processes": 4, "cpus": 1}})
    expected = ResourceLimits(memory_mb=64, processes=4, cpus=1, ceiling="hard")
    assert materialise(own, **given, **place).resource_limits == expected
