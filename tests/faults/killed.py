"""A supervisor in another process, for tests that kill it."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from supervisor.stage import WITHIN

OWNER = Path(__file__).with_name("owner.py")


class Owner:
    """The other process and what it has told. `children`: those of its plan, how many, or those that `owner.py` has."""

    def __init__(self, home: Path, *children: dict[str, Any], count: int = 0) -> None:
        self.home = home
        self.children = count or children
        self.told: list[list[Any]] = []

    async def __aenter__(self) -> Owner:
        more = [json.dumps(self.children)] if self.children else []
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, str(OWNER), str(self.home), *more, stdout=asyncio.subprocess.PIPE, limit=10**7
        )
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.kill()

    async def kill(self) -> None:
        """SIGKILL, in the middle of whatever it does."""
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()

    async def wait(self, kind: str, who: str = "", count: int = 1, within: float = WITHIN) -> list[Any]:
        """Read on until so many events of this kind were told of an agent whose name holds `who`; the last one."""
        async with asyncio.timeout(within):
            while len(found := [one for one in self.told if one[0] == kind and who in one[1]]) < count:
                assert self.process.stdout is not None
                line = await self.process.stdout.readline()
                assert line, f"it ended before {kind}"
                self.told.append(json.loads(line))
        return found[-1]

    async def until_all_work(self) -> None:
        """Until every body of `owner.py`'s own plan runs."""
        await self.wait("nursery")
        await self.wait("body_started", count=4)
        self.nursery = next(one[3]["pid"] for one in self.told if one[0] == "nursery")
        self.runners = [one[3]["pid"] for one in self.told if one[0] == "agent_started"]
