"""What all tests share: a home on a short path, an environment without traces, and nothing left running."""

from __future__ import annotations

import os
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from supervisor.stage import short_home

from council_tui.runner import guard

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# One tier for all tests, whatever this machine has; those of the strong one take it off again.
os.environ["COUNCIL_TIER"] = "portable"

# Property tests on a shared machine: no wall-clock verdicts.
settings.register_profile("council", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("council")


@pytest.fixture(autouse=True)
def _no_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that itself runs inside an agent, or beside a council, knows nothing of it."""
    for name in list(os.environ):
        # The one that stops an audit from auditing its own tests has to stay.
        if name.startswith("COUNCIL_") and name not in ("COUNCIL_AUDIT_NESTED", "COUNCIL_TIER"):
            monkeypatch.delenv(name)


def _children() -> set[int]:
    """Living processes below this one; the whole table is only read when there is a child at all."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return set()
    return {process.pid for process in guard.descendants(os.getpid())}


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    """No test leaves a process below this one."""
    before = _children()
    yield
    # Python's own helper of `multiprocessing` stays until this interpreter ends.
    left = _children() - before - {getattr(resource_tracker._resource_tracker, "_pid", None)}
    assert left == set(), f"processes {left} outlived their test"


@pytest.fixture
def home() -> Iterator[Path]:
    """Where a council may live for one test; its processes must be gone afterwards."""
    with short_home() as path:
        yield path
