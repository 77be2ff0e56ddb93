"""The child protocol's framing: JSON-RPC 2.0, one message a line, and sd_notify datagrams for beats.

Sources: JSON-RPC 2.0 specification; sd_notify(3). Pure functions; both sides of the socket import this.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import isfinite
from typing import Any

MAX_MESSAGE = 4 * 1024 * 1024
"""Bytes in one line; a longer one is refused whole."""
MAX_DATAGRAM = 4096
MAX_NESTING = 64
"""Levels in a message; deeper ones could not be written out again."""

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
INTERNAL_ERROR = -32603
REFUSED = -32000


class BadMessage(ValueError):
    """A line that is no message; it is counted and journalled and never stops anyone."""


@dataclass(frozen=True)
class Call:
    """A request (with `id`) or a notification (without)."""

    method: str
    params: dict[str, Any]
    id: int | None = None


@dataclass(frozen=True)
class Reply:
    """An answer: either a result or an error."""

    id: int
    result: Any = None
    error: str | None = None
    code: int = 0


def encode(message: Call | Reply) -> bytes:
    """One line, newline included."""
    body: dict[str, Any] = {"jsonrpc": "2.0"}
    if isinstance(message, Call):
        body |= {"method": message.method, "params": message.params}
        if message.id is not None:
            body["id"] = message.id
    elif message.error is not None:
        body |= {"id": message.id, "error": {"code": message.code or REFUSED, "message": message.error}}
    else:
        body |= {"id": message.id, "result": message.result}
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _no_number(name: str) -> float:
    raise BadMessage(f"{name} is no JSON number")


def _finite(text: str) -> float:
    value = float(text)
    return value if isfinite(value) else _no_number("a number beyond all bounds")


def _nesting(value: Any, allowed: int) -> int:  # noqa: ANN401 - any JSON value
    """Levels of nesting, counted no further than one beyond what is allowed."""
    level, depth = [value], 0
    while depth <= allowed and (level := [one for one in level if isinstance(one, (dict, list))]):
        depth += 1
        level = [item for one in level for item in (one.values() if isinstance(one, dict) else one)]
    return depth


def parse_json(raw: bytes, nesting: int = MAX_NESTING) -> Any:  # noqa: ANN401 - any JSON value
    """Strict JSON from a stranger: UTF-8, finite numbers, whole characters, bounded nesting.

    Raises `BadMessage`. What passes can be stored, hashed and written out again.
    """
    try:
        value = json.loads(raw.decode(), parse_constant=_no_number, parse_float=_finite)
    except BadMessage:
        raise
    except (ValueError, RecursionError):
        raise BadMessage("not JSON") from None
    if _nesting(value, nesting) > nesting:
        raise BadMessage(f"nested deeper than {nesting} levels")
    if b"\\u" in raw:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise BadMessage("holds half of a surrogate pair") from None
    return value


def decode(line: bytes) -> Call | Reply:
    """Read one line. Raises `BadMessage` with a reason that is safe to journal."""
    if len(line) > MAX_MESSAGE:
        raise BadMessage("longer than the cap")
    body = parse_json(line)
    if not isinstance(body, dict) or body.get("jsonrpc") != "2.0":
        raise BadMessage("not JSON-RPC 2.0")
    ident = body.get("id")
    if ident is not None and (not isinstance(ident, int) or isinstance(ident, bool)):
        raise BadMessage("id is not an integer")
    if "method" in body:
        method, params = body["method"], body.get("params", {})
        if not isinstance(method, str) or len(method) > 64 or not isinstance(params, dict):
            raise BadMessage("method or params of a wrong type")
        return Call(method, params, ident)
    if ident is None:
        raise BadMessage("neither a call nor a reply")
    error = body.get("error")
    if error is None:
        return Reply(ident, body.get("result"))
    if not isinstance(error, dict):
        raise BadMessage("error is not an object")
    code = error.get("code")
    text = str(error.get("message", "error"))[:1000]
    return Reply(ident, None, text, code if isinstance(code, int) else REFUSED)


def notify(fields: dict[str, str | int]) -> bytes:
    """An sd_notify datagram from its fields."""
    return "\n".join(f"{key}={value}" for key, value in fields.items()).encode()


def parse_notify(datagram: bytes) -> dict[str, str]:
    """The fields of an sd_notify datagram; lines without '=' and what is no UTF-8 are passed over."""
    fields: dict[str, str] = {}
    for raw in datagram[:MAX_DATAGRAM].split(b"\n"):
        key, sep, value = raw.decode("utf-8", "replace").partition("=")
        if sep and key:
            fields[key] = value
    return fields
