"""What a supervisor that was killed left behind: its open runs are ended, on the board and on the machine."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from council_tui.board.board import Draft
from council_tui.domain.card import OPEN_STATES, OWNED_STATES, BlockKind
from council_tui.domain.events import EventKind
from council_tui.domain.hierarchy import KINDS
from council_tui.runner import guard
from council_tui.supervisor import slices

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from pathlib import Path

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


NURSERY = "nursery"
"""File in the runtime directory: pid, start time and boot of every nursery that may still live, one a line."""


def note_nursery(home: Home, pid: int | None, *, alone: bool = False) -> None:
    """Write down which nursery this home has, if any; `alone`: and that those before it are gone."""
    if pid is None:
        return
    process = guard.read_process(pid)
    line = json.dumps({"pid": pid, "start_time": process.start_time if process else 0, "boot_id": guard.boot_id()})
    path = home.runtime / NURSERY
    if alone or not stat.S_ISREG(os.lstat(path).st_mode if os.path.lexists(path) else stat.S_IFREG):
        slices.remove(path)
    how = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_APPEND
    fd = os.open(path, how, 0o600)
    with os.fdopen(fd, "w", encoding="ascii") as file:
        file.write(line + "\n")


def former_nurseries(home: Home) -> list[guard.Process]:
    """Those of earlier supervisors that still live, by pid, start time and boot."""
    try:
        lines = (home.runtime / NURSERY).read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return []
    found: list[guard.Process] = []
    for line in lines:
        with suppress(ValueError, KeyError, TypeError):
            said = json.loads(line)
            process = guard.read_process(int(said["pid"]))
            known = (said["start_time"], said["boot_id"])
            if process is not None and known == (process.start_time, guard.boot_id()) and process.state not in "ZX":
                found.append(process)
    return found


def _still(processes: Iterable[guard.Process]) -> list[guard.Process]:
    now = [(process, guard.read_process(process.pid)) for process in processes]
    return [old for old, new in now if new and new.start_time == old.start_time and new.state not in "ZX"]


async def end_nurseries(left: list[guard.Process]) -> None:
    """A nursery that nobody needs any more leaves by itself; one that does not is ended."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + GRACE_SECONDS
    while left := _still(left):
        for process in left:
            guard.send(process, signal.SIGKILL if loop.time() > deadline else signal.SIGCONT)
        await asyncio.sleep(_PAUSE)


def _leftovers(folder: Path) -> list[Path]:
    with suppress(OSError):
        return list(folder.iterdir())
    return []


async def recover(
    board: Board,
    home: Home,
    revoke: Callable[[str, str], Awaitable[int | None]],
    nurseries: Iterable[guard.Process] = (),
) -> list[str]:
    """End every run that is still open on the board and clear its slice; one line for each card.

    `nurseries`: those of dead supervisors that still live; they are ended once nothing hangs below them.

    `revoke` ends an agent's authority, with a reason; the entry, or None for an agent that never had any.

    Identity is pid, start time and boot: a process of another boot, or another program that got the pid, is
    not touched.
    """
    boot = guard.boot_id()
    tables = board.tables
    cards = [c for c in tables.cards.values() if c.state in OPEN_STATES and c.run in tables.runs]
    open_runs = {r.id: r for c in cards if (r := tables.runs.get(c.run or "")) is not None and r.ended is None}
    mine = {r.id: (r.pid, r.start_time) for r in open_runs.values() if r.boot_id == boot and r.pid and r.start_time}
    for nursery in nurseries:
        # One that was stopped could neither collect its runners nor see that it is alone.
        guard.send(nursery, signal.SIGCONT)
    ended = await _end(mine)
    await end_nurseries(list(nurseries))
    lines: list[str] = []
    # Leaves first: below an agent that is revoked already nobody can be heard.
    for card in sorted(cards, key=lambda c: KINDS[c.kind].layer if c.kind in KINDS else 1, reverse=True):
        run = open_runs.get(card.run or "")
        if run is None:
            continue
        slices.remove(run.slice)
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
    for leftover in (*_leftovers(home.slices), *_leftovers(home.bodies)):
        slices.remove(leftover)
    return lines
