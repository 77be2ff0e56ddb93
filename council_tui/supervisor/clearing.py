"""What a run leaves on this machine is removed, and what cannot be removed at once is tried again later.

A machine that is short of descriptors for a moment can open no directory, so nothing is concluded from one try.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from council_tui.domain.events import EventKind
from council_tui.supervisor import groups, slices

if TYPE_CHECKING:
    from council_tui.supervisor.seat import Seat
    from council_tui.supervisor.supervisor import Supervisor

FIRST_SECONDS = 1.0
"""Before the second try; each further pause is twice as long."""
MOST_TRIES = 9
"""Some four minutes; what is there after that is a person's to remove."""
AT_THE_END = (0.1, 0.4, 1.0)
"""Pauses before the last tries, when a fleet is over and everything has to be gone, in seconds."""


@dataclass
class _Left:
    """What a run that is over has left."""

    seat: Seat
    paths: tuple[str, ...]
    tries: int
    due: float
    """When it is tried again, on the supervisor's clock."""
    busy: bool = False


class Clearing:
    """Removes what runs leave, for one supervisor."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._sup = supervisor
        self._left: dict[str, _Left] = {}
        """By run."""

    @property
    def left(self) -> set[str]:
        """Paths of runs that are over which could not be removed."""
        return {path for left in self._left.values() for path in left.paths}

    async def clear(self, seat: Seat) -> None:
        """Remove what a run had on this machine; what cannot be removed now is remembered."""
        paths = await asyncio.to_thread(self._remove, seat)
        self.note(seat, paths)
        self._tell(seat, paths)

    def note(self, seat: Seat, paths: list[str]) -> None:
        """This is left of a run, after a first try."""
        if paths:
            self._left[seat.run] = _Left(seat, tuple(paths), 1, self._sup.clock() + FIRST_SECONDS)

    def look(self) -> None:
        """Try again what is due."""
        now = self._sup.clock()
        for left in self._left.values():
            if now >= left.due and left.tries < MOST_TRIES and not left.busy:
                left.busy = True
                self._sup.background(self._again(left))

    async def end(self) -> None:
        """Everything should be gone by now: the last tries, in quick succession."""
        for pause in AT_THE_END:
            for left in [left for left in self._left.values() if not left.busy]:
                await self._again(left)
            if not self._left:
                return
            await asyncio.sleep(pause)

    def _remove(self, seat: Seat) -> list[str]:
        """In a thread: an agent may have left very many files. What is still there."""
        # A runner that was killed could not take its body's socket with it.
        paths = (seat.slice, str(self._sup.home.bodies / seat.run))
        return [*(path for path in paths if not slices.remove(path)), *groups.clear(self._sup.home, seat.run)]

    async def _again(self, left: _Left) -> None:
        if any(seat.slice == left.seat.slice for seat in self._sup.seats.values()):
            # Somebody else removed it, and a later run has its own there.
            del self._left[left.seat.run]
            return
        left.busy = True
        try:
            paths = await asyncio.to_thread(self._remove, left.seat)
        finally:
            left.busy = False
        left.paths = tuple(paths)
        left.due = self._sup.clock() + FIRST_SECONDS * 2**left.tries
        left.tries += 1
        if not paths and self._left.pop(left.seat.run, None) is not None:
            self._tell(left.seat, paths)

    def _tell(self, seat: Seat, left: list[str]) -> None:
        # A late try may find that the card of its run has been archived.
        if seat.card in self._sup.board.tables.cards:
            self._sup.log(seat, EventKind.SLICE_CLEARED, {"path": seat.slice, "cleared": seat.slice not in left})
