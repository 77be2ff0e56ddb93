"""Plans and results larger than a message: cut, sent in pieces, or refused with a sentence; never waited for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from supervisor.stage import Stage, child, plan_of, play, python

from council_tui.domain.envelope import Envelope
from council_tui.domain.errors import PlanInvalid, Refused
from council_tui.domain.events import EventKind as K
from council_tui.domain.order import MOST_TOLD, Order, check_size
from council_tui.domain.wire import MAX_MESSAGE
from council_tui.fleet import closing
from council_tui.fleet.plan import parse_plan
from council_tui.fleet.sizes import ORDERS_AT_ONCE, messages
from council_tui.runner.report import MOST, brief, render

LONG = "import json; print(json.dumps({'status': 'DONE', 'findings': [], 'evidence': ['x' * 900000]}))"
MANY = (
    "import json; found = [{'title': 't%d' % n, 'severity': 'LOW', 'description': 'd' * 3000} for n in range(300)];"
    "found[-1]['severity'] = 'HIGH';"
    "print(json.dumps({'status': 'DONE', 'findings': found, 'evidence': ['seen it'] * 300}))"
)


def test_results_that_together_are_longer_than_a_message_end_in_a_report(home):
    fleet = play(home, plan_of(*(child(f"long-{n}", python(LONG)) for n in range(5)), child("many", python(MANY))))
    assert (fleet.ending.exit, fleet.ending.reason) == (0, "")
    text = Path(fleet.ending.report).read_text()
    assert len(text) < 100_000
    for words in ("| many | done | 300 | HIGH |", "- **HIGH** t299", "- and 250 more", "- and 290 more"):
        assert words in text
    assert K.REPORT_WRITTEN in {event.kind for event in fleet.events}


def card(title, result, findings, evidence):
    return {
        "title": title,
        "state": "done",
        "why": None,
        "agent": "child:x.r_1",
        "entry": 7,
        "reason": "",
        "result": brief(result, findings, evidence),
    }


def test_what_a_report_is_made_of_shrinks_until_its_markdown_fits_into_a_message():
    stars = "*" * 2000
    finding = {"title": stars, "description": stars, "path": stars, "line": [stars], "severity": stars}
    result = {"findings": [finding] * 500, "evidence": [stars] * 500, "recommendation": stars}
    for findings, evidence in MOST:
        cards = [card(f"c{n}", result, findings, evidence) for n in range(200)]
        facts = {"fleet": "x", "workdir": "/", "at": "now", "cards": cards}
        if len(json.dumps(facts)) <= closing.REPORT_BYTES:
            break
    else:
        pytest.fail("nothing fits")
    answer = json.dumps({"markdown": render(facts)})
    assert len(answer) < MAX_MESSAGE // 2
    assert answer.count("500 findings") == 200


def order(name, size=0, **more):
    envelope = Envelope(
        task_name=name,
        task_description="x",
        output_schema={"type": "object", "description": "x" * size},
        time_budget_minutes=1,
        autonomy_band="NEVER",
        tools_scope=("exec",),
        rollback_plan="No changes",
    )
    return Order(id=name, title=name, parent="zeroclaw", run=("true",), envelope=envelope, **more)


def test_orders_go_out_in_their_sequence_in_messages_that_are_short_enough():
    orders = [order(f"n{n}", 50_000) for n in range(100)] + [order("big", 3_000_000), order("last")]
    sent = list(messages(orders))
    assert [raw["id"] for some in sent for raw in some] == [one.id for one in orders]
    sizes = [len(json.dumps(some)) for some in sent]
    assert max(size for size, some in zip(sizes, sent, strict=True) if len(some) > 1) <= ORDERS_AT_ONCE + 10_000
    assert max(sizes) < MAX_MESSAGE
    assert list(messages([])) == []


async def test_a_plan_whose_orders_together_are_longer_than_a_message_starts(home):
    schema = {"output_schema": {"type": "object", "description": "x" * 50_000}}
    held = child("held", "true", envelope={"autonomy_band": "NEVER"})
    plan = plan_of(held, *(child(f"n{n}", "true", envelope=schema, after=["held"]) for n in range(90)))
    async with Stage(home, plan) as stage:
        end = await stage.end()
    assert end.cards == {"blocked": 91}


def test_a_child_that_could_not_be_told_what_to_do_is_refused_in_the_plan():
    sharks = (child(f"s{n}", "true", parent="keeper") for n in range(90))
    own = {"output_schema": {"type": "object", "description": "short"}}
    children = [child("fine", "true", envelope=own), child("keeper", "true", envelope=own), *sharks]
    text = {
        "council": 1,
        "name": "large",
        "defaults": {
            "envelope": {
                "output_schema": {"type": "object", "description": "x" * 50_000},
                "time_budget_minutes": 1,
                "autonomy_band": "NEVER",
                "tools_scope": ["exec"],
                "rollback_plan": "No changes",
            }
        },
        "children": children,
    }
    with pytest.raises(PlanInvalid) as caught:
        parse_plan(json.dumps(text, indent=1), "large.yaml")
    (mistake,) = caught.value.mistakes
    assert mistake.field == "children[1]"
    assert mistake.line is not None
    assert mistake.message.startswith("what keeper is told, the orders for its 90 microsharks included, has 4,")
    assert "give it fewer microsharks" in mistake.message


def test_a_single_order_is_refused_from_the_size_at_which_it_does_not_fit():
    check_size(order("fits", MOST_TOLD - 10_000), ())
    with pytest.raises(Refused, match=r"shorten its command or its output_schema$"):
        check_size(order("does-not", MOST_TOLD), ())
