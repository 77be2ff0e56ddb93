"""Python programs in namespaces of their own: other pids, another host name, a small disk. The machine stays."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).resolve().parent.parent
WITHIN = 40.0
PIDS = ("--pid", "--fork", "--mount-proc")


def _unshare(flags: tuple[str, ...]) -> list[str]:
    mapped = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    return ["unshare", *mapped, *flags]


@functools.cache
def _why_not(flags: tuple[str, ...], first: str) -> str:
    try:
        tried = subprocess.run(
            [*_unshare(flags), "sh", "-c", first or ":"], capture_output=True, text=True, check=False
        )
    except OSError as error:
        return f"unshare cannot be run: {error}"
    return tried.stderr.strip() or ("" if tried.returncode == 0 else f"exit status {tried.returncode}")


def inside(flags: tuple[str, ...], code: str, *arguments: str, first: str = "", wrapper: tuple[str, ...] = ()) -> Any:
    """Run a program inside, after `first`, a line for the shell there; the JSON that it printed last.

    `wrapper` is an argv before Python's own. Skips the test where this machine makes no such namespaces.
    """
    if why := _why_not(flags, first):
        pytest.skip(f"no namespaces here: {why}")
    environment = {**os.environ, "PYTHONPATH": f"{TESTS.parent}{os.pathsep}{TESTS}"}
    done = subprocess.run(
        [
            *_unshare(flags),
            "sh",
            "-c",
            f'{first or ":"} && exec "$0" "$@"',
            *wrapper,
            sys.executable,
            "-c",
            code,
            *arguments,
        ],
        env=environment,
        capture_output=True,
        text=True,
        timeout=WITHIN,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
