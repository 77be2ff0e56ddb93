"""The end of an agent's log, whatever has been put in the place of its file."""

from __future__ import annotations

import asyncio
import os
from types import SimpleNamespace

import pytest

from council_tui.control import pictures
from council_tui.control.pictures import LOG_TAIL, Pictures


@pytest.fixture
def tail(tmp_path):
    """The file of a run's log, and the way to its end."""
    file = tmp_path / "r_1" / "output.log"
    file.parent.mkdir()
    some = object.__new__(Pictures)
    some._sup = SimpleNamespace(home=SimpleNamespace(logs=tmp_path))
    return file, lambda: asyncio.to_thread(some._log_tail, "r_1")


async def test_the_last_lines_of_a_long_log_are_shown(tail):
    file, read = tail
    file.write_bytes(b"first\n" + b"x" * LOG_TAIL + b"\nlast but one\nlast\n")
    assert (await read())[-2:] == ("last but one", "last")
    assert "first" not in await read()


@pytest.mark.parametrize("put", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero"), lambda path: None])
async def test_a_fifo_a_folder_or_a_link_in_its_place_shows_nothing_and_stops_nobody(tail, put):
    file, read = tail
    put(file)
    async with asyncio.timeout(20):
        assert await read() == ()


async def test_an_agent_that_nobody_can_look_at_just_now_has_no_processes_to_show(monkeypatch):
    def short(pid):
        raise OSError(23, "Too many open files in system")

    with monkeypatch.context() as patch:
        patch.setattr(pictures.guard, "read_process", short)
        assert pictures.processes_below(os.getpid()) == ()
