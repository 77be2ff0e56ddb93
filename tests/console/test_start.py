"""What is said before the room is open."""

from __future__ import annotations

import asyncio
import sys

import pytest

from council_tui.console import start


async def test_an_opening_that_takes_long_is_announced_in_one_line_that_goes_away(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(start, "PATIENCE_SECONDS", 0)
    with start._announced("opening the council"):
        await asyncio.sleep(0.01)
    assert capsys.readouterr().err == "opening the council ...\r\x1b[K"


@pytest.mark.parametrize("terminal", [True, False])
async def test_a_quick_opening_and_one_that_nobody_looks_at_say_nothing(
    terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    monkeypatch.setattr(start, "PATIENCE_SECONDS", 60 if terminal else 0)
    with start._announced("opening the council"):
        await asyncio.sleep(0.01)
    assert capsys.readouterr().err == ""
