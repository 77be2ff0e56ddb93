"""However badly a fleet's last minute goes, its offices close, and audit, ledger and summary are still there."""

from __future__ import annotations

import asyncio
import shutil

import pytest
from supervisor.stage import Stage, child, gone, plan_of

from council_tui.domain.errors import CouncilError
from council_tui.domain.events import EventKind as K
from council_tui.fleet.fleet import Fleet


async def test_a_folder_of_reports_that_is_gone_is_made_again(home):
    async with Stage(home, plan_of(child("one", "echo one"))) as stage:
        shutil.rmtree(stage.home.reports)
        end = await stage.end()
    assert end.exit == 0
    assert [str(path) for path in stage.home.reports.iterdir()] == [end.report]


async def test_a_report_that_cannot_be_written_is_told_and_keeps_nothing_else_from_being_done(home):
    async with Stage(home, plan_of(child("one", "echo one"))) as stage:
        stage.home.reports.rmdir()
        stage.home.reports.touch()
        end = await stage.end()
        assert stage.sup.seats == {}
    assert (end.exit, end.cards, end.report) == (70, {"done": 1}, None)
    assert end.reason.startswith("the report could not be written: FileExistsError")
    assert not any(end.audit.values())
    assert end.ledger["verdict"] == "VALID"
    ended = stage.find(K.FLEET_ENDED)
    assert ended is not None
    assert ended.data["reason"] == end.reason


async def test_a_full_disk_ends_a_fleet_at_once_and_its_first_error_is_the_reason(home, monkeypatch):
    monkeypatch.setattr("council_tui.board.database.PATIENCE_SECONDS", 0)
    async with Stage(
        home, plan_of(child("one", "trap '' TERM; sleep 600; sleep 600"), child("two", "sleep 600"))
    ) as stage:
        body = (await stage.wait(K.BODY_STARTED, "one")).data["pid"]
        await stage.sup.board._writer.submit(lambda db: db.execute("PRAGMA max_page_count = 1").fetchone())
        for _ in range(100):
            stage.sup.log(stage.seat("one"), K.STATUS, {"text": "x" * 4000})
        with pytest.raises(Exception, match="full") as caught:
            await stage.running
        # Far below the patience that an office has to close.
        async with asyncio.timeout(20):
            await stage.fleet.drain("the supervisor failed")
            end = await stage.fleet.finish(f"{type(caught.value).__name__}: {caught.value}")
        assert stage.sup.seats == {}
    assert gone(body)
    assert (end.exit, end.cards) == (70, {"failed": 2})
    assert "board.db could not be written for 0 s: database or disk is full; make room there" in end.reason
    assert not any(end.audit.values())


async def test_a_timeout_covers_the_opening_too(home):
    stage = Stage(home, plan_of(child("one", "sleep 600")))
    await stage.sup.open()
    try:
        stage.sup.host.spawn = lambda spec: asyncio.Event().wait()
        fleet = Fleet(stage.sup, stage._plan, 0.2)
        async with asyncio.timeout(20):
            with pytest.raises(CouncilError, match=r"did not open within --timeout 0\.2$"):
                await fleet.start()
        assert stage.sup.seats == {}
    finally:
        await stage.sup.close()


async def test_a_pause_of_the_council_does_not_stretch_its_timeout(home):
    async with Stage(home, plan_of(child("long", "sleep 600")), timeout=0.5) as stage:
        stage.sup.frozen = 3600.0
        assert (await stage.end()).exit == 1
        assert stage.card("long").reason == "the fleet ran longer than --timeout 0.5"
