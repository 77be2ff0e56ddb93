"""What a runner does as a parent: contracts for its children, delegations under its key, and their outcome."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from council_tui.domain.contract import Inheritance, SpawnContext, check_narrowing
from council_tui.domain.errors import Refused
from council_tui.domain.ids import agent_type
from council_tui.domain.order import Order, materialise
from council_tui.ledger.lineage import validity

if TYPE_CHECKING:
    from datetime import datetime

    from council_tui.domain.evidence import Result
    from council_tui.ledger.signer import Signer


class Family:
    """One agent's children."""

    def __init__(
        self,
        agent: str,
        inheritance: Inheritance,
        signer: Signer,
        card: str,
        depth: int,
        within: tuple[int, int],
    ) -> None:
        self._agent = agent
        self._within = within
        self._open_grant = agent_type(agent) not in ("child", "microshark")
        self._inheritance = inheritance
        self._signer = signer
        self._card = card
        self._depth = depth
        self._contracts: dict[str, SpawnContext] = {}
        self._expected: dict[str, str | None] = {}
        self._findings = 0
        self._settled = asyncio.Event()
        self._settled.set()

    def contract(self, params: dict[str, Any], now: datetime) -> dict[str, Any]:
        """Materialise the spawn context of one attempt. params: run, card, slice, order. Raises `Refused`."""
        order = Order.model_validate(params["order"])
        parent = None if self._open_grant else self._inheritance
        context = materialise(
            order,
            parent_id=self._agent,
            parent=parent,
            parent_task=self._card,
            task=str(params["card"]),
            slice_path=str(params["slice"]),
            spawn_ts=now.isoformat(timespec="seconds").replace("+00:00", "Z"),
        )
        problems = [*context.inheritance.problems(), *check_narrowing(parent, context.inheritance)]
        if problems:
            raise problems[0]
        self._contracts[str(params["run"])] = context
        return {"context": context.model_dump(mode="json")}

    def delegate(self, params: dict[str, Any], now: int) -> bytes:
        """Sign a child's name, key and contract. params: run, child, public_key, card."""
        context = self._contracts.pop(str(params["run"]), None)
        if context is None:
            raise Refused("delegate", "this agent wrote no contract for that run")
        inherited = context.inheritance
        not_before, not_after = validity(self._signer.time(now), *self._within)
        return self._signer.sign(
            "delegation",
            now,
            (),
            {
                "child": str(params["child"]),
                "public_key": str(params["public_key"]),
                "depth": self._depth - 1,
                "capabilities": list(inherited.core_capabilities),
                "forbidden": list(inherited.forbidden_capabilities),
                "not_before": not_before,
                "not_after": not_after,
                "contract": context.sha256(),
                "card": str(params["card"]),
            },
        )

    def expect(self, order: str) -> None:
        """A card of ours exists: our own report waits for its end."""
        if order not in self._expected:
            self._expected[order] = None
            self._settled.clear()

    def settle(self, order: str, state: str, findings: int) -> None:
        """A card of ours has ended."""
        self._expected[order] = state
        self._findings += findings
        if all(self._expected.values()):
            self._settled.set()

    async def all_settled(self) -> None:
        """Wait until every card of ours has ended."""
        await self._settled.wait()

    def add_to(self, result: Result) -> Result:
        """The result with a line for each microshark."""
        lines = tuple(f"microshark {order}: {state}" for order, state in self._expected.items())
        return replace(result, evidence=(*result.evidence, *lines)) if lines else result
