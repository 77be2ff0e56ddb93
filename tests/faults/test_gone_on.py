"""A fleet is gone on with whatever of it is left: nothing that is over is done again, nothing that waits is lost."""

from __future__ import annotations

import os
import signal

import pytest
from supervisor.stage import alive, child, gone, plan_of, runs_of, until

from council_tui.control.council import Options
from council_tui.domain.errors import HomeUnusable
from council_tui.domain.events import EventKind as K
from council_tui.domain.hierarchy import PARENTS
from council_tui.runner import guard
from council_tui.supervisor.authority import Authority
from faults.killed import Owner
from faults.test_taken_back import Next, after, slow, times


def count_of(out):
    """How often each body has begun, by what it wrote down."""
    return sorted(out.read_text().split()) if out.exists() else []


async def test_an_office_that_is_gone_is_opened_anew_and_takes_over_the_cards_that_wait(home, tmp_path):
    out = tmp_path / "begun"
    plan = [
        slow("one", 600),
        child("next", f"echo next >> {out}; echo next", after=["other"]),
        slow("other", 1.5, parent="openclaw"),
    ]
    async with Owner(home, *plan) as owner:
        await owner.wait("body_started", count=2)
        await owner.kill()
        zeroclaw = (await owner.wait("agent_started", "zeroclaw:"))[3]["pid"]
        os.kill(zeroclaw, signal.SIGKILL)
        await until(lambda: gone(zeroclaw))
        async with after(home) as following:
            await until(lambda: following.find(K.CARD_ADOPTED) is not None)
            old = next(one[1] for one in owner.told if one[0] == "agent_started" and "zeroclaw:" in one[1])
            assert following.card("next").parent_agent not in (old, "")
            end = await following.finish()
            assert {name: str(following.card(name).state) for name in ("one", "next", "other")} == {
                "one": "failed",
                "next": "done",
                "other": "done",
            }
            assert end.exit == 1
    assert count_of(out) == ["next"]


async def test_the_same_plan_after_everyone_lost_patience_does_nothing_twice(home, tmp_path):
    out = tmp_path / "begun"
    policy = {"parent_heartbeat_interval_seconds": 0.3, "patience_seconds": 0.3, "grace_seconds": 0.2}
    plan = [
        child("first", f"echo first >> {out}; echo fine", policy=policy),
        child("second", f"echo second >> {out}; sleep 600", policy=policy, after=["first"]),
        child("third", f"echo third >> {out}; echo fine", policy=policy, after=["first"], parent="openclaw"),
        child("last", f"echo last >> {out}; echo fine", policy=policy, after=["third"], parent="openclaw"),
    ]
    async with Owner(home, *plan) as owner:
        await owner.wait("body_started", "second")
        await owner.kill()
        # As if all had waited for long.
        for runner in [guard.read_process(one[3]["pid"]) for one in owner.told if one[0] == "agent_started"]:
            if runner is not None:
                guard.send(runner, signal.SIGKILL)
        await until(lambda: alive(runs_of(home)) == [])
    async with after(home, Options(plan_of(*plan))) as following:
        end = await following.finish()
        states = {name: str(following.card(name).state) for name in ("first", "second", "third", "last")}
        assert (states["first"], states["second"]) == ("done", "failed")
        assert following.find(K.FLEET_STARTED) is None
        assert set(states.values()) <= {"done", "failed", "blocked"}
        assert end.audit["descendants"] == end.audit["open_claims"] == []
    begun = count_of(out)
    assert len(begun) == len(set(begun)), begun


async def test_a_fleet_of_which_only_the_end_is_missing_is_ended_and_not_begun_again(home, tmp_path):
    out = tmp_path / "begun"
    plan = [child("one", f"echo one >> {out}; echo fine"), child("two", f"echo two >> {out}; echo fine")]
    async with Owner(home, *plan) as owner:
        await owner.wait("report_written")
        await owner.kill()
    async with after(home, Options(plan_of(*plan))) as following:
        end = await following.finish()
        assert (end.exit, end.ledger["verdict"]) == (0, "VALID")
        assert end.report is not None
    assert count_of(out) == ["one", "two"]


async def stopped_parent(owner):
    """Kill the owner and stop the runner of `two`; its process."""
    two = guard.read_process((await owner.wait("agent_started", "child:two"))[3]["pid"])
    held = f"/proc/{two.ppid}/fd"
    before = len(os.listdir(held))
    await owner.kill()
    # When the nursery sees that it is alone it lets everyone go on.
    await until(lambda: len(os.listdir(held)) < before)
    guard.send(two, signal.SIGSTOP)
    return two


FAMILY = (
    child("two", "echo fine", parent="openclaw", policy={"parent_heartbeat_interval_seconds": 8}),
    child("shark", "sleep 1.5; echo fine", parent="two", policy={"parent_heartbeat_interval_seconds": 8}),
)


async def test_a_parent_that_comes_late_hears_of_the_child_that_ended_meanwhile(home):
    async with Owner(home, *FAMILY) as owner:
        await owner.wait("body_started", "shark")
        two = await stopped_parent(owner)
        async with after(home) as following:
            await until(lambda: str(following.card("shark").state) == "done")
            guard.send(two, signal.SIGCONT)
            assert (await following.finish()).exit == 0


async def test_a_birth_whose_parent_comes_late_waits_for_it(home, monkeypatch):
    async with Owner(home, *FAMILY) as owner:
        await owner.wait("card_created", "child:two")
        # Without it the shark gets no further than its hello.
        os.kill((await owner.wait("agent_started", "child:two"))[3]["pid"], signal.SIGSTOP)
        await until(lambda: times(home, "card_created") == (5, 0))
        two = await stopped_parent(owner)
        async with after(home) as following:
            turns = []
            turn = following.council.fleet.turn
            monkeypatch.setattr(following.council.fleet, "turn", lambda: turns.append(turn()))
            following.council.dispatch()
            await until(lambda: len(turns) > 2)
            assert str(following.card("shark").state) in ("backlog", "ready"), "it is no refusal"
            guard.send(two, signal.SIGCONT)
            await until(lambda: str(following.card("two").state) == "done")
            assert following.card("shark").attempt == 1, "the birth that was interrupted does not count"


async def test_a_start_that_fails_leaves_who_lives_to_the_next_one(home, monkeypatch):
    async with Owner(home, child("one", "sleep 600")) as owner:
        body = (await owner.wait("body_started"))[3]["pid"]
        await owner.kill()

        async def damaged(self):
            raise HomeUnusable("the ledger is locked")

        with monkeypatch.context() as broken:
            broken.setattr(Authority, "open", damaged)
            with pytest.raises(HomeUnusable, match="locked"):
                await Next(home).council.open()
        assert not gone(body)
        async with after(home) as following:
            await following.wait(K.RECOVERED, "one", what="taken_back")
            assert following.sup.host.pid is not None


async def test_every_office_is_there_though_the_supervisor_died_while_they_opened(home):
    plan = [child("one", "echo fine"), child("two", "echo fine", parent="openclaw")]
    async with Owner(home, *plan) as owner:
        await owner.wait("acknowledged")
        await owner.kill()
    async with after(home, Options(plan_of(*plan))) as following:
        assert {kind: following.council.fleet.office(kind) is not None for kind in PARENTS} == dict.fromkeys(
            PARENTS, True
        )
        assert (await following.finish()).exit == 0
        offices = [card for card in following.sup.board.tables.cards.values() if card.kind == "office"]
        assert {str(card.state) for card in offices} == {"done"}
