"""A person's word on a card: through whoever runs the council, or straight into the board when nobody does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from council_tui.board.board import Board, Draft
from council_tui.board.home import OwnerLock
from council_tui.control.attach import Attached
from council_tui.domain.errors import CouncilError, Refused
from council_tui.domain.events import EventKind

if TYPE_CHECKING:
    from council_tui.board.home import Home

MAX_COMMENT = 4000
OPERATOR = "operator"


def draft_of(board: Board, name: str, text: str) -> Draft:
    """The event of a comment on a card, given by its id or its name in the plan. Raises `Refused`."""
    if not text.strip() or len(text) > MAX_COMMENT:
        raise Refused("text", f"a comment has 1 to {MAX_COMMENT} characters")
    for card in board.tables.cards.values():
        if name == card.id or (name == card.plan_id and card.kind != "office"):
            return Draft(EventKind.COMMENT, None, card.id, None, {"author": OPERATOR, "text": text})
    raise Refused("card", f"there is no card {name!r} on the board")


async def comment(home: Home, name: str, text: str) -> None:
    """Put a comment on a card. Raises `CouncilError` with one sentence."""
    if not home.board.exists():
        raise CouncilError(f"there is no council in {home.root} yet")
    lock = OwnerLock(home)
    if not lock.take():
        door = await Attached.open(home)
        try:
            await door.comment(name, text)
        finally:
            await door.close()
        return
    board = Board(home.board)
    try:
        await board.open()
        await board.append(draft_of(board, name, text))
    finally:
        await board.close()
        lock.release()
