"""Whole fleets, run for real: from the plan to a clean end."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from supervisor.stage import REPORT_SCHEMA, Stage, child, plan_of, play, short_home

from council_tui.board.board import load_tables, replay
from council_tui.domain.events import EventKind as K
from council_tui.fleet.plan import load_plan
from council_tui.ledger.verify import verify_log
from fleet.clocks import Ahead

KILL_THE_GUARD = "kill -KILL $PPID; exec sleep 600"


@pytest.fixture(scope="module")
def drill():
    """The shipped drill, once."""
    with short_home() as home:
        yield play(home, load_plan("handshake-drill"))


@pytest.mark.parametrize(
    ("name", "fail", "kind", "facts"),
    [
        ("never-claims", "orphaned", K.ORPHANED, {"cause": "no_acknowledgement"}),
        ("never-acknowledges", "orphaned", K.ORPHANED, {"cause": "no_acknowledgement"}),
        ("goes-silent", "orphaned", K.ORPHANED, {"cause": "silent"}),
        ("dies", "orphaned", K.ORPHANED, {"cause": "process_gone"}),
        ("bad-mbti", "rejected", K.INHERITANCE_REJECTED, {}),
        ("no-report", "protocol_violation", K.PROTOCOL_VIOLATION, {}),
        ("overfills-slice", "protocol_violation", K.SLICE_BREACHED, {"limit": 1048576}),
        ("overruns-ttl", "expired", K.EXPIRED, {"reason": "lived longer than its 2 s"}),
        ("ignores-sigterm", "expired", K.REAPED, {"signal": 9, "survivors": []}),
    ],
)
def test_each_child_of_the_drill_ends_as_it_promises(drill, name, fail, kind, facts):
    card = drill.cards[name]
    assert (card.state, card.fail) == ("failed", fail)
    told = [event.data for event in drill.of(name) if event.kind is kind]
    assert told
    assert facts.items() <= told[-1].items()
    assert drill.kinds(name).count("reaped") == 1
    assert drill.kinds(name)[-1] == "card_failed"
    assert card.entry is None, "nobody vouches for what was not done"


def test_the_drill_exits_1_with_one_done_and_nothing_left(drill):
    end = drill.ending
    assert (end.exit, end.cards) == (1, {"failed": 9, "done": 1})
    assert end.audit == {"descendants": [], "open_claims": [], "unsigned_reports": [], "slices": []}
    assert end.ledger["verdict"] == "VALID"
    assert "microshark overruns-ttl: expired" in drill.cards["shark-keeper"].result["evidence"]


def test_a_reap_waits_out_its_grace_before_it_kills(drill):
    started = drill.first("ignores-sigterm", K.REAP_STARTED).at
    reaped = drill.first("ignores-sigterm", K.REAPED).at
    assert seconds(reaped) - seconds(started) >= 5.0


def audited(home):
    """The ledger held against the pinned key, as anyone would who has only the files."""
    pins = json.loads((home.keys / "pins.json").read_text())
    return verify_log(home.ledger, root_public=bytes.fromhex(pins["root"]))


def seconds(at: str) -> float:
    hours, minutes, rest = at.partition("T")[2].rstrip("Z").split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(rest)


DONE = '{"status": "DONE", "findings": [{"description": "seen it"}], "evidence": ["seen it"]}'


@pytest.fixture(scope="module")
def small():
    """Children under all three offices, a microshark, dependencies that hold, and one that never comes."""
    plan = plan_of(
        child("first", f"echo '{DONE}'", parent="openfang", envelope={"output_schema": REPORT_SCHEMA}),
        child("second", "echo second", parent="openclaw", after=["first"]),
        child("keeper", "echo kept", parent="zeroclaw", after=["second"]),
        child("shark", "echo small", parent="keeper"),
        child("stuck-shark", "echo never", parent="keeper", after=["held-shark"]),
        child("held-shark", "echo never", parent="keeper", envelope={"autonomy_band": "NEVER"}),
        child("fails", "exit 7"),
        child("waits-in-vain", "echo never", after=["fails"]),
        child("waits-longer", "echo never", after=["waits-in-vain"]),
        child(
            "refused",
            "echo never",
            context={"enforcement": "required", "inheritance": {"forbidden_capabilities": ["network"]}},
        ),
        child("on-hold", "echo never", envelope={"autonomy_band": "NEVER"}),
    )
    with short_home() as home:
        yield play(home, plan)


def test_a_dependency_holds_until_it_is_done_and_then_releases(small):
    order = [event.card for event in small.events if event.kind is K.CARD_READY]
    first, second, keeper = (small.cards[name].id for name in ("first", "second", "keeper"))
    assert order.index(first) < order.index(second) < order.index(keeper)
    done = [event.seq for event in small.of("first") if event.kind is K.CARD_DONE]
    assert done[0] < small.first("second", K.CARD_READY).seq


@pytest.mark.parametrize(
    ("name", "state", "why", "reason"),
    [
        ("first", "done", None, ""),
        ("keeper", "done", None, ""),
        ("shark", "done", None, ""),
        ("fails", "failed", "error", "exit status 7: command: sh -c 'exit 7'"),
        ("waits-in-vain", "blocked", "dependency", "needs fails, which failed"),
        ("waits-longer", "blocked", "dependency", "needs waits-in-vain, which is blocked"),
        ("stuck-shark", "blocked", "dependency", "needs held-shark, which is blocked"),
        ("on-hold", "blocked", "hold", "the band is NEVER; only the Principal releases it"),
        ("held-shark", "blocked", "hold", "the band is NEVER; only the Principal releases it"),
    ],
)
def test_every_card_ends_where_its_contract_says_and_says_why(small, name, state, why, reason):
    card = small.cards[name]
    assert (card.state, card.fail or card.block, card.reason) == (state, why, reason)


def test_what_the_machine_cannot_enforce_is_blocked_and_no_process_started(small):
    card = small.cards["refused"]
    assert (card.state, card.block) == ("blocked", "capability")
    assert "cannot keep a program from: network" in card.reason
    assert K.AGENT_STARTED not in [event.kind for event in small.of("refused")]


def test_a_parent_hears_of_every_microshark_also_of_those_that_never_start(small):
    evidence = small.cards["keeper"].result["evidence"]
    assert {line for line in evidence if line.startswith("microshark")} == {
        "microshark shark: done",
        "microshark stuck-shark: dependency",
        "microshark held-shark: hold",
    }


def test_every_run_has_its_whole_story_on_the_ledger(small):
    for name in ("first", "second", "keeper", "shark", "fails", "openfang", "openclaw", "zeroclaw"):
        agent = small.cards[name].agent
        about = [kind for kind, who, said in small.entries if agent in (who, said.get("child"), said.get("of"))]
        assert [kind for kind in about if kind not in ("report",)].count("acceptance") == 1
        assert about[0] == "delegation"
        assert about[-2:] == ["observation", "revocation"]
        assert "ascension" in about
    signer = {said["child"]: who.partition(":")[0] for kind, who, said in small.entries if kind == "delegation"}
    assert signer[small.cards["first"].agent] == "openfang"
    assert signer[small.cards["shark"].agent] == "child"
    assert signer[small.cards["openfang"].agent] == "hermes"


def test_an_independent_audit_of_the_ledger_finds_it_valid(small):
    checked = audited(small.home)
    assert str(checked.verdict) == "VALID"
    assert checked.size == len(small.entries)


def test_the_tables_after_a_real_fleet_are_what_the_journal_says(small):
    with closing(sqlite3.connect(small.home.board)) as connection:
        stored, folded = load_tables(connection, archived=True), replay(connection)
        numbers = [seq for (seq,) in connection.execute("SELECT seq FROM journal ORDER BY seq")]
    assert asdict(stored) == asdict(folded)
    assert {card.plan_id: card.state for card in stored.cards.values()} == {
        name: card.state for name, card in small.cards.items()
    }
    assert numbers == list(range(1, len(numbers) + 1))


def test_openclaw_writes_the_report_and_signs_what_it_wrote(small):
    report = Path(small.ending.report)
    text = report.read_text()
    assert "waits-in-vain" not in small.ending.as_json()["cards"]
    assert "needs fails, which failed" in text
    told = next(event for event in small.events if event.kind is K.REPORT_WRITTEN)
    kind, agent, said = small.entries[told.data["entry"]]
    assert (kind, agent.partition(":")[0], said["sha256"]) == ("report", "openclaw", told.data["sha256"])


def test_each_office_reports_what_it_took_and_by_which_doctrine(small):
    for name in ("openfang", "openclaw", "zeroclaw"):
        evidence = small.cards[name].result["evidence"]
        assert any(line.startswith("doctrine sha256 ") for line in evidence)


def test_of_failed_and_waiting_the_exit_code_tells_of_failed(small):
    assert small.ending.exit == 1
    assert {line["child"] for line in small.ending.waiting} == {"on-hold", "held-shark"}


async def test_a_failed_attempt_is_tried_again_and_what_waits_for_it_goes_on_waiting(home, monkeypatch, tmp_path):
    monkeypatch.setattr("council_tui.fleet.retries.RETRY_BASE_SECONDS", 0.05)
    mark = tmp_path / "tried"
    once = f"if [ -e {mark} ]; then echo fine; else touch {mark}; {KILL_THE_GUARD}; fi"
    plan = plan_of(
        child("flaky", once, retries=1),
        child("small", "sleep 0.2", parent="flaky"),
        child("after", "echo after", after=["flaky"]),
        child("hopeless", KILL_THE_GUARD, retries=1),
        child("answers", "exit 1", retries=3),
        child("mutates", KILL_THE_GUARD, envelope={"action_class": "MUTATE"}),
    )
    plan = replace(plan, orders=tuple(_default_retries(order) for order in plan.orders))
    async with Stage(home, plan) as stage:
        end = await stage.end()
        cards = {name: stage.card(name) for name in ("flaky", "small", "after", "hopeless", "answers", "mutates")}
    assert {name: (str(card.state), card.attempt) for name, card in cards.items()} == {
        "flaky": ("done", 2),
        "small": ("done", 1),
        "after": ("done", 1),
        "hopeless": ("failed", 2),
        "answers": ("failed", 1),
        "mutates": ("failed", 1),
    }
    retries = [event.data for event in stage.events if event.kind is K.CARD_RETRY]
    assert [(one["attempt"], one["delay_seconds"]) for one in retries] == [(1, 0.1)] * 2
    runs = {event.agent for event in stage.events if event.kind is K.AGENT_STARTED and "flaky" in str(event.agent)}
    assert len(runs) == 2, "a retry is a new name"
    assert end.ledger["verdict"] == "VALID"


def _default_retries(order):
    return order.model_copy(update={"retries": None}) if order.id == "mutates" else order


async def test_a_budget_that_is_spent_ends_what_runs_blocks_what_waits_and_exits_4(home):
    plan = plan_of(
        child("long", "sleep 600"),
        child("later", "echo later", after=["long"]),
        minutes=0.025,
    )
    async with Stage(home, plan) as stage:
        end = await stage.end()
        assert end.exit == 4
        assert stage.card("long").fail == "cancelled"
        assert stage.card("later").block == "budget"
    assert stage.find(K.BUDGET_WARNING) is not None


async def test_a_fleet_that_runs_longer_than_its_timeout_is_closed(home):
    plan = plan_of(child("long", "sleep 600"), child("later", "echo later", after=["long"]))
    stage = Stage(home, plan, timeout=60)
    clock = stage.sup.clock = Ahead()
    async with stage:
        await stage.wait(K.BODY_STARTED)
        clock.by += 61
        end = await stage.end()
        assert end.exit == 1
        assert {stage.card(name).fail for name in ("long", "later")} == {"cancelled"}


async def test_limits_hold_over_a_whole_fleet(home):
    plan = plan_of(
        *(child(f"one-{n}", "sleep 0.1", parent="zeroclaw") for n in range(4)),
        *(child(f"two-{n}", "sleep 0.1", parent="openclaw") for n in range(3)),
        limits={"concurrency": 3, "children_per_parent": 2},
    )
    most, below = 0, 0
    async with Stage(home, plan) as stage:

        def count(event):
            nonlocal most, below
            seats = [seat for seat in stage.sup.seats.values() if seat.kind == "child"]
            most = max(most, len(seats))
            below = max(below, *(sum(s.parent == p for s in seats) for p in {s.parent for s in seats}), 0)

        stage.sup.board.listen(count)
        end = await stage.end()
    assert end.exit == 0
    assert (most, below) == (3, 2)


async def test_a_paused_fleet_starts_nothing_until_it_goes_on(home):
    plan = plan_of(child("first", "read x < /dev/null; sleep 0.2"), child("second", "echo second", after=["first"]))
    async with Stage(home, plan) as stage:
        await stage.wait(K.ACKNOWLEDGED, "first")
        stage.fleet.pause(True)
        await stage.wait(K.CARD_DONE, "first")
        await stage.wait(K.CARD_READY)
        assert not stage.running.done()
        assert stage.find(K.AGENT_STARTED, "second") is None
        stage.fleet.pause(False)
        assert (await stage.end()).exit == 0
    assert [str(e.kind) for e in stage.events if "dispatch" in e.kind] == ["dispatch_paused", "dispatch_resumed"]


@pytest.mark.parametrize("stage_kind", [K.AGENT_STARTED, K.CLAIMED, K.BODY_STARTED, K.RETURNED])
async def test_an_interruption_at_any_stage_leaves_nothing_and_exits_130(home, stage_kind):
    plan = plan_of(
        child("keeper", "trap 'exit 0' TERM; sleep 0.3; sleep 0.3"),
        child("shark", "sleep 600", parent="keeper"),
        child("deaf", "trap '' TERM; sleep 600; sleep 600", policy={"grace_seconds": 0.2}),
        child("short", "echo short"),
        child("later", "echo later", after=["keeper"]),
    )
    async with Stage(home, plan) as stage:
        await stage.wait(stage_kind, "child:")
        await stage.fleet.drain("interrupted", interrupted=True)
        end = await stage.end()
    assert end.exit == 130
    assert end.audit == {"descendants": [], "open_claims": [], "unsigned_reports": [], "slices": []}
    assert {card.state for card in stage.sup.board.tables.cards.values()} <= {"done", "failed"}


async def test_a_second_council_in_a_home_is_refused_and_harms_nothing(home):
    async with Stage(home, plan_of(child("one", "sleep 0.3"))) as stage:
        with pytest.raises(Exception, match=r"process \d+ already runs a council"):
            await Stage(home).sup.open()
        assert (await stage.end()).exit == 0


async def test_a_home_is_used_again_by_the_next_fleet(home):
    plan = plan_of(child("one", "echo one"), child("two", "exit 1", after=["one"]))
    for _ in range(2):
        async with Stage(home, plan) as stage:
            end = await stage.end()
        assert (end.exit, end.cards) == (1, {"done": 1, "failed": 1})
    assert audited(stage.home).size == end.ledger["size"]


async def test_a_microshark_that_is_not_in_the_contract_is_not_spawned(home):
    plan = plan_of(child("keeper", "sleep 0.5"), child("shark", "echo small", parent="keeper"))
    async with Stage(home, plan) as stage:
        await stage.wait(K.BODY_STARTED, "keeper")
        keeper = stage.seat("keeper")
        other = stage.fleet.orders["shark"].model_copy(update={"run": ("echo", "more")})
        with pytest.raises(Exception, match="was not given shark to spawn"):
            await stage.fleet._card(keeper, other)
        with pytest.raises(Exception, match="may not spawn a child"):
            await stage.fleet._card(keeper, stage.fleet.orders["keeper"])
        assert (await stage.end()).exit == 0


async def test_an_order_that_comes_while_the_fleet_runs_goes_through_its_office(home):
    async with Stage(home, plan_of(child("one", "sleep 0.3"))) as stage:
        order = plan_of(child("more", "echo more", parent="openclaw")).orders[0]
        card = await stage.fleet.submit(order)
        assert stage.sup.board.tables.cards[card].parent_agent.startswith("openclaw:")
        assert (await stage.end()).cards == {"done": 2}
        await asyncio.sleep(0)
