"""What a runner does as a parent: contracts for its children, delegations under its key, and their outcome."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from council_tui.domain.contract import Inheritance, ResourceLimits, SpawnContext, check_limits, check_narrowing
from council_tui.domain.errors import Refused
from council_tui.domain.ids import agent_type
from council_tui.domain.order import Order, materialise
from council_tui.domain.swarm import member_id
from council_tui.domain.text import counted
from council_tui.ledger.lineage import validity

if TYPE_CHECKING:
    from datetime import datetime

    from council_tui.domain.evidence import Result
    from council_tui.ledger.signer import Signer


@dataclass
class _Swarm:
    """What this agent asked for in one contract, and what became of it."""

    asked: int
    granted: int | None = None
    """None before Hermes has answered."""
    reason: str = ""


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
        limits: ResourceLimits | None = None,
        patience: float = 0.0,
    ) -> None:
        self._agent = agent
        self._patience = patience
        self._limits = limits
        self._within = within
        self._open_grant = agent_type(agent) not in ("child", "microshark")
        self._inheritance = inheritance
        self._signer = signer
        self._card = card
        self._depth = depth
        self._contracts: dict[str, SpawnContext] = {}
        self._expected: dict[str, str | None] = {}
        self._open: set[str] = set()
        """Those of them that have not ended."""
        self._swarms: dict[str, _Swarm] = {}
        self._settled = asyncio.Event()
        self._settled.set()

    def contract(self, params: dict[str, Any], now: datetime) -> dict[str, Any]:
        """Materialise the spawn context of one attempt. params: run, card, slice, order. Raises `Refused`."""
        order = Order.model_validate(params["order"])
        self._check_member(order)
        parent, limits = (None, None) if self._open_grant else (self._inheritance, self._limits)
        context = materialise(
            order,
            parent_id=self._agent,
            parent=parent,
            parent_task=self._card,
            task=str(params["card"]),
            slice_path=str(params["slice"]),
            spawn_ts=now.isoformat(timespec="seconds").replace("+00:00", "Z"),
            limits=limits,
        )
        problems = [*context.inheritance.problems(), *check_narrowing(parent, context.inheritance)]
        problems += check_limits(limits, context.resource_limits)
        if problems:
            raise problems[0]
        self._contracts[str(params["run"])] = context
        self._patience = max(self._patience, context.lifecycle_policy.patience)
        return {"context": context.model_dump(mode="json")}

    def patience(self) -> float:
        """Seconds that this agent waits for a new supervisor: as long as any child, which would go down with it."""
        return self._patience

    def _check_member(self, order: Order) -> None:
        member = order.member
        if member is None:
            return
        swarm = self._swarms.get(member.swarm)
        known = swarm is not None and max(member.index, member.of) <= swarm.asked
        if not known or order.id != member_id(member.swarm, member.index):
            raise Refused("member", f"{self._agent} asked for no {order.id}")

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
            self._open.add(order)
            self._settled.clear()

    def ask_for(self, order: Order) -> None:
        """A swarm is about to be asked for: from now on its members may get contracts of ours."""
        self._swarms.setdefault(order.id, _Swarm(order.count or 0))

    def granted(self, order: Order, granted: int, reason: str) -> None:
        """Hermes' answer; nothing granted is a refusal, of which `reason` tells."""
        self._swarms[order.id] = _Swarm(order.count or 0, granted, reason)
        for index in range(1, granted + 1):
            self.expect(member_id(order.id, index))

    def settle(self, order: str, state: str) -> None:
        """A card of ours has ended."""
        self._expected[order] = state
        self._open.discard(order)
        if not self._open:
            self._settled.set()

    async def all_settled(self) -> None:
        """Wait until every card of ours has ended."""
        await self._settled.wait()

    def add_to(self, result: Result) -> Result:
        """The result with a line for each microshark, and one for each swarm."""
        ends: dict[str, Counter[str]] = {name: Counter() for name in self._swarms}
        lines: list[str] = []
        for order, state in self._expected.items():
            swarm, _, number = order.rpartition("-")
            if swarm in ends and number.isdigit():
                ends[swarm][str(state)] += 1
            elif order not in ends:
                lines.append(f"microshark {order}: {state}")
        lines += [_told(name, swarm, ends[name]) for name, swarm in self._swarms.items()]
        return replace(result, evidence=(*result.evidence, *lines)) if lines else result


def _told(name: str, swarm: _Swarm, ends: Counter[str]) -> str:
    """`swarm probe: 38 of 50 granted: 36 done, 2 expired (why not all 50)`."""
    parts = ", ".join(f"{many:,} {state}" for state, many in sorted(ends.items())) or "none"
    why = f" ({swarm.reason})" if swarm.reason else ""
    return f"swarm {name}: {swarm.granted or 0:,} of {counted(swarm.asked, 'microshark')} granted: {parts}{why}"
