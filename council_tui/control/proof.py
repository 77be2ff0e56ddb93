"""The ledger for front ends: rows that are safe to show, and verifications in words."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from council_tui.control.views import EntryView, VerifyView
from council_tui.domain.text import safe
from council_tui.ledger import reading
from council_tui.ledger.envelope import open_strict
from council_tui.ledger.remembered import Remembered, read_pins
from council_tui.ledger.statement import Statement, read
from council_tui.ledger.verdicts import BadEntry
from council_tui.ledger.verify import verify_entry, verify_log

if TYPE_CHECKING:
    from pathlib import Path

    from council_tui.board.home import Home


def _detail(said: Statement) -> str:
    fields = said.fields
    match said.kind:
        case "delegation":
            return f"{fields['child']} at depth {fields['depth']}"
        case "ascension":
            found = fields["findings"]
            return f"{fields['status']}, {found} finding{'' if found == 1 else 's'}: {fields['summary']}"
        case "observation":
            exit_status, signal = fields["exit_status"], fields["signal"]
            how = f" with signal {signal}" if signal else "" if exit_status is None else f" with exit {exit_status}"
            return f"{fields['of']} ended{how} after {fields['wall_ms']} ms"
        case "revocation":
            return f"{fields['of']}: {fields['reason']}"
        case "report":
            return str(fields["title"])
        case _:
            return f"contract {fields['contract'][:16]}…" if "contract" in fields else ""


def entry_view(row: reading.Row) -> EntryView:
    """One row; an entry that cannot be read is shown as what is wrong with it."""
    try:
        said = read(open_strict(row.raw).payload)
    except BadEntry as error:
        return EntryView(row.index, "?", "", "", "", row.leaf, str(error.verdict), safe(str(error), 200))
    at = datetime.fromtimestamp(min(said.at, 253402300799), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    card = next((name for name, _ in said.subjects if name.startswith("t_")), str(said.fields.get("card", "")))
    return EntryView(
        row.index,
        said.kind,
        safe(said.agent, 120),
        safe(card, 64),
        at,
        row.leaf,
        "",
        safe(_detail(said), 200),
    )


async def entries(path: Path, start: int, limit: int) -> tuple[EntryView, ...]:
    """Rows of the ledger from an index on; none when there is no ledger yet."""
    if not await asyncio.to_thread(path.exists):
        return ()
    return tuple(entry_view(row) for row in await reading.rows(path, start, limit))


async def verify(path: Path, pins: Pins, index: int | None) -> VerifyView:
    """Verify one entry, or all, in a thread, and hold the log against what is remembered of it."""
    return await asyncio.to_thread(_verify, path, pins, index)


def _verify(path: Path, pins: Pins, index: int | None) -> VerifyView:
    # Before the log is looked at: a running council goes on writing to all of them.
    known = Remembered.of(pins.home.keys, pins.home.board)
    if index is not None:
        one = verify_entry(path, index, pins.root, pins.log, known)
        lines = tuple(safe(f"{check.verdict}  {check.name}: {check.detail}", 300) for check in one.checks)
        return VerifyView(str(one.verdict), 1, None if one.verdict == "VALID" else index, lines)
    report = verify_log(path, root_public=pins.root, log_public=pins.log, remembered=known)
    lines = tuple(
        safe(
            f"{'entry ' + str(bad.index) if bad.index is not None else 'log'}: {bad.verdict}: {bad.detail}. "
            f"{bad.next_step}",
            400,
        )
        for bad in report.bad[:20]
    ) or (f"{report.checked} entries, signatures, lineage, tree and head are sound", *known.lines())
    first = report.bad[0].index if report.bad else None
    return VerifyView(str(report.verdict), report.checked, first, lines)


@dataclass(frozen=True)
class Pins:
    """What a home's ledger is held against: the public keys, and where an earlier head is remembered."""

    root: bytes
    log: bytes
    home: Home


def pins_of(home: Home) -> Pins:
    """The pinned public keys. Raises `HomeUnusable` with one sentence when there are none."""
    return Pins(*read_pins(home.keys), home)


def begun(home: Home) -> bool:
    """Whether there is a ledger to verify; one that is gone but remembered is to be told, not passed over."""
    return home.ledger.is_file() or Remembered.of(home.keys, home.board).size > 0
