"""What an entry says: in-toto Statement v1 payloads, one table of fields per kind.

Every predicate holds `log`, `agent`, `seq`, `prev` (hex leaf hash of the agent's previous entry, or null),
`at` (integer unix seconds, information only) and exactly the fields that `FIELDS` lists for its kind.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from council_tui.ledger.canonical import MAX_INT
from council_tui.ledger.verdicts import BadEntry, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
_PREFIX, _SUFFIX = "https://council-tui/", "/v1"

MAX_SUMMARY = 8000
MAX_LIST = 256
MAX_DEPTH = 3
"""Hermes is at depth 3; it grants 2 to the offices, they 1 to children, and these 0 to microsharks."""

_AGENT = re.compile(r"[a-z]{1,32}:[A-Za-z0-9._-]{1,120}\Z")
_HEX32 = re.compile(r"[0-9a-f]{64}\Z")

if TYPE_CHECKING:
    Rule = Callable[[Any], bool]


def _text(limit: int) -> Rule:
    return lambda value: type(value) is str and len(value) <= limit


def _whole(low: int, high: int = MAX_INT - 1) -> Rule:
    return lambda value: type(value) is int and low <= value <= high


def _maybe(rule: Rule) -> Rule:
    return lambda value: value is None or rule(value)


def _agent(value: object) -> bool:
    return type(value) is str and _AGENT.match(value) is not None


def _hex32(value: object) -> bool:
    return type(value) is str and _HEX32.match(value) is not None


def _names(value: object) -> bool:
    if not isinstance(value, list) or len(value) > MAX_LIST:
        return False
    return all(type(name) is str and 0 < len(name) <= 200 for name in value)


def _set(value: object) -> bool:
    return _names(value) and isinstance(value, list) and all(a < b for a, b in itertools.pairwise(value))


FIELDS: Mapping[str, Mapping[str, Rule]] = {
    # A parent's grant. public_key: hex, contract: hex SHA-256 of the spawn context, not_before/not_after:
    # unix seconds, both inclusive. capabilities and forbidden: sorted, each name once. An empty capability
    # list at depth 2 is an open grant (everything that is not forbidden); below that it grants nothing.
    "delegation": {
        "child": _agent,
        "public_key": _hex32,
        "depth": _whole(0, MAX_DEPTH - 1),
        "capabilities": _set,
        "forbidden": _set,
        "not_before": _whole(0),
        "not_after": _whole(0),
        "contract": _hex32,
        "card": _text(64),
    },
    # The child's entry 0: proof that it has the key, and that it read the contract.
    "acceptance": {"contract": _hex32},
    # A work report. findings: how many; artifacts: their names, whose digests are the subjects.
    "ascension": {
        "status": lambda value: value in ("DONE", "BLOCKED", "ERROR"),
        "summary": _text(MAX_SUMMARY),
        "findings": _whole(0),
        "artifacts": _names,
        "contract": _hex32,
        "run": _text(64),
        "enforcement": _text(64),
    },
    # What an ancestor saw from outside. signal: the number that ended it; result: hex SHA-256, null for none.
    "observation": {
        "of": _agent,
        "exit_status": _maybe(_whole(-MAX_INT + 1)),
        "signal": _maybe(_whole(1, 128)),
        "wall_ms": _whole(0),
        "result": _maybe(_hex32),
    },
    # An ancestor ends an agent's authority, and that of its whole subtree, from this index on.
    "revocation": {"of": _agent, "reason": _text(1000)},
    # A rendering for people; sha256 is the document's.
    "report": {"title": _text(200), "sha256": _hex32},
}

_COMMON: Mapping[str, Rule] = {
    "log": _text(200),
    "agent": _agent,
    "seq": _whole(0),
    "prev": _maybe(_hex32),
    "at": _whole(0),
}
_RULES = {kind: {**_COMMON, **fields} for kind, fields in FIELDS.items()}
_KINDS = {f"{_PREFIX}{kind}{_SUFFIX}": kind for kind in FIELDS}


@dataclass(frozen=True, slots=True)
class Statement:
    """A payload that was checked: `fields` holds what its kind adds."""

    kind: str
    log: str
    agent: str
    seq: int
    prev: str | None
    at: int
    """Unix seconds as the signer's clock had them; order is the position in the log, never this."""
    subjects: tuple[tuple[str, str], ...]
    """(name, hex SHA-256)."""
    fields: Mapping[str, Any]


