"""An end that only says "not now": the program was turned away by a rate limit, which is no failure of its own."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

EX_TEMPFAIL = 75
"""The exit status for "try again later" (sysexits(3))."""
UNSAID_SECONDS = 60.0
"""How long to wait for a program that does not say."""
MOST_SECONDS = 3600.0
"""The longest wait, whatever a program asks for."""
MOST_TIMES = 20
"""How often one card is turned away before it has failed."""


def rate_limited(result: Mapping[str, Any], exit_status: int | None) -> float | None:
    """Seconds to wait before the same is tried again; None for an end that was none of this kind.

    It is of this kind when the program exits with 75, or when its result has status ERROR and either
    `"rate_limited": true` or a number of seconds as `retry_after`. What it printed otherwise is not read.
    """
    after = result.get("retry_after")
    told = float(after) if isinstance(after, (int, float)) and not isinstance(after, bool) else None
    if told is not None and not (isfinite(told) and told >= 0):
        told = None
    says_so = result.get("status") == "ERROR" and (result.get("rate_limited") is True or told is not None)
    if exit_status != EX_TEMPFAIL and not says_so:
        return None
    return min(max(told if told is not None else UNSAID_SECONDS, 1.0), MOST_SECONDS)
