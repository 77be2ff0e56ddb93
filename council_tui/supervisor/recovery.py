"""What a supervisor that was killed left behind: its open runs are ended, on the board and on the machine."""

from __future__ import annotations

import asyncio
import shutil
import signal
from typing import TYPE_CHECKING

from council_tui.board.board import Draft
from council_tui.domain.card import OPEN_STATES, OWNED_STATES, BlockKind
from council_tui.domain.events import EventKind
from council_tui.domain.hierarchy import KINDS
from council_tui.runner import guard

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from council_tui.board.board import Board
    from council_tui.board.home import Home

GRACE_SECONDS = 5.0
_PAUSE = 0.05


def _strays(runs: dict[str, tuple[int, int]]) -> list[guard.Process]:
    """Bodies and runners of these runs (run id to the runner's pid and start time) that still live."""
    found = [process for process, run in guard.all_marked() if run in runs]
    for pid, start_time in runs.values():
        process = guard.read_process(pid)
        if process is not None and process.start_time == start_time and process.state not in "ZX":
            found.append(process)
    return found


async def _end(runs: dict[str, tuple[int, int]]) -> int:
    """SIGTERM, grace, SIGKILL, until none is left; how many there were."""
    first = _strays(runs)
    for process in first:
        guard.send(process, signal.SIGTERM)
        guard.send(process, signal.SIGCONT)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + GRACE_SECONDS
    while left := _strays(runs):
        if loop.time() > deadline:
            for process in left:
                guard.send(process, signal.SIGKILL)
        await asyncio.sleep(_PAUSE)
    return len(first)


async def recover(board: Board, home: Home, revoke: Callable[[str, str], Awaitable[int | None]]) -> list[str]:
    """End every run that is still open on the board and clear its slice; one line for each card.

    `revoke` ends an agent's authority, with a reason; the entry, or None for an agent that never had any.

    Identity is pid, start time and boot: a process of another boot, or another program that got the pid, is
    not touched.
    """
    boot = guard.boot_id()
    tables = board.tables
    cards = [c for c in tables.cards.values() if c.state in OPEN_STATES and c.run in tables.runs]
    open_runs = {r.id: r for c in cards if (r := tables.runs.get(c.run or "")) is not None and r.ended is None}
    mine = {r.id: (r.pid, r.start_time) for r in open_runs.values() if r.boot_id == boot and r.pid and r.start_time}
    ended = await _end(mine)
    lines: list[str] = []
    # Leaves first: below an agent that is revoked already nobody can be heard.
    for card in sorted(cards, key=lambda c: KINDS[c.kind].layer if c.kind in KINDS else 1, reverse=True):
        run = open_runs.get(card.run or "")
        if run is None:
            continue
        shutil.rmtree(run.slice, ignore_errors=True)
        reason = "the supervisor was gone before this run had ended"
        entry = await revoke(run.agent, reason)
        board.append(
            Draft(EventKind.ORPHANED, card.agent, card.id, run.id, {"cause": "supervisor_gone", "reason": reason}),
            *([Draft(EventKind.REVOKED, card.agent, card.id, run.id, {"entry": entry})] if entry is not None else []),
            Draft(EventKind.RECOVERED, card.agent, card.id, run.id, {"pid": run.pid, "ended": ended}),
            Draft(EventKind.AGENT_ENDED, card.agent, card.id, run.id, {"exit_status": None, "signal": None}),
            Draft(EventKind.CARD_FAILED, card.agent, card.id, run.id, {"fail": "orphaned", "reason": reason}),
        )
        lines.append(f"{card.title}: {reason}")
    for card in list(tables.cards.values()):
        waits = card.state in OPEN_STATES - OWNED_STATES or card.block == BlockKind.TRANSIENT
        if waits and card.kind != "office":
            reason = "its fleet ended before its turn came"
            board.append(Draft(EventKind.CARD_FAILED, None, card.id, None, {"fail": "cancelled", "reason": reason}))
    for leftover in home.slices.iterdir():
        shutil.rmtree(leftover, ignore_errors=True)
    for leftover in home.bodies.iterdir():
        leftover.unlink(missing_ok=True)
    return lines
