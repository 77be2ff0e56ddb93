"""Sockets that lie in the file system: no part of a network namespace, so each is a way out of it (unix(7))."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PLACES = ("/run", "/var/run", "/tmp/.X11-unix", "/tmp/.ICE-unix")
"""Where programs put them: covered whole, so that what appears there later is not reachable either."""
MOST = 256
"""Of sockets elsewhere, each of which is covered by itself."""
_LISTENS = 0x10000
"""__SO_ACCEPTCON (proc_net(5))."""
_MADE = 0o444
"""The mode of a file that bubblewrap makes to put a mount on."""


class TooManySockets(OSError):
    """More sockets than can be covered: nothing is started that could reach one of them."""


def places(hidden: Iterable[str]) -> list[str]:
    """The directories to cover on this machine, links followed, none inside another or inside `hidden`."""
    named = {os.path.realpath(place) for place in (*PLACES, os.environ.get("XDG_RUNTIME_DIR", "")) if place}
    found: list[str] = []
    for place in sorted(named):
        if place != "/" and os.path.isdir(place) and not below(place, (*found, *hidden)):
            found.append(place)
    return found


def below(path: str, folders: Iterable[str]) -> bool:
    """Whether a path is one of these folders or lies in one."""
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def listening(table: Path = Path("/proc/net/unix")) -> Iterator[str]:
    """Paths at which somebody in our network namespace listens now, links in their folders followed."""
    for line in table.read_bytes().split(b"\n")[1:]:
        fields = line.split(b" ", 7)
        if len(fields) < 8 or not fields[7].startswith(b"/") or not int(fields[3], 16) & _LISTENS:
            continue
        folder, name = os.path.split(os.fsdecode(fields[7]))
        path = f"{os.path.realpath(folder)}/{name}"
        with suppress(OSError, ValueError):
            if stat.S_ISSOCK(os.lstat(path).st_mode):
                yield path


def to_cover(covered: Iterable[str], kept: Iterable[str], table: Path = Path("/proc/net/unix")) -> tuple[str, ...]:
    """Listening sockets that would still be seen: outside of what is `covered`, or inside of what is `kept` there.

    Raises `TooManySockets`.
    """
    covered, kept = tuple(covered), tuple(kept)
    found = {path for path in listening(table) if not below(path, covered) or below(path, kept)}
    if len(found) > MOST:
        raise TooManySockets(0, f"{len(found)} sockets of others would have to be hidden from it, {MOST} can be")
    return tuple(sorted(found))


def uncover(paths: Iterable[str]) -> None:
    """Remove the empty file that bubblewrap makes where a socket was gone just when it was to be covered."""
    for path in paths:
        with suppress(OSError):
            facts = os.lstat(path)
            made = stat.S_ISREG(facts.st_mode) and stat.S_IMODE(facts.st_mode) == _MADE and not facts.st_size
            if made and facts.st_uid == os.geteuid():
                os.unlink(path)
