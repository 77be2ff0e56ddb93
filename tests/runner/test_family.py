"""A runner as a parent of swarms: it signs for members that it asked for, and for nobody else."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from domain.samples import envelope

from council_tui.domain.contract import Inheritance
from council_tui.domain.errors import Refused
from council_tui.domain.evidence import Result
from council_tui.domain.order import Member, Order
from council_tui.domain.swarm import SwarmGrant, members
from council_tui.ledger.keys import Key
from council_tui.ledger.signer import Signer
from council_tui.runner.family import Family

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def family():
    signer = Signer("child:keeper.r1", Key.generate(), "council-tui/test")
    return Family("child:keeper.r1", Inheritance(), signer, "t_k", 1, (0, 2**40))


def order(count=3):
    fields = {"id": "probe", "title": "probe", "parent": "keeper", "kind": "microshark", "run": ("true",)}
    return Order(**fields, count=count, envelope=envelope())


def params(one, run="r_1"):
    return {"run": run, "card": "t_1", "slice": f"/slices/{run}", "order": one.model_dump(mode="json")}


def test_it_writes_a_contract_for_a_member_of_a_swarm_that_it_asked_for_even_before_the_answer(family):
    family.ask_for(order())
    context = family.contract(params(members(order(), SwarmGrant(3, 42.0))[2]), NOW)["context"]
    assert context["parent_id"] == "child:keeper.r1"
    assert context["lifecycle_policy"]["run_ttl_seconds"] == 42.0


@pytest.mark.parametrize(
    "member",
    [
        Member(swarm="probe", index=4, of=4),
        Member(swarm="probe", index=1, of=4),
        Member(swarm="other", index=1, of=1),
    ],
)
def test_it_writes_none_for_a_member_that_it_did_not_ask_for(family, member):
    family.ask_for(order())
    stranger = members(order(4), SwarmGrant(4, 1.0))[member.index - 1].model_copy(update={"member": member})
    with pytest.raises(Refused, match="asked for no probe-"):
        family.contract(params(stranger), NOW)


def test_a_members_name_has_to_be_its_own(family):
    family.ask_for(order())
    renamed = members(order(), SwarmGrant(3, 1.0))[0].model_copy(update={"id": "probe-2"})
    with pytest.raises(Refused, match="asked for no probe-2"):
        family.contract(params(renamed), NOW)


def test_it_waits_for_a_new_supervisor_as_long_as_its_most_patient_child_does():
    """Its own loss would take that child down, however patient it is."""
    signer = Signer("zeroclaw:office.r1", Key.generate(), "council-tui/test")
    office = Family("zeroclaw:office.r1", Inheritance(), signer, "t_o", 2, (0, 2**40), patience=4.0)
    assert office.patience() == 4.0
    for run, interval in (("r_1", 30), ("r_2", 1)):
        policy = {"lifecycle_policy": {"parent_heartbeat_interval_seconds": interval}}
        one = Order(id="kid", title="kid", parent="zeroclaw", run=("true",), envelope=envelope(), context=policy)
        office.contract(params(one, run), NOW)
    assert office.patience() == 60.0


async def test_it_is_through_only_when_the_last_member_is_and_tells_how_they_ended(family):
    family.ask_for(order())
    family.settle("probe-1", "done")
    family.granted(order(), 3, "")
    waiting = asyncio.ensure_future(family.all_settled())
    for name, state in (("probe-2", "expired"), ("probe-3", "done")):
        await asyncio.sleep(0)
        assert not waiting.done()
        family.settle(name, state)
    await waiting
    told = family.add_to(Result("DONE", (), ("seen",)))
    assert told.evidence == ("seen", "swarm probe: 3 of 3 microsharks granted: 2 done, 1 expired")


async def test_a_refused_swarm_is_waited_for_by_nobody_and_told_with_its_reason(family):
    family.ask_for(order())
    family.granted(order(), 0, "the limit")
    family.expect("single")
    family.settle("single", "done")
    await family.all_settled()
    told = family.add_to(replace(Result("DONE"), evidence=()))
    assert told.evidence == (
        "microshark single: done",
        "swarm probe: 0 of 3 microsharks granted: none (the limit)",
    )
