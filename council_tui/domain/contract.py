"""The spawn context: five families of facts that exist before a process does (seed: council-of-three).

The seed's YAML block loads unchanged. Both sides check it: the parent before anything starts, and the
child for itself before it begins. What the seed does not know of, like limits of the machine's use, is
left out of a contract that does not speak of it.
"""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from council_tui.domain.errors import Refused
from council_tui.domain.heartbeat import SILENT_AFTER, STALL_SECONDS
from council_tui.domain.ids import agent_type

MBTI = re.compile(r"[EI][NS][TF][JP](-[AT])?\Z")
"""Sixteen types, with or without the identity letter: 48 strings (protocols.md 5.1)."""

MIB = 1024 * 1024
MAX_SLICE_MB = 1024 * 1024
MAX_MEMORY_MB = 64 * 1024 * 1024
MAX_PROCESSES = 4_194_304
"""The most that a kernel can number (proc_sys_kernel(5), pid_max)."""

Seconds = Annotated[float, Field(gt=0, le=30 * 86400, allow_inf_nan=False)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Capability = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[a-z0-9][a-z0-9_.-]*$")]


def _timestamp(value: Any) -> Any:  # noqa: ANN401 - pydantic hands over whatever the YAML held
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    return value


class Family(BaseModel):
    """A family of facts: frozen, and without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class MemorySlice(Family):
    """The child's own directory and its byte ceiling."""

    shared_memory_path: Annotated[str, Field(min_length=1, max_length=4000)]
    memory_limit_mb: Annotated[int, Field(gt=0, le=MAX_SLICE_MB)] = 64
    """In MiB, as the seed writes it."""
    ceiling: Literal["any", "hard"] = "any"
    """`hard` refuses a machine that can only account for bytes after they are written."""

    @property
    def limit_bytes(self) -> int:
        """The ceiling in bytes; an MB of the seed is a MiB."""
        return self.memory_limit_mb * MIB

    @field_validator("shared_memory_path")
    @classmethod
    def _absolute(cls, value: str) -> str:
        path = PurePosixPath(value)
        # The slice is cleared when its agent ends, so it can never be the root itself.
        if not path.is_absolute() or len(path.parts) < 2 or ".." in path.parts or "\0" in value:
            raise ValueError("must be an absolute path below the root, without '..'")
        return value


class Inheritance(Family):
    """What is passed down explicitly; the child checks it before it accepts."""

    mbti_type: Annotated[str, Field(max_length=16)] = "ISTJ"
    style_guide: Annotated[str, Field(max_length=400)] = ""
    core_capabilities: tuple[Capability, ...] = ()
    forbidden_capabilities: tuple[Capability, ...] = ()

    def problems(self, allowed_mbti: frozenset[str] | None = None) -> list[Refused]:
        """Every rule that this inheritance breaks; the same check runs in the parent and in the child.

        `allowed_mbti` holds base types without the identity letter; None allows all sixteen.
        """
        found: list[Refused] = []
        if not MBTI.match(self.mbti_type):
            found.append(Refused("inheritance.mbti_type", f"{self.mbti_type!r} is not a type like ENTP or ENTP-T"))
        elif allowed_mbti is not None and self.mbti_type[:4] not in allowed_mbti:
            found.append(Refused("inheritance.mbti_type", f"{self.mbti_type[:4]} is not in this parent's allow-list"))
        both = sorted(set(self.core_capabilities) & set(self.forbidden_capabilities))
        if both:
            found.append(
                Refused("inheritance.core_capabilities", f"{', '.join(both)} cannot be core and forbidden at once")
            )
        return found


class KanbanHandoff(Family):
    """The card: the parent's task, and the claim that only the child makes."""

    parent_task_id: Name
    child_task_claim: Annotated[str, Field(max_length=64)] | None = None


class LifecyclePolicy(Family):
    """The numbers that make supervision possible. All in seconds, all measured on a monotonic clock."""

    parent_heartbeat_interval_seconds: Seconds = 30
    child_timeout_seconds: Seconds = 300
    """The acceptance window: claim, inheritance check and acknowledgement together."""
    acceptance_window_seconds: Seconds | None = None
    """Narrows the window; default `child_timeout_seconds`."""
    requires_acknowledgement: bool = True
    run_ttl_seconds: Seconds | None = None
    """Hard limit on the agent's life after it was acknowledged; microsharks always have one."""
    grace_seconds: Annotated[float, Field(ge=0, le=60)] = 5
    """Between SIGTERM and SIGKILL."""
    beat_source: Literal["runner", "body"] = "runner"
    """`body`: only a program that sends WATCHDOG=1 itself counts as alive."""
    orphan_policy: Literal["reap", "hold"] = "reap"
    """`hold`: stop an orphan and keep it for a person, at most `hold_seconds`."""
    hold_seconds: Seconds = 600
    stall_seconds: Seconds = STALL_SECONDS
    """Without a sign of work for so long, an agent that beats is told to be stalled; it goes on all the same."""
    patience_seconds: Seconds | None = None
    """How long an agent outlives the loss of its supervisor; default two heartbeat intervals."""

    @property
    def patience(self) -> float:
        """Seconds without a supervisor after which the runner ends its body and leaves."""
        return self.patience_seconds or SILENT_AFTER * self.parent_heartbeat_interval_seconds

    @property
    def window(self) -> float:
        """Seconds from start to acknowledgement."""
        return self.acceptance_window_seconds or self.child_timeout_seconds

    @model_validator(mode="after")
    def _order(self) -> Self:
        if self.parent_heartbeat_interval_seconds >= self.child_timeout_seconds:
            raise ValueError("parent_heartbeat_interval_seconds must be below child_timeout_seconds")
        if self.window > self.child_timeout_seconds:
            raise ValueError("acceptance_window_seconds must not be above child_timeout_seconds")
        return self


class ResourceLimits(Family):
    """What the whole tree of a body may use of the machine at once; what is not written is not limited."""

    memory_mb: Annotated[int, Field(ge=4, le=MAX_MEMORY_MB)] | None = None
    """In MiB, of all its processes together; a slice that lies in memory is a part of it."""
    processes: Annotated[int, Field(ge=1, le=MAX_PROCESSES)] | None = None
    """Processes and threads together, as the kernel counts them."""
    cpus: Annotated[float, Field(ge=0.01, le=4096, allow_inf_nan=False)] | None = None
    """Processor time: 0.5 is half of one core."""
    ceiling: Literal["any", "hard"] = "any"
    """`hard` refuses a machine on which a program could get around one of these."""

    @property
    def names(self) -> tuple[str, ...]:
        """Which of memory, processes and cpus are limited."""
        values = {"memory": self.memory_mb, "processes": self.processes, "cpus": self.cpus}
        return tuple(name for name, value in values.items() if value is not None)

    def told(self) -> str:
        """As people read it; empty when nothing is limited."""
        parts = []
        if self.memory_mb is not None:
            parts.append(f"{self.memory_mb} MiB of memory")
        if self.processes is not None:
            parts.append(f"{self.processes} processes and threads")
        if self.cpus is not None:
            parts.append(f"{self.cpus:g} of a core" if self.cpus < 1 else f"{self.cpus:g} cores")
        return ", ".join(parts) + ("; hard ceiling" if parts and self.ceiling == "hard" else "")

    @property
    def memory_bytes(self) -> int | None:
        """The memory limit in bytes."""
        return None if self.memory_mb is None else self.memory_mb * MIB


class SpawnContext(Family):
    """The five families, complete. Its SHA-256 stands in the delegation and in the acceptance."""

    parent_id: Annotated[str, Field(min_length=3, max_length=120, pattern=r"^[a-z]+:[A-Za-z0-9._-]+$")]
    parent_type: Annotated[str, Field(max_length=32)] = ""
    spawn_ts: Annotated[datetime, BeforeValidator(_timestamp)]
    task_reference: Name
    memory_slice: MemorySlice
    inheritance: Inheritance = Inheritance()
    kanban_handoff: KanbanHandoff
    lifecycle_policy: LifecyclePolicy = LifecyclePolicy()
    enforcement: Literal["required", "declared-only"] = "required"
    """`declared-only`: what this machine cannot enforce is said, on every screen and report, not refused."""
    resource_limits: ResourceLimits | None = None

    @model_serializer(mode="wrap")
    def _as_ever(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A contract without limits keeps the shape, and so the digest, that it had before there were any."""
        plain: dict[str, Any] = handler(self)
        if plain.get("resource_limits") is None:
            plain.pop("resource_limits", None)
        return plain

    @model_validator(mode="before")
    @classmethod
    def _derive_type(cls, data: Any) -> Any:  # noqa: ANN401
        if isinstance(data, dict) and not data.get("parent_type") and isinstance(data.get("parent_id"), str):
            return {**data, "parent_type": agent_type(data["parent_id"])}
        return data

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.parent_type != agent_type(self.parent_id):
            raise ValueError(f"parent_type {self.parent_type!r} does not match parent_id {self.parent_id!r}")
        if self.spawn_ts.utcoffset() is None or self.spawn_ts.utcoffset() != UTC.utcoffset(None):
            raise ValueError("spawn_ts must be UTC, like 2026-05-11T13:20:00Z")
        return self

    def sha256(self) -> str:
        """Digest of the whole context: hex SHA-256 over its sorted, compact JSON."""
        raw = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(raw.encode()).hexdigest()


def check_narrowing(parent: Inheritance | None, child: Inheritance) -> list[Refused]:
    """Capabilities only shrink down the tree, forbidden lists only grow.

    `parent` is None for the three parents, whose grant from Hermes is open.
    """
    if parent is None:
        return []
    found: list[Refused] = []
    wider = sorted(set(child.core_capabilities) - set(parent.core_capabilities))
    if wider:
        found.append(Refused("inheritance.core_capabilities", f"{', '.join(wider)} is not the parent's to give"))
    dropped = sorted(set(parent.forbidden_capabilities) - set(child.forbidden_capabilities))
    if dropped:
        found.append(
            Refused(
                "inheritance.forbidden_capabilities",
                f"{', '.join(dropped)} is forbidden to the parent and must stay so",
            )
        )
    return found


def check_limits(parent: ResourceLimits | None, child: ResourceLimits | None) -> list[Refused]:
    """Limits only get narrower down the tree, and a hard one stays hard. Each agent has its own to use up."""
    if parent is None:
        return []
    own = child or ResourceLimits()
    found: list[Refused] = []
    for name in ("memory_mb", "processes", "cpus"):
        most, asked = getattr(parent, name), getattr(own, name)
        if most is not None and (asked is None or asked > most):
            rule = f"{'no limit' if asked is None else f'{asked:g}'} is more than its parent's {most:g}"
            found.append(Refused(f"resource_limits.{name}", rule))
    if parent.ceiling == "hard" and own.ceiling != "hard":
        found.append(Refused("resource_limits.ceiling", "its parent's is hard and must stay so"))
    return found
