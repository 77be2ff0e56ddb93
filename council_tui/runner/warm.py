"""What a runner does in its first milliseconds, done once before any runner is forked.

Lazily built things (validators, codecs, the event loop's classes, libsodium's state) are then shared by
every runner instead of being built, and paid for, by each.
"""

from __future__ import annotations

import asyncio
from typing import Any

from council_tui.domain.envelope import Envelope
from council_tui.domain.evidence import check_result
from council_tui.domain.order import Order, materialise
from council_tui.domain.wire import Call, decode, encode, notify
from council_tui.ledger.keys import Key
from council_tui.ledger.signer import Signer
from council_tui.runner.proof import canonical_sha256
from council_tui.runner.spec import Grant


def _sample() -> dict[str, Any]:
    envelope = Envelope(
        task_name="warm",
        task_description="warm",
        time_budget_minutes=1,
        autonomy_band="AUTONOMOUS",
        tools_scope=("exec",),
        rollback_plan="No changes",
    )
    order = Order(id="warm", title="warm", parent="zeroclaw", run=("true",), envelope=envelope)
    context = materialise(
        order,
        parent_id="zeroclaw:office",
        parent=None,
        parent_task="t_0",
        task="t_1",
        slice_path="/warm/slice",
        spawn_ts="2000-01-01T00:00:00Z",
    )
    return {
        "context": context.model_dump(mode="json"),
        "order": order.model_dump(mode="json"),
        "card": "t_1",
        "log": "warm",
        "root": "",
        "depth": 1,
        "not_before": 0,
        "not_after": 0,
        "enforcement": "",
        "microsharks": [],
        "workdir": "/",
        "home": "/warm",
        "bwrap": "",
        "groups": {},
        "mbti": None,
    }


async def _nothing() -> None:
    await asyncio.sleep(0)


def warm() -> None:
    """Walk once through a birth that concerns nobody: nothing is opened, sent or kept."""
    asyncio.run(_nothing())
    grant = Grant.read(_sample())
    grant.context.inheritance.problems(grant.mbti)
    signer = Signer("child:warm.0", Key.generate(), "council-tui/warm")
    signer.sign("acceptance", 0, (), {"contract": grant.context.sha256()})
    result = check_result({"status": "DONE", "findings": [], "evidence": []}, grant.order.envelope)
    decode(encode(Call("warm", {"digest": canonical_sha256(result.as_json())}, 1)))
    notify({"WATCHDOG": 1})
