"""Swarms on screens: what was granted, how many stand how, and how long the one with least may still live."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic import TypeAdapter

from council_tui.board.projection import Agent, Card, Tables
from council_tui.control.swarms import in_full, standing, with_swarms
from council_tui.control.telling import words
from council_tui.control.views import AgentView, SwarmView, as_plain
from council_tui.domain.card import CardState
from council_tui.domain.events import Event, EventKind

KEEPER = "child:keeper.r1"
SAID = {"swarm": "probe", "asked": 9, "at_least": 2, "granted": 7, "ttl_seconds": 60.0, "reason": "asked for 9"}
STATES = (
    (CardState.RUNNING, None, None),
    (CardState.REVIEW, None, None),
    (CardState.READY, None, None),
    (CardState.BLOCKED, "transient", None),
    (CardState.BLOCKED, "hold", None),
    (CardState.FAILED, None, "expired"),
    (CardState.FAILED, None, "orphaned"),
    (CardState.DONE, None, None),
)


def board() -> Tables:
    tables = Tables()
    tables.agents[KEEPER] = Agent(KEEPER, "keeper", "child", None, "r1", "t_k", "now", swarms={"probe": SAID})
    for number, (state, block, fail) in enumerate(STATES, 1):
        order = {"member": {"swarm": "probe", "index": number, "of": 8}}
        name = f"probe-{number}"
        card = Card(f"t_{number}", name, name, "microshark", KEEPER, "t_k", "now", order=order)
        card.state, card.block, card.fail = state, block, fail
        tables.cards[card.id] = card
    tables.cards["t_other"] = Card("t_other", "other", "other", "microshark", KEEPER, "t_k", "now")
    return tables


def view(name, card, ttl=None, **more):
    return AgentView(name, name, "microshark", KEEPER, "alive", "running", card=card, ttl_seconds=ttl, **more)


def test_a_parent_shows_how_many_of_its_swarm_stand_how_and_who_has_least_time():
    agents = [
        AgentView(KEEPER, "keeper", "child", None, "alive", "running", card="t_k", ttl_seconds=3),
        view("a", "t_1", 40.0),
        view("b", "t_2", 30.5),
        view("c", "t_6", 0.0, ended=True),
        view("d", "t_other", 7.0),
    ]
    shown = with_swarms(agents, board())
    assert shown[0].swarms == (
        SwarmView(
            "probe",
            asked=9,
            granted=7,
            reason="asked for 9",
            living=2,
            waiting=2,
            done=1,
            expired=1,
            failed=1,
            blocked=1,
            ttl_seconds=30.5,
        ),
    )
    assert shown[1:] == agents[1:]


def test_where_nobody_asked_for_a_swarm_nothing_is_counted():
    tables = board()
    tables.agents[KEEPER].swarms = {}
    agents = [view("a", "t_1", 40.0)]
    assert with_swarms(agents, tables) == agents


def test_a_swarm_travels_to_an_attached_console_as_it_is():
    agent = with_swarms([AgentView(KEEPER, "keeper", "child", None, "alive", "running")], board())[0]
    assert TypeAdapter(AgentView).validate_python(as_plain(agent)) == agent


LIVELY = SwarmView("probe", 50, 50, living=38, waiting=2, done=7, expired=2, failed=1, ttl_seconds=252)


@pytest.mark.parametrize(
    ("swarm", "short", "full"),
    [
        (
            LIVELY,
            "38 of 50 live, ttl 4m, 2 to come, 7 done, 2 expired, 1 failed",
            "50 of 50 microsharks granted; 38 of 50 live, ttl 4m, 2 to come, 7 done, 2 expired, 1 failed",
        ),
        (
            SwarmView("probe", 50, 20, "the limit", done=18, expired=2),
            "18 done, 2 expired",
            "20 of 50 microsharks granted (the limit); 18 done, 2 expired",
        ),
        (
            SwarmView("probe", 1, 0, "the limit"),
            "refused: the limit",
            "1 microshark asked for, refused: the limit",
        ),
    ],
)
def test_a_swarm_in_words(swarm, short, full):
    assert (standing(swarm), in_full(swarm)) == (short, full)


def test_a_grant_is_told_in_one_line_with_the_reason_where_it_is_less():
    event = Event(1, "now", EventKind.SWARM_GRANTED, KEEPER, "t_k", "r1", SAID)
    assert words(event)[1] == "keeper was granted 7 of 9 microsharks for probe: asked for 9"
    assert words(replace(event, data={**SAID, "reason": ""}))[1] == "keeper was granted 7 of 9 microsharks for probe"
