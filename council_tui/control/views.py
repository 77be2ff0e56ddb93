"""Frozen pictures of a council, as front ends pull them; the same picture travels to an attached console."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from council_tui.domain.errors import CouncilError

Health = Literal[
    "alive", "late", "stalled", "offered", "orphan", "failed", "ended", "held", "waiting", "frozen", "unknown"
]
"""One word per state of an agent; glyphs and colours only repeat it. `unknown`: the council cannot be read."""


@dataclass(frozen=True)
class SwarmView:
    """The microsharks that one parent asked for in one contract."""

    name: str
    asked: int
    granted: int
    """0: refused."""
    reason: str = ""
    """Why it is less than was asked for; safe to show."""
    living: int = 0
    waiting: int = 0
    """Still to come."""
    done: int = 0
    expired: int = 0
    failed: int = 0
    """Ended badly in any other way."""
    blocked: int = 0
    ttl_seconds: float | None = None
    """Left to the living member that has least; None where that is not known."""


@dataclass(frozen=True)
class AgentView:
    """A row of the tree."""

    name: str
    """The ledger's name, e.g. `child:unit-tests.7kq2m9xzw4`; the key of every selection."""
    label: str
    kind: str
    parent: str | None
    health: Health
    phase: str
    """The handshake's phase or what ended it, in a word or three."""
    card: str | None = None
    run: str | None = None
    pid: int | None = None
    children: int = 0
    age_seconds: float | None = None
    """Since the last beat; None before the first."""
    ttl_seconds: float | None = None
    """Left to live; None where there is no limit."""
    deadline_seconds: float | None = None
    """Left to acknowledge; None once acknowledged."""
    beats: tuple[int, ...] = ()
    """The last 30 beats, oldest first: how late each was in milliseconds; -1 for one that never came."""
    beat_count: int = 0
    beat_seconds: float = 0.0
    slice_used: int = 0
    slice_limit: int = 0
    enforcement: str = ""
    status: str = ""
    """What the agent last said of itself; already safe to show."""
    started_seconds: float = 0.0
    """How long it has lived so far; `lived_seconds` once it has ended."""
    ended: bool = False
    """Nothing of it lives any more, whatever its health says of how that came."""
    lived_seconds: float | None = None
    """How long it lived, as far as the board knows."""
    fail: str = ""
    """What ended its run badly: a fail or block kind."""
    reason: str = ""
    """Why, or why it cannot end; safe to show."""
    standing: str = "unknown"
    """Whether it hangs, and how: a `Standing`."""
    idle_seconds: float | None = None
    """Since it last got on with its work; None where nobody can tell."""

    @property
    def counted_seconds(self) -> float | None:
        """What its row counts: down to its deadline, since its last work where it stalls, else since its last beat."""
        if self.health == "offered":
            return self.deadline_seconds
        return self.idle_seconds if self.health == "stalled" else self.age_seconds

    swarms: tuple[SwarmView, ...] = ()
    """What it asked for as a parent, each many microsharks in one contract."""


@dataclass(frozen=True)
class CardView:
    """A card on the board."""

    id: str
    title: str
    state: str
    """A `CardState`."""
    label: str
    """What the plan calls the child."""
    parent_agent: str
    agent: str | None = None
    run: str | None = None
    attempt: int = 0
    block: str | None = None
    fail: str | None = None
    reason: str = ""
    after: tuple[str, ...] = ()
    kind: str = "child"
    swarm: str = ""
    """The swarm that it is a member of; empty for a card of its own."""
    priority: int = 0
    findings: int = 0
    entry: int | None = None
    """Index of its signed report in the ledger, once there is one."""
    age_seconds: float = 0.0
    """Since its last move."""


@dataclass(frozen=True)
class EventView:
    """A line of the event log; `text` is safe to show."""

    seq: int
    at: str
    kind: str
    tone: Literal["plain", "good", "warn", "bad"]
    text: str
    agent: str | None = None
    card: str | None = None


@dataclass(frozen=True)
class LedgerView:
    """The ledger's head as the screens show it."""

    size: int = 0
    root: str = ""
    verdict: str = "UNKNOWN"
    """Of the last verification, or UNKNOWN."""
    verified: int = 0
    """Entries covered by that verification."""


@dataclass(frozen=True)
class EntryView:
    """A row of the ledger screen; all text is safe to show."""

    index: int
    kind: str
    agent: str
    card: str
    at: str
    leaf: str
    """Hex leaf hash."""
    verdict: str = ""
    """Empty until verified."""
    detail: str = ""


@dataclass(frozen=True)
class RoomView:
    """Everything the control room shows at one moment."""

    version: int
    """Rises with every change; equal versions are equal pictures but for the clocks."""
    fleet: str
    clock: str
    """HH:MM:SSZ"""
    agents: tuple[AgentView, ...]
    cards: tuple[CardView, ...]
    events: tuple[EventView, ...]
    """The newest, oldest first, at most 500."""
    ledger: LedgerView
    paused: bool = False
    attached: bool = False
    """True when another process owns the supervisor."""
    waiting: int = 0
    """What only a person can end."""
    note: str = ""
    """One line above the footer; empty for none."""
    failed: int = 0
    """Cards of this fleet that failed."""
    holding: str = ""
    """Why no agent is born now though a card waits for one; empty while they are."""


