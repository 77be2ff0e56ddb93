"""A fleet in a temporary home, opened for a benchmark and gone after it."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections import Counter, defaultdict
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from council_tui.board.home import Home
from council_tui.domain.envelope import Envelope
from council_tui.domain.events import Event, EventKind
from council_tui.domain.order import Order
from council_tui.fleet.fleet import Fleet
from council_tui.fleet.plan import Limits, Plan
from council_tui.hosts.local import LocalHost, Started
from council_tui.supervisor.supervisor import Supervisor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from council_tui.runner.main import RunnerSpec
    from council_tui.supervisor.seat import Seat

K = EventKind
BODY = ("sleep", "86400")
BEAT_SECONDS = 1.0
PARENT = "zeroclaw"


@contextmanager
def folder() -> Iterator[Path]:
    """A temporary directory, removed whatever happens."""
    made = Path(tempfile.mkdtemp(prefix="council-bench-"))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def idle_order(ident: str) -> Order:
    """A child that does nothing but beat once a second."""
    return Order(
        id=ident,
        title=f"Idle {ident}",
        parent=PARENT,
        run=BODY,
        retries=0,
        context={
            "lifecycle_policy": {
                "parent_heartbeat_interval_seconds": BEAT_SECONDS,
                "child_timeout_seconds": 600,
                "grace_seconds": 5,
            }
        },
        envelope=Envelope(
            task_name=ident,
            task_description="Stand idle and beat, so that an idle agent can be measured.",
            time_budget_minutes=60,
            autonomy_band="AUTONOMOUS",
            tools_scope=("exec",),
            rollback_plan="No changes - read-only",
        ),
    )


class _TimedHost(LocalHost):
    """The host, with a note of when each fork was asked for."""

    def __init__(self, errors: Path) -> None:
        super().__init__(errors)
        self.asked: dict[str, float] = {}

    async def spawn(self, spec: RunnerSpec) -> Started:
        self.asked[spec.run] = time.monotonic()
        return await super().spawn(spec)


class Watch:
    """When each run passed each gate, on the supervisor's clock."""

    def __init__(self) -> None:
        self.at: dict[str, dict[EventKind, float]] = defaultdict(dict)
        self.ended: Counter[str] = Counter()
        """Runs and cards that did not live, by what the journal says of them."""
        self.changed = asyncio.Event()

    def hear(self, event: Event) -> None:
        """Take an event of the journal."""
        if event.run is not None:
            self.at[event.run].setdefault(event.kind, time.monotonic())
        if event.kind in (K.CARD_FAILED, K.CARD_BLOCKED, K.CARD_DONE):
            self.ended[f"{event.kind}: {str(event.data.get('reason', ''))[:80]}"] += 1
        self.changed.set()


class BenchFleet:
    """An open council with its offices and one office's children."""

    def __init__(self, home: Home, orders: tuple[Order, ...]) -> None:
        self.sup = Supervisor(home)
        self.host = _TimedHost(home.logs / "runners.log")
        self.sup.host = self.host
        self.sup.workdir = str(home.root)
        self.watch = Watch()
        self.orders = orders
        self._limits = Limits(max(8, len(orders)), max(8, len(orders)), 8)
        self._fleet: Fleet | None = None
        self._dispatch: asyncio.Task[None] | None = None

    @property
    def fleet(self) -> Fleet:
        """The open fleet."""
        if self._fleet is None:
            raise RuntimeError("the fleet is not open")
        return self._fleet

    async def open(self) -> None:
        """Open the home, the three offices, and a card for each order; nothing is dispatched yet."""
        await self.sup.open()
        plan = Plan("bench", "bench", self._limits, None, self.orders)
        self._fleet = Fleet(self.sup, plan)
        await self._fleet.start()
        self.sup.board.listen(self.watch.hear)

    def dispatch(self) -> None:
        """Begin to dispatch."""
        self._dispatch = asyncio.create_task(self.fleet.dispatch_forever())

    def children(self) -> list[Seat]:
        """Living seats below the offices."""
        return [seat for seat in self.sup.seats.values() if seat.kind == "child"]

    async def until_alive(self, count: int) -> None:
        """Wait until so many children have been acknowledged since opening, or have ended before that."""
        while True:
            self.watch.changed.clear()
            acknowledged = sum(K.ACKNOWLEDGED in gates for gates in self.watch.at.values())
            lost = sum(K.CARD_FAILED in g and K.ACKNOWLEDGED not in g for g in self.watch.at.values())
            refused = sum(self.watch.ended.values()) if not self.sup.seats else 0
            if acknowledged + lost + refused >= count or self._failed():
                return
            await self._next_change()

    async def _next_change(self) -> None:
        try:
            await asyncio.wait_for(self.watch.changed.wait(), 5)
        except TimeoutError:
            self.watch.changed.set()

    def _failed(self) -> bool:
        failed = self.sup.failed
        if failed is not None and failed.done():
            failed.result()
        return False

    async def close(self) -> None:
        """Reap what still lives and give everything back."""
        if self._dispatch is not None:
            self._dispatch.cancel()
            await asyncio.gather(self._dispatch, return_exceptions=True)
        await self.sup.close()


@asynccontextmanager
async def open_fleet(count: int) -> AsyncIterator[BenchFleet]:
    """A fleet of so many idle children, their cards made and none of them started."""
    with folder() as root:
        bench = BenchFleet(Home(root), tuple(idle_order(f"idle-{number}") for number in range(count)))
        try:
            await bench.open()
            yield bench
        finally:
            await bench.close()
