"""The rows of the board's tables: a card, one attempt at it, and the agent that makes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from council_tui.domain.card import CardState
from council_tui.domain.heartbeat import Standing


@dataclass
class Card:
    """A card as the board knows it. `run` is the fencing token of the attempt that owns it."""

    id: str
    title: str
    plan_id: str
    kind: str
    parent_agent: str
    parent_card: str | None
    created: str
    state: CardState = CardState.BACKLOG
    version: int = 0
    run: str | None = None
    agent: str | None = None
    claim: str | None = None
    lease_seconds: float | None = None
    """How long the claim holds after its last beat; None while nobody has claimed it."""
    attempt: int = 0
    attempts: int = 1
    limited: int = 0
    """How often it was turned away by a rate limit; such an attempt does not count."""
    after: list[str] = field(default_factory=list)
    """Plan ids of the cards that must be done first."""
    priority: int = 0
    labels: list[str] = field(default_factory=list)
    block: str | None = None
    fail: str | None = None
    reason: str = ""
    findings: int = 0
    entry: int | None = None
    moved: str = ""
    crashes: int = 0
    """Deaths of a supervisor that an agent of this card has lived through."""
    order: dict[str, Any] = field(default_factory=dict)
    result: dict[str, Any] = field(default_factory=dict)
    comments: list[dict[str, str]] = field(default_factory=list)


@dataclass
class Run:
    """One attempt at a card."""

    id: str
    card: str
    agent: str
    attempt: int
    started: str
    version: int = 0
    ended: str | None = None
    outcome: str | None = None
    """done, or a fail or block kind."""
    reason: str = ""
    exit_status: int | None = None
    signal: int | None = None
    pid: int | None = None
    start_time: int | None = None
    boot_id: str = ""
    body_pid: int | None = None
    acknowledged: str | None = None
    """When its time to live began; None before."""
    slice: str = ""
    contract: dict[str, Any] = field(default_factory=dict)


@dataclass
class Agent:
    """An agent as the board knows it; its heartbeat lives in memory only."""

    name: str
    label: str
    kind: str
    parent: str | None
    run: str
    card: str | None
    started: str
    version: int = 0
    phase: str = "starting"
    key_id: str = ""
    enforcement: str = ""
    status: str = ""
    standing: str = Standing.UNKNOWN
    """How it stands, as far as the journal tells: a `Standing`."""
    ended: bool = False
    swarms: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What it was granted of each swarm that it asked for, by the swarm's name."""


Row = Card | Run | Agent
