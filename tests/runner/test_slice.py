"""The child looks at its slice itself before it accepts."""

from __future__ import annotations

import asyncio
import os

import pytest

from council_tui.runner.slice import arrivals, slice_problems
from council_tui.supervisor import slices


@pytest.fixture
def path(tmp_path):
    slices.make(str(tmp_path / "slice"), [])
    return tmp_path / "slice"


def told(path) -> str:
    return "; ".join(map(str, slice_problems(str(path))))


def test_a_slice_as_the_supervisor_makes_it_has_no_problem(path):
    assert slice_problems(str(path)) == []


def test_a_slice_that_is_missing_open_or_someone_elses_is_refused(path, monkeypatch):
    assert "cannot be used: No such file" in told(path / "nothing")
    path.chmod(0o750)
    assert "is open to others" in told(path)
    path.chmod(0o700)
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert "is open to others" in told(path)


def test_a_slice_behind_a_link_is_refused(path):
    path.with_name("link").symlink_to(path)
    assert "is open to others" in told(path.with_name("link"))


def test_a_slice_without_a_place_to_write_is_refused(path):
    (path / "data").rmdir()
    assert "cannot be written" in told(path)


async def test_whatever_is_put_into_an_empty_slice_is_told_at_once_and_nothing_else_is(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "elsewhere").touch()
    loop = asyncio.get_running_loop()
    came = arrivals(str(tmp_path / "data"))
    assert came is not None
    try:
        began = loop.time()
        await came.wait(0.05)
        assert loop.time() - began >= 0.05
        makers = (
            lambda: (tmp_path / "data" / "a").touch(),
            lambda: (tmp_path / "data" / "b").mkdir(),
            lambda: (tmp_path / "elsewhere").rename(tmp_path / "data" / "c"),
            lambda: (tmp_path / "data" / "d").symlink_to("a"),
        )
        for make in makers:
            loop.call_soon(make)
            async with asyncio.timeout(5):
                await came.wait(60)
    finally:
        came.close()
    assert arrivals(str(tmp_path / "none")) is None
