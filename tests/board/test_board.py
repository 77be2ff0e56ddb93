"""The board decides in memory and writes once: append-only, fenced, and all or nothing."""

from __future__ import annotations

import asyncio
import sqlite3

import pytest

from board.facts import K, created, happened, opened, plain, rows, started, whole_life
from council_tui.board.board import load_tables, replay
from council_tui.board.database import Writer, read_only
from council_tui.domain.errors import HomeUnusable, IllegalMove, StaleRun


@pytest.fixture
async def board(tmp_path):
    board = await opened(tmp_path / "board.db")
    yield board
    await board.close()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "board.db"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE journal SET kind = 'card_done'",
        "DELETE FROM journal",
        "INSERT OR REPLACE INTO journal VALUES (1, '', 'comment', NULL, NULL, NULL, '{}')",
        "INSERT INTO journal VALUES (9, '', 'comment', NULL, NULL, NULL, '{}')",
        "INSERT INTO journal VALUES (NULL, '', 'comment', NULL, NULL, NULL, '{}')",
    ],
)
async def test_nobody_changes_the_journal_but_at_its_end(board, path, statement):
    await board.append(created("a"))
    connection = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="journal"):
        connection.execute(statement)
    connection.close()


async def test_what_was_appended_is_on_disk_once_it_is_answered(board, path):
    await board.append(*whole_life("a", "r"))
    assert rows(path, "SELECT count(*), max(seq) FROM journal") == [(9, 9)]
    assert rows(path, "SELECT id, state FROM cards") == [("a", "done")]
    assert rows(path, "SELECT id, state FROM runs") == [("r", "done")]


async def test_the_tables_are_what_the_journal_says(board, path):
    await board.append(*whole_life("a", "r"), created("b"), happened(K.COMMENT, "b"))
    connection = sqlite3.connect(path)
    assert plain(load_tables(connection, archived=True)) == plain(replay(connection)) == plain(board.tables)
    connection.close()


async def test_a_second_claim_of_a_card_is_refused(board):
    await board.append(*whole_life("a", "r")[:5])
    with pytest.raises(StaleRun, match="claimed already"):
        board.append(happened(K.CLAIMED, "a", "r", claim="c_2"))
    assert board.tables.cards["a"].claim == "c_1"


@pytest.mark.parametrize("kind", [K.CLAIMED, K.ACKNOWLEDGED, K.RETURNED, K.REPORTED, K.VERIFIED, K.CARD_DONE])
async def test_a_run_that_lost_its_card_writes_nothing_more_about_it(board, kind):
    await board.append(created("a"), happened(K.CARD_READY, "a"), started("a", "r1"), started("a", "r2", attempt=2))
    with pytest.raises(StaleRun, match="belongs to run r2"):
        board.append(happened(kind, "a", "r1"))


@pytest.mark.parametrize("kind", [K.CARD_DONE, K.CLAIMED, K.ACKNOWLEDGED, K.RETURNED])
async def test_a_card_does_not_jump_over_a_lane(board, kind):
    await board.append(created("a"))
    with pytest.raises(IllegalMove, match="is not a legal move"):
        board.append(happened(kind, "a"))


async def test_a_card_is_created_once_and_must_exist_for_everything_else(board):
    await board.append(created("a"))
    with pytest.raises(IllegalMove, match="exists already"):
        board.append(created("a"))
    with pytest.raises(IllegalMove, match="there is no card b"):
        board.append(happened(K.CARD_READY, "b"))


async def test_what_was_decided_before_a_refusal_reaches_the_disk(board, path):
    with pytest.raises(IllegalMove):
        board.append(created("a"), happened(K.CARD_DONE, "a"), created("b"))
    await board.append(created("c"))
    assert rows(path, "SELECT id FROM cards ORDER BY id") == [("a",), ("c",)]
    assert rows(path, "SELECT seq FROM journal") == [(1,), (2,)]


async def test_whoever_changed_a_row_behind_our_back_is_found_out(board, path):
    await board.append(created("a"))
    connection = sqlite3.connect(path)
    connection.execute("UPDATE cards SET version = 99")
    connection.commit()
    connection.close()
    with pytest.raises(StaleRun, match="changed by someone else"):
        await board.append(happened(K.CARD_READY, "a"))
    assert isinstance(board.failure, StaleRun)
    assert rows(path, "SELECT count(*) FROM journal") == [(1,)], "event and row are one transaction"


