"""The control room on a real terminal: key to paint, first paint, CPU and memory; and what a tick lays out.

Reference: a Textual app with one line, on the same terminal, in the same run.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

from council_tui.bench.bare import FIRST
from council_tui.bench.figures import milliseconds, ratio
from council_tui.bench.pictures import cycle, door
from council_tui.bench.terminal import HEIGHT, WIDTH, NothingPainted, Terminal
from council_tui.console.app import CouncilApp
from council_tui.console.screens.room import RoomScreen
from council_tui.domain.hierarchy import KINDS, PARENTS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

DOWN, UP = b"j", b"k"
_ROWS = 20
"""The cursor walks up and down over so many rows, so that no key scrolls."""
_SETTLE = 1.0
"""Seconds after the first paint, in which the console settles."""
_PAUSES = (0.05, 0.35)
"""Seconds between two keys, anywhere in this range: keys must not keep step with the pulse."""
_TICKS = 8
_BACKGROUND = rb"48;2;(\d+;\d+;\d+)m"


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """The room, the reference, and a count of reflows."""
    rows = _labels(options.agents)
    with closing(Terminal("council_tui.bench.room", (options.agents, options.cards, options.seed))) as terminal:
        room = _room(terminal, rows, options)
    with closing(Terminal("council_tui.bench.bare", ())) as terminal:
        bare = _bare(terminal, max(2, options.keys // 4), options.seed)
    return {
        "agents": options.agents,
        "cards": options.cards,
        "terminal": f"{WIDTH}x{HEIGHT}",
        "room": room,
        "reference_one_line_app": bare,
        "ratio_key_to_paint_p50": ratio(room["key_to_paint_ms"]["p50"], bare["key_to_paint_ms"]["p50"]),
        "ratio_first_paint": ratio(room["first_paint_seconds"], bare["first_paint_seconds"]),
        "ticks": asyncio.run(_ticks(options.agents, options.cards, options.seed)),
    }


def _labels(agents: int) -> list[str]:
    """What the first rows of the hierarchy are called, from the top."""
    first = KINDS[PARENTS[0]].title
    below = [f"agent-{number:05d}" for number in range(0, agents, len(PARENTS))]
    return [KINDS["hermes"].title, first, *below][: _ROWS + 1]


def _paints(label: str, colour: bytes) -> Callable[[bytes], bool]:
    wanted = b"48;2;" + colour + b"m" + label.encode()
    return lambda output: wanted in output


def _cursor_colour(terminal: Terminal, rows: list[str]) -> bytes:
    """The background of the cursor's row: the one that a row takes on when the cursor comes to it."""
    there = re.compile(_BACKGROUND + rows[1].encode())
    left = re.compile(_BACKGROUND + rows[0].encode())
    _, output = terminal.press(DOWN, lambda got: bool(there.search(got) and left.search(got)))
    here, before = there.findall(output)[-1], left.findall(output)[-1]
    if here == before:
        raise NothingPainted("the cursor of the hierarchy cannot be told from its rows")
    return bytes(here)


def _room(terminal: Terminal, rows: list[str], options: argparse.Namespace) -> dict[str, Any]:
    rng, keys = random.Random(options.seed), options.keys
    preparation = terminal.preparation()
    moment, _ = terminal.until(lambda got: rows[-1].encode() in got)
    first_paint = moment - terminal.began - preparation
    terminal.watch(_SETTLE)
    colour = _cursor_colour(terminal, rows)
    living = _living(terminal, options.watch)
    at, step, spent = 1, 1, []
    cpu, began = terminal.cpu(), time.monotonic()
    for _ in range(keys):
        terminal.watch(rng.uniform(*_PAUSES))
        step = -1 if at == len(rows) - 1 else 1 if at == 0 else step
        at += step
        spent.append(terminal.press(DOWN if step > 0 else UP, _paints(rows[at], colour))[0])
    elapsed = time.monotonic() - began
    own = terminal.cpu() - cpu - elapsed * living["cpu_percent"] / 100
    return {
        "first_paint_seconds": round(first_paint, 3),
        "key_to_paint_ms": milliseconds(spent, 50, 95, 99),
        "cpu_ms_per_key": round(1000 * own / keys, 2),
        **living,
        "rss_mb": round(terminal.facts.memory_info().rss / 2**20, 1),
    }


def _living(terminal: Terminal, seconds: float) -> dict[str, float]:
    """CPU and output while the council lives and nobody presses a key."""
    cpu, written, began = terminal.cpu(), terminal.bytes_out, time.monotonic()
    terminal.watch(seconds)
    elapsed = time.monotonic() - began
    return {
        "cpu_percent": round(100 * (terminal.cpu() - cpu) / elapsed, 2),
        "output_kib_per_second": round((terminal.bytes_out - written) / 1024 / elapsed, 1),
    }


def _bare(terminal: Terminal, keys: int, seed: int) -> dict[str, Any]:
    rng = random.Random(seed)
    preparation = terminal.preparation()
    moment, _ = terminal.until(lambda got: FIRST.encode() in got)
    first_paint = moment - terminal.began - preparation
    terminal.watch(0.5)
    spent: list[float] = []
    for number in range(1, keys + 1):
        terminal.watch(rng.uniform(*_PAUSES))
        spent.append(terminal.press(DOWN, lambda got, number=number: f"{number};".encode() in got)[0])  # type: ignore[misc]
    return {
        "first_paint_seconds": round(first_paint, 3),
        "key_to_paint_ms": milliseconds(spent, 50, 95, 99),
        "rss_mb": round(terminal.facts.memory_info().rss / 2**20, 1),
    }


class _CountedRoom(RoomScreen):
    """The room, with a count of its layouts."""

    reflows = 0

    def _refresh_layout(self, size: Any = None, scroll: bool = False) -> None:  # noqa: ANN401 - Textual's own
        self.reflows += 1
        super()._refresh_layout(size, scroll)


class _StillApp(CouncilApp):
    """The app without a pulse of its own: the benchmark beats."""

    PULSE_SECONDS = 0

    def get_default_screen(self) -> _CountedRoom:
        """The counted room."""
        return _CountedRoom()


async def _ticks(agents: int, cards: int, seed: int) -> dict[str, Any]:
    """Layouts and CPU of one pulse with a new picture, in a screen of no terminal."""
    app = _StillApp(door(cycle(agents, cards, seed)))
    async with app.run_test(size=(WIDTH, HEIGHT)) as pilot:
        await pilot.pause()
        room = app.screen
        if not isinstance(room, _CountedRoom):
            raise NothingPainted("the room is not the first screen")
        app.beat()
        await app.workers.wait_for_complete()
        await pilot.pause()
        before, cpu = room.reflows, time.process_time()
        for _ in range(_TICKS):
            app.beat()
            await app.workers.wait_for_complete()
            await pilot.pause()
        spent = time.process_time() - cpu
        return {
            "reflows_per_tick": (room.reflows - before) / _TICKS,
            "cpu_ms_per_tick": round(1000 * spent / _TICKS, 2),
        }
