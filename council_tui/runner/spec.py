"""What a runner is given: by the nursery to exist at all, and by the supervisor once it has said hello."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from council_tui.domain.contract import SpawnContext
from council_tui.domain.order import Order


@dataclass(frozen=True)
class RunnerSpec:
    """What the nursery hands to a new runner. The tokens are here and nowhere else: not in argv, not in env."""

    run: str
    agent: str
    socket: str
    notify: str
    token: str
    beat_token: str
    log_dir: str
    body_socket: str
    grace: float = 5.0
    """Seconds between SIGTERM and SIGKILL for what is left when the runner itself is killed."""


@dataclass(frozen=True)
class Grant:
    """The supervisor's answer to hello: the contract and where the agent stands."""

    context: SpawnContext
    order: Order
    card: str
    log: str
    root: str
    """Hermes' public key, hex: whoever takes this agent over later has to prove that it holds it."""
    depth: int
    validity: tuple[int, int]
    """Unix seconds from which and until which this agent's own grant holds at the most."""
    enforcement: str
    microsharks: tuple[Order, ...]
    workdir: str
    home: str
    """The council's home, which no body has business in."""
    bwrap: str
    """Path of bubblewrap for strong mode; empty in portable mode."""
    groups: dict[str, str]
    """By limit of a contract: where a cgroup that holds it can be made."""
    mbti: frozenset[str] | None

    @classmethod
    def read(cls, raw: dict[str, Any]) -> Grant:
        """From the wire; raises ValueError when it does not hold together."""
        return cls(
            SpawnContext.model_validate(raw["context"]),
            Order.model_validate(raw["order"]),
            str(raw["card"]),
            str(raw["log"]),
            str(raw["root"]),
            int(raw["depth"]),
            (int(raw["not_before"]), int(raw["not_after"])),
            str(raw["enforcement"]),
            tuple(Order.model_validate(order) for order in raw["microsharks"]),
            str(raw["workdir"]),
            str(raw["home"]),
            str(raw["bwrap"]),
            {str(limit): str(folder) for limit, folder in raw["groups"].items()},
            frozenset(raw["mbti"]) if raw.get("mbti") is not None else None,
        )
