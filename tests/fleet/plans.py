"""Plans for the tests: a small good one, and a way to hear what is wrong with any other."""

from __future__ import annotations

from textwrap import dedent, indent

from council_tui.domain.errors import Mistake, PlanInvalid
from council_tui.fleet.plan import Plan, parse_plan

HEAD = """\
council: 1
name: small
defaults:
  envelope:
    {time_budget_minutes: 5, autonomy_band: AUTONOMOUS, tools_scope: [exec], rollback_plan: No changes}
children:
"""
GOOD = "  - {id: a, parent: zeroclaw, run: 'true'}\n"
"""A child without mistakes."""
FIRST_CHILD_LINE = HEAD.count("\n") + 1


def plan_of(children: str, head: str = HEAD) -> Plan:
    """A plan with these children, written as list items."""
    return parse_plan(head + indent(dedent(children).lstrip("\n"), "  "), "plan.yaml")


def mistakes(text: str) -> list[Mistake]:
    """Everything that is wrong with a plan."""
    try:
        parse_plan(text, "plan.yaml")
    except PlanInvalid as error:
        return error.mistakes
    return []


def wrong_children(children: str, head: str = HEAD) -> list[tuple[str, str]]:
    """(field, message) of everything that is wrong with these children."""
    text = head + indent(dedent(children).lstrip("\n"), "  ")
    return [(mistake.field, mistake.message) for mistake in mistakes(text)]


def only(text: str) -> tuple[int | None, str, str]:
    """(line, field, message) of the one mistake in a plan."""
    (mistake,) = mistakes(text)
    return mistake.line, mistake.field, mistake.message
