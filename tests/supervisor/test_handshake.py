"""The birth of an agent on the wire: gate after gate, and nothing else."""

from __future__ import annotations

import asyncio
import json
import sys
from itertools import pairwise

import pytest

from council_tui.domain.events import EventKind as K
from council_tui.domain.lifecycle import Phase
from council_tui.ledger.keys import Key
from council_tui.ledger.signer import Signer
from council_tui.runner.channel import RemoteRefusal
from supervisor.stage import entries_of, until
from supervisor.wire import RESULT, Bare

THIEF = """
import socket, sys
link = socket.socket(socket.AF_UNIX)
link.connect(sys.argv[1])
link.sendall(sys.stdin.buffer.read())
print(link.recv(9999).decode())
"""


@pytest.fixture
async def bare(home):
    async with Bare(home) as bare:
        yield bare


async def test_every_gate_is_passed_in_order_and_journalled(bare):
    office = await (await bare.office()).begin()
    child = await (await bare.child(office)).begin()
    await child.returned()
    await child.call("report", entry=child.ascension())
    child.leave()
    bare.sup.watch._gone(child.seat.pid, 0)
    await child.seat.ended.wait()
    kinds = bare.kinds(child.seat.agent)
    wanted = [
        "agent_started",
        "hello",
        "delegated",
        "claimed",
        "inheritance_verified",
        "accepted",
        "acknowledged",
        "returned",
        "verified",
        "reported",
        "agent_ended",
        "slice_cleared",
        "revoked",
        "card_done",
    ]
    assert [kind for kind in kinds if kind in wanted] == wanted
    said = [
        (kind, agent.partition(":")[0])
        for kind, agent, fields in entries_of(bare.sup.home.ledger)
        if child.seat.agent in (agent, fields.get("child"), fields.get("of"))
    ]
    assert said == [
        ("delegation", "openclaw"),
        ("acceptance", "child"),
        ("ascension", "child"),
        ("observation", "hermes"),
        ("revocation", "hermes"),
    ]


async def test_a_wrong_token_is_refused_and_journalled_and_the_right_one_still_works(bare):
    office = await bare.office()
    await office.connect()
    for token in ("", "x", office.spec.token[:-1], "é"):
        with pytest.raises(RemoteRefusal, match="no run of ours"):
            await office.hello(token=token)
    with pytest.raises(RemoteRefusal, match="no run of ours"):
        await office.hello(run="r_nobody")
    assert (await bare.wait(K.MESSAGE_REFUSED)).data == {"reason": "token: no run of ours", "count": 1}
    assert bare.sup.hearing.strangers == 5
    await office.hello()
    assert office.seat.state.phase is Phase.DELEGATED


