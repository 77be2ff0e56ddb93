"""A fleet in a temporary home, opened for a benchmark and gone after it."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections import Counter, defaultdict
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from council_tui.board.home import Home
from council_tui.domain.envelope import Envelope
from council_tui.domain.errors import CouncilError
from council_tui.domain.events import Event, EventKind
from council_tui.domain.order import Order
from council_tui.fleet.fleet import Fleet
from council_tui.fleet.plan import Limits, Plan
from council_tui.supervisor.supervisor import Supervisor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Iterator

    from council_tui.hosts.local import Started
    from council_tui.runner.spec import RunnerSpec
    from council_tui.supervisor.limits import Tier
    from council_tui.supervisor.seat import Seat

K = EventKind
Value = TypeVar("Value")
BODY = ("sleep", "86400")
BEAT_SECONDS = 1.0
IDLE_BEAT_SECONDS = 30.0
"""What a contract that says nothing of beats asks for."""
GRACE_SECONDS = 5.0
PATIENCE = 180.0
"""Seconds for a fleet to come up; what is not there by then is reported as missing."""
UNLIMITED = 1_000_000
PARENT = "zeroclaw"
LOOK_SECONDS = 0.02
"""Between two looks at what sends no event."""


@contextmanager
def folder() -> Iterator[Path]:
    """A temporary directory, removed whatever happens."""
    made = Path(tempfile.mkdtemp(prefix="council-bench-"))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def idle_order(
    ident: str, *, interval: float = BEAT_SECONDS, grace: float = GRACE_SECONDS, body: tuple[str, ...] = BODY
) -> Order:
    """A child that does nothing but beat."""
    return Order(
        id=ident,
        title=f"Idle {ident}",
        parent=PARENT,
        run=body,
        retries=0,
        context={
            "lifecycle_policy": {
                "parent_heartbeat_interval_seconds": interval,
                "child_timeout_seconds": 600,
                "grace_seconds": grace,
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


async def within(what: str, coming: Awaitable[Value]) -> Value:
    """Wait for what has to come. Raises `CouncilError` when it does not: a figure of it would be made up."""
    try:
        async with asyncio.timeout(PATIENCE):
            return await coming
    except TimeoutError:
        raise CouncilError(f"{what} did not come within {PATIENCE:g} s") from None


class BenchFleet:
    """An open council with its offices and one office's children."""

    def __init__(self, home: Home, orders: tuple[Order, ...], tier: Tier) -> None:
        self.sup = Supervisor(home)
        self._tier = tier
        self.asked: dict[str, float] = {}
        """When the fork of each run was asked for."""
        self._spawn = self.sup.host.spawn
        self.sup.host.spawn = self._timed_spawn  # type: ignore[method-assign]
        self.sup.workdir = str(home.root)
        self.watch = Watch()
        self.orders = orders
        # One more than there are: some are only sent for once the fleet lives. How fast they may come is policy,
        # and here it is to be seen how fast they can.
        most = len(orders) + 1
        self._limits = Limits(most, most, 1, births_per_minute=UNLIMITED, births_per_parent=UNLIMITED)
        self._fleet: Fleet | None = None
        self._dispatch: asyncio.Task[None] | None = None

    async def _timed_spawn(self, spec: RunnerSpec) -> Started:
        self.asked[spec.run] = time.monotonic()
        return await self._spawn(spec)

    @property
    def fleet(self) -> Fleet:
        """The open fleet."""
        if self._fleet is None:
            raise RuntimeError("the fleet is not open")
        return self._fleet

    async def open(self) -> None:
        """Open the home, the three offices, and a card for each order; nothing is dispatched yet."""
        await self.sup.open()
        self.sup.tier = self._tier
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

    async def send_for(self, order: Order) -> Seat:
        """One more child, through its office, once it has acknowledged."""
        card = await self.fleet.submit(order)
        seat = await within(f"{order.id}'s run", self._seat_of(card))
        await within(f"the acknowledgement of {order.id}", seat.born.wait())
        return seat

    async def _seat_of(self, card: str) -> Seat:
        while True:
            for seat in self.sup.seats.values():
                if seat.card == card:
                    return seat
            await asyncio.sleep(LOOK_SECONDS)

    async def close(self) -> None:
        """Reap what still lives and give everything back."""
        if self._dispatch is not None:
            self._dispatch.cancel()
            await asyncio.gather(self._dispatch, return_exceptions=True)
        await self.sup.close()


def idle_orders(count: int, interval: float = BEAT_SECONDS) -> tuple[Order, ...]:
    """So many children that do nothing but beat."""
    return tuple(idle_order(f"idle-{number}", interval=interval) for number in range(count))


@asynccontextmanager
async def open_fleet(orders: tuple[Order, ...], tier: Tier) -> AsyncIterator[BenchFleet]:
    """A fleet of these children, their cards made and none of them started."""
    with folder() as root:
        bench = BenchFleet(Home(root), orders, tier)
        try:
            await bench.open()
            yield bench
        finally:
            await bench.close()
