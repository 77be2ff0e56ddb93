"""A seat: one living run as the supervisor holds it, from its first token to its last process."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from council_tui.domain.hierarchy import PARENTS
from council_tui.domain.lifecycle import Phase, RunState

if TYPE_CHECKING:
    from council_tui.domain.contract import SpawnContext
    from council_tui.domain.order import Order
    from council_tui.runner.channel import Peer
    from council_tui.supervisor.unkillable import Unkillable

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
    breached: bool = False
    """Whether its tree was stopped for passing a ceiling: it is not to go on for a grace."""
    asked: bool = False
    """Whether its runner is being asked over the stream when it last beat."""
    taken_back: bool = False
    """Whether its runner came over from another supervisor; what it asks may have been answered there."""
    pending: bool = False
    """Whether recovery has still to do something about it; until then nobody judges it."""
    leaving: bool = False
    """Whether its runner was told by an earlier supervisor that the fleet is over."""
    again: bool = False
    """Whether its end is a supervisor's and none of its work had begun: then its card's turn comes again."""
    refusal: str = ""
    """The newest refusal that its runner heard from us; empty while it heard none."""
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
    back: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once a runner that is taken back is here, or will not come any more."""
    unkillable: Unkillable | None = None
    """What a full attempt at its end has left, until it is proved dead."""
    stuck: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while its end waits for a process that will not die, its own or one below it."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the seat is settled and given up."""

    @property
    def can_parent(self) -> bool:
        """Whether it may be asked for contracts and delegations."""
        return self.peer is not None and self.state.phase in (Phase.RUNNING, Phase.RETURNED) and not self.leaving

    @property
    def expected(self) -> bool:
        """Whether its runner has still to come over from another supervisor."""
        return self.taken_back and not self.back.is_set()

    @property
    def not_begun(self) -> bool:
        """Whether it comes from another supervisor, which has not let it begin its work."""
        return self.taken_back and self.state.acknowledged is None and self.kind not in PARENTS

    def note_beat(self, late_ms: int, gap: float) -> None:
        """Keep one beat for the sparkline; `gap` is the silence before it, in seconds."""
        missed = min(BEATS_KEPT, int(gap / self.state.timing.interval + 0.5) - 1)
        self.beats.extend([MISSED] * max(0, missed))
        self.beats.append(late_ms)
        self.beat_count += 1
