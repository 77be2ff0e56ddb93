"""The app as tests open it: no pulse of its own, and it remembers what it said."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from council_tui.console.app import CouncilApp

from .fake import FakeCouncil

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from textual.pilot import Pilot

    from council_tui.console.screens.room import RoomScreen


class StillApp(CouncilApp):
    """A control room whose pulse beats only when a test says so."""

    PULSE_SECONDS = 0

    def __init__(self, door: Any, **options: Any) -> None:
        super().__init__(door, **options)
        self.animation_level = "none"
        self.said: list[str] = []
        self.copied: list[str] = []

    def notify(self, message: str, **options: Any) -> None:
        assert options.get("markup") is False, "text of agents must never be markup"
        self.said.append(message)

    def copy_to_clipboard(self, text: str) -> None:
        self.copied.append(text)


async def settled(pilot: Pilot[Any]) -> None:
    """Wait until every queue is empty and every worker has ended, twice: an answer may ask again."""
    for _round in range(2):
        await pilot.pause()
        await pilot.app.workers.wait_for_complete()
    await pilot.pause()


class Stage:
    """An open control room and the hands on its keyboard."""

    def __init__(self, app: StillApp, door: FakeCouncil, pilot: Pilot[None]) -> None:
        self.app, self.door, self.pilot = app, door, pilot

    @property
    def room(self) -> RoomScreen:
        return self.app.screen_stack[0]  # type: ignore[return-value]

    @property
    def screen(self) -> Any:
        return self.app.screen

    async def settle(self) -> None:
        await settled(self.pilot)

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.pilot.press(key)
            await self.settle()

    async def beat(self) -> None:
        self.app.beat()
        await self.settle()

    async def until(self, words: str) -> None:
        """Wait until the screen says so; for what Textual itself puts off by a timer."""
        async with asyncio.timeout(10):
            while words not in self.text():
                await self.pilot.pause(0.01)

    def text(self) -> str:
        """The screen as plain text."""
        lines = self.app.screen._compositor.render_strips()
        return "\n".join(strip.text for strip in lines)


@asynccontextmanager
async def stage(
    width: int = 120, height: int = 40, door: FakeCouncil | None = None, **options: Any
) -> AsyncIterator[Stage]:
    """Open the control room over a fake council."""
    door = door or FakeCouncil()
    app = StillApp(door, **options)
    async with app.run_test(size=(width, height)) as pilot:
        opened = Stage(app, door, pilot)
        await opened.settle()
        yield opened
