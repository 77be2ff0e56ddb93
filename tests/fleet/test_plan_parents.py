"""A plan may say which types the children below an office have."""

import pytest

from council_tui.domain.errors import PlanInvalid
from council_tui.fleet.plan import parse_plan

PLAN = """\
council: 1
name: types
parents: {openclaw: {mbti: [ENFP, ENTP]}}
defaults:
  envelope: {time_budget_minutes: 1, autonomy_band: AUTONOMOUS, tools_scope: [exec], rollback_plan: No changes}
children:
  - {id: one, parent: openclaw, run: ["true"], spawn_context: {inheritance: {mbti_type: ENTP-T}}}
  - {id: two, parent: zeroclaw, run: ["true"]}
"""


def test_a_type_that_its_office_allows_passes_and_other_offices_allow_all():
    assert parse_plan(PLAN, "p").mbti == {"openclaw": frozenset({"ENFP", "ENTP"})}


def test_a_type_outside_the_list_is_told_with_its_line():
    with pytest.raises(PlanInvalid) as caught:
        parse_plan(PLAN.replace("ENTP-T", "ISTJ"), "p")
    assert [(m.line, m.field) for m in caught.value.mistakes] == [
        (7, "children[0].spawn_context.inheritance.mbti_type")
    ]


@pytest.mark.parametrize("bad", ["[]", "ENFP", "[ENFP-T]", "[XXXX]", "[3]"])
def test_a_list_that_is_none_is_a_mistake(bad: str):
    with pytest.raises(PlanInvalid):
        parse_plan(PLAN.replace("[ENFP, ENTP]", bad), "p")
