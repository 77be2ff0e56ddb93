"""A new supervisor takes back what lives: same run, same body, nothing done twice and nothing lost."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
from contextlib import asynccontextmanager, closing

import pytest
from supervisor.stage import WITHIN, Watcher, alive, child, entries_of, gone, plan_of, python, runs_of, until

from council_tui.board.home import Home
from council_tui.control.council import Council, Options
from council_tui.control.views import SpawnDraft
from council_tui.domain.errors import CouncilError
from council_tui.domain.events import EventKind as K
from council_tui.domain.lifecycle import Phase
from council_tui.runner import guard
from faults.killed import Owner


class Next(Watcher):
    """The council that comes after the one that was killed."""

    def __init__(self, home, options=None):
        super().__init__()
        self.council = Council(Home(home), options)
        self.sup = self.council.sup
        self.sup.board.listen(self.hear)

    async def finish(self):
        async with asyncio.timeout(WITHIN):
            return await self.council.run()

    def seat(self, name):
        return next(seat for seat in self.sup.seats.values() if seat.order.id == name)

    def card(self, name):
        return next(card for card in self.sup.board.tables.cards.values() if card.plan_id == name)

    def whats(self):
        return {e.agent.split(":")[1].split(".")[0]: e.data["what"] for e in self.events if e.kind is K.RECOVERED}


@asynccontextmanager
async def after(home, options=None):
    following = Next(home, options)
    await following.council.open()
    try:
        yield following
    finally:
        if following.sup.seats:
            await following.council.interrupt("the test is over")
            await following.council.end()
        await following.council.close()


def slow(name, seconds, **more):
    return child(name, f"echo begun; sleep {seconds}; echo {name}", policy={"grace_seconds": 0.5}, **more)


def times(home, kind="claimed"):
    """How often something happened, over all supervisors, and to how many runs."""
    with closing(sqlite3.connect(home / "board.db")) as db:
        return db.execute("SELECT count(*), count(DISTINCT run) FROM journal WHERE kind = ?", (kind,)).fetchone()


async def test_who_lives_is_taken_back_and_ends_its_work_under_the_same_run(home):
    plan = [
        slow("one", 2),
        slow("two", 2, parent="openclaw"),
        slow("shark", 1.5, parent="two"),
        slow("last", 0, after=["one"]),
    ]
    async with Owner(home, *plan) as owner:
        await owner.wait("body_started", count=3)
        bodies = {one[1]: one[3]["pid"] for one in owner.told if one[0] == "body_started"}
        await owner.kill()
        async with after(home) as following:
            assert not any(gone(pid) for pid in bodies.values())
            end = await following.finish()
            assert {name: str(following.card(name).state) for name in ("one", "two", "shark", "last")} == dict.fromkeys(
                ("one", "two", "shark", "last"), "done"
            )
            assert (end.exit, end.ledger["verdict"], end.audit["descendants"]) == (0, "VALID", [])
    assert set(following.whats().values()) == {"taken_back"}
    assert len(following.whats()) == 4, "three offices share a name, three children"
    assert times(home) == (7, 7), "each card was claimed once, by one run"
    kinds = [kind for kind, agent, _ in entries_of(home / "ledger.db") if agent.startswith(("child:", "microshark:"))]
    assert sorted(kinds) == ["acceptance"] * 4 + ["ascension"] * 4 + ["delegation"]


async def test_a_runner_killed_after_it_was_taken_back_takes_its_body_along_and_the_card_says_so(home):
    async with Owner(home, child("one", "setsid sleep 600 & sleep 600")) as owner:
        body = (await owner.wait("body_started"))[3]["pid"]
        await owner.kill()
        async with after(home) as following:
            seat = following.seat("one")
            await until(seat.back.is_set)
            os.kill(seat.pid, signal.SIGKILL)
            failed = await following.wait(K.CARD_FAILED, "one")
            assert (failed.data["fail"], "signal 9" in failed.data["reason"]) == ("orphaned", True)
            assert gone(body)
            assert alive({seat.run}) == []


async def test_beats_go_on_with_the_next_supervisor_and_silence_is_judged_again(home):
    async with Owner(home, child("one", "sleep 600", policy={"parent_heartbeat_interval_seconds": 0.5})) as owner:
        await owner.wait("body_started")
        await owner.kill()
        async with after(home) as following:
            seat = following.seat("one")
            await until(lambda: seat.beat_count > 2)
            assert following.find(K.BEAT_LATE, "one") is None
            os.kill(seat.pid, signal.SIGSTOP)
            await following.wait(K.ORPHANED, "one", cause="silent")


async def test_without_a_next_supervisor_nothing_outlives_its_patience(home):
    policy = {"parent_heartbeat_interval_seconds": 0.3, "patience_seconds": 0.6, "grace_seconds": 0.2}
    async with Owner(home, child("one", "trap '' TERM; sleep 600 & sleep 600", policy=policy)) as owner:
        runner = next(one for one in [await owner.wait("agent_started", "one")])[3]["pid"]
        await owner.wait("body_started")
        runs = runs_of(home)
        await owner.kill()
        killed = asyncio.get_running_loop().time()
        await until(lambda: gone(runner) and alive(runs) == [])
        # Patience, grace, and what a busy machine needs.
        assert 0.5 < asyncio.get_running_loop().time() - killed < 10


async def test_what_was_frozen_stays_frozen_and_thaws_under_the_next_one(home, tmp_path):
    gate = tmp_path / "gate"
    # Not a shell: one that is stopped while it starts a program waits for that and never shows as stopped itself.
    waits = "import os, sys, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.05)\nprint('fine')"
    async with Owner(home, child("one", python(waits, str(gate)))) as owner:
        body = (await owner.wait("body_started"))[3]["pid"]
        owner.process.send_signal(signal.SIGUSR1)
        await owner.wait("frozen", "one")
        # What is not on disk when its supervisor dies was not promised to anyone.
        await until(lambda: guard.read_process(body).state == "T" and times(home, "frozen") == (1, 1))
        await owner.kill()
        async with after(home) as following:
            seat = following.seat("one")
            await until(seat.back.is_set)
            assert seat.state.frozen_since is not None
            assert guard.read_process(body).state == "T"
            gate.touch()
            await following.council.freeze(seat.agent, frozen=False)
            assert (await following.finish()).exit == 0


async def test_an_impostor_at_the_socket_gets_no_runner_and_no_answer(home):
    """A body may bind the supervisor's socket once that is gone; it does not hold Hermes' key."""
    policy = {"parent_heartbeat_interval_seconds": 1, "patience_seconds": 1.5, "grace_seconds": 0.2}
    async with Owner(home, child("one", "sleep 600", policy=policy)) as owner:
        await owner.wait("body_started")
        runner = (await owner.wait("agent_started", "one"))[3]["pid"]
        await owner.kill()
        heard = []

        async def pretend(reader, writer):
            first = await reader.readline()
            writer.write(b'{"jsonrpc":"2.0","method":"reap","params":{"grace":0},"id":7}\n')
            writer.write(b'{"jsonrpc":"2.0","result":{"beat_token":"x","seq":0,"prev":null},"id":1}\n')
            heard.append((first, await reader.readline()))
            writer.close()

        path = Home(home).socket
        path.unlink()
        server = await asyncio.start_unix_server(pretend, str(path))
        await until(lambda: len(heard) >= 4)
        server.close()
        # Three offices and the child, or one of them twice: it goes on looking for the real one.
        assert all(b'"resume"' in asked and b"not introduced" in said for asked, said in heard)
        await until(lambda: gone(runner))


async def test_a_card_whose_agent_was_alive_at_two_crashes_is_quarantined(home):
    plan = child("bad", "sleep 600"), slow("good", 600)
    async with Owner(home, *plan) as owner:
        body = (await owner.wait("body_started", "bad"))[3]["pid"]
        await owner.wait("body_started", "good")
        await owner.kill()
    async with Owner(home, *plan) as second:
        await second.wait("recovered", count=5)
        await second.kill()
    async with after(home) as following:
        await following.wait(K.QUARANTINED, "bad")
        await until(lambda: following.card("bad").state == "blocked")
        assert (following.card("bad").block, gone(body)) == ("hold", True)
        assert "two crashes" in following.card("bad").reason


async def test_a_report_that_reached_the_ledger_is_told_though_its_runner_is_gone(home):
    async with Owner(home, child("one", "echo fine"), slow("two", 600)) as owner:
        await owner.wait("verified", "one")
        await owner.kill()
    async with after(home) as following:
        await until(lambda: str(following.card("one").state) == "done")


@pytest.mark.parametrize(
    "moment", ["agent_started", "hello", "delegated", "claimed", "inheritance_verified", "accepted"]
)
async def test_a_birth_that_was_interrupted_begins_again_and_nothing_of_it_is_left(home, moment):
    async with Owner(home, child("one", "echo fine"), slow("two", 600)) as owner:
        await owner.wait(moment, "child:one")
        await owner.kill()
        async with after(home) as following:
            following.council.dispatch()
            await until(lambda: str(following.card("one").state) == "done")


async def test_handing_over_is_no_crash_and_costs_nobody_a_beat(home):
    first = Next(home)
    await first.council.open()
    first.council.dispatch()
    draft = SpawnDraft("zeroclaw", "stays", ("sh", "-c", "sleep 2; echo fine"), heartbeat_seconds=1)
    await first.council.spawn(draft)
    started = await first.wait(K.BODY_STARTED, "stays")
    runs = set(first.sup.seats)
    assert await first.council.hand_over() == 1
    assert alive(runs) != []
    async with after(home) as following:
        assert set(following.sup.seats) == runs
        assert not gone(started.data["pid"])
        await following.wait(K.RECOVERED, "stays", what="taken_back", crash=False)
        assert following.card("stays").crashes == 0
        await following.finish()
        assert str(following.card("stays").state) == "done"
        assert following.find(K.BEAT_LATE) is None


async def test_another_plan_ends_what_came_over_before_it_begins(home):
    async with Owner(home, child("old", "sleep 600")) as owner:
        body = (await owner.wait("body_started"))[3]["pid"]
        await owner.kill()
        async with after(home, Options(plan_of(child("new", "echo new")))) as following:
            assert gone(body)
            assert (await following.finish()).exit == 0
            assert str(following.card("new").state) == "done"


async def test_who_does_not_agree_to_the_plan_leaves_everything_as_it_is(home):
    shown = []

    async def refuse(view):
        shown.extend(view.lines)
        return False

    async with Owner(home, child("one", "sleep 600"), child("two", "sleep 600")) as owner:
        await owner.wait("body_started", count=2)
        body = (await owner.wait("body_started", "one"))[3]["pid"]
        await owner.kill()
        other = (await owner.wait("agent_started", "two"))[3]["pid"]
        os.kill(other, signal.SIGKILL)
        await until(lambda: gone(other))
        with pytest.raises(CouncilError, match="nothing was done"):
            await Next(home, Options(agree=refuse)).council.open()
        assert "one: lives and is taken back" in shown
        assert "two: is gone; its card is told" in shown
        assert not gone(body)
        async with after(home) as following:
            assert following.seat("one").state.phase is Phase.RUNNING
