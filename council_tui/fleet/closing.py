"""The end of a fleet: drain, report, offices, audit, ledger, and the ending that weighs them all.

Whatever goes wrong on the way is told in the ending and keeps nothing after it from being done.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING, Any

from council_tui.board.board import Draft
from council_tui.domain.card import BlockKind, CardState, FailKind
from council_tui.domain.errors import CouncilError
from council_tui.domain.events import EventKind
from council_tui.domain.hierarchy import PARENTS
from council_tui.domain.lifecycle import Phase, Signal
from council_tui.domain.wire import MAX_MESSAGE
from council_tui.fleet.outcome import Ending, ending
from council_tui.ledger.verdicts import BadEntry
from council_tui.runner.report import MOST, brief
from council_tui.supervisor.audit import audited
from council_tui.supervisor.unkillable import over

if TYPE_CHECKING:
    from council_tui.board.projection import Card
    from council_tui.fleet.fleet import Fleet
    from council_tui.supervisor.seat import Seat
    from council_tui.supervisor.supervisor import Supervisor

OFFICE_PATIENCE = 60.0
"""Seconds that an office has to open, and to close."""
RENDER_PATIENCE = 60.0
REPORT_BYTES = MAX_MESSAGE // 8
"""Bytes of facts that a report is made of: as Markdown, escaped, they still fit into one message."""


def _children(fleet: Fleet) -> list[Seat]:
    return [seat for seat in fleet.sup.seats.values() if seat.kind not in PARENTS]


def stop_all(fleet: Fleet, reason: str, block: str | None) -> None:
    """End what runs and close what waits; without a `block` for what waits nothing starts any more."""
    fleet.draining = fleet.draining or block is None
    for card in list(fleet.sup.board.tables.cards.values()):
        waits = card.state in (CardState.BACKLOG, CardState.READY) or card.block == BlockKind.TRANSIENT
        if card.kind == "office" or not waits or card.id in fleet.starting:
            continue
        if block is not None and card.state is not CardState.BLOCKED:
            fleet.block(card.id, block, reason)
        else:
            fleet.fail(card.id, FailKind.CANCELLED, reason)
    _cancel(fleet, reason)


def _cancel(fleet: Fleet, reason: str) -> None:
    for seat in _children(fleet):
        fleet.sup.background(fleet.sup.signal(seat, Signal.CANCELLED, {"reason": reason}))


async def drain(fleet: Fleet, reason: str, *, interrupted: bool) -> int:
    """Reap every child, leaves first, and wait for the proof; how many there were.

    What SIGKILL does not end is left behind after a full attempt, with its claim; the audit names it.
    """
    fleet.interrupted = fleet.interrupted or interrupted
    living = len(_children(fleet))
    stop_all(fleet, reason, None)
    while fleet.starting:
        await fleet.changed(0.2)
    _cancel(fleet, reason)
    for seat in _children(fleet):
        await over(seat)
    # A card that a parent made while it was being ended waits for nobody.
    stop_all(fleet, reason, None)
    return living


async def finish(fleet: Fleet, fault: str = "") -> Ending:
    """Report, close the offices, audit, verify the ledger, and weigh it all. `fault`: what broke before."""
    fleet.keeps_offices = False
    sup = fleet.sup
    report: str | None = None
    if fleet.plan is not None and not fault:
        try:
            report = await _report(fleet)
        except Exception as error:
            fault = f"the report could not be written: {_words(error)}"
    await _close_offices(sup)
    facts: dict[str, Any] = {}
    try:
        facts = await audited(sup)
    except OSError as error:
        fault = fault or f"this machine had no room for the audit: {_words(error)}"
    ledger = await _check_ledger(sup)

    def weigh() -> Ending:
        return ending(
            sup.board.tables.cards.values(),
            audit=facts,
            ledger=ledger,
            budget=fleet.budget(),
            interrupted=fleet.interrupted,
            fault=fault or (_words(sup.board.failure) if sup.board.failure else ""),
            report=report,
        )

    end = weigh()
    try:
        await sup.board.append(Draft(EventKind.FLEET_ENDED, sup.hermes, data=end.as_json()))
    except Exception as error:
        # The journal does not have it; whoever waits for the ending does.
        fault = fault or _words(error)
        end = weigh()
    return end


def _words(error: BaseException) -> str:
    """An error for a person: our own are sentences already."""
    return str(error) if isinstance(error, CouncilError) else f"{type(error).__name__}: {error}"


async def _check_ledger(sup: Supervisor) -> dict[str, Any]:
    checked = await sup.authority.ledger.audit()
    await sup.authority.remember()
    return {"size": checked.size, "root": checked.root, "verdict": str(checked.verdict)}


async def _close_offices(sup: Supervisor) -> None:
    offices = [seat for seat in sup.seats.values() if seat.kind in PARENTS]
    for seat in offices:
        if seat.peer is not None and seat.state.phase is Phase.RUNNING:
            seat.peer.notify("close")
    for seat in offices:
        # On a disk that takes nothing more no office can report, so nobody waits for it to.
        if sup.board.failure is None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(OFFICE_PATIENCE):
                    await seat.ended.wait()
        if not seat.ended.is_set():
            sup.background(sup.signal(seat, Signal.CANCELLED, {"reason": "the office did not close"}))
    for seat in offices:
        await over(seat)


async def _report(fleet: Fleet) -> str | None:
    """Let OpenClaw's office render what people read, and sign it; the path of it."""
    sup, seat = fleet.sup, fleet.office("openclaw")
    if seat is None or seat.peer is None:
        return None
    answer = await seat.peer.call("render", _facts(fleet), RENDER_PATIENCE)
    raw = str(answer["entry"])
    try:
        entry = await sup.authority.ledger.append(raw.encode())
    except BadEntry:
        seat.peer.notify("withdraw", {"entry": raw})
        raise
    stamp = sup.board.now().replace(":", "").replace("-", "")[:15]
    path = sup.home.reports / f"{fleet.name}-{stamp}.md"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_text(str(answer["markdown"]), encoding="utf-8")
    data = {"path": str(path), "entry": entry.index, "sha256": answer["sha256"]}
    sup.log(seat, EventKind.REPORT_WRITTEN, data)
    return str(path)


def _facts(fleet: Fleet) -> dict[str, Any]:
    """What the report is made of; of a large fleet less for each card, so that it fits."""
    board = fleet.sup.board
    cards = [c for c in board.tables.cards.values() if c.kind != "office"]
    facts: dict[str, Any] = {"fleet": fleet.name, "workdir": fleet.sup.workdir, "at": board.now()}
    for findings, evidence in MOST:
        facts["cards"] = [_card_facts(card, findings, evidence) for card in cards]
        if len(json.dumps(facts, ensure_ascii=False).encode("utf-8", "replace")) <= REPORT_BYTES:
            break
    return facts


def _card_facts(card: Card, findings: int, evidence: int) -> dict[str, Any]:
    return {
        "title": card.title,
        "state": str(card.state),
        "why": card.fail or card.block,
        "agent": card.agent,
        "entry": card.entry,
        "reason": card.reason[:2000],
        "result": brief(card.result, findings, evidence),
    }
