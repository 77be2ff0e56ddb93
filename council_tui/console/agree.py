"""Before the room opens: what recovery is going to do, and whether the person wants it."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING

from council_tui.domain.text import safe

if TYPE_CHECKING:
    from council_tui.control.views import RecoveryView

MOST_LINES = 20
_asking: list[bool] = []
"""Holds something while a question stands on the terminal."""


def is_asking() -> bool:
    """Whether a question stands on the terminal, which nothing may be written over."""
    return bool(_asking)


async def agree(recovery: RecoveryView) -> bool:
    """Show the plan and ask."""
    lines = [safe(line, 200) for line in recovery.lines]
    cause = "died" if recovery.crash else "left"
    sys.stderr.write(f"The supervisor before this one {cause}. What it left here:\n")
    for line in lines[:MOST_LINES]:
        sys.stderr.write(f"  {line}\n")
    if len(lines) > MOST_LINES:
        sys.stderr.write(f"  and {len(lines) - MOST_LINES} more\n")
    sys.stderr.write("Who lives is taken back already. Do the rest? [Y/n] ")
    sys.stderr.flush()
    _asking.append(True)
    try:
        return (await _line(sys.stdin.fileno())).strip().lower() in ("", "y", "yes")
    finally:
        _asking.clear()


async def _line(fd: int) -> str:
    """The next line of a terminal, without a thread that Ctrl-C could not end."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(fd, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(fd)
    return os.read(fd, 1024).decode("utf-8", "replace") or "n"
