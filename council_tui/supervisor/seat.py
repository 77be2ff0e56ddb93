"""A seat: one living run as the supervisor holds it, from its first token to its last process."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from council_tui.domain.lifecycle import Phase, RunState

if TYPE_CHECKING:
    from council_tui.domain.contract import SpawnContext
    from council_tui.domain.order import Order
    from council_tui.runner.channel import Peer

BEATS_KEPT = 30
MISSED = -1


@dataclass
class Seat:
    """One run. The state machine's state is `state`; everything else is what carrying it out needs."""

    run: str
    agent: str
    label: str
    kind: str
    parent: str
    card: str
    attempt: int
    depth: int
    order: Order
    context: SpawnContext
    state: RunState
    token: str
    beat_token: str
    slice: str
    enforcement: str
    opened: float
    """When the spawn began, on the supervisor's clock."""
    pid: int | None = None
    start_time: int = 0
    peer: Peer | None = None
    public_key: str = ""
    result_digest: str = ""
    result: dict[str, Any] = field(default_factory=dict)
    body_status: tuple[int | None, int | None] = (None, None)
    """(exit status, signal) of the body, as far as anyone has seen it."""
    runner_status: int | None = None
    """Raw wait status of the runner, once it has ended."""
    beats: deque[int] = field(default_factory=lambda: deque(maxlen=BEATS_KEPT))
    beat_count: int = 0
    slice_used: int = 0
    status: str = ""
    status_at: float | None = None
    """When its last line of status reached the journal."""
    asked: bool = False
    """Whether its runner is being asked over the stream when it last beat."""
    refused: int = 0
    """Messages that were no messages."""
    acknowledged_after: float | None = None
    """Seconds from spawn to acknowledged."""
    born: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once it has acknowledged, or will not any more."""
    started: asyncio.Event = field(default_factory=asyncio.Event)
    exited: asyncio.Event = field(default_factory=asyncio.Event)
    clean: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the host has proved that nothing the runner guarded is left."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the seat is settled and given up."""

    @property
    def can_parent(self) -> bool:
        """Whether it may be asked for contracts and delegations."""
        return self.peer is not None and self.state.phase in (Phase.RUNNING, Phase.RETURNED)

    def note_beat(self, late_ms: int, gap: float) -> None:
        """Keep one beat for the sparkline; `gap` is the silence before it, in seconds."""
        missed = min(BEATS_KEPT, int(gap / self.state.timing.interval + 0.5) - 1)
        self.beats.extend([MISSED] * max(0, missed))
        self.beats.append(late_ms)
        self.beat_count += 1
