"""The console of the benchmark, in a process of its own: a terminal on one side, a seeded council on the other."""

from __future__ import annotations

import asyncio
import os
import sys
import time

from council_tui.bench.pictures import cycle, door


def main(agents: int, cards: int, seed: int, report: int) -> None:
    """Show the council until the terminal ends us. `report`: a descriptor that is told how long building took."""
    began = time.monotonic()
    pictures = cycle(agents, cards, seed)
    os.write(report, f"{time.monotonic() - began:.6f}\n".encode())
    os.close(report)
    from council_tui.console.run import run_console

    asyncio.run(run_console(door(pictures)))


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:5]))
