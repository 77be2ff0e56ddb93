"""The FORGE envelope: what a child is asked to do, within which bounds (seed: forge-subagent-spawn)."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

Band = Literal["AUTONOMOUS", "PROPOSE_ONLY", "NEVER"]

_ONE_COMMAND = re.compile(r"[;|\n]|&&")

DERIVED_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["status", "findings", "evidence"],
    "properties": {
        "status": {"type": "string", "enum": ["DONE", "BLOCKED", "ERROR"]},
        "findings": {"type": "array", "items": {"type": "object"}},
        "evidence": {"type": "array", "items": {"type": "string"}},
        "recommendation": {"type": "string"},
    },
}
"""The seed's own output schema; a command child without one gets it: its exit and output become evidence."""


class Envelope(BaseModel):
    """The contract for one bounded, auditable task. Every field of the seed, and the inputs of E7."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    task_name: Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=80)]
    task_description: Annotated[str, Field(min_length=1, max_length=8000)]
    output_schema: dict[str, Any] = DERIVED_SCHEMA
    time_budget_minutes: Annotated[float, Field(gt=0, le=7 * 24 * 60, allow_inf_nan=False)]
    evidence_required: bool = True
    autonomy_band: Band
    tools_scope: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=64)], ...], Field(min_length=1)]
    rollback_plan: Annotated[str, Field(min_length=1, max_length=1000)]

    action_class: Literal[
        "OBSERVE", "ANALYZE", "DRAFT", "SIMULATE", "MUTATE", "EXTERNAL_SIDE_EFFECT", "IRREVERSIBLE", "UNKNOWN"
    ] = "ANALYZE"
    risk_tier: Literal["LOW", "MEDIUM", "HIGH", "ATOMIC"] = "LOW"
    blast_radius: Literal[
        "LOCAL", "ACCOUNT", "ORG", "PUBLIC", "MARKET", "INFRASTRUCTURE", "CIVILIZATIONAL", "UNKNOWN"
    ] = "LOCAL"
    reversibility: Annotated[float, Field(ge=0, le=1)] = 1.0
    derived: tuple[str, ...] = ()
    """Fields that the plan did not write and that were derived from the command; shown as such."""

    @property
    def read_only(self) -> bool:
        """Whether nothing is changed: then a failed attempt may be tried again."""
        changes_nothing = self.rollback_plan.strip().lower().startswith("no change")
        return self.action_class in ("OBSERVE", "ANALYZE") and changes_nothing

    @property
    def schema_declared(self) -> bool:
        """Whether the plan wrote the output schema; then exit 0 without a report is a protocol violation."""
        return "output_schema" not in self.derived

    @field_validator("task_description", "rollback_plan")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must not be blank")
        return value

    @field_validator("rollback_plan")
    @classmethod
    def _rollback(cls, value: str) -> str:
        plan = value.strip()
        if not plan.lower().startswith("no change") and _ONE_COMMAND.search(plan):
            raise ValueError("must be one command (no ';', '&&', '|' or newline) or start with 'No change'")
        return value

    @field_validator("output_schema")
    @classmethod
    def _schema(cls, value: dict[str, Any]) -> dict[str, Any]:
        if value.get("type") != "object":
            raise ValueError("must describe an object (type: object)")
        return value
