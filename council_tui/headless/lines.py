"""The objects that `--json` prints, as models: their JSON Schema ships with the package.

One object a line; what they share is in `line`, what tells of no fleet in `machine_lines`.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from council_tui.headless.line import Line, Part, now
from council_tui.headless.machine_lines import DoctorLine, ReportLine, ShippedLine

if TYPE_CHECKING:
    from council_tui.control.reading import CardPage, Snapshot
    from council_tui.control.rehearsal import Rehearsed
    from council_tui.control.views import EntryView, VerifyView
    from council_tui.domain.errors import PlanInvalid
    from council_tui.domain.events import Event
    from council_tui.fleet.plan import Plan

Health = Literal["alive", "late", "stalled", "offered", "orphan", "failed", "ended", "held", "waiting", "frozen"]


class FleetPart(Part):
    """The newest fleet."""

    name: str
    plan: str | None
    workdir: str
    began: str
    budget_minutes: float | None
    ended: bool
    exit: int | None


class SwarmPart(Part):
    """The microsharks that one agent asked for in one contract, and how many of them stand how."""

    name: str
    asked: int
    granted: int
    """0: refused."""
    reason: str
    """Why it is less than was asked for."""
    living: int
    waiting: int
    done: int
    expired: int
    failed: int
    blocked: int
    ttl_seconds: float | None
    """Left to the living member that has least."""


class AgentPart(Part):
    """An agent."""

    name: str
    label: str
    kind: Literal["hermes", "openfang", "openclaw", "zeroclaw", "child", "microshark"]
    parent: str | None
    health: Health
    phase: str
    card: str | None
    run: str | None
    pid: int | None
    children: int
    ttl_seconds: float | None
    """Left to live, by the clock of the wall; null where nothing bounds it, or before its acknowledgement."""
    swarms: list[SwarmPart]
    enforcement: str
    status: str
    standing: Literal["alive", "late", "stalled", "silent", "dead", "unknown"]
    """Whether it hangs, and how; `unknown`: nobody can say now."""
    reason: str
    """Why it ended badly, or why it cannot end."""


class CardPart(Part):
    """A card. `block` and `fail` say why it waits or how it failed."""

    id: str
    child: str
    title: str
    kind: str
    swarm: str
    """The swarm that it is a member of; empty for a card of its own."""
    state: Literal["backlog", "ready", "claimed", "running", "review", "done", "blocked", "failed", "archived"]
    block: str | None
    fail: str | None
    reason: str
    parent_agent: str
    agent: str | None
    run: str | None
    attempt: int
    after: list[str]
    priority: int
    findings: int
    entry: int | None


class SnapshotLine(Line):
    """The whole picture; events with a higher seq come after it."""

    type: Literal["snapshot"] = "snapshot"
    home: str
    owner: int | None
    """The pid that runs a council in this home now."""
    fleet: FleetPart | None
    agents: list[AgentPart]
    cards: list[CardPart]
    ledger: dict[str, Any]


class EventLine(Line):
    """One row of the journal."""

    type: Literal["event"] = "event"
    kind: str
    agent: str | None
    card: str | None
    run: str | None
    data: dict[str, Any]


class CardNote(Part):
    """A card that failed or that waits for a person."""

    card: str
    child: str
    kind: str
    reason: str
    attempts: int


class SummaryLine(Line):
    """The end. `exit` is null in a summary of a fleet that has not ended."""

    type: Literal["summary"] = "summary"
    exit: int | None
    cards: dict[str, int]
    failed: list[CardNote]
    waiting: list[CardNote]
    ledger: dict[str, Any]
    audit: dict[str, Any]
    budget: dict[str, Any]
    report: str | None
    reason: str


class MistakePart(Part):
    """One mistake in a file."""

    field: str
    line: int | None
    message: str


class MistakesLine(Line):
    """A plan that was refused."""

    type: Literal["mistakes"] = "mistakes"
    source: str
    mistakes: list[MistakePart]


class ChildPart(Part):
    """One child as it would be spawned."""

    id: str
    title: str
    kind: str
    parent: str
    after: list[str]
    container: str
    run: list[str]
    attempts: int
    minutes: float
    count: int | None
    """How many microsharks its parent asks for in one contract; null for a child of its own."""
    granted: int | None
    """How many Hermes would grant while no other microshark lives."""
    declared_band: str
    band: str
    hold: bool
    why: str
    enforcement: str
    refused: str
    notes: list[str]
    envelope: dict[str, Any]
    contract: dict[str, Any]


class PlanLine(Line):
    """What `--dry-run` found."""

    type: Literal["plan"] = "plan"
    name: str
    source: str
    workdir: str
    limits: dict[str, int | float]
    budget_minutes: float | None
    children: list[ChildPart]


class CardLine(Line):
    """One card in full, with its attempts and its history."""

    type: Literal["card"] = "card"
    card: dict[str, Any]
    runs: list[dict[str, Any]]
    events: list[dict[str, Any]]


class EntryLine(Line):
    """A row of the ledger; `seq` is its index."""

    type: Literal["entry"] = "entry"
    kind: str
    agent: str
    card: str
    leaf: str
    verdict: str
    detail: str


class VerdictLine(Line):
    """The answer of `council verify`."""

    type: Literal["verdict"] = "verdict"
    verdict: str
    checked: int
    first_bad: int | None
    lines: list[str]


def snapshot_line(picture: Snapshot) -> SnapshotLine:
    """A home at one moment."""
    fleet = picture.fleet
    part = None
    if fleet is not None:
        ended = fleet.ending is not None
        part = FleetPart(
            name=fleet.name,
            plan=fleet.plan,
            workdir=fleet.workdir,
            began=fleet.began,
            budget_minutes=fleet.budget_minutes,
            ended=ended,
            exit=fleet.ending["exit"] if fleet.ending else None,
        )
    agents = [
        AgentPart.model_validate({key: value for key, value in asdict(a).items() if key in AgentPart.model_fields})
        for a in picture.agents
    ]
    cards = [
        CardPart(
            child=c.label,
            after=list(c.after),
            **{k: v for k, v in asdict(c).items() if k in CardPart.model_fields and k != "after"},
        )
        for c in picture.cards
    ]
    return SnapshotLine(
        seq=picture.seq,
        at=now(),
        home=picture.home,
        owner=picture.owner,
        fleet=part,
        agents=agents,
        cards=cards,
        ledger={"size": picture.ledger.size, "root": picture.ledger.root, "verdict": picture.ledger.verdict},
    )


def event_line(event: Event) -> EventLine:
    """One row of the journal."""
    return EventLine(**event.as_json())


def summary_line(seq: int, ending: dict[str, Any]) -> SummaryLine:
    """The end of a fleet, from the fields of its ending."""
    return SummaryLine(seq=seq, at=now(), **ending)


def unfinished_line(seq: int, cards: dict[str, int], exit_code: int | None, reason: str) -> SummaryLine:
    """The summary of a fleet that has not ended, or that never began."""
    empty: dict[str, Any] = {"failed": [], "waiting": [], "ledger": {}, "audit": {}, "budget": {}, "report": None}
    return SummaryLine(seq=seq, at=now(), exit=exit_code, cards=cards, reason=reason, **empty)


def mistakes_line(error: PlanInvalid) -> MistakesLine:
    """Every mistake of a plan."""
    found = [MistakePart(field=m.field, line=m.line, message=m.message) for m in error.mistakes]
    return MistakesLine(seq=0, at=now(), source=error.source, mistakes=found)


def plan_line(plan: Plan, workdir: str, children: tuple[Rehearsed, ...]) -> PlanLine:
    """A plan that was only looked at."""
    return PlanLine(
        seq=0,
        at=now(),
        name=plan.name,
        source=plan.source,
        workdir=workdir,
        limits=asdict(plan.limits),
        budget_minutes=plan.budget_minutes,
        children=[ChildPart.model_validate(asdict(child)) for child in children],
    )


def card_line(page: CardPage) -> CardLine:
    """A card in full."""
    seq = page.events[-1].seq if page.events else 0
    events = [event.as_json() for event in page.events]
    return CardLine(seq=seq, at=now(), card=page.card, runs=list(page.runs), events=events)


def entry_line(entry: EntryView) -> EntryLine:
    """A row of the ledger."""
    values = {k: v for k, v in asdict(entry).items() if k in EntryLine.model_fields}
    return EntryLine(seq=entry.index, **{**values, "at": entry.at or now()})


def verdict_line(found: VerifyView) -> VerdictLine:
    """What a verification found."""
    return VerdictLine(
        seq=0,
        at=now(),
        verdict=found.verdict,
        checked=found.checked,
        first_bad=found.first_bad,
        lines=list(found.lines),
    )


AnyLine = Annotated[
    SnapshotLine
    | EventLine
    | SummaryLine
    | MistakesLine
    | PlanLine
    | CardLine
    | EntryLine
    | VerdictLine
    | ShippedLine
    | ReportLine
    | DoctorLine,
    Field(discriminator="type"),
]


def schema() -> dict[str, Any]:
    """One JSON Schema that every line of every command matches."""
    made = TypeAdapter[Any](AnyLine).json_schema(mode="serialization")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of council --json",
        **made,
    }
