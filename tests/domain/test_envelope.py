"""The FORGE envelope (seed: forge-subagent-spawn)."""

import pytest
import yaml
from pydantic import ValidationError

from council_tui.domain.envelope import Envelope
from domain.samples import ENVELOPE, envelope


def test_the_seed_block_loads_unchanged():
    loaded = Envelope.model_validate(yaml.safe_load(ENVELOPE))
    assert loaded.tools_scope == ("exec", "read", "web_fetch")
    assert loaded.schema_declared
    assert not loaded.read_only


@pytest.mark.parametrize("field", ["task_name", "task_description", "time_budget_minutes", "autonomy_band"])
@pytest.mark.parametrize("value", ["", None, []])
def test_an_empty_field_is_refused_by_name(field, value):
    with pytest.raises(ValidationError) as refused:
        envelope(**{field: value})
    assert {error["loc"][0] for error in refused.value.errors()} == {field}


@pytest.mark.parametrize("name", ["Run", "run_tests", "-run", "run-", "run--tests", "run tests", "x" * 81, "a\n"])
def test_a_task_name_is_lower_case_words_joined_by_dashes(name):
    with pytest.raises(ValidationError):
        envelope(task_name=name)


@pytest.mark.parametrize("plan", ["rm a; rm b", "a && b", "a | b", "a || b", "a\nb", "  ", "\n"])
def test_a_rollback_plan_is_one_command(plan):
    with pytest.raises(ValidationError) as refused:
        envelope(rollback_plan=plan)
    assert refused.value.errors()[0]["loc"] == ("rollback_plan",)


@pytest.mark.parametrize("plan", ["rm output_file", "No changes made", "no changes — read-only; really | truly"])
def test_a_command_or_no_change_is_a_rollback_plan(plan):
    assert envelope(rollback_plan=plan).rollback_plan == plan


def test_a_read_only_task_says_so_even_with_space_around_it():
    assert envelope(rollback_plan="  No changes ").read_only
    assert not envelope(action_class="MUTATE").read_only


def test_a_schema_describes_an_object():
    with pytest.raises(ValidationError, match="must describe an object"):
        envelope(output_schema={"type": "array"})


@pytest.mark.parametrize("minutes", [0, -1, float("nan"), float("inf"), 1e9])
def test_a_time_budget_is_finite_and_above_zero(minutes):
    with pytest.raises(ValidationError):
        envelope(time_budget_minutes=minutes)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_reversibility_is_between_zero_and_one(value):
    with pytest.raises(ValidationError):
        envelope(reversibility=value)


def test_every_mistake_is_told_at_once():
    with pytest.raises(ValidationError) as refused:
        envelope(task_name="A B", rollback_plan="a;b", output_schema={}, tools_scope=[])
    assert refused.value.error_count() == 4


def test_a_derived_schema_is_known_as_such():
    assert not envelope(derived=("output_schema",)).schema_declared
