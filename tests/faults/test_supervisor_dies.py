"""The supervisor is shot or frozen: nothing outlives its patience, and nobody is blamed for its sleep."""

from __future__ import annotations

import asyncio
import json
import signal

import pytest
from supervisor.stage import Stage, alive, child, entries_of, gone, plan_of, runs_of, until

from council_tui.board.home import Home
from council_tui.domain.events import EventKind as K
from council_tui.ledger.verify import verify_log
from council_tui.runner import guard
from faults.killed import Owner


async def test_nothing_outlives_a_supervisor_that_was_killed_and_the_next_one_puts_it_right(home):
    async with Owner(home) as owner:
        await owner.until_all_work()
        runs = runs_of(home)
        assert len(alive(runs)) >= 5
        stopped = next(one[3]["pid"] for one in owner.told if one[0] == "agent_started" and "steady" in one[1])
        guard.send(guard.read_process(stopped), signal.SIGSTOP)
        owner.process.send_signal(signal.SIGKILL)
        await owner.process.wait()
        await until(lambda: alive(runs) == [])
        await until(lambda: all(gone(pid) for pid in [*owner.runners, owner.nursery]))

    plan = plan_of(child("next", "echo next"))
    stage = Stage(home, plan)
    recovered = []
    stage.sup.board.listen(recovered.append)
    async with stage:
        told = {event.data["reason"] for event in recovered if event.kind is K.ORPHANED}
        assert told == {"the supervisor was gone before this run had ended"}
        causes = [event.data["cause"] for event in recovered if event.kind is K.ORPHANED]
        assert causes == ["supervisor_gone"] * 7, "four children and three offices"
        failed = {str(event.card): event.data["fail"] for event in recovered if event.kind is K.CARD_FAILED}
        assert sorted(failed.values()) == ["cancelled"] + ["orphaned"] * 7
        assert {event.data["what"] for event in recovered if event.kind is K.RECOVERED} == {"ended"}
        assert [str(item.what) for item in stage.sup.recovery.plan] == ["ended"] * 7
        assert (await stage.end()).exit == 0
    revoked = [said["of"] for kind, _, said in entries_of(stage.home.ledger) if kind == "revocation"]
    granted = [said["child"] for kind, _, said in entries_of(stage.home.ledger) if kind == "delegation"]
    assert sorted(revoked) == sorted(granted), "no dead agent keeps its authority"
    pins = json.loads((Home(home).keys / "pins.json").read_text())
    assert str(verify_log(stage.home.ledger, root_public=bytes.fromhex(pins["root"])).verdict) == "VALID"


async def test_a_supervisor_that_was_frozen_blames_nobody(home):
    async with Owner(home) as owner:
        await owner.until_all_work()
        owner.process.send_signal(signal.SIGSTOP)
        # Five intervals of the steady child, and nobody listens.
        await asyncio.sleep(2.5)
        owner.process.send_signal(signal.SIGCONT)
        ticks = sum(one[0] == "tick" for one in owner.told)
        await owner.wait("tick", count=ticks + 6)
        assert [one for one in owner.told if one[0] in ("orphaned", "expired", "reap_started")] == []
        owner.process.kill()
        await until(lambda: gone(owner.nursery))


@pytest.mark.parametrize("moment", ["agent_started", "claimed"])
async def test_a_supervisor_killed_in_the_middle_of_a_birth_leaves_nothing(home, moment):
    async with Owner(home) as owner:
        await owner.wait("nursery")
        await owner.wait(moment, "child:")
        owner.process.send_signal(signal.SIGKILL)
        await owner.process.wait()
        nursery = next(one[3]["pid"] for one in owner.told if one[0] == "nursery")
        await until(lambda: gone(nursery))
        assert alive(runs_of(home)) == []
    async with Stage(home, plan_of(child("next", "echo next"))) as stage:
        assert (await stage.end()).exit == 0
