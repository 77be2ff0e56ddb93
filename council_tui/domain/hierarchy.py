"""Who may be whose parent (seed: council-of-three). A table, so that configuration can extend it."""

from __future__ import annotations

from dataclasses import dataclass

MAX_DEPTH = 3
"""Hermes 0, the three parents 1, children 2, microsharks 3; microsharks spawn nothing."""

MICROSHARK_TTL_SECONDS = 300.0


@dataclass(frozen=True)
class Office:
    """A row of the hierarchy: one kind of agent, its solid and what it owns."""

    kind: str
    title: str
    layer: int
    solid: str
    element: str
    dual: str
    duty: str
    glyph: str
    assumed: tuple[str, ...] = ()
    """Columns that no source gives and that are ours."""


HERMES = Office(
    "hermes",
    "Hermes",
    0,
    "dodecahedron",
    "aether",
    "icosahedron",
    "orchestration, dispatch",
    "⬢",
    ("element",),
)
OPENFANG = Office("openfang", "OpenFang", 1, "cube", "earth", "octahedron", "security, the tool gateway", "■")
OPENCLAW = Office("openclaw", "OpenClaw", 1, "tetrahedron", "fire", "tetrahedron", "creative work", "▲")
ZEROCLAW = Office(
    "zeroclaw",
    "ZeroClaw",
    1,
    "octahedron",
    "air",
    "cube",
    "infrastructure, heavy compute, long-running systems",
    "◆",
)
CHILD = Office("child", "child", 2, "its parent's", "its parent's", "its parent's", "one card", "·", ("solid",))
MICROSHARK = Office(
    "microshark", "microshark", 3, "icosahedron", "water", "dodecahedron", "one sub-task", "‹", ("element",)
)

KINDS: dict[str, Office] = {o.kind: o for o in (HERMES, OPENFANG, OPENCLAW, ZEROCLAW, CHILD, MICROSHARK)}
PARENTS: tuple[str, ...] = ("openfang", "openclaw", "zeroclaw")
"""The Council of Three, in the order screens show them."""


def child_kind(parent_kind: str) -> str | None:
    """What kind a parent of this kind spawns, or None where it may spawn nothing."""
    if parent_kind in PARENTS:
        return CHILD.kind
    return MICROSHARK.kind if parent_kind == CHILD.kind else None


def dual_note(kind: str) -> str:
    """How this kind is checked, in words for a screen.

    The tetrahedron is its own dual, so OpenClaw's check is the gate and a second OpenClaw agent.
    """
    office = KINDS[kind]
    if kind == OPENCLAW.kind:
        return "self-dual: checked by the gate and a second OpenClaw agent"
    for other in KINDS.values():
        if other is not office and other.solid == office.dual:
            return f"dual of {other.title}"
    return "checked by its parent"
