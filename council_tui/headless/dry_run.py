"""`--dry-run`: what a plan would do here, child by child; nothing is started and no file is made."""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING

from rich.text import Text

from council_tui.control.rehearsal import rehearse
from council_tui.domain.contract import ResourceLimits
from council_tui.domain.hierarchy import KINDS
from council_tui.domain.text import counted, safe
from council_tui.headless.lines import plan_line
from council_tui.headless.printing import show, show_json
from council_tui.headless.signs import BAD, GOOD, LATE, QUIET, STRONG, signs_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from council_tui.control.rehearsal import Rehearsed
    from council_tui.fleet.plan import Plan
    from council_tui.headless.signs import Signs

_NAME = 12


def _pair(name: str, value: str | Text) -> Text:
    return Text.assemble((f"    {name:<{_NAME}}", QUIET), value)


def _band(child: Rehearsed) -> Text:
    if child.hold:
        return Text(f"{child.declared_band}, would wait for a person: {child.why}", LATE)
    if child.band != child.declared_band:
        return Text(f"{child.band} ({child.why})", LATE)
    return Text(child.band)


def _contract(child: Rehearsed) -> Iterator[Text]:
    inherited = child.contract.get("inheritance", {})
    policy = child.contract.get("lifecycle_policy", {})
    memory = child.contract.get("memory_slice", {})
    forbidden = ", ".join(inherited.get("forbidden_capabilities", ()))
    core = ", ".join(inherited.get("core_capabilities", ())) or "what its tools allow"
    limits = f"may not {forbidden}" if forbidden else "nothing is forbidden"
    yield _pair("inherits", f"{inherited.get('mbti_type')}; may {core}; {limits}")
    yield _pair(
        "lifecycle",
        f"beat every {policy.get('parent_heartbeat_interval_seconds'):g} s, "
        f"acknowledge within {policy.get('acceptance_window_seconds') or policy.get('child_timeout_seconds'):g} s"
        + (f", lives at most {policy['run_ttl_seconds']:g} s" if policy.get("run_ttl_seconds") else "")
        + (", an orphan is held for you" if policy.get("orphan_policy") == "hold" else ""),
    )
    yield _pair("slice", f"{memory.get('memory_limit_mb')} MiB, {memory.get('ceiling')} ceiling")
    bounds = ResourceLimits.model_validate(child.contract.get("resource_limits", {}))
    if bounds.names:
        yield _pair("limits", bounds.told())


def _child(child: Rehearsed, signs: Signs) -> Iterator[Text]:
    sign, style = (signs.bad, BAD) if child.refused else (signs.wait, LATE) if child.hold else (signs.good, GOOD)
    parent = KINDS[child.parent].title if child.parent in KINDS else child.parent
    after = f"  after {', '.join(child.after)}" if child.after else ""
    many = f"  a swarm of {counted(child.count, child.kind)}" if child.count is not None else f"  {child.kind}"
    yield Text.assemble((f"{sign} ", style), (child.id, STRONG), f"{many} of {parent}", (after, QUIET))
    command = shlex.join(child.run) if child.container == "command" else f"a drill: {child.run[0]}"
    yield _pair("runs", safe(command, 400))
    yield _pair("task", safe(str(child.envelope["task_description"]), 400))
    yield _pair("budget", f"{child.minutes:g} min, {counted(child.attempts, 'attempt')} at most")
    if child.count is not None:
        yield _pair("granted", f"{child.granted} of {child.count}, while no other microshark lives")
    yield _pair("band", _band(child))
    yield _pair("tools", ", ".join(child.envelope["tools_scope"]))
    yield _pair("rollback", safe(str(child.envelope["rollback_plan"]), 200))
    if child.envelope["derived"]:
        yield _pair("derived", f"{', '.join(child.envelope['derived'])} (not in the plan, made from the command)")
    if child.contract:
        yield from _contract(child)
    if child.refused:
        yield _pair("refused", Text(safe(child.refused, 400), BAD))
    else:
        yield _pair("enforced", child.enforcement)
    for note in child.notes:
        yield _pair("note", Text(safe(note, 300), LATE))
    yield Text("")


def _many(child: Rehearsed) -> int:
    return 1 if child.granted is None else child.granted


def _page(plan: Plan, workdir: str, children: tuple[Rehearsed, ...], signs: Signs) -> Iterator[Text]:
    limits = plan.limits
    yield Text.assemble((plan.name, STRONG), f": {counted(len(children), 'child', 'children')}")
    if plan.description:
        yield Text(safe(plan.description, 400), QUIET)
    yield Text("")
    yield _pair("in", safe(workdir, 400))
    below = f"{limits.children_per_parent} below one parent"
    yield _pair("limits", f"{limits.concurrency} at once, {below}, {limits.microsharks} microsharks")
    yield _pair("budget", f"{plan.budget_minutes:g} min" if plan.budget_minutes is not None else "none")
    yield Text("")
    for child in children:
        yield from _child(child, signs)
    held = sum(_many(child) for child in children if child.hold)
    refused = sum(_many(child) for child in children if child.refused)
    starts = sum(_many(child) for child in children if not (child.hold or child.refused))
    yield Text(f"{starts} would start, {held} would wait for a person, {refused} would be refused here.", STRONG)
    yield Text("Nothing was started and nothing was written.", QUIET)


def dry_run(plan: Plan, *, json: bool) -> int:
    """Show what a plan would do from the current directory."""
    workdir = os.getcwd()
    children = rehearse(plan, workdir)
    if json:
        show_json(plan_line(plan, workdir, children))
    else:
        show(_page(plan, workdir, children, signs_for(sys.stdout)))
    return 0
