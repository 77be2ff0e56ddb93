"""An order: what Hermes hands to an office, and how the office makes a spawn context of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, ValidationError

from council_tui.domain.contract import Family, Inheritance, ResourceLimits, SpawnContext
from council_tui.domain.envelope import Envelope
from council_tui.domain.errors import Refused
from council_tui.domain.hierarchy import MICROSHARK_TTL_SECONDS
from council_tui.domain.wire import MAX_MESSAGE

if TYPE_CHECKING:
    from collections.abc import Sequence

CONTAINERS = ("command", "drill")
FAULTS = ("never-claims", "bad-mbti", "never-acknowledges", "dies")
"""What a `drill` container can get wrong in the handshake, on purpose."""

Label = Annotated[str, Field(pattern=r"^[a-z0-9](?:[a-z0-9-]{0,46}[a-z0-9])?$")]


MOST_MEMBERS = 10_000
"""Of one swarm; `limits.microsharks` goes no further either."""


class Member(Family):
    """Which one of a granted swarm an order is for."""

    swarm: Label
    index: Annotated[int, Field(ge=1, le=MOST_MEMBERS)]
    """Counted from 1."""
    of: Annotated[int, Field(ge=1, le=MOST_MEMBERS)]
    """How many Hermes granted."""


class Order(Family):
    """One child of a plan (or of the spawn form), before it has a card."""

    id: Label
    title: Annotated[str, Field(min_length=1, max_length=200)]
    parent: Annotated[str, Field(min_length=1, max_length=120)]
    """An office's kind, or the id of the child that spawns this microshark."""
    kind: Literal["office", "child", "microshark"] = "child"
    container: Literal["command", "drill"] = "command"
    run: tuple[str, ...] = ()
    """argv; `{python}` and `{workdir}` are filled in at start."""
    fault: Literal["never-claims", "bad-mbti", "never-acknowledges", "dies"] | None = None
    after: tuple[Label, ...] = ()
    priority: Annotated[int, Field(ge=-100, le=100)] = 0
    labels: tuple[Annotated[str, Field(max_length=64)], ...] = ()
    retries: Annotated[int, Field(ge=0, le=10)] | None = None
    """None: 2 for read-only cards, 0 for cards that may change something."""
    context: dict[str, Any] = Field(default_factory=dict)
    """The spawn context's families as far as the plan wrote them."""
    envelope: Envelope
    workdir: Annotated[str, Field(max_length=4000)] = ""
    """Where the body starts; empty for the directory the fleet was started in."""
    count: Annotated[int, Field(ge=1, le=MOST_MEMBERS)] | None = None
    """How many microsharks of this kind the parent asks for in one contract; None: this one, and no swarm."""
    at_least: Annotated[int, Field(ge=1, le=MOST_MEMBERS)] | None = None
    """How many of a swarm are worth having; None: all or none."""
    member: Member | None = None
    """Set by Hermes on the order of each member of a swarm."""

    @property
    def attempts(self) -> int:
        """How often the card may be tried, the first time included."""
        return 1 + (self.retries if self.retries is not None else (2 if self.envelope.read_only else 0))


MOST_TOLD = MAX_MESSAGE - 64 * 1024
"""Bytes that order, contract and microsharks of one child may have; the rest of what it is told is small."""


def check_size(order: Order, below: Sequence[Order], context: SpawnContext | None = None) -> None:
    """Raises `Refused` when what an agent is told at its birth does not fit into one message."""
    size = sum(len(part.model_dump_json().encode("utf-8", "replace")) for part in (order, *below))
    size += len(context.model_dump_json().encode("utf-8", "replace")) if context is not None else 0
    if size > MOST_TOLD:
        among = f", the orders for its {len(below)} microsharks included," if below else ""
        raise Refused(
            "order",
            f"what {order.id} is told{among} has {size:,} bytes, and {MOST_TOLD:,} fit into a message; "
            f"shorten its command or its output_schema{', or give it fewer microsharks' if below else ''}",
        )


def materialise(
    order: Order,
    *,
    parent_id: str,
    parent: Inheritance | None,
    parent_task: str,
    task: str,
    slice_path: str,
    spawn_ts: str,
    limits: ResourceLimits | None = None,
) -> SpawnContext:
    """Fill in what the order left out. Raises `Refused` with the dotted field and the rule.

    `limits` are the parent's own, which hold for whatever the order does not limit itself.

    Identity and handoff are the parent's to state: what the order says of them is overridden, except
    for a memory slice path that the plan chose itself.
    """
    given = {
        key: dict(value) if isinstance(value, dict) else value
        for key, value in order.context.items()
        if value is not None
    }
    inherit = given.setdefault("inheritance", {})
    if parent is not None:
        forbidden = tuple(dict.fromkeys((*inherit.get("forbidden_capabilities", ()), *parent.forbidden_capabilities)))
        inherit["forbidden_capabilities"] = forbidden
        # What the child forbids itself is not passed down, or it would be core and forbidden at once.
        passed = tuple(name for name in parent.core_capabilities if name not in forbidden)
        inherit.setdefault("core_capabilities", passed)
    if limits is not None:
        own = given.get("resource_limits") or {}
        given["resource_limits"] = {**limits.model_dump(mode="json", exclude_none=True), **own}
    memory = given.setdefault("memory_slice", {})
    memory.setdefault("shared_memory_path", slice_path)
    policy = given.setdefault("lifecycle_policy", {})
    if order.kind == "microshark":
        asked = policy.get("run_ttl_seconds") or MICROSHARK_TTL_SECONDS
        policy["run_ttl_seconds"] = min(asked, MICROSHARK_TTL_SECONDS)
    given |= {"parent_id": parent_id, "parent_type": "", "spawn_ts": spawn_ts, "task_reference": task}
    given["kanban_handoff"] = {"parent_task_id": parent_task, "child_task_claim": None}
    try:
        return SpawnContext.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise Refused("spawn_context." + ".".join(str(p) for p in first["loc"]), first["msg"]) from None
