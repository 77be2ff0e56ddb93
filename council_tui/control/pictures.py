"""Frozen views of a living council: built when they are pulled, from the board's tables and the seats."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from council_tui.board.database import read_only
from council_tui.board.home import ordinary
from council_tui.control.facts import (
    contract_facts,
    end_facts,
    result_lines,
    slice_facts,
    standing_facts,
    standing_of,
    why_not_over,
)
from council_tui.control.rows import card_view, end_of, ended_health
from council_tui.control.swarms import swarm_facts, ttl_left, with_swarms
from council_tui.control.telling import event_view, short
from council_tui.control.views import (
    AgentView,
    Detail,
    EventView,
    Health,
    LedgerView,
    ProcessView,
    ReapPreview,
    RoomView,
    VerifyView,
)
from council_tui.domain.card import WAITING_BLOCKS, CardState
from council_tui.domain.errors import Refused
from council_tui.domain.events import Event, EventKind
from council_tui.domain.hierarchy import KINDS, PARENTS, dual_note
from council_tui.domain.lifecycle import Phase
from council_tui.domain.text import safe, safe_bytes
from council_tui.runner import guard

if TYPE_CHECKING:
    from council_tui.board.projection import Agent, Card
    from council_tui.fleet.fleet import Fleet
    from council_tui.supervisor.seat import Seat
    from council_tui.supervisor.supervisor import Supervisor

EVENTS_KEPT = 500
LOG_TAIL = 16 * 1024


def processes_below(pid: int) -> tuple[ProcessView, ...]:
    """An agent's processes: its runner, then all below it."""
    try:
        top = guard.read_process(pid)
        tree = ([top] if top is not None else []) + guard.descendants(pid)
    except OSError:
        # This machine has no room to look just now; the next picture is near.
        return ()
    return tuple(ProcessView(p.pid, p.ppid, p.state, _command(p.pid)) for p in tree)


def _command(pid: int) -> str:
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return ""
    return safe_bytes(raw.replace(b"\0", b" ").strip(), 200)


