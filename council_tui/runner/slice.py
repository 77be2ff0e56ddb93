"""The memory slice as its own agent sees it: the child looks before it accepts, whatever it was told."""

from __future__ import annotations

import os
from pathlib import Path

from council_tui.domain.errors import Refused

FIELD = "memory_slice.shared_memory_path"


def slice_problems(where: str) -> list[Refused]:
    """Why this agent cannot use the slice at `where`: it must be there, its own, closed to others, writable."""
    path = Path(where)
    try:
        facts = path.stat(follow_symlinks=False)
    except OSError as error:
        return [Refused(FIELD, f"{path} cannot be used: {error.strerror}")]
    if facts.st_mode & 0o077 or facts.st_uid != os.getuid():
        return [Refused(FIELD, f"{path} is open to others")]
    if not os.access(path / "data", os.W_OK):
        return [Refused(FIELD, f"{path} cannot be written")]
    return []
