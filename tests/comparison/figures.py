"""From the figures of single trials to medians, ratios and the two tables."""

from __future__ import annotations

import itertools
from statistics import median
from typing import TYPE_CHECKING, Any

from council_tui.bench.figures import ratio

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Run = dict[str, Any]
"""One peer at one size: `peer`, `children`, and either its figures or `failed`."""

COMPARED = (
    "start_seconds",
    "replace_seconds",
    "supervisor_rss_mb",
    "supervisor_pss_mb",
    "everything_pss_mb",
    "idle_cpu_percent",
)
"""What has a ratio. Less is better in all of them."""
_WORST = ("left_after_kill",)
_HEADS = {
    "start_seconds": "start s",
    "replace_seconds": "replace s",
    "supervisor_rss_mb": "RSS MB",
    "supervisor_pss_mb": "PSS MB",
    "everything_pss_mb": "all PSS MB",
    "idle_cpu_percent": "idle CPU %",
    "left_after_kill": "left after kill",
}


def combine(rounds: Sequence[Run]) -> Run:
    """One run out of several alike: medians, and the worst of what is left behind.

    A round that failed does not count, but is told; when all failed, the last reason is all there is.
    """
    good = [one for one in rounds if "failed" not in one]
    if not good:
        return dict(rounds[-1])
    found: Run = {}
    for name in good[0]:
        values = [one[name] for one in good if one[name] is not None]
        if name in _WORST:
            found[name] = max(values)
        elif values and all(isinstance(value, (int, float)) for value in values):
            found[name] = round(median(values), 3)
        else:
            found[name] = values[0] if values else None
    return {**found, "rounds": len(good), "rounds_failed": len(rounds) - len(good)}


def ratios(runs: Iterable[Run]) -> list[dict[str, Any]]:
    """Each peer's figures as multiples of every other peer's at the same size: {children, peer, to, ...}."""
    good = [run for run in runs if "failed" not in run]
    return [
        {"children": run["children"], "peer": run["peer"], "to": other["peer"], **_against(run, other)}
        for run in good
        for other in good
        if run["children"] == other["children"] and run["peer"] != other["peer"]
    ]


def _against(run: Run, other: Run) -> dict[str, float | None]:
    return {
        name: ratio(run[name], other[name]) if run[name] is not None and other[name] is not None else None
        for name in COMPARED
    }


GROWING = ("start_seconds", "supervisor_rss_mb", "everything_pss_mb")


def growth(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """What each further child costs between two sizes of one peer; whatever is there without children is left out."""
    found: list[dict[str, Any]] = []
    good = sorted((run for run in runs if "failed" not in run), key=lambda run: int(run["children"]))
    for name in dict.fromkeys(run["peer"] for run in good):
        for small, large in itertools.pairwise(run for run in good if run["peer"] == name):
            more = large["children"] - small["children"]
            costs = {key: _further(small[key], large[key], more) for key in GROWING}
            found.append({"peer": name, "from": small["children"], "to": large["children"], **costs})
    return found


def _further(small: float | None, large: float | None, more: int) -> float | None:
    return None if small is None or large is None or more < 1 else round((large - small) / more, 6)


def growth_table(found: Sequence[Mapping[str, Any]]) -> str:
    """One line for each peer and step, for a thousand further children."""
    head = ["1,000 further children", "from", "to", *(_HEADS[name] for name in GROWING)]
    rows = [
        [one["peer"], one["from"], one["to"], *(None if one[key] is None else 1000 * one[key] for key in GROWING)]
        for one in found
    ]
    return columns([head, *rows])


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:,.2f}" if isinstance(value, float) else str(value)


def columns(rows: Sequence[Sequence[object]]) -> str:
    """Lines with the first column to the left and all others to the right."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(len(row[place]) for row in cells) for place in range(len(cells[0]))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    )


def figures_table(runs: Sequence[Run]) -> str:
    """One line for each peer and size, in absolute figures; what failed stands below it."""
    head = ["peer", "children", *_HEADS.values()]
    rows = [[run["peer"], run["children"], *(run.get(name) for name in _HEADS)] for run in runs if "failed" not in run]
    failed = [f"{run['peer']} at {run['children']}: {run['failed']}" for run in runs if "failed" in run]
    return "\n".join([columns([head, *rows]), *failed])


def ratio_table(found: Sequence[Mapping[str, Any]], mine: Sequence[str]) -> str:
    """Our figures as multiples of everybody else's: below 1 is better than they."""
    head = ["ours to theirs", "children", *(_HEADS[name] for name in COMPARED)]
    rows = [
        [f"{one['peer']} / {one['to']}", one["children"], *(one[name] for name in COMPARED)]
        for one in found
        if one["peer"] in mine and one["to"] not in mine
    ]
    return columns([head, *rows])


def containment_table(found: Mapping[str, Mapping[str, str]]) -> str:
    """What each peer leaves of a program that hides its processes: 0 is the program, D hides best."""
    head = ["peer", "left after a stop", "left after SIGKILL"]
    rows = [
        [name, *(one.get(key, one.get("failed", "")) or "nothing" for key in ("escaped_stop", "escaped_kill"))]
        for name, one in found.items()
    ]
    return columns([head, *rows])
