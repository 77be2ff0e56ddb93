"""The digest of a result: what the signed report vouches for, computed alike on both sides of the socket."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def canonical_sha256(value: dict[str, Any]) -> str:
    """Hex SHA-256 over sorted, compact JSON."""
    raw = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(raw.encode()).hexdigest()
