"""Started as cron or a daemon would: without standard streams, or in a directory that is gone."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from headless.command import child, write_plan

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_standard_stream_changes_nothing_about_the_run(tmp_path: Path, home: Path, closed: str):
    plan = write_plan(tmp_path, child("quick", "true"))
    line = f"exec {sys.executable} -m council_tui --home {home} --run {plan} {closed}"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_current_directory_that_is_gone_is_told_in_one_sentence(tmp_path: Path):
    gone = tmp_path / "gone"
    gone.mkdir()
    line = f"cd {gone} && rmdir {gone} && exec {sys.executable} -m council_tui --run handshake-drill"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.strip().endswith("the current directory is gone; change into one that exists")
