"""Memory slices: a directory of its own for each run, made before the process and cleared after it."""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from council_tui.domain.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FIELD = "memory_slice.shared_memory_path"


def make(path: str, taken: Iterable[str]) -> str:
    """Create `path` with `ctl` and `data`, all 0700; the path without links.

    `taken` are such answers for the living. Raises `Refused` when it exists or lies in another slice.
    """
    given = Path(path)
    try:
        # Through links: two names of one directory are one slice.
        wanted = given.parent.resolve() / given.name
    except (OSError, RuntimeError) as error:
        raise Refused(FIELD, f"{path} cannot be created: {getattr(error, 'strerror', None) or 'a loop'}") from None
    plain = str(wanted)
    # One comparison for each of the living: a birth in a large fleet must stay cheap.
    around, inner = {plain, *map(str, wanted.parents)}, f"{plain}/"
    for other in taken:
        if other in around or other.startswith(inner):
            raise Refused(FIELD, f"{path} overlaps the slice {other}")
    try:
        # From the top, one by one: what is written in a plan may be nested deeper than a call may be.
        for part in reversed(wanted.parents):
            if not part.is_dir():
                part.mkdir(mode=0o700, exist_ok=True)
        for part in (wanted, wanted / "ctl", wanted / "data"):
            part.mkdir(mode=0o700)
    except FileExistsError:
        if not os.path.lexists(wanted):
            raise Refused(FIELD, f"{path} cannot be created: Not a directory") from None
        raise Refused(FIELD, f"{path} exists already; a slice is a new directory") from None
    except OSError as error:
        raise Refused(FIELD, f"{path} cannot be created: {error.strerror}") from None
    return plain


def remove(path: str | Path) -> bool:
    """Remove whatever is at `path`, however an agent left it; whether it is gone. Never raises.

    No link is followed, permissions that were taken away are given back, and depth does not matter: it opens
    one directory at a time and lifts what is nested up to the top, so that no path grows and nothing recurses.
    """
    parent, name = os.path.split(os.path.abspath(path))
    try:
        above = os.open(parent, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        _remove_at(above, name)
        return not _exists(above, name)
    finally:
        os.close(above)


def _exists(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return True


def _enter(folder: int, name: str) -> int | None:
    """A directory opened with all rights of its owner; None when it is none, or cannot be had."""
    try:
        handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return None
    try:
        # By its handle: a name could be another one's by now.
        os.chmod(f"/proc/self/fd/{handle}", 0o700)
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=handle)
    except OSError:
        return None
    finally:
        os.close(handle)


def _remove_at(above: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=above)
    except OSError:
        top = _enter(above, name)
    else:
        return
    if top is None:
        return
    try:
        _empty(top)
    finally:
        os.close(top)
    with suppress(OSError):
        os.rmdir(name, dir_fd=above)


def _empty(top: int) -> None:
    """Remove all that can be removed from an open directory."""
    lifted = (f".lifted-{number}" for number in count())
    waiting = _listed(top)
    while waiting:
        name, is_folder = waiting.pop()
        if not is_folder:
            with suppress(OSError):
                os.unlink(name, dir_fd=top)
        elif (folder := _enter(top, name)) is not None:
            try:
                waiting += _lift(folder, top, lifted)
            finally:
                os.close(folder)
            with suppress(OSError):
                os.rmdir(name, dir_fd=top)


def _listed(folder: int) -> list[tuple[str, bool]]:
    """(name, whether it is a directory) of all that is in an open directory."""
    try:
        with os.scandir(folder) as entries:
            return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    except OSError:
        return []


def _lift(folder: int, top: int, names: Iterator[str]) -> list[tuple[str, bool]]:
    """Unlink the files of one directory and move its directories to the top; those that now stand there."""
    moved: list[tuple[str, bool]] = []
    for name, is_folder in _listed(folder):
        with suppress(OSError):
            if not is_folder:
                os.unlink(name, dir_fd=folder)
                continue
            # A directory that its owner may not write to cannot be moved either.
            inner = _enter(folder, name)
            if inner is not None:
                os.close(inner)
            there = next(free for free in names if not _exists(top, free))
            os.rename(name, there, src_dir_fd=folder, dst_dir_fd=top)
            moved.append((there, True))
    return moved
