"""A new supervisor on a home that was another's: who still lives is taken back, everything else is put right.

First it looks: every run that is open on the board gets its seat back, in the state that the journal tells.
Then there is a plan, which a person may see before it is carried out: what has to be ended is ended one by
one, and after three failures recovery stops rather than guess. Runners come back by themselves (`welcome`).
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from council_tui.board.board import Draft
from council_tui.domain.contract import SpawnContext
from council_tui.domain.errors import CouncilError, HomeUnusable, IllegalMove, Refused
from council_tui.domain.events import EventKind
from council_tui.domain.hierarchy import KINDS, PARENTS
from council_tui.domain.lifecycle import Phase, Signal, Timing
from council_tui.domain.order import Order
from council_tui.domain.restoring import CAN_BE_TAKEN_BACK, restore
from council_tui.domain.text import safe
from council_tui.runner import guard
from council_tui.supervisor import groups
from council_tui.supervisor.births import ROOT_DEPTH
from council_tui.supervisor.leftovers import clear_directories, end_nurseries, end_strays
from council_tui.supervisor.seat import Seat
from council_tui.supervisor.unkillable import over
from council_tui.supervisor.watch import NOT_BEGUN, facts_of, how

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from council_tui.board.projection import Card, Run
    from council_tui.domain.events import Event
    from council_tui.hosts.local import Ward
    from council_tui.supervisor.supervisor import Supervisor

MOST_FAILURES = 3
CRASHES_TO_QUARANTINE = 2
END_PATIENCE = 60.0
"""Seconds that the end of one run may take before it counts as a failure."""
GONE = "the supervisor was gone before this run had ended"


class What(StrEnum):
    """What becomes of a run that another supervisor left open."""

    TAKEN_BACK = "taken_back"
    ENDED = "ended"
    AGAIN = "again"
    """It had not begun its work; it is ended, and its card's turn comes again."""
    CLOSED = "closed"
    """It had reported; only its end was not written down."""
    REAPED = "reaped"
    """Its reap was decided already, and goes on."""
    QUARANTINED = "quarantined"


@dataclass(frozen=True)
class Item:
    """One line of the plan."""

    what: What
    seat: Seat
    title: str

    @property
    def words(self) -> str:
        """For a person."""
        said = {
            What.TAKEN_BACK: "lives and is taken back",
            What.ENDED: "is gone; its card is told",
            What.AGAIN: "had not begun its work; it begins again",
            What.CLOSED: "had reported; its card is closed",
            What.REAPED: "was being reaped; that goes on",
            What.QUARANTINED: "was alive at two crashes; it is ended and waits for you",
        }
        return f"{self.title}: {said[self.what]}"


