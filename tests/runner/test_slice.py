"""The child looks at its slice itself before it accepts."""

from __future__ import annotations

import os

import pytest

from council_tui.runner.slice import slice_problems
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
