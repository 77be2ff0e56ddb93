"""A seeded council for tests and pictures: nothing in it runs, and its clock only moves when told."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import yaml

from council_tui.control.views import (
    Detail,
    DraftCheck,
    EntryView,
    ProcessView,
    QuitOutcome,
    ReapPreview,
    RoomView,
    SpawnDraft,
    VerifyView,
)
from council_tui.domain.contract import Inheritance
from council_tui.domain.ids import LABEL

if TYPE_CHECKING:
    from council_tui.domain.errors import CouncilError

from .crew import entries, view


class FakeCouncil:
    """A `CouncilDoor` over a picture that tests may change; it writes down what it was asked to do."""

    def __init__(self, room: RoomView | None = None) -> None:
        self.view = room if room is not None else view()
        self.refusal: CouncilError | None = None
        self.refuse_preview: CouncilError | None = None
        self.asked: list[tuple[object, ...]] = []
        self.rows = entries(self.view.ledger.size)

    def change(self, **changes: object) -> None:
        """A new version of the picture."""
        self.view = replace(self.view, version=self.view.version + 1, **changes)  # type: ignore[arg-type]

    def set_health(self, label: str, health: str) -> None:
        """One agent changes its state."""
        self.change(
            agents=tuple(replace(a, health=health) if a.label == label else a for a in self.view.agents)  # type: ignore[arg-type]
        )

    def _note(self, *what: object) -> None:
        self.asked.append(what)
        if self.refusal is not None:
            raise self.refusal

    async def room(self) -> RoomView:
        if self.refusal is not None:
            raise self.refusal
        return self.view

    async def detail(self, ident: str) -> Detail:
        self._note("detail", ident)
        return Detail(
            title=ident,
            facts=(
                ("", "Identity"),
                ("parent_id", "openclaw:office.r0"),
                ("spawn_ts", "2026-05-11T13:14:02Z"),
                ("task", "t_002c7kq2"),
                ("", "Held to"),
                ("enforcement", "portable; soft slice; declared only: no network"),
                ("slice", "21.4 of 64 MiB used, soft ceiling"),
                ("", "Inheritance"),
                ("mbti", "ENTP-T"),
                ("may use", "terminal file search"),
                ("may never", "network"),
                ("", "Lifecycle"),
                ("beat", "every 5 s"),
                ("accept in", "60 s"),
                ("contract", "valid 5 of 5, sha256 9f2c01"),
            ),
            history=(
                "13:13:50  card created in OpenClaw's name",
                "13:14:02  OpenClaw signed the delegation",
                "13:14:03  the child claimed the card",
                "13:14:05  the child acknowledged: inheritance valid",
            ),
            log=tuple(f"13:20:{second:02d} rendered frame {second - 9} of 24" for second in range(10, 34)),
            processes=(
                ProcessView(41210, 40003, "S", "python3 -m agents.visual"),
                ProcessView(41222, 41210, "R", "ffmpeg -i frame%d.png out.mp4"),
                ProcessView(41230, 41210, "S", "sh -c inkscape --pipe"),
            ),
        )

    async def check_draft(self, draft: SpawnDraft) -> DraftCheck:
        problems: list[tuple[str, str]] = []
        if not LABEL.match(draft.label):
            problems.append(("label", "a name has lower case letters, digits and dashes, at most 48"))
        if not draft.run:
            problems.append(("run", "name a program to run"))
        inheritance = Inheritance(
            mbti_type=draft.mbti_type,
            core_capabilities=draft.core_capabilities,
            forbidden_capabilities=draft.forbidden_capabilities,
        )
        problems += [(refused.field, refused.rule) for refused in inheritance.problems()]
        contract = {
            "parent_id": f"{draft.parent}:office.r0",
            "spawn_ts": "set when it is sent",
            "memory_slice": {"memory_limit_mb": draft.memory_limit_mb},
            "inheritance": {
                "mbti_type": draft.mbti_type,
                "core_capabilities": list(draft.core_capabilities),
                "forbidden_capabilities": list(draft.forbidden_capabilities),
            },
            "kanban_handoff": {"parent_task_id": "t_parent", "child_task_claim": None},
            "lifecycle_policy": {
                "parent_heartbeat_interval_seconds": draft.heartbeat_seconds,
                "child_timeout_seconds": draft.timeout_seconds,
                "requires_acknowledgement": True,
            },
            "envelope": {"task_name": draft.label, "rollback_plan": draft.rollback_plan},
        }
        return DraftCheck(yaml.safe_dump(contract, sort_keys=False), tuple(problems))

    async def spawn(self, draft: SpawnDraft) -> str:
        self._note("spawn", draft)
        return "t_new7kq2m"

    async def preview_reap(self, agent: str) -> ReapPreview:
        if self.refuse_preview is not None:
            raise self.refuse_preview
        found = next(other for other in self.view.agents if other.name == agent)
        below = tuple(other.label for other in self.view.agents if other.parent == agent)
        processes = (
            ProcessView(41410, 40004, "T", "python3 -m agents.migrate --from 12 --to 13"),
            ProcessView(41411, 41410, "T", "psql --no-psqlrc council"),
        )
        return ReapPreview(
            agent,
            found.label,
            found.health,
            processes,
            below,
            "SIGTERM, 5 s, SIGKILL; its card goes to failed (orphaned).",
        )

    async def reap(self, agent: str) -> None:
        self._note("reap", agent)

    async def freeze(self, agent: str, frozen: bool) -> None:
        self._note("freeze", agent, frozen)

    async def pause(self, paused: bool) -> None:
        self._note("pause", paused)
        self.change(paused=paused)

    async def entries(self, start: int = 0, limit: int = 500) -> tuple[EntryView, ...]:
        self._note("entries", start, limit)
        return self.rows[start : start + limit]

    async def verify(self, index: int | None = None) -> VerifyView:
        self._note("verify", index)
        self.rows = tuple(
            replace(row, verdict="VALID") if index is None or row.index == index else row for row in self.rows
        )
        lines = (
            "signature: made by the agent's own key",
            "delegation: signed by its parent before it started",
            "inclusion: the leaf is in the tree under the checkpoint",
        )
        return VerifyView("VALID", len(self.rows) if index is None else 1, None, lines)

    async def drain(self) -> QuitOutcome:
        self._note("drain")
        self.change(agents=tuple(replace(a, health="ended") for a in self.view.agents))  # type: ignore[arg-type]
        return QuitOutcome(19, 0)

    async def stop_at_once(self) -> QuitOutcome:
        self._note("stop_at_once")
        return QuitOutcome(19, 0)

    async def living(self) -> int:
        return sum(
            1 for a in self.view.agents if a.kind in ("child", "microshark") and a.health not in ("ended", "failed")
        )
