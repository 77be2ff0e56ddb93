"""Whatever legal history a board has, its tables are exactly what its journal says."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from board.facts import K, created, happened, opened, plain, started
from council_tui.board.board import load_tables, replay
from council_tui.domain.card import OWNED_STATES
from council_tui.domain.errors import IllegalMove, StaleRun

CARDS = ["a", "b", "c"]
RUNS = ["r1", "r2", "r3"]
KINDS = [
    K.CARD_READY,
    K.HELLO,
    K.CLAIMED,
    K.INHERITANCE_VERIFIED,
    K.ACCEPTED,
    K.ACKNOWLEDGED,
    K.BODY_STARTED,
    K.STATUS,
    K.RETURNED,
    K.REPORTED,
    K.ORPHANED,
    K.HELD,
    K.REAPED,
    K.AGENT_ENDED,
    K.CARD_DONE,
    K.CARD_FAILED,
    K.CARD_BLOCKED,
    K.CARD_RETRY,
    K.CARD_ARCHIVED,
    K.COMMENT,
]
STEP = st.one_of(
    st.builds(created, st.sampled_from(CARDS), priority=st.integers(-5, 5), after=st.lists(st.sampled_from(CARDS))),
    st.builds(started, st.sampled_from(CARDS), st.sampled_from(RUNS), st.integers(1, 3)),
    st.builds(happened, st.sampled_from(KINDS), st.sampled_from(CARDS), st.none() | st.sampled_from(RUNS)),
)


async def live_through(path, steps):
    board = await opened(path)
    for draft in steps:
        before = {card.id: card.claim for card in board.tables.cards.values()}
        try:
            board.append(draft)
        except (StaleRun, IllegalMove):
            continue
        if draft.kind is K.CLAIMED:
            assert before[draft.card] is None, "a card has one winner"
        for card in board.tables.cards.values():
            assert card.claim is None or card.state in OWNED_STATES
    await board.close()
    assert board.failure is None
    return board.tables


@settings(max_examples=60)
@given(st.lists(STEP, max_size=60))
def test_the_tables_on_disk_are_a_fold_over_the_journal(steps):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "board.db"
        tables = asyncio.run(live_through(path, steps))
        with closing(sqlite3.connect(path)) as connection:
            stored, folded = load_tables(connection, archived=True), replay(connection)
            versions = dict(connection.execute("SELECT id, version FROM cards").fetchall())
    assert plain(stored) == plain(folded) == plain(tables)
    assert versions == {card.id: card.version for card in folded.cards.values()}