async def test_a_full_disk_is_noticed_and_undoes_the_whole_append(board, path, monkeypatch):
    monkeypatch.setattr("council_tui.board.database.PATIENCE_SECONDS", 0)
    await board.append(created("a"))
    await board._writer.submit(lambda db: db.execute("PRAGMA max_page_count = 1").fetchone())
    with pytest.raises(HomeUnusable, match=r"board\.db could not be written for 0 s: .* full; make room there"):
        await board.append(created("b", title="x" * 100_000))
    assert "full" in str(board.failure)
    assert rows(path, "SELECT id FROM cards") == [("a",)]
    assert rows(path, "SELECT count(*) FROM journal") == [(1,)]


async def test_many_appends_share_a_commit(board, path):
    statements = []
    await board._writer.submit(lambda db: db.set_trace_callback(statements.append))
    await asyncio.gather(*(board.append(created(f"c{number}")) for number in range(200)))
    assert statements.count("COMMIT") < 20
    assert rows(path, "SELECT count(*) FROM cards") == [(200,)]


async def test_a_job_that_fails_undoes_itself_alone(tmp_path):
    writer = Writer(tmp_path / "any.db", "CREATE TABLE t (n INTEGER)")
    await writer.start()

    def insert(number, fail=False):
        def work(db):
            db.execute("INSERT INTO t VALUES (?)", (number,))
            if fail:
                raise ValueError("no")

        return work

    done = await asyncio.gather(
        writer.submit(insert(1)), writer.submit(insert(2, fail=True)), writer.submit(insert(3)), return_exceptions=True
    )
    await writer.close()
    assert [type(result) for result in done] == [type(None), ValueError, type(None)]
    assert rows(tmp_path / "any.db", "SELECT n FROM t ORDER BY n") == [(1,), (3,)]


async def test_a_reader_cannot_write(board, path):
    await board.append(created("a"))
    async with read_only(path) as connection:
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            await connection.execute("DELETE FROM cards")


async def test_opening_it_again_loads_the_same_tables(path):
    first = await opened(path)
    await first.append(*whole_life("a", "r"), created("b"), happened(K.CARD_READY, "b"), started("b", "s"))
    await first.close()
    second = await opened(path)
    assert plain(second.tables) == plain(first.tables)
    await second.append(happened(K.CLAIMED, "b", "s"))
    await second.close()


async def test_archived_cards_stay_on_disk_and_out_of_memory(path):
    board = await opened(path)
    await board.append(*whole_life("a", "r"), happened(K.CARD_ARCHIVED, "a"), created("b"))
    await board.close()
    again = await opened(path)
    await again.close()
    assert set(again.tables.cards) == {"b"}
    assert again.tables.runs == {}
    connection = sqlite3.connect(path)
    assert plain(load_tables(connection, archived=True)) == plain(replay(connection))
    connection.close()


async def test_a_file_that_cannot_be_written_is_told_in_one_sentence(tmp_path):
    with pytest.raises(HomeUnusable, match=r"cannot write .*board\.db"):
        await opened(tmp_path / "missing" / "board.db")


async def test_listeners_hear_every_event_in_order(board):
    heard = []
    board.listen(lambda event: heard.append((event.seq, str(event.kind))))
    await board.append(created("a"), happened(K.CARD_READY, "a"))
    assert heard == [(1, "card_created"), (2, "card_ready")]


async def test_after_a_write_that_failed_everyone_is_told_that_first_error_and_nothing_more_is_written(board, path):
    await board.append(created("a"))
    stop = (
        "CREATE TEMP TRIGGER stop BEFORE INSERT ON main.journal WHEN NEW.seq = 2 BEGIN SELECT raise(ABORT, 'full'); END"
    )
    await board._writer.submit(lambda db: db.execute(stop))
    # The second is queued before anyone knows, and fails for a reason of its own.
    waiting = [board.append(created("b")), board.append(created("c"))]
    told = await asyncio.gather(*waiting, return_exceptions=True)
    late = board.append(created("d"))
    assert late.done(), "refused at once"
    assert [*told, late.exception()] == [board.failure] * 3
    assert str(board.failure) == "full"
    assert rows(path, "SELECT count(*) FROM journal") == [(1,)]
    assert {"b", "c", "d"} <= set(board.tables.cards), "memory goes on, for an end in order"
