"""The plan of a fleet as it was taken in, kept beside the board for a supervisor that has to go on with it."""

from __future__ import annotations

import contextlib
import hashlib
import os
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from council_tui.board.home import ordinary
from council_tui.domain.errors import HomeUnusable
from council_tui.domain.events import EventKind
from council_tui.domain.hierarchy import PARENTS
from council_tui.fleet.plan import Plan

if TYPE_CHECKING:
    from council_tui.board.home import Home
    from council_tui.domain.events import Event
    from council_tui.supervisor.supervisor import Supervisor

K = EventKind


def keep(home: Home, plan: Plan) -> str:
    """Write the plan down, whole or not at all; the hex SHA-256 of what was written. Raises `HomeUnusable`."""
    raw = TypeAdapter(Plan).dump_json(plan)
    draft = home.plan.with_suffix(".new")
    try:
        draft.unlink(missing_ok=True)
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(fd)
        draft.replace(home.plan)
    except OSError as error:
        raise HomeUnusable(f"cannot write {home.plan}: {error.strerror}; make room there, then start again") from None
    return hashlib.sha256(raw).hexdigest()


def kept(home: Home, sha256: str | None) -> Plan | None:
    """The plan that was kept, if it is still what the journal says it was."""
    with contextlib.suppress(OSError, ValueError):
        raw = ordinary(home.plan)
        if hashlib.sha256(raw).hexdigest() == sha256:
            return TypeAdapter(Plan).validate_json(raw)
    return None


@dataclass(frozen=True)
class Unfinished:
    """A fleet that another supervisor began and whose offices came over."""

    name: str
    plan: Plan | None
    workdir: str
    paused: bool
    seconds: float
    """From its beginning to the last that its supervisor wrote down, by the clock of the wall."""


async def unfinished_fleet(sup: Supervisor, wanted: Plan | None = None) -> Unfinished | None:
    """The fleet to go on with: it has not ended, and it is the `wanted` one, or one of its offices lives."""
    newest = await sup.board.newest(K.FLEET_STARTED, K.FLEET_ENDED)
    if newest is None or newest.kind is K.FLEET_ENDED:
        return None
    said: dict[str, Any] = newest.data
    plan = kept(sup.home, said.get("sha256"))
    if plan is None and said.get("plan") is not None:
        return None
    here = any(seat.kind in PARENTS and (seat.expected or seat.can_parent) for seat in sup.seats.values())
    if not here and (wanted is None or wanted != plan):
        return None
    held = await sup.board.newest(K.DISPATCH_PAUSED, K.DISPATCH_RESUMED)
    paused = held is not None and held.seq > newest.seq and held.kind is K.DISPATCH_PAUSED
    last = sup.recovery.newest or newest
    return Unfinished(str(said["name"]), plan, str(said["workdir"]), paused, _between(newest, last))


def _between(first: Event, last: Event) -> float:
    return max(0.0, (datetime.fromisoformat(last.at) - datetime.fromisoformat(first.at)).total_seconds())
