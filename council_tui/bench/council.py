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

    from council_tui.runner.spec import RunnerSpec
    from council_tui.supervisor.seat import Seat

K = EventKind
BODY = ("sleep", "86400")
BEAT_SECONDS = 1.0
PATIENCE = 180.0
"""Seconds for a fleet to come up; what is not there by then is reported as missing."""
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
    """When each run passed each gate, on the supervisor's clock. It must cost nothing that grows with the fleet."""

    def __init__(self) -> None:
        self.at: dict[str, dict[EventKind, float]] = defaultdict(dict)
        self.acknowledged = 0
        self.lost: Counter[str] = Counter()
        """Cards that ended, by what the journal says of them."""
        self._target = 0
        self._met = asyncio.Event()
        self._awaited: dict[tuple[str, EventKind], asyncio.Future[float]] = {}

    def hear(self, event: Event) -> None:
        """Take an event of the journal."""
        now = time.monotonic()
        if event.run is not None:
            self.at[event.run].setdefault(event.kind, now)
            waiting = self._awaited.pop((event.run, event.kind), None)
            if waiting is not None:
                waiting.set_result(now)
        if event.kind is K.ACKNOWLEDGED:
            self.acknowledged += 1
        elif event.kind in (K.CARD_FAILED, K.CARD_BLOCKED, K.CARD_DONE):
            self.lost[f"{event.kind}: {str(event.data.get('reason', ''))[:80]}"] += 1
        if self.acknowledged + self.lost.total() >= self._target:
            self._met.set()

    async def settled(self, count: int) -> None:
        """Wait until so many children were acknowledged or will never be."""
        self._target = count
        if self.acknowledged + self.lost.total() < count:
            self._met.clear()
            await self._met.wait()

    def moment(self, run: str, kind: EventKind) -> asyncio.Future[float]:
        """Resolves with the time at which this run's next event of this kind is journalled."""
        future: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._awaited[(run, kind)] = future
        return future


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

    async def all_up(self, count: int) -> None:
        """Wait until so many children were acknowledged or lost, or for as long as our patience lasts.

        Raises what the supervisor failed with.
        """
        waiting = asyncio.ensure_future(self.watch.settled(count))
        failed = self.sup.failed
        both = {waiting, *([failed] if failed is not None else [])}
        await asyncio.wait(both, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done():
            waiting.cancel()
            if failed is not None and failed.done():
                failed.result()

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
