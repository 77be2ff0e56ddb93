"""A home is private, found where one expects it, and owned by one supervisor at a time."""

from __future__ import annotations

import os
import stat

import pytest

from council_tui.board.home import Home, OwnerLock, find_home
from council_tui.domain.errors import HomeUnusable


def test_every_directory_of_a_home_is_its_owners_alone(tmp_path):
    home = Home(tmp_path / "h")
    home.prepare()
    made = [home.root, home.keys, home.logs, home.reports, home.runtime, home.slices, home.bodies]
    assert {stat.S_IMODE(path.stat().st_mode) for path in made} == {0o700}


def test_a_socket_fits_however_long_the_homes_path_is(tmp_path):
    home = Home(tmp_path / ("deep" * 40))
    assert len(os.fsencode(home.bodies / "r_0123456789a")) < 108


def test_a_home_that_cannot_be_made_says_so_in_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(HomeUnusable, match="choose another with --home"):
        Home(tmp_path / "file" / "h").prepare()


def test_a_home_inside_a_repository_hides_from_its_status(tmp_path):
    Home(tmp_path / ".council").prepare()
    assert (tmp_path / ".council" / ".gitignore").read_text() == "*\n"


def test_the_home_named_on_the_command_line_comes_before_every_other(tmp_path, monkeypatch):
    (tmp_path / ".council").mkdir()
    monkeypatch.setenv("COUNCIL_HOME", str(tmp_path / "env"))
    assert find_home(str(tmp_path / "arg"), tmp_path).root == tmp_path / "arg"
    assert find_home(None, tmp_path).root == tmp_path / "env"
    monkeypatch.delenv("COUNCIL_HOME")
    assert find_home(None, tmp_path / "deep" / "below").root == tmp_path / ".council"


def test_a_home_has_one_owner_at_a_time(tmp_path):
    home = Home(tmp_path)
    first, second = OwnerLock(home), OwnerLock(home)
    assert first.take()
    assert not second.take()
    assert second.owner() == os.getpid()
    first.release()
    assert second.take()
    second.release()


def test_a_lock_file_that_is_a_link_is_not_followed(tmp_path):
    (tmp_path / "supervisor.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(HomeUnusable, match="cannot open"):
        OwnerLock(Home(tmp_path)).take()
    assert not (tmp_path / "elsewhere").exists()
