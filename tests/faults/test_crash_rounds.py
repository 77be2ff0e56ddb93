"""The supervisor is killed at any instant, and the next one started at once: no card is lost, none claimed twice."""

from __future__ import annotations

import pytest

from faults.rounds import choose, dry_run, play

SEED = 20260511


async def rounds(count: int, at_once: int) -> str:
    """Play so many rounds, with points spread over all places of a dry run; what was wrong."""
    bad = await play(choose(SEED, *await dry_run(), count), at_once)
    return "\n\n".join(one.told() for one in bad)


@pytest.mark.timeout(240)
async def test_twenty_supervisors_killed_at_points_of_all_kinds_lose_nothing_and_do_nothing_twice():
    wrong = await rounds(20, at_once=5)
    assert not wrong, f"seed {SEED}\n{wrong}"


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_three_hundred_supervisors_killed_at_points_of_all_kinds_lose_nothing_and_do_nothing_twice():
    wrong = await rounds(300, at_once=5)
    assert not wrong, f"seed {SEED}\n{wrong}"
