"""The board: claims over the real socket with rivals for every card, journal appends, and replay.

The claimants are another process that speaks the child protocol; no runner is started. Reference: bare inserts.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import sys
import time
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Any

from council_tui.bench import floors
from council_tui.bench.council import folder, idle_order
from council_tui.bench.figures import milliseconds, rate, ratio
from council_tui.board.board import Board, Draft, replay
from council_tui.board.home import Home
from council_tui.domain.errors import Refused
from council_tui.domain.events import Event, EventKind
from council_tui.domain.lifecycle import Phase, RunState, Timing
from council_tui.domain.order import materialise
from council_tui.supervisor.channel import Channel
from council_tui.supervisor.seat import Seat
from council_tui.supervisor.supervisor import Supervisor

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from council_tui.domain.contract import SpawnContext
    from council_tui.domain.order import Order
    from council_tui.domain.wire import Call
    from council_tui.runner.channel import Peer

K = EventKind
IN_FLIGHT = 500
_ALONE = 1000
_CONTEXT: dict[str, Any] = {"parent_task": "t_bench", "spawn_ts": "2026-01-01T00:00:00Z"}


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Claims first, then the journal, each in a temporary home of its own."""
    with folder() as root:
        claims = asyncio.run(_claims(Home(root), options.claims))
    with folder() as root:
        return {"claims": claims, "journal": asyncio.run(_journal(root, options.events))}


def _seat(supervisor: Supervisor, number: int, order: Order, card: str) -> Seat:
    """A seat whose parent has delegated: the claim is the next thing that may happen."""
    run = f"r_bench{number}"
    context: SpawnContext = materialise(
        order, parent_id=supervisor.hermes, parent=None, task=card, slice_path=f"/nonexistent/{run}", **_CONTEXT
    )
    timing = Timing.of(context.lifecycle_policy, None)
    return Seat(
        run=run,
        agent=f"child:idle-{number}.bench",
        label=order.id,
        kind="child",
        parent=supervisor.hermes,
        card=card,
        attempt=1,
        depth=1,
        order=order,
        context=context,
        state=RunState(timing, supervisor.clock(), Phase.DELEGATED),
        token=f"token-{number}",
        beat_token="",
        slice="",
        enforcement="",
        opened=supervisor.clock(),
    )


def _started(seat: Seat) -> Draft:
    facts = {"pid": 0, "start_time": 0, "boot_id": "", "slice": "", "attempt": 1, "enforcement": ""}
    who = {"label": seat.label, "kind": seat.kind, "parent": seat.parent}
    contract = seat.context.model_dump(mode="json")
    return Draft(K.AGENT_STARTED, seat.agent, seat.card, seat.run, {**facts, **who, "contract": contract})


class _Claims:
    """Counts who won which card, from the journal."""

    def __init__(self) -> None:
        self.won: Counter[str] = Counter()

    def hear(self, event: Event) -> None:
        if event.kind is K.CLAIMED and event.card is not None:
            self.won[event.card] += 1


async def _claims(home: Home, count: int) -> dict[str, Any]:
    supervisor, claims = Supervisor(home), _Claims()
    by_token: dict[str, Seat] = {}

    async def hello(peer: Peer, params: dict[str, Any]) -> tuple[Seat, dict[str, Any]]:
        return by_token[str(params["token"])], {}

    async def operate(call: Call) -> None:
        raise Refused("attach", "this benchmark takes no orders")

    # Only the greeting is shortened: keys and delegations are another benchmark's. The rest of the path is real.
    supervisor.channel = Channel(
        home.socket,
        hello,
        supervisor.welcome.resume,
        supervisor.handshake.answer,
        operate,
        lambda seat, reason: None,
        lambda pid: True,
        lambda error: None,
        lambda reason: None,
    )
    await supervisor.open()
    try:
        seats = await _seats(supervisor, count)
        by_token.update((seat.token, seat) for seat in seats)
        supervisor.board.listen(claims.hear)
        said = await _let_claim(supervisor, seats)
        for seat in seats:
            supervisor.forget(seat)
    finally:
        await supervisor.close()
    alone, raced = said["alone"], said["among_rivals"]
    return {
        "cards": count,
        "claims_per_second": rate(alone["won"], alone["seconds"]),
        "claim_ms": alone["latency"],
        "answers_per_second_among_rivals": rate(raced["won"] + raced["refused"], raced["seconds"]),
        "won": alone["won"] + raced["won"],
        "rivals_refused": raced["refused"],
        "claimed_twice": sum(wins > 1 for wins in claims.won.values()),
        "unclaimed": count - len(claims.won),
    }


async def _seats(supervisor: Supervisor, count: int) -> list[Seat]:
    seats: list[Seat] = []
    for number in range(count):
        order = idle_order(f"idle-{number}")
        card, draft = supervisor.new_card(order, supervisor.hermes, None)
        seat = _seat(supervisor, number, order, card)
        supervisor.board.append(draft, Draft(K.CARD_READY, supervisor.hermes, card), _started(seat))
        supervisor.take_in(seat)
        seats.append(seat)
    await supervisor.board.append(Draft(K.DISPATCH_PAUSED, supervisor.hermes))
    return seats


async def _let_claim(supervisor: Supervisor, seats: list[Seat]) -> dict[str, Any]:
    """Let another process claim every card, with rivals; what it counted."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "council_tui.bench.claimants",
        str(supervisor.home.socket),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    work = json.dumps([[seat.token, seat.card] for seat in seats]).encode()
    out, _ = await process.communicate(work)
    said: dict[str, Any] = json.loads(out)
    return said


async def _journal(root: Path, events: int) -> dict[str, Any]:
    path = root / "board.db"
    board = Board(path)
    await board.open()
    alone = min(_ALONE, events // 2)
    draft = Draft(K.STATUS, "child:bench", None, None, {"text": "214 of 380 passed, nothing failed yet"})
    spent: list[float] = []
    try:
        for _ in range(alone):
            began = time.perf_counter()
            await board.append(draft)
            spent.append(time.perf_counter() - began)
        began = time.perf_counter()
        for start in range(0, events - alone, IN_FLIGHT):
            await asyncio.gather(*(board.append(draft) for _ in range(min(IN_FLIGHT, events - alone - start))))
        many = time.perf_counter() - began
    finally:
        await board.close()
    rows = [os.urandom(120) for _ in range(alone)]
    floor = [floors.commits(root, rows, synchronous="NORMAL", batch=batch) for batch in (1, IN_FLIGHT)]
    one_by_one, in_flight = rate(alone, sum(spent)), rate(events - alone, many)
    return {
        "appends_awaited_per_second": one_by_one,
        "append_ms": milliseconds(spent),
        "appends_500_in_flight_per_second": in_flight,
        "floor_inserts_one_by_one_per_second": rate(alone, floor[0]),
        "floor_inserts_500_a_commit_per_second": rate(alone, floor[1]),
        "ratio_awaited": ratio(one_by_one, rate(alone, floor[0])),
        "ratio_in_flight": ratio(in_flight, rate(alone, floor[1])),
        "replay_events_per_second": _replay(path, events),
    }


def _replay(path: Path, events: int) -> float:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        began = time.perf_counter()
        tables = replay(db)
        seconds = time.perf_counter() - began
    return rate(tables.seq, seconds) if tables.seq == events else 0.0
