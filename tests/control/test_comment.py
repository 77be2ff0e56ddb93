"""A person's word on a card, with and without a council that runs."""

import asyncio
import contextlib
import sqlite3

import pytest

from council_tui.board.board import load_tables
from council_tui.board.home import Home
from council_tui.control.comment import comment
from council_tui.control.council import Council
from council_tui.domain.errors import CouncilError, Refused
from council_tui.runner.channel import RemoteRefusal
from tests.control.conftest import until


def comments(home: Home, name: str) -> list[str]:
    with contextlib.closing(sqlite3.connect(home.board)) as db:
        cards = load_tables(db, archived=True).cards.values()
    return [c["text"] for card in cards if card.plan_id == name for c in card.comments]


async def test_a_comment_goes_through_whoever_runs_the_council(council: Council):
    await until(council, lambda room: any(card.label == "later" for card in room.cards))
    await comment(council.home, "later", "[bold]wait\x1b[2J for me")
    found = await council.detail(next(c.id for c in council.sup.board.tables.cards.values() if c.plan_id == "later"))
    assert any("operator" in line and "wait␛[2J for me" in line for line in found.history)
    with pytest.raises(RemoteRefusal, match="there is no card"):
        await comment(council.home, "nobody", "hello")


async def test_a_comment_reaches_the_board_when_nobody_runs_it(home: Home):
    with pytest.raises(CouncilError, match="no council"):
        await comment(home, "x", "hello")
    from tests.control.conftest import PLAN, Options, parse_plan

    first = Council(home, Options(plan=parse_plan(PLAN, "room.yaml")))
    await first.open()
    await first.drain()
    await first.close()
    await comment(home, "idle", "looked at it")
    assert await asyncio.to_thread(comments, home, "idle") == ["looked at it"]
    with pytest.raises(Refused, match="1 to"):
        await comment(home, "idle", "  ")
