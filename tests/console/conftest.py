"""Snapshots live in the top folder `snapshots/`; everything that makes a picture move is stilled."""

from __future__ import annotations

import asyncio
import gc
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import pytest_textual_snapshot
from textual.widgets import Input

from council_tui.console.screens.spawn import SpawnScreen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from syrupy.location import PyTestLocation

TESTS = Path(__file__).resolve().parent.parent
SNAPSHOTS = TESTS.parent / "snapshots"
_FONT_FACE = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)


class TopFolderSVG(pytest_textual_snapshot.SVGImageExtension):
    """`snapshots/<folder>/<module>/<test>-<case>.svg`, without the fonts that point at a public server."""

    @classmethod
    def dirname(cls, *, test_location: PyTestLocation) -> str:
        relative = Path(test_location.filepath).resolve().relative_to(TESTS)
        return str(SNAPSHOTS / relative.with_suffix(""))

    @classmethod
    def get_snapshot_name(cls, *, test_location: PyTestLocation, index: Any = 0) -> str:
        name = super().get_snapshot_name(test_location=test_location, index=index)
        return name.replace("[", "-").replace("]", "")

    def serialize(self, *args: Any, **kwargs: Any) -> str:
        return _FONT_FACE.sub("", super().serialize(*args, **kwargs))


pytest_textual_snapshot.SVGImageExtension = TopFolderSVG


def pytest_configure(config: pytest.Config) -> None:
    """The report of a failed comparison holds the environment: it goes where nothing is ever kept."""
    if config.option.snapshot_report == "snapshot_report.html":
        config.option.snapshot_report = "build/snapshot_report.html"


async def _soon(*_: float) -> None:
    """Instead of waiting until the process is idle: on a busy machine that is up to a second per key."""
    for _turn in range(3):
        await asyncio.sleep(0)


@pytest.fixture(autouse=True, scope="session")
def _seldom_collected() -> Iterator[None]:
    """A quarter of these tests' time went into walking what other tests left, over and over."""
    before = gc.get_threshold()
    gc.set_threshold(50_000, 20, 20)
    yield
    gc.set_threshold(*before)


@pytest.fixture(autouse=True)
def _still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("textual.constants.TEXTUAL_ANIMATIONS", "none")
    monkeypatch.setattr(Input, "_toggle_cursor", lambda self: None)
    monkeypatch.setattr("textual.pilot.wait_for_idle", _soon)
    monkeypatch.setattr("textual.app.wait_for_idle", _soon)
    monkeypatch.setattr(SpawnScreen, "DEBOUNCE_SECONDS", 0.0)
