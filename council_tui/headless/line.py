"""What every object that `--json` prints has in common.

What agents say is escaped down to ASCII, so that no control character of theirs reaches a terminal.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class Line(BaseModel):
    """What every object has."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    v: Literal[1] = 1
    """Rises when a field changes its meaning or goes away."""
    seq: Annotated[int, Field(ge=0)]
    """Of the last event that the object knows of; 0 where there is none."""
    at: str
    """RFC 3339 UTC."""

    def line(self) -> str:
        """The object as one line of ASCII, `type` first, with its end of line."""
        raw = self.model_dump(mode="json")
        return json.dumps({"type": raw.pop("type"), **raw}) + "\n"


class Part(BaseModel):
    """A part of an object."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def now() -> str:
    """RFC 3339 UTC with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