@dataclass(frozen=True)
class ProcessView:
    """One process of an agent's tree."""

    pid: int
    ppid: int
    state: str
    command: str
    """Safe to show."""


@dataclass(frozen=True)
class Detail:
    """One agent or card, in full: pairs to show, its history and the tail of its log."""

    title: str
    facts: tuple[tuple[str, str], ...]
    """(name, value) in groups; an empty name starts a new group with the value as heading."""
    history: tuple[str, ...] = ()
    log: tuple[str, ...] = ()
    processes: tuple[ProcessView, ...] = ()


@dataclass(frozen=True)
class ReapPreview:
    """What a reap would end: shown before anyone confirms."""

    agent: str
    label: str
    health: str
    processes: tuple[ProcessView, ...]
    descendants: tuple[str, ...]
    """Labels of agents below it that end with it, leaves first."""
    note: str = ""


@dataclass(frozen=True)
class SpawnDraft:
    """What a person filled in; everything left out is derived by the parent's office."""

    parent: str
    """An office: openfang, openclaw or zeroclaw."""
    label: str
    run: tuple[str, ...]
    """argv of the command."""
    description: str = ""
    mbti_type: str = "ISTJ"
    core_capabilities: tuple[str, ...] = ()
    forbidden_capabilities: tuple[str, ...] = ()
    memory_limit_mb: int = 64
    heartbeat_seconds: float = 5
    timeout_seconds: float = 60
    time_budget_minutes: float = 10
    rollback_plan: str = "No changes - read-only"
    enforcement: str = "declared-only"
    """`required` refuses what this machine cannot hold a program to; `declared-only` says so instead."""


@dataclass(frozen=True)
class DraftCheck:
    """A draft held against the rules: the contract as YAML, and every rule it breaks (field, rule)."""

    contract: str
    problems: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class VerifyView:
    """The answer of a verification."""

    verdict: str
    checked: int
    first_bad: int | None = None
    lines: tuple[str, ...] = ()
    """What was checked and how it stands, one line each; safe to show."""


@dataclass(frozen=True)
class QuitOutcome:
    """What a drain ended."""

    ended: int
    left: int
    lines: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class Left:
    """How a person left the room."""

    outcome: QuitOutcome
    """What was ended on the way out."""
    background: bool = False
    """Whether the fleet is to go on in the background."""


@dataclass(frozen=True)
class RecoveryView:
    """What a new supervisor is going to do about the runs of the one before it."""

    crash: bool
    """Whether that one died, instead of leaving."""
    lines: tuple[str, ...]
    """One for each run; not made safe to show."""


class CouncilGone(CouncilError):
    """The council behind a door has ended; nothing more will come through it."""


class CouncilDoor(Protocol):
    """What a front end may ask of a council, whether it owns the supervisor or is attached to one.

    Every call answers fast or raises `CouncilError` with one sentence; `CouncilGone` when it has ended.
    """

    async def room(self) -> RoomView:
        """The present picture."""

    async def detail(self, ident: str) -> Detail:
        """An agent (by name) or a card (by id) in full."""

    async def check_draft(self, draft: SpawnDraft) -> DraftCheck:
        """Hold a draft against the rules; starts nothing."""

    async def spawn(self, draft: SpawnDraft) -> str:
        """Send the contract through its office; the card's id."""

    async def preview_reap(self, agent: str) -> ReapPreview:
        """What a reap of this agent would end."""

    async def reap(self, agent: str) -> None:
        """Reap an agent and all below it; returns once it has begun."""

    async def freeze(self, agent: str, frozen: bool) -> None:
        """Stop an agent and all below it where they stand, or let them go on; their clocks stand still meanwhile."""

    async def pause(self, paused: bool) -> None:
        """Hold back or go on with dispatch; running agents go on either way."""

    async def entries(self, start: int = 0, limit: int = 500) -> tuple[EntryView, ...]:
        """Rows of the ledger from an index on."""

    async def verify(self, index: int | None = None) -> VerifyView:
        """Verify one entry, or the whole ledger."""

    async def drain(self) -> QuitOutcome:
        """Reap all, in order, and say what ended; nothing new starts afterwards."""

    async def stop_at_once(self) -> QuitOutcome:
        """The emergency stop: end all without grace."""

    async def living(self) -> int:
        """Agents below the offices that still live."""


def as_plain(view: Any) -> Any:  # noqa: ANN401 - any frozen view
    """A view as plain JSON values."""
    from pydantic import TypeAdapter

    return TypeAdapter(type(view)).dump_python(view, mode="json")
