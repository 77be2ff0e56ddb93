"""Orders to a council that another process runs: `council stop`, `freeze` and `thaw`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from council_tui.control.attach import Attached

if TYPE_CHECKING:
    from council_tui.board.home import Home


def stop(home: Home, *, at_once: bool) -> int:
    """End the council of a home in order, or at once; returns when it has ended."""

    async def work() -> str:
        door = await Attached.open(home)
        try:
            return await door.stop(at_once=at_once)
        finally:
            await door.close()

    print(asyncio.run(work()))
    return 0


def freeze(home: Home, agent: str, *, frozen: bool) -> int:
    """Freeze or thaw an agent and all below it, or everyone."""

    async def work() -> None:
        door = await Attached.open(home)
        try:
            await door.freeze(agent, frozen)
        finally:
            await door.close()

    asyncio.run(work())
    return 0
