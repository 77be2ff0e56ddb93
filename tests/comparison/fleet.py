"""Our side of the comparison, in a process of its own: a council whose children are plain programs.

There is no way to start a program here without the whole handshake, so that is what is compared: a contract, a
card, a guardian with a key of its own, a claim, two signed ledger entries and a heartbeat for each child. A
child that ends is replaced at once by a new card from its office. What is policy and no speed is left out: the
pause before a retry, and the brake on a command that crashes again and again, for each command here is another
one (`sleep` adds up its arguments).
"""

from __future__ import annotations

import asyncio
import itertools
import signal
import sys
from typing import TYPE_CHECKING

from council_tui.bench.council import idle_order, open_fleet
from council_tui.domain.events import EventKind
from council_tui.supervisor import limits

if TYPE_CHECKING:
    from council_tui.domain.events import Event
    from council_tui.domain.order import Order


def _order(number: int, argv: tuple[str, ...]) -> Order:
    return idle_order(f"plain-{number}", body=(*argv, f"0.{number:09}"))


async def main(tier: str, count: int, argv: tuple[str, ...]) -> None:
    """Keep so many children until SIGTERM, then end them all in order."""
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    wanted = limits.find_tier() if tier == "strong" else limits.portable("the comparison asks for it")
    numbers = itertools.count()
    orders = tuple(_order(next(numbers), argv) for _ in range(count))
    async with open_fleet(orders, wanted) as bench:
        sending = set[asyncio.Task[str]]()

        def hear(event: Event) -> None:
            if event.kind is EventKind.CARD_FAILED and not stopped.is_set():
                task = asyncio.ensure_future(bench.fleet.submit(_order(next(numbers), argv)))
                sending.add(task)
                task.add_done_callback(sending.discard)

        bench.sup.board.listen(hear)
        bench.dispatch()
        await stopped.wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), tuple(sys.argv[3:])))