class Recovery:
    """What one supervisor does about the runs of another."""

    def __init__(self, supervisor: Supervisor, wards: Mapping[int, Ward] | None) -> None:
        self._sup = supervisor
        self._wards = wards or {}
        self.crash = False
        """Whether that other one died, instead of handing over."""
        self.newest: Event | None = None
        """The last thing that it wrote down."""
        self.plan: list[Item] = []

    # looking

    async def look(self, nurseries: Iterable[guard.Process]) -> None:
        """Give every open run its seat back and make the plan. `nurseries`: living ones that are not ours."""
        sup = self._sup
        self.newest = newest = await sup.board.newest()
        self.crash = newest is not None and newest.kind is not EventKind.HANDED_OVER
        runs = self._open_runs()
        boot = guard.boot_id()
        strays = {
            run.id: (run.pid, run.start_time)
            for _, run in runs
            if run.boot_id == boot and run.pid and run.start_time and self._ward(run) is None
        }
        known = {run.id for _, run in runs}
        for pid, ward in self._wards.items():
            if ward.status is None and ward.run not in known:
                # It lives, and no open run of this board is its: what it does nobody would see, or do twice.
                strays[ward.run] = (pid, ward.start_time)
                sup.host.kill(pid)
        left = list(nurseries)
        await end_strays(strays)
        await end_nurseries(left)
        for card, run in runs:
            try:
                await self._restore(card, run)
            except (KeyError, TypeError, ValueError) as error:
                await self._give_up(card, run, str(error))
        used = {seat.slice for seat in sup.seats.values()}
        used |= {str(folder / run) for run in sup.seats for folder in (sup.home.slices, sup.home.bodies)}
        await asyncio.to_thread(clear_directories, sup.home, frozenset(used))
        await asyncio.to_thread(groups.clear_leftovers, sup.home, sup.board.tables.runs, frozenset(sup.seats))
        self.plan = [self._item(seat) for seat in sup.seats.values()]
        for item in self.plan:
            item.seat.pending = item.what is not What.TAKEN_BACK

    def _open_runs(self) -> list[tuple[Card, Run]]:
        """Leaves first: below an agent that is revoked already nobody can be heard."""
        tables = self._sup.board.tables
        left = [run for run in tables.runs.values() if run.ended is None]
        runs = [(card, run) for run in left if (card := tables.cards.get(run.card)) is not None]
        return sorted(runs, key=lambda one: KINDS[one[0].kind].layer if one[0].kind in KINDS else 1, reverse=True)

    def _ward(self, run: Run) -> Ward | None:
        """What our nursery knows of its runner."""
        ward = self._wards.get(run.pid or 0)
        return ward if ward is not None and (ward.run, ward.start_time) == (run.id, run.start_time) else None

    async def _restore(self, card: Card, run: Run) -> None:
        sup = self._sup
        order = Order.model_validate(card.order)
        contract = {key: value for key, value in run.contract.items() if key != "sha256"}
        context = SpawnContext.model_validate(contract)
        row = sup.board.tables.agents[run.agent]
        now = sup.clock()
        budget = None if row.kind in PARENTS else order.envelope.time_budget_minutes * 60
        known = sup.authority.ledger.lineage.agent(run.agent)
        result = card.result if card.run == run.id else {}
        seat = Seat(
            run=run.id,
            agent=run.agent,
            label=row.label,
            kind=row.kind,
            parent=row.parent or sup.hermes,
            card=card.id,
            attempt=run.attempt,
            depth=ROOT_DEPTH - KINDS[row.kind].layer,
            order=order,
            context=context,
            state=restore(Timing.of(context.lifecycle_policy, budget), await sup.board.story(run.agent), now),
            token=secrets.token_urlsafe(24),
            beat_token=secrets.token_urlsafe(12),
            slice=run.slice,
            enforcement=row.enforcement,
            opened=now,
            pid=run.pid,
            start_time=run.start_time or 0,
            public_key=known.public.hex() if known is not None else "",
            taken_back=True,
        )
        if seat.state.phase in (Phase.RETURNED, Phase.CLOSING, Phase.REAPING) and result.get("digest"):
            seat.result, seat.result_digest = result, str(result["digest"])
            seat.body_status = (result.get("exit_status"), result.get("signal"))
        seat.started.set()
        ward = self._ward(run)
        if ward is not None and not ward.clean:
            sup.by_pid[seat.pid or 0] = seat
        else:
            seat.clean.set()
        if ward is None or ward.status is not None:
            seat.runner_status = ward.status if ward is not None else None
            seat.exited.set()
        sup.take_in(seat)

    async def _give_up(self, card: Card, run: Run, why: str) -> None:
        """What another version wrote and this one cannot read has no seat; its card is told."""
        if run.boot_id == guard.boot_id() and run.pid:
            await end_strays({run.id: (run.pid, run.start_time or 0)})
        await self._sup.authority.revoke(run.agent, GONE)
        reason = f"{GONE}, and what it wrote cannot be read: {safe(why, 200)}"
        data = {"cause": "supervisor_gone", "reason": reason}
        self._sup.board.append(
            Draft(EventKind.ORPHANED, card.agent, card.id, run.id, data),
            Draft(EventKind.AGENT_ENDED, card.agent, card.id, run.id, {"exit_status": None, "signal": None}),
            Draft(EventKind.CARD_FAILED, card.agent, card.id, run.id, {"fail": "orphaned", "reason": reason}),
        )

    def _item(self, seat: Seat) -> Item:
        card = self._sup.board.tables.cards[seat.card]
        phase, lives = seat.state.phase, not seat.exited.is_set()
        if phase is Phase.REAPING:
            what = What.REAPED
        elif phase is Phase.CLOSING and not lives:
            what = What.CLOSED
        elif phase not in CAN_BE_TAKEN_BACK or not lives:
            what = What.AGAIN if seat.not_begun else What.ENDED
        elif self._is_dangerous(seat, card):
            what = What.QUARANTINED
        else:
            what = What.TAKEN_BACK
        return Item(what, seat, card.title)

    def _is_dangerous(self, seat: Seat, card: Card) -> bool:
        """Whether its body was at work at two crashes; one whose body is over only has to hand in its report."""
        over_already = seat.kind in PARENTS or seat.state.phase in (Phase.RETURNED, Phase.CLOSING)
        return self.crash and not over_already and card.crashes + 1 >= CRASHES_TO_QUARANTINE

    @property
    def ends_something(self) -> bool:
        """Whether there is more to do than to take back who lives."""
        return any(item.what is not What.TAKEN_BACK for item in self.plan)

    # acting

    async def carry_out(self) -> None:
        """Do what the plan says, one by one. Raises `HomeUnusable` after three failures."""
        failures: list[str] = []
        for item in self.plan:
            if item.what is What.TAKEN_BACK:
                continue
            try:
                async with asyncio.timeout(END_PATIENCE):
                    await self._end(item)
            except (CouncilError, TimeoutError, OSError, IllegalMove) as error:
                failures.append(f"{item.title}: {str(error) or 'it does not end'}")
            if len(failures) >= MOST_FAILURES:
                raise HomeUnusable(f"recovery stopped after {MOST_FAILURES} failures: {'; '.join(failures)}")

    async def _end(self, item: Item) -> None:
        sup, seat = self._sup, item.seat
        seat.pending = False
        self.note(seat, item.what)
        if seat.exited.is_set():
            sup.log(seat, EventKind.AGENT_ENDED, facts_of(seat.runner_status))
        if item.what is What.REAPED:
            reason = seat.state.outcome.reason if seat.state.outcome else ""
            # Decided by a supervisor that died over it: the reason is all that is left of what it meant to do.
            seat.again = seat.not_begun and reason == NOT_BEGUN
            sup.background(sup.reaper.reap(seat, reason))
        elif item.what is What.CLOSED:
            await sup.signal(seat, Signal.DEAD)
        elif item.what is What.QUARANTINED:
            reason = "it was alive at two crashes of the supervisor and is kept from a third"
            await sup.signal(seat, Signal.QUARANTINED, {"reason": reason})
        elif not await self._had_reported(seat):
            seat.again = item.what is What.AGAIN
            seen = seat.runner_status is not None
            gone = f"its runner ended {how(seat.runner_status)} while there was no supervisor" if seen else GONE
            await sup.signal(seat, Signal.SUPERVISOR_GONE, {"reason": NOT_BEGUN if seat.again else gone})
        await over(seat)

    def note(self, seat: Seat, what: What) -> None:
        """Journal what was found."""
        self._sup.log(seat, EventKind.RECOVERED, {"what": str(what), "crash": self.crash, "pid": seat.pid})

    async def _had_reported(self, seat: Seat) -> bool:
        """A report that reached the ledger counts, also when the journal did not hear of it any more."""
        sup = self._sup
        newest = await sup.authority.ledger.newest_of(seat.agent) if seat.state.phase is Phase.RETURNED else None
        if newest is None or newest.opened.statement.kind != "ascension":
            return False
        with suppress(Refused):
            await sup.handshake.reported(seat, newest)
            await sup.signal(seat, Signal.DEAD)
        return True

    async def returned(self, patience: float) -> None:
        """Wait until every office that is expected back is here or has ended, at most `patience` seconds."""
        waits: list[Any] = [
            item.seat.back for item in self.plan if item.what is What.TAKEN_BACK and item.seat.kind in PARENTS
        ]
        tasks = [asyncio.ensure_future(event.wait()) for event in waits]
        if tasks:
            await asyncio.wait(tasks, timeout=patience)
        for task in tasks:
            task.cancel()
