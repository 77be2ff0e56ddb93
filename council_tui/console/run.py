"""Open the control room and give the terminal back, whatever ends it."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

from council_tui.console.app import CouncilApp
from council_tui.console.glyphs import needs_ascii

if TYPE_CHECKING:
    from council_tui.control.views import CouncilDoor, Left

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


async def run_console(
    door: CouncilDoor,
    *,
    demo: bool = False,
    ascii: bool = False,  # noqa: A002 - the flag's name
    read_only: bool = False,
    asked: asyncio.Event | None = None,
) -> Left | None:
    """Run the control room to its end; None when it was told to end, by a signal or by `asked`.

    SIGTERM and SIGHUP end it in order; without that the terminal stays in the alternate screen.
    """
    app = CouncilApp(door, demo=demo, ascii=ascii or needs_ascii(), read_only=read_only)
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, app.exit)
    waiting = loop.create_task(asked.wait()) if asked is not None else None
    if waiting is not None:
        waiting.add_done_callback(lambda done: None if done.cancelled() else app.exit())
    try:
        await app.run_async()
    finally:
        if waiting is not None:
            waiting.cancel()
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
    return app.left
