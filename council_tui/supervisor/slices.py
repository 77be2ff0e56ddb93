"""Memory slices: a directory of its own for each run, made before the process and cleared after it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from council_tui.domain.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable

FIELD = "memory_slice.shared_memory_path"


def _inside(path: str, other: str) -> bool:
    return path == other or path.startswith(f"{other}/")


def make(path: str, taken: Iterable[str]) -> str:
    """Create `path` with `ctl` and `data`, all 0700; the path without links.

    `taken` are such answers for the living. Raises `Refused` when it exists or lies in another slice.
    """
    given = Path(path)
    # Through links: two names of one directory are one slice.
    wanted = given.parent.resolve() / given.name
    plain = str(wanted)
    for other in taken:
        if _inside(plain, other) or _inside(other, plain):
            raise Refused(FIELD, f"{path} overlaps the slice {other}")
    try:
        wanted.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for part in (wanted, wanted / "ctl", wanted / "data"):
            part.mkdir(mode=0o700)
    except FileExistsError:
        if not os.path.lexists(wanted):
            raise Refused(FIELD, f"{path} cannot be created: Not a directory") from None
        raise Refused(FIELD, f"{path} exists already; a slice is a new directory") from None
    except OSError as error:
        raise Refused(FIELD, f"{path} cannot be created: {error.strerror}") from None
    return plain


def clear(path: str) -> bool:
    """Remove a slice; False when something in it could not be removed."""

    def unlock(function: object, name: str, error: object) -> None:
        # A body may have taken its own write permission away.
        os.chmod(os.path.dirname(name), 0o700)
        if os.path.islink(name) or not os.path.isdir(name):
            os.unlink(name)
        else:
            os.chmod(name, 0o700)
            os.rmdir(name)

    try:
        shutil.rmtree(path, onerror=unlock)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return not os.path.lexists(path)
