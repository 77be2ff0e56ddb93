"""What the tests of the supervisor share."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def sleepers() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts programs that are nobody's: `sleep 600`, or what it is given, with these variables."""
    found: list[subprocess.Popen[bytes]] = []

    def start(*argv: str, **env: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(argv or ("sleep", "600"), env={"PATH": os.environ["PATH"], **env})
        found.append(process)
        return process

    yield start
    for process in found:
        process.kill()
        process.wait()
