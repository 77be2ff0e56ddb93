"""A home is private, found where one expects it, and owned by one supervisor at a time."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from pathlib import Path

import pytest

from council_tui.board import home as homes
from council_tui.board.home import Home, OwnerLock, cannot_use, find_home, ordinary
from council_tui.domain.errors import HomeUnusable

NOBODY = 65_534


@pytest.fixture
def far(tmp_path, monkeypatch) -> Home:
    """A home whose path is too long for sockets, so that they lie below the temp dir."""
    (tmp_path / "t").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "t"))
    # The path of the test itself may be longer than a socket's has room for.
    monkeypatch.setattr(homes, "_SOCKET_LIMIT", len(os.fsencode(tmp_path)) + 110)
    return Home(tmp_path / ("deep" * 40))


@pytest.fixture
def near(tmp_path, monkeypatch) -> Home:
    """A home that has its sockets inside, however long the path of the test is."""
    monkeypatch.setattr(homes, "_SOCKET_LIMIT", 4096)
    return Home(tmp_path / "h")


def refusal(home: Home) -> str:
    """The one sentence with which a home is refused."""
    with pytest.raises(HomeUnusable) as caught:
        home.prepare()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def mode(path: Path) -> int:
    """Permission bits."""
    return stat.S_IMODE(path.lstat().st_mode)


def test_every_directory_of_a_home_is_its_owners_alone(near):
    near.prepare()
    made = [near.root, near.keys, near.logs, near.reports, near.runtime, near.slices, near.bodies]
    assert {mode(path) for path in made} == {0o700}


def test_directories_of_ours_that_others_may_enter_are_closed_again(near):
    near.prepare()
    assert OwnerLock(near).take()
    for path in (near.root, near.keys, near.bodies):
        path.chmod(0o777)
    near.prepare()
    assert {mode(path) for path in (near.root, near.keys, near.bodies)} == {0o700}


def test_an_empty_directory_is_taken_over_and_one_that_others_use_is_not_changed(near, tmp_path):
    (tmp_path / "empty").mkdir(mode=0o755)
    Home(tmp_path / "empty").prepare()
    assert mode(tmp_path / "empty") == 0o700
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "theirs").write_text("")
    (tmp_path / "used").chmod(0o1777)
    assert "can be changed by others" in refusal(Home(tmp_path / "used"))
    assert mode(tmp_path / "used") == 0o1777


@pytest.mark.parametrize("name", ["keys", "logs", "reports", "run", "run/slices", "run/bodies"])
@pytest.mark.parametrize("what", ["link", "file"])
def test_a_link_or_a_file_in_place_of_a_directory_is_refused(near, tmp_path, name, what):
    near.prepare()
    place = near.root / name
    place.rename(tmp_path / "moved")
    if what == "link":
        place.symlink_to(tmp_path / "moved")
    else:
        place.write_text("")
    assert str(place) in refusal(near)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_another_user_is_refused(near):
    near.prepare()
    for path in (near.keys, near.slices, near.root):
        os.chown(path, NOBODY, NOBODY)
        assert f"{path} belongs to user {NOBODY}" in refusal(near)
        os.chown(path, 0, 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_runtime_directory_that_another_user_made_first_is_refused(far):
    shared = far.runtime.parent
    shared.mkdir(mode=0o777)
    shared.chmod(0o777)
    os.chown(shared, NOBODY, NOBODY)
    assert f"{shared} belongs to user {NOBODY}; have it removed or set TMPDIR" in refusal(far)


def test_a_runtime_directory_that_leads_elsewhere_is_refused(far, tmp_path):
    far.runtime.parent.mkdir()
    (tmp_path / "theirs").mkdir()
    far.runtime.symlink_to(tmp_path / "theirs")
    assert str(far.runtime) in refusal(far)
    assert not list((tmp_path / "theirs").iterdir())


def test_a_runtime_directory_outside_the_home_is_closed_to_others_at_each_step(far):
    far.runtime.parent.mkdir(mode=0o755)
    far.prepare()
    assert {mode(path) for path in (far.runtime.parent, far.runtime, far.slices, far.bodies)} == {0o700}


def test_a_runtime_directory_outside_the_home_goes_when_nothing_lives_in_it(far):
    far.prepare()
    far.socket.touch()
    (far.slices / "r_1").mkdir()
    far.tidy()
    assert far.socket.exists()
    (far.slices / "r_1").rmdir()
    far.tidy()
    far.tidy()
    assert not far.runtime.exists()
    far.prepare()
    assert far.bodies.is_dir()


def test_a_runtime_directory_inside_the_home_stays(near):
    near.prepare()
    near.tidy()
    assert near.bodies.is_dir()


def test_a_socket_fits_however_long_the_homes_path_is(tmp_path):
    home = Home(tmp_path / ("deep" * 40))
    assert len(os.fsencode(home.bodies / "r_0123456789a")) < 108


def test_a_temp_dir_that_is_too_long_for_sockets_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / ("long" * 20)))
    assert "set TMPDIR to a shorter one" in refusal(Home(tmp_path / ("deep" * 40)))


def test_a_home_that_cannot_be_made_says_so_in_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    assert "choose another with --home" in refusal(Home(tmp_path / "file" / "h"))


@pytest.mark.parametrize("name", [b"h\xff\xfe", b"h\nx", b"h\0x", b"h\x1b[31m", b"h\x7f"])
def test_a_path_that_no_contract_can_carry_is_refused_before_anything_is_made(tmp_path, name):
    assert "choose another home with --home" in refusal(Home(tmp_path / os.fsdecode(name)))
    assert not list(tmp_path.iterdir())


def test_a_home_may_have_any_other_name(near):
    home = Home(near.root.with_name("h-ü ?#%25 x"))
    home.prepare()
    assert home.keys.is_dir()


def test_a_home_inside_a_repository_hides_from_its_status(near, tmp_path):
    Home(tmp_path / ".council").prepare()
    assert (tmp_path / ".council" / ".gitignore").read_text() == "*\n"


def test_the_home_named_on_the_command_line_comes_before_every_other(tmp_path, monkeypatch):
    (tmp_path / ".council").mkdir()
    monkeypatch.setenv("COUNCIL_HOME", str(tmp_path / "env"))
    assert find_home(str(tmp_path / "arg"), tmp_path).root == tmp_path / "arg"
    assert find_home(None, tmp_path).root == tmp_path / "env"
    monkeypatch.delenv("COUNCIL_HOME")
    assert find_home(None, tmp_path / "deep" / "below").root == tmp_path / ".council"


def test_a_home_is_named_without_steps_back_and_a_link_to_it_stays_a_link(tmp_path, monkeypatch):
    (tmp_path / "below").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "below")
    monkeypatch.chdir(tmp_path / "below")
    assert find_home("../link/./x/../h", tmp_path).root == tmp_path / "link" / "h"
    assert str(find_home(f"/{tmp_path}/h", tmp_path).root) == f"{tmp_path}/h"
    monkeypatch.setenv("COUNCIL_HOME", "../h")
    assert find_home(None, tmp_path).root == tmp_path / "h"
    monkeypatch.delenv("COUNCIL_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", f"{tmp_path}/below/../data")
    assert find_home(None, Path("/")).root == tmp_path / "data" / "council"


def test_a_home_has_one_owner_at_a_time(tmp_path):
    home = Home(tmp_path)
    first, second = OwnerLock(home), OwnerLock(home)
    assert first.take()
    assert not second.take()
    assert second.owner() == os.getpid()
    first.release()
    assert second.take()
    second.release()


@pytest.mark.parametrize("again", [False, True])
def test_deleting_the_lock_file_lets_nobody_in(tmp_path, again):
    home = Home(tmp_path)
    first, second = OwnerLock(home), OwnerLock(home)
    assert first.take()
    (tmp_path / "supervisor.lock").unlink()
    if again:
        (tmp_path / "supervisor.lock").touch()
    assert not second.take()
    assert second.held() == os.getpid()
    first.release()
    assert second.held() is None
    assert second.take()
    second.release()


def test_a_lock_file_that_is_replaced_while_it_is_taken_is_not_the_lock(tmp_path, monkeypatch):
    lock = OwnerLock(Home(tmp_path))
    flock = homes.fcntl.flock

    def replaced(fd: int, how: int) -> None:
        flock(fd, how)
        (tmp_path / "supervisor.lock").unlink(missing_ok=True)

    monkeypatch.setattr(homes.fcntl, "flock", replaced)
    with pytest.raises(HomeUnusable, match="was replaced"):
        lock.take()
    monkeypatch.undo()
    assert lock.take()
    lock.release()


def test_a_lock_file_that_is_a_link_is_not_followed(tmp_path):
    (tmp_path / "supervisor.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(HomeUnusable, match="cannot open"):
        OwnerLock(Home(tmp_path)).take()
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_is_read_whole_or_from_its_end_and_what_is_none_is_refused_at_once(tmp_path):
    (tmp_path / "file").write_bytes(b"0123456789")
    assert (ordinary(tmp_path / "file"), ordinary(tmp_path / "file", 3)) == (b"0123456789", b"789")
    assert ordinary(tmp_path / "file", 30) == b"0123456789"
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("file")
    for name in ("fifo", "link", "none", "."):
        with pytest.raises(OSError):  # noqa: PT011 - each has an errno of its own
            ordinary(tmp_path / name)


def test_a_home_that_cannot_be_used_names_its_disk_when_that_is_full_and_the_machine_when_that_is_short(tmp_path):
    full = OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "keys"))
    assert str(cannot_use(tmp_path, full)) == (
        f"cannot use {tmp_path} as home: No space left on device ({tmp_path}/keys); "
        "make room on its disk, or choose another with --home"
    )
    short = OSError(errno.EMFILE, "Too many open files")
    assert str(cannot_use(tmp_path, short)) == (
        "this machine has no more to give: Too many open files; end something, then start again"
    )