def _derived_subject(kind: str, agent: str, fields: Mapping[str, Any]) -> tuple[str, str]:
    """In-toto asks for a subject: what this entry is about, when the caller names no artefact."""
    digest = fields.get("contract") or fields.get("sha256") or fields.get("result") or "0" * 64
    return (fields.get("child") or fields.get("of") or fields.get("title") or agent, digest)


def statement(
    kind: str,
    *,
    log: str,
    agent: str,
    seq: int,
    prev: str | None,
    at: int,
    subjects: Sequence[tuple[str, str]] = (),
    fields: Mapping[str, Any],
) -> dict[str, Any]:
    """The payload of one entry. Raises `BadEntry` when it breaks the rules of its kind.

    Without subjects it is about the contract, document or result in its fields. Lists of names are sorted
    here where their kind asks for it.
    """
    own = {name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()}
    for name in ("capabilities", "forbidden") if kind == "delegation" else ():
        own[name] = sorted(set(own.get(name, ())))
    named = subjects or (_derived_subject(kind, agent, own),)
    payload = {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in named],
        "predicateType": f"{_PREFIX}{kind}{_SUFFIX}",
        "predicate": {"log": log, "agent": agent, "seq": seq, "prev": prev, "at": at, **own},
    }
    read(payload)
    return payload


def _subjects(value: object) -> tuple[tuple[str, str], ...]:
    if type(value) is not list or not 0 < len(value) <= MAX_LIST:
        raise BadEntry(Verdict.SCHEMA, f"subject must be a list of 1 to {MAX_LIST} artefacts")
    found = []
    for item in value:
        match item:
            case {"name": str(name), "digest": {"sha256": str(digest)} as digests} if (
                len(item) == 2 and len(digests) == 1 and 0 < len(name) <= 400 and _HEX32.match(digest)
            ):
                found.append((name, digest))
            case _:
                raise BadEntry(Verdict.SCHEMA, "a subject must have a name and one SHA-256 in hex, and nothing else")
    return tuple(found)


def read(payload: Mapping[str, Any]) -> Statement:
    """A payload as a `Statement`. Raises `BadEntry` with SCHEMA and the field that is wrong."""
    if payload.keys() != {"_type", "subject", "predicateType", "predicate"}:
        raise BadEntry(Verdict.SCHEMA, "the payload must be an in-toto statement with its four keys")
    if payload["_type"] != STATEMENT_TYPE:
        raise BadEntry(Verdict.SCHEMA, f"_type must be {STATEMENT_TYPE}")
    named, predicate = payload["predicateType"], payload["predicate"]
    kind = _KINDS.get(named) if type(named) is str else None
    if kind is None:
        raise BadEntry(Verdict.SCHEMA, "predicateType names no kind of entry that this version knows")
    rules = _RULES[kind]
    if type(predicate) is not dict or predicate.keys() != rules.keys():
        raise BadEntry(Verdict.SCHEMA, f"the predicate of a {kind} must have exactly {', '.join(rules)}")
    for name, rule in rules.items():
        if not rule(predicate[name]):
            raise BadEntry(Verdict.SCHEMA, f"{name} of a {kind} has a wrong type or is out of range")
    return Statement(
        kind,
        predicate["log"],
        predicate["agent"],
        predicate["seq"],
        predicate["prev"],
        predicate["at"],
        _subjects(payload["subject"]),
        {name: predicate[name] for name in FIELDS[kind]},
    )
