"""Figures as people and programs read them: percentiles, rates, ratios, and a plain table."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


def percentile(values: Iterable[float], per_cent: float) -> float | None:
    """The smallest value that at least so many per cent do not exceed; None of nothing."""
    ordered = sorted(values)
    if not ordered:
        return None
    return ordered[max(0, math.ceil(per_cent / 100 * len(ordered)) - 1)]


def milliseconds(values: Sequence[float], *per_cents: float) -> dict[str, float | None]:
    """Percentiles of seconds, in milliseconds: {"p50": ..., "p99": ...}."""
    found = {f"p{wanted:g}": percentile(values, wanted) for wanted in per_cents or (50, 99)}
    return {name: None if value is None else round(value * 1000, 2) for name, value in found.items()}


def rate(count: int, seconds: float) -> float:
    """How many a second."""
    return round(count / seconds, 1) if seconds > 0 else 0.0


def ratio(value: float, reference: float) -> float | None:
    """A figure as a multiple of its reference; None when the reference is nothing."""
    return round(value / reference, 3) if reference > 0 else None


def middle(values: Sequence[float]) -> float | None:
    """The median, or None of nothing."""
    return median(values) if values else None


def _shown(value: object) -> str:
    if isinstance(value, list) and all(not isinstance(item, (dict, list)) for item in value):
        return ", ".join(map(_shown, value))
    if isinstance(value, float):
        return f"{value:,.2f}" if abs(value) < 100 else f"{value:,.0f}"
    if value is None:
        return "not measured"
    return str(value)


def _lines(value: dict[str, Any], depth: int) -> Iterator[str]:
    room = max((len(key) for key in value), default=0)
    flat = all(not isinstance(item, (dict, list)) for item in value.values())
    if flat and depth and len(line := "  ".join(f"{key} {_shown(item)}" for key, item in value.items())) < 100:
        yield f"{'  ' * depth}{line}"
        return
    for key, item in value.items():
        label = f"{'  ' * depth}{key.replace('_', ' '):<{room}}"
        if isinstance(item, dict):
            inner = list(_lines(item, depth + 1))
            yield from (f"{label}  {inner[0].strip()}",) if len(inner) == 1 else (label.rstrip(), *inner)
        elif isinstance(item, list) and any(isinstance(one, dict) for one in item):
            for one in item:
                yield label.rstrip()
                yield from _lines(one, depth + 1)
        else:
            yield f"{label}  {_shown(item)}"


def table(found: dict[str, Any]) -> str:
    """The same figures as the JSON, one a line, indented by group."""
    return "\n".join(_lines(found, 0))
