"""A seeded fleet for tests and pictures: 24 agents, 30 cards, one late, one orphan held."""

from __future__ import annotations

import random
from dataclasses import replace

from council_tui.control.views import (
    AgentView,
    CardView,
    EntryView,
    EventView,
    LedgerView,
    RoomView,
)

MIB = 1024 * 1024

# (label, parent, health, card state, age, title)
_CHILDREN = (
    ("policy-review", "openfang", "alive", "running", 9, "Read the policy for gaps"),
    ("secrets-scan", "openfang", "ended", "done", 0, "Look for secrets in the tree"),
    ("campaign-visual", "openclaw", "alive", "running", 4, "Produce the campaign visual"),
    ("editor", "openclaw", "offered", "claimed", None, "Edit the launch copy"),
    ("hero-image", "openclaw", "ended", "done", 0, "Draw the hero image"),
    ("price-table", "openclaw", "alive", "review", 2, "Check the price table"),
    ("build", "zeroclaw", "alive", "running", 2, "Build the base image"),
    ("unit-tests", "zeroclaw", "alive", "running", 1, "Run the unit tests"),
    ("frame-swarm", "zeroclaw", "alive", "running", 5, "Render the frames"),
    ("db-migration", "zeroclaw", "held", "running", 94, "Migrate the database"),
    ("licence-list", "zeroclaw", "ended", "done", 0, "List licences of dependencies"),
    ("link-check", "zeroclaw", "failed", "failed", 0, "Find broken links"),
    ("size-facts", "zeroclaw", "ended", "done", 0, "Measure large files"),
    ("log-indexer", "zeroclaw", "alive", "running", 3, "Index the logs"),
)
_SHARKS = (("shark-01", "alive", 1), ("shark-02", "late", 7), ("shark-03", "alive", 3), ("shark-04", "alive", 0))
_WAITING = (
    ("write-brief", "ready", None, "Write the brief", ()),
    ("rotate-key", "ready", None, "Rotate the signing key", ()),
    ("lint-docs", "ready", None, "Lint the documents", ()),
    ("release-notes", "backlog", None, "Write the release notes", ("unit-tests", "build")),
    ("publish", "blocked", "hold", "Publish the release", ()),
    ("translate", "blocked", "dependency", "Translate the launch copy", ("editor",)),
    ("tag-release", "backlog", None, "Tag the release", ("release-notes",)),
)


def _beats(rng: random.Random, base: int, missed: int = 0) -> tuple[int, ...]:
    came = [max(1, int(rng.gauss(base, base / 4))) for _ in range(30 - missed)]
    return (*came, *([-1] * missed))


def _card_id(number: int) -> str:
    return f"t_{number:03d}c7kq2"


def _agent(rng: random.Random, label: str, parent: str, health: str, age: float | None, card: str) -> AgentView:
    lives = health not in ("ended", "failed")
    return AgentView(
        name=f"child:{label}.7kq2m9xzw4",
        label=label,
        kind="child",
        parent=parent,
        health=health,  # type: ignore[arg-type]
        phase={"offered": "waiting for acknowledgement", "held": "orphaned: silent"}.get(health, "acknowledged"),
        card=card,
        run=f"r_{label[:4]}7kq2m9",
        pid=41000 + rng.randrange(900) if lives else None,
        age_seconds=None if health == "offered" else age,
        deadline_seconds=21 if health == "offered" else None,
        beats=() if health == "offered" or not lives else _beats(rng, 30, 8 if health == "held" else 0),
        beat_count=0 if health == "offered" or not lives else 96,
        beat_seconds=5,
        slice_used=rng.randrange(40) * MIB,
        slice_limit=64 * MIB,
        enforcement="portable; soft slice; declared only: no network",
        status="" if health == "offered" else "working through its list",
        started_seconds=400 if lives else 0,
        ended=not lives,
        lived_seconds=None if lives else 18.4,
        fail="error" if health == "failed" else "",
        reason="3 links answer 404" if health == "failed" else "",
    )


def agents() -> tuple[AgentView, ...]:
    """Twenty-four agents; one late, one orphan held."""
    rng = random.Random(7)
    offices = [
        AgentView(
            name=f"{kind}:office.r0",
            label=label,
            kind=kind,
            parent=None if kind == "hermes" else "hermes:office.r0",
            health="alive",
            phase="serving",
            pid=40000 + number,
            children={"hermes": 3, "openfang": 2, "openclaw": 4, "zeroclaw": 8}[kind],
            age_seconds=number,
            beats=_beats(rng, 12 + 6 * number),
            beat_count=1204,
            beat_seconds=5,
            status=duty,
            started_seconds=6020,
        )
        for number, (kind, label, duty) in enumerate(
            (
                ("hermes", "Hermes", "orchestration"),
                ("openfang", "OpenFang", "security, the gate"),
                ("openclaw", "OpenClaw", "creative work"),
                ("zeroclaw", "ZeroClaw", "infrastructure"),
            ),
            1,
        )
    ]
    children = [
        _agent(rng, label, f"{parent}:office.r0", health, age, _card_id(number))
        for number, (label, parent, health, _, age, _) in enumerate(_CHILDREN)
    ]
    sharks = [
        replace(
            _agent(rng, label, "child:frame-swarm.7kq2m9xzw4", health, age, _card_id(50 + number)),
            kind="microshark",
            name=f"microshark:{label}.7kq2m9xzw4",
            ttl_seconds=212 - number,
            beats=_beats(rng, 60, 2 if health == "late" else 0),
        )
        for number, (label, health, age) in enumerate(_SHARKS)
    ]
    oracle = replace(_agent(rng, "oracle", "hermes:office.r0", "alive", 1, ""), card=None, status="verifies reports")
    echo = replace(_agent(rng, "echo", "hermes:office.r0", "ended", 0, ""), card=None)
    return (*offices, *children, *sharks, oracle, echo)