class Pictures:
    """Builds views for one supervisor."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._sup = supervisor
        self.fleet: Fleet | None = None
        self.note = ""
        self._events: deque[EventView] = deque(maxlen=EVENTS_KEPT)
        self._verdict = LedgerView()
        self._changes = 0
        self._began = ""
        """When this session's fleet started; RFC 3339, as the board writes it."""

    # what happened

    async def load(self) -> None:
        """Fill the event log with the end of the journal."""
        async with (
            read_only(self._sup.home.board) as db,
            db.execute("SELECT * FROM journal ORDER BY seq DESC LIMIT ?", (EVENTS_KEPT,)) as found,
        ):
            rows = list(await found.fetchall())
        for seq, at, kind, agent, card, run, data in reversed(rows):
            self._events.append(
                event_view(Event(seq, at, EventKind(kind), agent, card, run, json.loads(data)), self._title)
            )

    def heard(self, event: Event) -> None:
        """One more line of the event log."""
        if event.kind is EventKind.FLEET_STARTED:
            self._began = event.at
        self._events.append(event_view(event, self._title))

    def verified(self, found: VerifyView) -> None:
        """The ledger as a whole was verified."""
        self._changes += 1
        self._verdict = LedgerView(verdict=found.verdict, verified=found.checked)

    def _title(self, card: str) -> str:
        found = self._sup.board.tables.cards.get(card)
        return found.plan_id if found is not None else card

    # the room

    def room(self) -> RoomView:
        """The present picture."""
        sup, ledger = self._sup, self._sup.authority.ledger
        tables = sup.board.tables
        agents = self._agents()
        cards = [c for c in tables.cards.values() if c.kind != "office"]
        now, fleet = datetime.now(UTC), self.fleet
        waits = fleet.waits if fleet is not None else {}
        return RoomView(
            version=tables.seq + sup.hearing.beats + self._changes,
            fleet=fleet.name if fleet is not None else "council",
            clock=now.strftime("%H:%M:%SZ"),
            agents=tuple(agents),
            cards=tuple(card_view(card, now, waits.get(card.id, "")) for card in cards),
            events=tuple(self._events),
            ledger=LedgerView(ledger.size, ledger.root, self._verdict.verdict, self._verdict.verified),
            paused=fleet.paused if fleet is not None else False,
            holding=self._holding,
            waiting=sum(1 for c in cards if c.block in WAITING_BLOCKS) + sum(1 for a in agents if a.health == "held"),
            note=self.note,
            failed=sum(1 for c in cards if c.state is CardState.FAILED and self._began and c.created >= self._began),
        )

    def _agents(self) -> list[AgentView]:
        tables = self._sup.board.tables
        newest: dict[str, str] = {}
        for agent in tables.agents.values():
            if agent.kind in PARENTS and (agent.kind not in newest or not agent.ended):
                newest[agent.kind] = agent.name
        views = [self._hermes(len(newest))]
        children: dict[str, int] = {}
        shown: list[tuple[Agent, str]] = []
        for agent in tables.agents.values():
            if agent.kind in PARENTS and newest[agent.kind] != agent.name:
                continue
            parent = agent.parent or ""
            kind = parent.partition(":")[0]
            # Children of an earlier session's office hang below the one that holds that office now.
            parent = self._sup.hermes if kind == "hermes" else newest.get(kind, parent)
            children[parent] = children.get(parent, 0) + 1
            shown.append((agent, parent))
        order = {kind: index for index, kind in enumerate(PARENTS)}
        shown.sort(key=lambda pair: order.get(pair[0].kind, len(order)))
        views += [self._agent(agent, parent, children.get(agent.name, 0)) for agent, parent in shown]
        return with_swarms(views, tables)

    def _hermes(self, offices: int) -> AgentView:
        sup = self._sup
        return AgentView(
            name=sup.hermes,
            label="Hermes",
            kind="hermes",
            parent=None,
            health="alive",
            phase=self._dispatching(),
            status=self._holding,
            children=offices,
            age_seconds=0.0,
            beats=tuple(sup.own_beats[-30:]),
            beat_count=len(sup.own_beats),
            beat_seconds=0.2,
            started_seconds=sup.clock() - sup.started,
            standing="alive",
        )

    @property
    def _holding(self) -> str:
        """Why no agent is born though a card waits for one."""
        return self.fleet.holds.reason if self.fleet is not None else ""

    def _dispatching(self) -> str:
        if self.fleet is not None and self.fleet.paused:
            return "paused"
        return "births wait" if self._holding else "dispatching"

    def _agent(self, agent: Agent, parent: str, children: int) -> AgentView:
        seat = self._sup.by_agent.get(agent.name)
        if seat is None:
            run = self._sup.board.tables.runs.get(agent.run)
            lived, fail, reason = end_of(run)
            return AgentView(
                name=agent.name,
                label=agent.label,
                kind=agent.kind,
                parent=parent,
                health=ended_health(run.outcome if run is not None else None),
                phase=agent.phase,
                card=agent.card,
                run=agent.run,
                children=children,
                enforcement=agent.enforcement,
                status=agent.status,
                ended=True,
                lived_seconds=lived,
                fail=fail,
                reason=reason,
                standing=str(agent.standing),
            )
        return self._living(agent, seat, parent, children)

    def _living(self, agent: Agent, seat: Seat, parent: str, children: int) -> AgentView:
        now, state = self._sup.clock(), seat.state
        timing = state.timing
        return AgentView(
            name=agent.name,
            label=agent.label,
            kind=agent.kind,
            parent=parent,
            health=self._living_health(seat),
            phase=str(state.phase),
            card=agent.card,
            run=agent.run,
            pid=seat.pid,
            children=children,
            age_seconds=None if state.last_beat is None else max(0.0, now - state.last_beat),
            ttl_seconds=ttl_left(seat, now),
            deadline_seconds=None
            if state.acknowledged is not None or not timing.requires_ack
            else max(0.0, state.started + timing.window - now),
            beats=tuple(seat.beats),
            beat_count=seat.beat_count,
            beat_seconds=timing.interval,
            slice_used=seat.slice_used,
            slice_limit=seat.context.memory_slice.limit_bytes,
            enforcement=seat.enforcement,
            status=seat.status,
            started_seconds=now - seat.opened,
            reason=why_not_over(seat, now),
            standing=str(standing_of(seat, now)),
            idle_seconds=None if state.progress is None else max(0.0, now - state.progress),
        )

    @staticmethod
    def _living_health(seat: Seat) -> Health:
        phase = seat.state.phase
        if phase is Phase.HELD:
            return "held"
        if phase is Phase.REAPING:
            fail = seat.state.outcome.fail if seat.state.outcome else None
            return "orphan" if fail == "orphaned" else "failed"
        if seat.state.acknowledged is None:
            return "offered"
        if seat.state.frozen_since is not None:
            return "frozen"
        if seat.state.late:
            return "late"
        return "stalled" if seat.state.stalled else "alive"

    # one thing in full

    async def detail(self, ident: str) -> Detail:
        """An agent (by name) or a card (by id). Raises `Refused` when there is none."""
        tables = self._sup.board.tables
        if ident == self._sup.hermes:
            return self._hermes_detail()
        if ident in tables.agents:
            return await self._agent_detail(tables.agents[ident])
        if ident in tables.cards:
            return self._card_detail(tables.cards[ident])
        raise Refused("id", f"there is no agent or card {safe(ident, 80)}")

    def _hermes_detail(self) -> Detail:
        office, sup = KINDS["hermes"], self._sup
        facts = (
            ("", "identity"),
            ("name", sup.hermes),
            ("solid", f"{office.solid}, {dual_note('hermes')}"),
            ("owns", office.duty),
            ("root key", sup.root_public.hex()),
            *((("births wait", self._holding),) if self._holding else ()),
            ("", "home"),
            ("path", safe(str(sup.home.root), 400)),
            ("ledger", f"{sup.authority.ledger.size} entries, {sup.authority.ledger.origin}"),
        )
        return Detail("Hermes", facts, self._history(agent=sup.hermes))

    def _history(self, *, agent: str | None = None, card: str | None = None) -> tuple[str, ...]:
        return tuple(
            f"{e.at[11:19]}  {e.text}"
            for e in self._events
            if (agent is not None and e.agent == agent) or (card is not None and e.card == card)
        )

    async def _agent_detail(self, agent: Agent) -> Detail:
        run = self._sup.board.tables.runs.get(agent.run)
        seat = self._sup.by_agent.get(agent.name)
        contract = run.contract if run is not None else {}
        facts = [
            *end_facts(run, agent),
            ("", "held to"),
            ("enforcement", agent.enforcement or "nothing yet"),
            *(slice_facts(seat) if seat is not None else ()),
            *(standing_facts(seat, self._sup.clock()) if seat is not None else ()),
            *swarm_facts(agent, self._sup.board.tables, self._sup.seats.values(), self._sup.clock()),
            ("", "identity"),
            ("name", agent.name),
            ("parent", f"{short(agent.parent)} ({agent.parent})"),
            ("solid", self._solid(agent)),
            ("card", agent.card or "none"),
            ("run", f"{agent.run}, attempt {run.attempt if run else '?'}"),
            ("phase", agent.phase),
            *((("key", agent.key_id[:32]),) if agent.key_id else ()),
            *contract_facts(contract),
        ]
        processes = await asyncio.to_thread(processes_below, seat.pid) if seat is not None and seat.pid else ()
        log = await asyncio.to_thread(self._log_tail, agent.run)
        return Detail(agent.label, tuple(facts), self._history(agent=agent.name), log, processes)

    @staticmethod
    def _solid(agent: Agent) -> str:
        office = KINDS[agent.kind]
        return f"{office.solid}, {dual_note(agent.kind)}" if agent.kind in PARENTS else f"{office.solid} ({agent.kind})"

    def _log_tail(self, run: str) -> tuple[str, ...]:
        path = self._sup.home.logs / run / "output.log"
        try:
            raw = ordinary(path, LOG_TAIL)
        except OSError:
            return ()
        return tuple(safe_bytes(line, 500) for line in raw.split(b"\n")[-200:] if line)

    def _card_detail(self, card: Card) -> Detail:
        order = card.order
        envelope = order.get("envelope", {})
        derived = envelope.get("derived", ())
        facts = [
            ("", "card"),
            ("id", card.id),
            ("state", str(card.state) + (f" ({card.block or card.fail})" if card.block or card.fail else "")),
            ("reason", safe(card.reason, 300)),
            ("parent", f"{short(card.parent_agent)} ({card.parent_agent})"),
            ("agent", card.agent or "none yet"),
            ("attempt", f"{card.attempt} of {card.attempts}"),
            ("after", ", ".join(card.after) or "nothing"),
            ("ledger", f"entry {card.entry}" if card.entry is not None else "no signed report yet"),
            ("", "envelope"),
            ("command", safe(" ".join(order.get("run", ())), 400)),
        ]
        for key in ("task_name", "task_description", "autonomy_band", "time_budget_minutes", "rollback_plan"):
            mark = " (derived)" if key in derived else ""
            facts.append((key, safe(str(envelope.get(key, "")), 400) + mark))
        comments = tuple(f"{c['at'][11:19]}  {safe(c['author'], 60)}: {safe(c['text'], 400)}" for c in card.comments)
        return Detail(safe(card.title, 200), tuple(facts), self._history(card=card.id) + comments, result_lines(card))

    def preview(self, seat: Seat) -> ReapPreview:
        """What a reap of this seat would end."""
        below: list[str] = []
        queue = [seat.agent]
        while queue:
            for child in self._sup.children_of(queue.pop()):
                queue.append(child.agent)
                below.insert(0, child.label)
        processes = processes_below(seat.pid) if seat.pid is not None else ()
        left = why_not_over(seat, self._sup.clock())
        note = f"SIGTERM, {seat.state.timing.grace:g} s, SIGKILL; its slice is cleared and its authority revoked"
        note = f"{left}; reaped by you it is tried at once" if left else note
        return ReapPreview(seat.agent, seat.label, self._living_health(seat), processes, tuple(below), note)
