"""The cleanliness audit: what is still alive, claimed, unsigned or on disk now that everything should be over."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from council_tui.domain.hierarchy import PARENTS
from council_tui.hosts import descriptors
from council_tui.runner import guard
from council_tui.supervisor.leftovers import looked

if TYPE_CHECKING:
    from council_tui.supervisor.supervisor import Supervisor


FILES = 16
"""That have to be free for what an audit finds to mean anything: directories, /proc and the ledger are opened."""


async def audited(sup: Supervisor) -> dict[str, Any]:
    """The audit of a fleet that is over, once this machine has room to look. Raises OSError when it never has."""
    await looked(lambda: descriptors.need(FILES))
    await sup.clearing.end()
    return await looked(lambda: audit(sup))


def audit(sup: Supervisor) -> dict[str, Any]:
    """descendants (pids), open_claims and unsigned_reports (card ids), slices (paths); all empty when clean."""
    tables = sup.board.tables
    offices = {seat.run for seat in sup.seats.values() if seat.kind in PARENTS}
    cards = tables.cards.values()
    return {
        "descendants": [p.pid for p, run in guard.all_marked() if run in tables.runs and run not in offices],
        "open_claims": [card.id for card in cards if card.claim is not None and card.kind != "office"],
        "unsigned_reports": [card.id for card in cards if card.state == "done" and card.entry is None],
        "slices": _slices_left(sup),
    }


def _slices_left(sup: Supervisor) -> list[str]:
    """What runs that are over have left on disk, also beside their own slices."""
    found = sup.clearing.left
    with suppress(OSError):
        found.update(str(path) for path in sup.home.slices.iterdir())
    used = {seat.slice for seat in sup.seats.values()} | {str(sup.home.slices / run) for run in sup.seats}
    return sorted(path for path in found - used if os.path.lexists(path))