def cards() -> tuple[CardView, ...]:
    """Thirty cards over all lanes."""
    by_card = {agent.card: agent for agent in agents() if agent.card}
    out: list[CardView] = []
    for number, (label, parent, health, state, _, title) in enumerate(_CHILDREN):
        ident = _card_id(number)
        out.append(
            CardView(
                id=ident,
                title=title,
                state=state,
                label=label,
                parent_agent=parent,
                agent=by_card[ident].name if health != "ended" else None,
                run=by_card[ident].run,
                attempt=1,
                fail="error" if state == "failed" else None,
                reason="3 links answer 404" if state == "failed" else "",
                findings=number if state == "done" else 0,
                entry=140 + number if state == "done" else None,
                age_seconds=60 + 7 * number,
            )
        )
    for number, (label, _, _) in enumerate(_SHARKS):
        ident = _card_id(50 + number)
        out.append(
            CardView(
                id=ident,
                title=f"Render frame {number + 1} of 4",
                state="running",
                label=label,
                parent_agent="child:frame-swarm.7kq2m9xzw4",
                agent=by_card[ident].name,
                kind="microshark",
                attempt=1,
                age_seconds=88,
            )
        )
    for number, (label, state, block, title, after) in enumerate(_WAITING):
        out.append(
            CardView(
                id=_card_id(70 + number),
                title=title,
                state=state,
                label=label,
                parent_agent="openclaw",
                block=block,
                reason="leaves the machine: a person admits it" if block == "hold" else "",
                after=after,
                age_seconds=30 + 5 * number,
            )
        )
    out += [
        CardView(
            id=_card_id(90 + number),
            title=f"Proof-read chapter {number + 1}",
            state="done",
            label=f"chapter-{number + 1}",
            parent_agent="openclaw",
            entry=120 + number,
            age_seconds=900,
        )
        for number in range(5)
    ]
    return tuple(out)


_EVENTS = (
    ("acknowledged", "good", "price-table acknowledged: inheritance valid", "price-table"),
    ("verified", "good", "t_004c7kq2 signed and verified, entry 144", None),
    ("agent_started", "plain", "editor started under OpenClaw", "editor"),
    ("orphaned", "bad", "db-migration was silent for 3 beats", "db-migration"),
    ("held", "bad", "db-migration is stopped and held for you", "db-migration"),
    ("card_failed", "bad", "link-check failed: 3 links answer 404", "link-check"),
    ("beat_late", "warn", "shark-02 missed 1 beat", None),
    ("status", "plain", "unit-tests: 214 of 380 [bold]passed[/bold]", "unit-tests"),
)


def events() -> tuple[EventView, ...]:
    """Forty events; the last eight tell the story."""
    out = [
        EventView(
            seq, f"2026-05-11T13:1{seq // 10}:{(seq * 7) % 60:02d}Z", "returned", "plain", f"chapter {seq} returned"
        )
        for seq in range(1, 33)
    ]
    for number, (kind, tone, text, label) in enumerate(_EVENTS):
        name = f"child:{label}.7kq2m9xzw4" if label else None
        at = f"2026-05-11T13:20:{10 + 4 * number:02d}.204Z"
        out.append(EventView(33 + number, at, kind, tone, text, name))  # type: ignore[arg-type]
    return tuple(out)


def entries(size: int = 148) -> tuple[EntryView, ...]:
    """A ledger of delegations, acceptances and reports."""
    kinds = ("delegation", "acceptance", "report")
    names = [child[0] for child in _CHILDREN]
    return tuple(
        EntryView(
            index=index,
            kind=kinds[index % 3],
            agent=f"child:{names[index % len(names)]}.7kq2m9xzw4",
            card=_card_id(index % len(names)),
            at=f"2026-05-11T13:{index // 10:02d}:{index * 7 % 60:02d}Z",
            leaf=f"{random.Random(index).getrandbits(256):064x}",
            detail="signed by its own key, delegated by its office",
        )
        for index in range(size)
    )


def view(**changes: object) -> RoomView:
    """The whole picture."""
    base = RoomView(
        version=1,
        fleet="demo",
        clock="13:20:42Z",
        agents=agents(),
        cards=cards(),
        events=events(),
        ledger=LedgerView(size=148, root="9f2c" * 16, verdict="VALID", verified=148),
        waiting=2,
        failed=1,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def empty_view() -> RoomView:
    """A council in which nothing has happened yet."""
    return RoomView(1, "new", "13:20:42Z", (), (), (), LedgerView())
