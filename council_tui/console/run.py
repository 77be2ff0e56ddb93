"""Open the control room and give the terminal back, whatever ends it."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

from council_tui.console.app import CouncilApp
from council_tui.console.glyphs import needs_ascii

if TYPE_CHECKING:
    from council_tui.control.views import CouncilDoor, QuitOutcome

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


async def run_console(
    door: CouncilDoor,
    *,
    demo: bool = False,
    ascii: bool = False,  # noqa: A002 - the flag's name
    read_only: bool = False,
) -> QuitOutcome | None:
    """Run the control room to its end; what a drain ended, or None when none was asked for.

    SIGTERM and SIGHUP end it in order; without that the terminal stays in the alternate screen.
    """
    app = CouncilApp(door, demo=demo, ascii=ascii or needs_ascii(), read_only=read_only)
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, app.exit)
    try:
        await app.run_async()
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
    return app.outcome