async def test_the_right_token_from_another_process_is_refused(bare):
    office = await bare.office()
    hello = {"run": office.spec.run, "token": office.spec.token, "public_key": office.key.public.hex()}
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "hello", "params": hello})
    thief = await asyncio.create_subprocess_exec(
        sys.executable, "-c", THIEF, office.spec.socket, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    answer, _ = await thief.communicate(line.encode() + b"\n")
    assert b"not the runner that was started for this run" in answer
    assert office.seat.peer is None


async def test_a_run_says_hello_once(bare):
    office = await bare.office()
    await office.connect()
    await office.hello()
    first = office.peer
    with pytest.raises(RemoteRefusal, match="no method 'hello'"):
        await office.hello()
    await office.connect()
    with pytest.raises(RemoteRefusal, match="not the runner"):
        await office.hello()
    assert office.seat.peer is not None
    first.close()
    await first.lost


@pytest.mark.parametrize("public", ["", "00" * 32, "zz" * 32, "01" + "00" * 31])
async def test_a_key_that_is_none_is_refused(bare, public):
    office = await bare.office()
    await office.connect()
    with pytest.raises(RemoteRefusal):
        await office.hello(public_key=public)
    assert office.seat.state.phase is Phase.STARTING


async def test_a_gate_out_of_order_moves_nothing_and_is_journalled(bare):
    office = await bare.office()
    await office.connect()
    await office.hello()
    office.acknowledged()
    for method, params in [
        ("verified", {}),
        ("accept", {"entry": "x"}),
        ("acknowledge", {}),
        ("returned", {"result": RESULT, "digest": ""}),
        ("report", {"entry": "x"}),
    ]:
        with pytest.raises(RemoteRefusal, match="out of order in phase delegated"):
            await office.call(method, **params)
    out_of_order = [event.data for event in bare.events if event.kind is K.OUT_OF_ORDER]
    assert {data["phase"] for data in out_of_order} == {"delegated"}
    assert [data["method"] for data in out_of_order] == ["verified", "accepted", "acknowledged", "returned", "reported"]
    await office.claim()


async def test_a_card_is_claimed_once_and_only_by_the_run_it_belongs_to(bare):
    office = await bare.office()
    await office.connect()
    await office.hello()
    with pytest.raises(RemoteRefusal, match="was not started for that card"):
        await office.call("claim", card="t_other", claim="c_1")
    await office.claim("c_first")
    with pytest.raises(RemoteRefusal, match="is not this run's to claim"):
        await office.claim("c_second")
    assert bare.sup.board.tables.cards[office.seat.card].claim == "c_first"


async def test_a_card_has_one_living_run(bare):
    office = await bare.office()
    with pytest.raises(Exception, match="has a living run already"):
        await bare.sup.births.spawn(office.seat.card)


async def ended(one):
    async with asyncio.timeout(20):
        await one.seat.ended.wait()
    return one.sup.board.tables.cards[one.seat.card]


def revoked(bare, one):
    return ("revocation", one.seat.agent) in [
        (kind, said.get("of")) for kind, _, said in entries_of(bare.sup.home.ledger)
    ]


async def test_an_acceptance_of_another_contract_ends_the_run(bare):
    office = await bare.office()
    await office.connect()
    await office.hello()
    await office.claim()
    await office.call("verified")
    with pytest.raises(RemoteRefusal, match="acceptance was refused"):
        await office.call("accept", entry=office.acceptance("00" * 32))
    card = await ended(office)
    assert (card.state, card.fail) == ("failed", "protocol_violation")


async def test_an_acceptance_under_another_key_ends_the_run(bare):
    office = await bare.office()
    await office.connect()
    await office.hello()
    await office.claim()
    await office.call("verified")
    office.signer = Signer(office.spec.agent, Key.generate(), office.grant.log)
    with pytest.raises(RemoteRefusal, match="signed by key"):
        await office.call("accept", entry=office.acceptance())
    assert (await ended(office)).fail == "protocol_violation"


async def test_an_agent_cannot_append_in_the_name_of_another(bare):
    office = await (await bare.office()).begin()
    other = await (await bare.office("zeroclaw")).begin()
    await office.returned()
    with pytest.raises(RemoteRefusal, match="may only append its own ascension"):
        await office.call("report", entry=other.ascension())
    assert (await ended(office)).fail == "protocol_violation"
    assert other.seat.state.phase is Phase.RUNNING


@pytest.mark.parametrize("said", [{"run": "r_other"}, {"card": "t_other"}])
async def test_an_acknowledgement_of_another_run_is_none(bare, said):
    office = await bare.office()
    await office.connect()
    await office.hello()
    await office.claim()
    await office.call("verified")
    await office.call("accept", entry=office.acceptance())
    with pytest.raises(RemoteRefusal, match="cannot be read"):
        await office.call("acknowledge")
    office.acknowledged(**said)
    with pytest.raises(RemoteRefusal, match="another run's"):
        await office.call("acknowledge")
    assert office.seat.state.phase is Phase.ACCEPTED


async def test_an_inheritance_the_child_rejects_fails_its_card(bare):
    office = await bare.office()
    await office.connect()
    await office.hello()
    await office.claim()
    await office.call("reject", reason="inheritance.mbti_type: no\x1b[2J")
    card = await ended(office)
    assert (card.fail, card.reason) == ("rejected", "inheritance.mbti_type: no␛[2J")


async def test_a_report_vouches_for_the_result_that_was_returned(bare):
    office = await (await bare.office()).begin()
    await office.returned()
    with pytest.raises(RemoteRefusal, match="another result"):
        await office.call("report", entry=office.ascension({**RESULT, "evidence": ["else"]}))
    assert (await ended(office)).fail == "protocol_violation"


async def test_a_second_result_does_not_replace_the_first(bare):
    office = await (await bare.office()).begin()
    await office.returned()
    with pytest.raises(RemoteRefusal, match="out of order"):
        await office.returned({**RESULT, "evidence": ["else"]})
    await office.call("report", entry=office.ascension())
    office.leave()
    bare.sup.watch._gone(office.seat.pid, 0)
    assert (await ended(office)).result["evidence"] == ["by hand"]


async def test_a_digest_that_does_not_fit_its_result_is_refused(bare):
    office = await (await bare.office()).begin()
    with pytest.raises(RemoteRefusal, match="does not match the result"):
        await office.returned(digest="00" * 32)
    assert office.seat.state.phase is Phase.RUNNING


async def test_a_parent_that_signs_for_another_key_fails_the_spawn(bare):
    office = await (await bare.office()).begin()
    child = await bare.child(office)
    honest, other = office.answers["delegate"], Key.generate().public.hex()
    office.answers["delegate"] = lambda params: honest({**params, "public_key": other})
    await child.connect()
    with pytest.raises(RemoteRefusal, match="signed something else than this child"):
        await child.hello()
    card = await ended(child)
    assert (card.state, card.fail) == ("failed", "error")
    assert "did not delegate" in card.reason
    assert revoked(bare, child), "the log has given the name to a stranger's key"


@pytest.mark.parametrize("answer", [None, [], {}, {"entry": 7}, {"entry": "no entry"}, {"entry": "{}"}])
async def test_a_parent_that_answers_nonsense_fails_the_spawn_at_once(bare, answer):
    office = await (await bare.office()).begin()
    child = await bare.child(office)
    office.answers["delegate"] = lambda params: answer
    await child.connect()
    with pytest.raises(RemoteRefusal, match="did not delegate"):
        await child.hello()
    assert (await ended(child)).fail == "error"
    assert office.seat.state.phase is Phase.RUNNING


async def test_a_delegation_that_the_log_refuses_leaves_no_hole_in_the_parents_chain(bare):
    office = await (await bare.office()).begin()
    honest = office.answers["delegate"]
    child = await bare.child(office)
    office.answers["delegate"] = lambda params: honest({**params, "public_key": office.key.public.hex()})
    await child.connect()
    with pytest.raises(RemoteRefusal, match="is in use already"):
        await child.hello()
    await ended(child)
    office.answers["delegate"] = honest
    second = await (await bare.child(office, bare.order().model_copy(update={"id": "kid-two"}))).begin()
    assert second.seat.state.phase is Phase.RUNNING


async def test_a_late_delegation_fails_the_spawn_and_still_reaches_the_log(bare):
    office = await (await bare.office()).begin()
    honest, let_go = office.answers["delegate"], asyncio.Event()

    async def late(params):
        await let_go.wait()
        return honest(params)

    order = bare.order(policy={"child_timeout_seconds": 0.3, "parent_heartbeat_interval_seconds": 0.2})
    child = await bare.child(office, order)
    office.answers["delegate"] = late
    await child.connect()
    with pytest.raises(RemoteRefusal, match=r"no answer within|no acknowledgement|closed"):
        await child.hello()
    card = await ended(child)
    assert card.state == "failed"
    size = bare.sup.authority.ledger.size
    let_go.set()
    await until(lambda: bare.sup.authority.ledger.size == size + 2)
    assert revoked(bare, child)
    office.answers["delegate"] = honest
    second = await (await bare.child(office, bare.order().model_copy(update={"id": "kid-two"}))).begin()
    assert second.seat.state.phase is Phase.RUNNING


async def test_a_parent_that_is_gone_gives_birth_to_nobody(bare):
    office = await (await bare.office()).begin()
    card = await bare.sup.make_card(office.seat, bare.order())
    await office.call("reject", reason="over")  # out of order: nothing happens
    office.leave()
    bare.sup.watch._gone(office.seat.pid, 9)
    await ended(office)
    with pytest.raises(Exception, match="is not alive to spawn anything"):
        await bare.sup.births.spawn(card)


async def test_an_agent_spawns_only_what_its_place_in_the_hierarchy_allows(bare):
    office = await (await bare.office()).begin()
    order = bare.order()
    card = await office.call("card", order=order.model_dump(mode="json"))
    assert bare.sup.board.tables.cards[card["card"]].parent_agent == office.seat.agent
    with pytest.raises(RemoteRefusal, match="already"):
        await office.call("card", order=order.model_dump(mode="json"))


async def test_the_tokens_differ_and_are_long(bare):
    offices = [await bare.office(kind) for kind in ("openfang", "openclaw", "zeroclaw")]
    tokens = [token for one in offices for token in (one.spec.token, one.spec.beat_token)]
    assert len(set(tokens)) == 6
    assert min(map(len, tokens)) >= 16
    assert all(first != second for first, second in pairwise(sorted(tokens)))
