"""What all tests share: a home on a short path, an environment without traces, and nothing left running."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from council_tui.runner import guard
from supervisor.stage import short_home

if TYPE_CHECKING:
    from collections.abc import Iterator

# Property tests on a shared machine: no wall-clock verdicts.
settings.register_profile("council", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("council")

_TESTS = Path(__file__).parent
_REAL_PROCESSES = {"runner", "containers", "hosts", "supervisor", "fleet", "faults", "board"}


@pytest.fixture(autouse=True)
def _no_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that itself runs inside an agent, or beside a council, knows nothing of it."""
    for name in list(os.environ):
        # The one that stops an audit from auditing its own tests has to stay.
        if name.startswith("COUNCIL_") and name != "COUNCIL_AUDIT_NESTED":
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _nothing_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """No test leaves a process below this one."""
    folder = request.path.relative_to(_TESTS).parts[0]
    if folder not in _REAL_PROCESSES:
        yield
        return
    before = {process.pid for process in guard.descendants(os.getpid())}
    yield
    left = [process.pid for process in guard.descendants(os.getpid()) if process.pid not in before]
    assert left == [], f"processes {left} outlived their test"


@pytest.fixture
def home() -> Iterator[Path]:
    """Where a council may live for one test; its processes must be gone afterwards."""
    with short_home() as path:
        yield path
