"""What a plan needs to find where it is started, looked for before anything is made."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from council_tui.domain.errors import Mistake, PlanInvalid
from council_tui.domain.text import counted
from council_tui.hosts import descriptors

if TYPE_CHECKING:
    from pathlib import Path

    from council_tui.fleet.plan import Plan


def _in_repository(place: Path) -> bool:
    """Whether git would find a repository from here: `.git` upwards, or a bare one (gitrepository-layout(5))."""
    return any(
        (folder / ".git").exists() or ((folder / "HEAD").is_file() and (folder / "objects").is_dir())
        for folder in (place, *place.parents)
    )


def _too_many(plan: Plan) -> str:
    """Why this machine cannot hold as many agents at once as this plan may have, or nothing."""
    children = sum(1 for order in plan.orders if order.kind == "child")
    sharks = sum(order.count or 1 for order in plan.orders if order.kind == "microshark")
    wanted = min(children, plan.limits.concurrency) + min(sharks, plan.limits.microsharks)
    needed, files = wanted + descriptors.SPARE, descriptors.most()
    if files is None or needed <= files:
        return ""
    return (
        f"for {counted(wanted, 'agent')} at once a council needs {needed:,} open files, and this machine lets it have "
        f"{files:,} (ulimit -Hn); lower limits.concurrency or limits.microsharks, or raise that limit"
    )


def check_needs(plan: Plan, workdir: Path) -> None:
    """Raise `PlanInvalid` with one sentence for each need that is not met, and for more agents than fit."""
    found: list[Mistake] = []
    if "git-repository" in plan.needs:
        if shutil.which("git") is None:
            found.append(Mistake("needs", "git is not installed; install it, then run this again"))
        elif not _in_repository(workdir):
            found.append(Mistake("needs", f"{workdir} is in no git repository; run this in a checkout"))
    if why := _too_many(plan):
        found.append(Mistake("limits.concurrency", why))
    if found:
        raise PlanInvalid(plan.source, found)
