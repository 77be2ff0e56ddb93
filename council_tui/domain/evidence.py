"""What counts as a result: matches its schema, and every finding has something to show (FORGE rule 3)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, cast

from jsonschema import Draft202012Validator, SchemaError
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

if TYPE_CHECKING:
    from collections.abc import Iterator

    from council_tui.domain.envelope import Envelope

_NOTHING_ELSE: Registry[Any] = Registry()

MAX_FINDINGS = 500

Status = Literal["DONE", "BLOCKED", "ERROR"]


@dataclass(frozen=True)
class Result:
    """What a child returned, checked. `problems` is empty when the result may be reported as it is."""

    status: Status
    findings: tuple[dict[str, Any], ...] = ()
    evidence: tuple[str, ...] = ()
    recommendation: str = ""
    problems: tuple[str, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The result as plain JSON, the way it goes into the report."""
        out: dict[str, Any] = {
            "status": self.status,
            "findings": list(self.findings),
            "evidence": list(self.evidence),
        }
        if self.recommendation:
            out["recommendation"] = self.recommendation
        return {**self.extra, **out}


def _validator(schema: dict[str, Any]) -> Draft202012Validator:
    """A validator that knows the schema itself and fetches nothing from anywhere."""
    return Draft202012Validator(schema, registry=_NOTHING_ELSE)


def schema_problem(schema: dict[str, Any]) -> str | None:
    """Why a declared output schema is no JSON Schema that can be applied here, or None."""
    try:
        Draft202012Validator.check_schema(schema)
        resolver = _NOTHING_ELSE.resolver_with_root(DRAFT202012.create_resource(schema))
        for reference in _references(schema):
            if not reference.startswith("#"):
                return f"{reference!r} points out of the schema; only references like '#/$defs/x' are followed"
            resolver.lookup(reference)
        _validator(schema).is_valid({})
    except SchemaError as error:
        return error.message
    except Unresolvable as error:
        return f"{error.ref!r} points at nothing in the schema"
    except RecursionError:
        return "it refers to itself without an end"
    return None


def _references(schema: object) -> Iterator[str]:
    """Every `$ref` and `$dynamicRef` below."""
    if isinstance(schema, dict):
        yield from (schema[key] for key in ("$ref", "$dynamicRef") if isinstance(schema.get(key), str))
    below = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    for part in below:
        yield from _references(part)


def _refers(refs: object) -> bool:
    """Whether a finding's own reference says anything: a text that is not blank, or a position."""
    listed = refs if isinstance(refs, list) else [refs]
    return any((isinstance(ref, str) and ref.strip()) or type(ref) is int for ref in listed)


def _unbacked(findings: list[dict[str, Any]], evidence: list[str]) -> list[int]:
    """Positions of findings without evidence: by reference, by mention, or by position when counts allow."""
    # A shorter text is in nearly every sentence, and so shows nothing.
    shown = [item for item in evidence if len(item.strip()) > 3]
    missing: list[int] = []
    for index, finding in enumerate(findings):
        if _refers(finding.get("evidence_refs", finding.get("evidence"))):
            continue
        values = [v for v in finding.values() if isinstance(v, str) and len(v.strip()) > 3]
        if any(v in item or item in v for item in shown for v in values):
            continue
        missing.append(index)
    said = sum(1 for item in evidence if item.strip())
    return [] if missing and said >= len(findings) else missing


def _ill_typed(value: dict[str, Any], key: str, kind: type, what: str) -> list[str]:
    """One problem when a list of the result holds something that a report cannot carry."""
    items = value.get(key, [])
    if isinstance(items, list) and all(isinstance(item, kind) for item in items):
        return []
    return [f"{key} must be a list of {what}"]


def _storable(value: dict[str, Any]) -> bool:
    """Whether the value can be written as strict JSON: finite numbers, whole characters, sane nesting."""
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return False
    return True


def _schema_errors(value: dict[str, Any], schema: dict[str, Any]) -> list[str]:
    """The first five ways in which a value breaks its schema."""
    try:
        return [
            f"{'.'.join(str(p) for p in error.absolute_path) or 'result'}: {error.message[:300]}"
            for error in islice(_validator(schema).iter_errors(value), 5)
        ]
    except (Unresolvable, RecursionError):
        return ["result: the output schema cannot be applied to it"]


def check_result(value: object, envelope: Envelope) -> Result:
    """Hold a returned object against its envelope: an object, its schema, its status, its evidence.

    A child's own BLOCKED or ERROR is a valid return and needs no evidence.
    """
    if not isinstance(value, dict):
        return Result("ERROR", problems=("the result is not a JSON object",))
    if not _storable(value):
        return Result("ERROR", problems=("the result holds a number or a text that JSON cannot carry",))
    problems = _schema_errors(value, envelope.output_schema)
    if not problems:
        problems = [
            *_ill_typed(value, "findings", dict, "objects"),
            *_ill_typed(value, "evidence", str, "texts"),
        ]
    said = value.get("status")
    status: Status = "ERROR"
    if said in ("DONE", "BLOCKED", "ERROR"):
        status = cast("Status", said)
    else:
        problems.append("status must be DONE, BLOCKED or ERROR")
    raw_findings, raw_evidence = value.get("findings", []), value.get("evidence", [])
    findings = [f for f in raw_findings if isinstance(f, dict)] if isinstance(raw_findings, list) else []
    evidence = [e for e in raw_evidence if isinstance(e, str)] if isinstance(raw_evidence, list) else []
    if len(findings) > MAX_FINDINGS:
        problems.append(f"{len(findings)} findings are more than {MAX_FINDINGS}")
    if envelope.evidence_required and status == "DONE" and not problems:
        bare = _unbacked(findings, evidence)
        if bare:
            problems.append(f"finding {bare[0] + 1} of {len(findings)} has no evidence")
    recommendation = value.get("recommendation")
    known = {"status", "findings", "evidence", "recommendation"}
    return Result(
        status,
        tuple(findings[:MAX_FINDINGS]),
        tuple(evidence),
        recommendation if isinstance(recommendation, str) else "",
        tuple(problems),
        {k: v for k, v in value.items() if k not in known},
    )
