"""One byte string per value, so that a signature covers a meaning and not a spelling.

The rule is narrower than RFC 8785 and gives the same bytes: sorted ASCII keys, compact, UTF-8, no floats,
integers below 2**53.
"""

from __future__ import annotations

import json
from typing import Any

from council_tui.domain.errors import CouncilError

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode

MAX_INT = 2**53
MAX_DEPTH = 32
"""Levels of nesting; nothing that the ledger writes needs more than six."""


class NotCanonical(CouncilError):
    """A value that has no canonical form; the text says which rule it breaks."""


class TooDeep(NotCanonical):
    """A value that is nested too deep to be one of ours; how deep Python itself reads differs by version."""


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NotCanonical("a text holds half of a surrogate pair, which is no character") from None


def _check(value: object, depth: int) -> None:
    kind = type(value)
    if kind is str:
        if not value.isascii():  # type: ignore[attr-defined]
            _check_text(value)  # type: ignore[arg-type]
    elif kind is int:
        if not -MAX_INT < value < MAX_INT:  # type: ignore[operator]
            raise NotCanonical("an integer is not between -2**53 and 2**53")
    elif value is None or kind is bool:
        return
    elif depth >= MAX_DEPTH:
        raise TooDeep(f"a value is nested deeper than {MAX_DEPTH} levels")
    elif kind is dict:
        for key, item in value.items():  # type: ignore[attr-defined]
            if type(key) is not str or not key.isascii():
                raise NotCanonical("a key is not an ASCII text")
            _check(item, depth + 1)
    elif kind is list or kind is tuple:
        for item in value:  # type: ignore[attr-defined]
            _check(item, depth + 1)
    else:
        raise NotCanonical(f"a {kind.__name__} has no canonical form; use texts, integers, lists and objects")


def canonical(value: Any) -> bytes:  # noqa: ANN401 - any JSON value
    """The value's canonical JSON. Raises `NotCanonical`."""
    _check(value, 0)
    return _encode(value).encode()
