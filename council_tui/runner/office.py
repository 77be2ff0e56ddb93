"""The in-house body of OpenFang, OpenClaw and ZeroClaw: takes orders, makes cards, writes what people read."""

from __future__ import annotations

import asyncio
import hashlib
from importlib import resources
from typing import TYPE_CHECKING, Any

from council_tui.domain.evidence import Result
from council_tui.runner.report import render

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from council_tui.domain.order import Order
    from council_tui.ledger.signer import Signer


def doctrine(kind: str) -> str:
    """The office's doctrine: what it owns, how it works, which skills it has."""
    return (resources.files("council_tui.plans") / "doctrine" / f"{kind}.md").read_text(encoding="utf-8")


def skills(text: str) -> tuple[str, ...]:
    """The skill list of a doctrine: the items under its heading `Skills`."""
    _, _, after = text.partition("## Skills")
    return tuple(line[2:].partition(":")[0].strip() for line in after.splitlines() if line.startswith("- "))


class Office:
    """One office while its fleet runs. `ask` calls the supervisor."""

    def __init__(self, kind: str, ask: Callable[..., Awaitable[Any]]) -> None:
        self._kind = kind
        self._ask = ask
        self._taken = 0
        self.closed = asyncio.Event()

    async def take(self, orders: list[Order]) -> list[str]:
        """Make a card of each order, in this office's name; their ids."""
        cards = []
        for order in orders:
            answer = await self._ask("card", order=order.model_dump(mode="json"))
            cards.append(str(answer["card"]))
        self._taken += len(cards)
        return cards

    def render(self, facts: dict[str, Any], signer: Signer, now: int) -> dict[str, Any]:
        """The fleet's report as Markdown, and the entry that signs its digest."""
        markdown = render(facts)
        digest = hashlib.sha256(markdown.encode()).hexdigest()
        fields = {"title": str(facts["fleet"])[:200], "sha256": digest}
        entry = signer.sign("report", now, [("report.md", digest)], fields)
        return {"markdown": markdown, "sha256": digest, "entry": entry.decode()}

    def result(self) -> Result:
        """What the office itself reports when its fleet is over."""
        text = doctrine(self._kind)
        digest = hashlib.sha256(text.encode()).hexdigest()
        evidence = (
            f"{self._taken} card{'s' if self._taken != 1 else ''} taken",
            f"doctrine sha256 {digest}",
            f"skills: {', '.join(skills(text))}",
        )
        return Result("DONE", (), evidence)
