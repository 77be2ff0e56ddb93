"""Whatever an agent leaves in its slice is removed, or said to be left; nothing outside of it is touched."""

from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path

import pytest

from council_tui.domain.errors import Refused
from council_tui.supervisor import slices

NOBODY = 65534


def nested(top: Path, name: str, levels: int) -> None:
    """Directories in each other, deeper than any path reaches."""
    here = os.getcwd()
    try:
        os.chdir(top)
        for _ in range(levels):
            os.mkdir(name)
            os.chdir(name)
        Path("file").write_text("x")
    finally:
        os.chdir(here)


@pytest.mark.parametrize(("name", "levels"), [("d", 1500), ("d" * 240, 40)])
def test_what_is_nested_deeper_than_a_path_or_a_stack_reaches_is_removed(tmp_path, name, levels):
    top = tmp_path / "slice"
    top.mkdir()
    nested(top, name, levels)
    (top / ".lifted-0").write_text("in the way")
    (top / ".lifted-1" / "full").mkdir(parents=True)
    assert slices.remove(top)
    assert list(tmp_path.iterdir()) == []


def test_links_are_removed_and_not_followed_and_so_are_sockets_and_pipes(tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("x")
    top = tmp_path / "slice" / "inner"
    top.mkdir(parents=True)
    (top / "folder").symlink_to(kept)
    (top / "nowhere").symlink_to("/nowhere")
    os.mkfifo(top / "pipe")
    with socket.socket(socket.AF_UNIX) as link:
        link.bind(str(top / "socket"))
    assert slices.remove(top.parent)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert (kept / "file").read_text() == "x"


def test_a_slice_that_is_a_link_by_now_loses_the_link_only(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "slice").symlink_to(tmp_path / "kept")
    assert slices.remove(tmp_path / "slice")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_nothing_is_removed_through_a_folder_that_is_a_link_by_now(tmp_path):
    (tmp_path / "kept" / "r_1").mkdir(parents=True)
    (tmp_path / "slices").symlink_to(tmp_path / "kept")
    assert not slices.remove(tmp_path / "slices" / "r_1")
    assert (tmp_path / "kept" / "r_1").is_dir()


def test_what_is_not_there_is_gone(tmp_path):
    assert slices.remove(tmp_path / "none")
    assert slices.remove(tmp_path / "none" / "either")


def test_an_ordinary_user_gets_rid_of_what_takes_its_own_rights_away():
    if os.getuid() != 0:
        assert _locked_up() == (True, [])
        return
    pid = os.fork()
    if pid == 0:
        # Root minds no permissions, so this part is played by somebody else.
        status = 1
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            status = 0 if _locked_up() == (True, []) else 1
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def _locked_up():
    folder = Path(tempfile.mkdtemp(prefix="c-", dir="/tmp"))
    try:
        top = folder / "slice"
        for part in ("a/b/c", "ro/x/y", "bare"):
            (top / part).mkdir(parents=True)
            (top / part / "file").write_text("x")
        for part, mode in (("a/b/c", 0), ("a/b", 0), ("ro/x", 0o555), ("ro", 0o555), ("bare", 0), ("", 0o000)):
            (top / part).chmod(mode)
        return slices.remove(top), list(folder.iterdir())
    finally:
        folder.rmdir()


def test_a_path_of_very_many_parts_is_made_or_refused_and_stops_nothing(tmp_path):
    deep = str(tmp_path) + "/n" * 1200
    assert slices.make(deep + "/x", []).endswith("/n/x")
    assert slices.remove(tmp_path / "n")
    with pytest.raises(Refused, match="cannot be created"):
        slices.make(str(tmp_path) + "/n" * 3000 + "/x", [])
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(Refused, match="cannot be created"):
        slices.make(str(tmp_path / "loop" / "x"), [])
    slices.remove(tmp_path / "n")
