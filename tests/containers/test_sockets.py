"""Sockets in the file system: found where somebody listens, covered one by one, and nothing else is touched."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from council_tui.containers import sockets
from council_tui.containers.sockets import TooManySockets, below, listening, places, to_cover, uncover

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HEAD = "Num       RefCount Protocol Flags    Type St Inode Path\n"


def table(tmp_path: Path, *lines: str) -> Path:
    """A /proc/net/unix with these lines."""
    file = tmp_path / "unix"
    file.write_text(HEAD + "".join(f"{line}\n" for line in lines))
    return file


def line(path: str, flags: str = "00010000") -> str:
    """A line of a socket of the kind SOCK_STREAM."""
    return f"0000000000000000: 00000002 00000000 {flags} 0001 01 12345 {path}"


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[Path]:
    """A socket on which somebody listens, with a blank and a letter beyond ASCII in its path."""
    path = tmp_path / "a sockét"
    with socket.socket(socket.AF_UNIX) as link:
        link.bind(str(path))
        link.listen()
        yield path


def test_a_listening_socket_is_found_by_its_path_and_a_link_to_its_folder_is_followed(listener, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    assert set(listening()) >= {str(listener)}
    assert list(listening(table(tmp_path, line(str(tmp_path / "link" / listener.name))))) == [str(listener)]


def test_what_only_sends_is_abstract_or_is_no_socket_any_more_is_not_one(listener, tmp_path):
    (tmp_path / "file").write_text("")
    lines = (
        line(str(listener), flags="00000000"),
        line("@abstract"),
        line("relative"),
        line(str(tmp_path / "file")),
        line(str(tmp_path / "gone")),
        "a path with a line break has a second line",
    )
    assert list(listening(table(tmp_path, *lines))) == []


def test_sockets_in_covered_folders_are_covered_with_them_unless_the_folder_is_kept(listener, tmp_path):
    lines = table(tmp_path, line(str(listener)))
    assert to_cover((), (), lines) == (str(listener),)
    assert to_cover((str(tmp_path),), ("/elsewhere",), lines) == ()
    assert to_cover((str(tmp_path.parent),), (str(tmp_path),), lines) == (str(listener),)


def test_more_sockets_than_can_be_covered_keep_a_program_from_starting(listener, tmp_path, monkeypatch):
    monkeypatch.setattr(sockets, "MOST", 0)
    with pytest.raises(TooManySockets, match="1 sockets of others would have to be hidden"):
        to_cover((), (), table(tmp_path, line(str(listener))))


def test_the_usual_places_are_taken_once_and_only_where_they_are(tmp_path, monkeypatch):
    for name in ("run/user", "hidden/inside", "own"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "var-run").symlink_to(tmp_path / "run")
    named = ("run", "run/user", "var-run", "hidden/inside", "nowhere")
    monkeypatch.setattr(sockets, "PLACES", tuple(str(tmp_path / name) for name in named))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "own"))
    assert places([str(tmp_path / "hidden")]) == [str(tmp_path / "own"), str(tmp_path / "run")]
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/")
    assert places([str(tmp_path / "hidden")]) == [str(tmp_path / "run")]


def test_a_path_is_below_a_folder_by_whole_names():
    assert below("/run", ["/run"])
    assert below("/run/x", ["/elsewhere", "/run"])
    assert not below("/running", ["/run"])


def test_only_the_empty_file_that_stands_in_for_a_socket_is_removed_afterwards(listener, tmp_path):
    made, full, own = tmp_path / "made", tmp_path / "full", tmp_path / "own"
    for path, text, mode in ((made, "", 0o444), (full, "x", 0o444), (own, "", 0o644)):
        path.write_text(text)
        path.chmod(mode)
    uncover(map(str, (made, full, own, listener, tmp_path / "gone")))
    assert sorted(os.listdir(tmp_path)) == ["a sockét", "full", "own"]
