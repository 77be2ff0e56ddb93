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


def make(path: str, taken: Iterable[str]) -> None:
    """Create `path` with `ctl` and `data`, all 0700. Raises `Refused` when it exists or lies in another slice."""
    given = Path(path)
    # Through links: two names of one directory are one slice.
    wanted = given.parent.resolve() / given.name
    for other in (os.path.realpath(one) for one in taken):
        if wanted.is_relative_to(other) or Path(other).is_relative_to(wanted):
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
