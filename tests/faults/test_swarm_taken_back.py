"""A supervisor that dies over a swarm: the next one gives the same answer, and every member exists once."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from supervisor.stage import child

from council_tui.domain.events import EventKind as K
from faults.killed import Owner
from faults.test_taken_back import after

MEMBERS = [f"probe-{number}" for number in range(1, 7)]


@pytest.mark.parametrize(("moment", "count"), [("swarm_granted", 1), ("card_created", 5), ("acknowledged", 7)])
async def test_a_swarm_is_granted_once_whenever_its_supervisor_dies(home, moment, count):
    """Killed after the grant, among the cards (three offices' come first), or with members at work."""
    plan = [
        child("keeper", "sleep 1.5"),
        child("probe", ["sh", "-c", "sleep 1; echo $1", "sh", "{index}"], parent="keeper", count=6, retries=2),
    ]
    async with Owner(home, *plan) as owner:
        await owner.wait(moment, count=count)
        await owner.kill()
        async with after(home) as following:
            end = await following.finish()
            keeper = following.card("keeper")
            cards = [card for card in following.sup.board.tables.cards.values() if card.kind == "microshark"]
            granted = following.sup.board.tables.agents[keeper.agent].swarms
    assert sorted(card.plan_id for card in cards) == MEMBERS
    assert {str(card.state) for card in cards} == {"done"}
    assert granted["probe"]["granted"] == 6
    with closing(sqlite3.connect(home / "board.db")) as db:
        told = db.execute("SELECT count(*) FROM journal WHERE kind = ?", (K.SWARM_GRANTED,)).fetchone()
    assert told == (1,), "a grant that reached the disk stands; one that did not is no grant"
    assert keeper.result["evidence"][-1] == "swarm probe: 6 of 6 microsharks granted: 6 done"
    assert (end.exit, end.ledger["verdict"], end.audit["descendants"]) == (0, "VALID", [])
