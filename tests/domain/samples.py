"""The seeds' own blocks, as data."""

from typing import Any

import yaml

from council_tui.domain.envelope import Envelope

SPAWN_CONTEXT = """
spawn_context:
  parent_id: "openclaw:gateway-8x7Yz"
  spawn_ts: "2026-05-11T13:20:00Z"
  task_reference: "t_child_spawn_abc123"
  memory_slice:
    shared_memory_path: "/run/user/1000/council/memory-slice-xyz"
    memory_limit_mb: 512
  inheritance:
    mbti_type: "ENTP-T"
    style_guide: "gemini/style-gemini.md"
    core_capabilities: ["terminal", "file", "search"]
    forbidden_capabilities: ["network"]
  kanban_handoff:
    parent_task_id: "t_parent_main"
    child_task_claim: null    # child creates + claims this
  lifecycle_policy:
    parent_heartbeat_interval_seconds: 30
    child_timeout_seconds: 300
    requires_acknowledgement: true
"""
"""Seed: council-of-three."""

ENVELOPE = """
task_name: "stable-lowercase-identifier"   # e.g. "audit-wealth-endpoints"
task_description: |
  Clear, bounded description of what to do.
  Include: scope, constraints, what NOT to touch.
output_schema:
  type: object
  required: ["status", "findings", "evidence"]
  properties:
    status: {type: string, enum: ["DONE", "BLOCKED", "ERROR"]}
    findings: {type: array, items: {type: object}}
    evidence: {type: array, items: {type: string}}
    recommendation: {type: string}
time_budget_minutes: 15
evidence_required: true          # Attach URLs, tool outputs, file paths
autonomy_band: "PROPOSE_ONLY"    # AUTONOMOUS | PROPOSE_ONLY | NEVER (must match E7)
tools_scope:                     # Explicit tool allowlist
  - "exec"
  - "read"
  - "web_fetch"
rollback_plan: "rm output_file"  # How to reverse ALL changes
"""
"""Seed: forge-subagent-spawn."""


def context_block(**changes: Any) -> dict[str, Any]:
    """The seed's spawn context with whole families or facts replaced."""
    block: dict[str, Any] = yaml.safe_load(SPAWN_CONTEXT)["spawn_context"]
    return block | changes


def envelope(**changes: Any) -> Envelope:
    """A small read-only envelope."""
    fields: dict[str, Any] = {
        "task_name": "look-around",
        "task_description": "Look and tell.",
        "time_budget_minutes": 5,
        "autonomy_band": "AUTONOMOUS",
        "tools_scope": ["read"],
        "rollback_plan": "No changes - read-only",
    }
    return Envelope.model_validate(fields | changes)
