"""The floor: the least that starts plain children, sees them end and replaces them (asyncio and pidfd_open(2))."""

from __future__ import annotations

import asyncio
import os
import sys
from subprocess import DEVNULL, Popen


def keep(loop: asyncio.AbstractEventLoop, argv: list[str]) -> None:
    """Start one child, and another one whenever it ends."""
    child = Popen(argv, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL)
    watched = os.pidfd_open(child.pid)

    def ended() -> None:
        loop.remove_reader(watched)
        os.close(watched)
        child.wait()
        keep(loop, argv)

    loop.add_reader(watched, ended)


async def main(count: int, argv: list[str]) -> None:
    """Keep so many children for ever."""
    for _ in range(count):
        keep(asyncio.get_running_loop(), argv)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2:]))
