"""Which home a command means, and who owns it now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from council_tui.board.home import Home, OwnerLock, find_home

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def test_the_flag_wins_then_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("COUNCIL_HOME", str(tmp_path / "env"))
    assert find_home(str(tmp_path / "flag"), tmp_path).root == tmp_path / "flag"
    assert find_home(None, tmp_path).root == tmp_path / "env"


def test_the_nearest_council_upwards_is_found(tmp_path: Path):
    (tmp_path / ".council").mkdir()
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    assert find_home(None, tmp_path / "repo").root == tmp_path / ".council"


def test_a_repository_gets_its_home_at_its_top(tmp_path: Path):
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    below = tmp_path / "repo" / "a" / "b"
    below.mkdir(parents=True)
    assert find_home(None, below).root == tmp_path / "repo" / ".council"


def test_outside_a_repository_the_home_is_the_users_own(tmp_path: Path):
    assert find_home(None, tmp_path).root == tmp_path / "data" / "council"


def test_a_lock_says_who_holds_it_only_while_it_is_held(tmp_path: Path):
    home = Home(tmp_path / "home")
    home.prepare()
    lock, other = OwnerLock(home), OwnerLock(home)
    assert other.held() is None
    assert lock.take()
    assert other.held() is not None
    assert not other.take()
    lock.release()
    assert other.held() is None
