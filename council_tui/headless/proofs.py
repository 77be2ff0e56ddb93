"""`council ledger` and `council verify`: the rows as they are written, and whether they hold."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from rich.text import Text

from council_tui.control import proof, reading
from council_tui.headless.lines import entry_line, verdict_line
from council_tui.headless.printing import show, show_json
from council_tui.headless.signs import BAD, GOOD, QUIET, STRONG

if TYPE_CHECKING:
    from council_tui.board.home import Home
    from council_tui.control.views import EntryView

_PAGE = 500


def _need_ledger(home: Home) -> None:
    if not home.ledger.is_file():
        if proof.begun(home):
            raise reading.NothingHere(f"the ledger of {home.root} is gone; council verify says what is known of it")
        where = f"no ledger here yet (looked in {home.root})"
        raise reading.NothingHere(f"{where}; start a fleet: council --run repo-audit")


async def _rows(home: Home) -> list[EntryView]:
    found: list[EntryView] = []
    while rows := await proof.entries(home.ledger, len(found), _PAGE):
        found += rows
    return found


def ledger(home: Home, *, json: bool) -> int:
    """The rows of the ledger, as they are written; `verify` checks them."""
    _need_ledger(home)
    rows = asyncio.run(_rows(home))
    if json:
        for row in rows:
            show_json(entry_line(row))
        return 0
    names = max((len(row.agent) for row in rows), default=0)
    show(
        Text.assemble(
            (f"{row.index:>6}  {row.at[:19]:<19}  ", QUIET),
            (f"{row.kind:<12} ", STRONG),
            f"{row.agent:<{names}}  {row.detail}",
            (f"  {row.verdict}" if row.verdict else "", BAD),
        )
        for row in rows
    )
    return 0


def verify(home: Home, entry: int | None, *, json: bool) -> int:
    """Hold one entry, or the whole ledger, against the pinned keys; 0 only when it is VALID."""
    if not proof.begun(home):
        _need_ledger(home)
    found = asyncio.run(proof.verify(home.ledger, proof.pins_of(home), entry))
    good = found.verdict == "VALID"
    if json:
        show_json(verdict_line(found))
    else:
        what = "ledger" if entry is None else f"entry {entry}"
        head = Text.assemble((found.verdict, GOOD if good else BAD), f"  {what} of {home.root}")
        show([head, *map(Text, found.lines)])
    return 0 if good else 1
