"""Signs for states and lines, in Unicode and in ASCII; a sign never stands without its word."""

from __future__ import annotations

import os
from dataclasses import dataclass
from math import log2

from rich.cells import cell_len, set_cell_size

from council_tui.domain.hierarchy import KINDS

Part = tuple[str, str]
"""Text and the component class it is painted in; an empty class is plain."""

TONES: dict[str, str] = {
    "alive": "p-alive",
    "late": "p-late",
    "stalled": "p-late",
    "offered": "p-quiet",
    "orphan": "p-bad",
    "failed": "p-bad",
    "ended": "p-ended",
    "held": "p-bad",
    "waiting": "p-late",
    "frozen": "p-late",
    "unknown": "p-ended",
    "plain": "p-quiet",
    "good": "p-good",
    "warn": "p-late",
    "bad": "p-bad",
}
"""The component class of every health and every tone of an event."""

ATTENTION = frozenset({"late", "stalled", "orphan", "failed", "held", "waiting", "frozen"})
"""Healths that a person should look at."""


@dataclass(frozen=True)
class Glyphs:
    """One set of signs."""

    health: dict[str, str]
    tone: dict[str, str]
    office: dict[str, str]
    spark: str
    missed: str
    opened: str
    closed: str
    tee: str
    elbow: str
    pipe: str
    bar: str
    dot: str
    cut: str
    arrow: str
    good: str
    rule: str

    def why(self, kind: str, reason: str) -> list[Part]:
        """Sign, kind and reason of what failed."""
        words = kind.replace("_", " ")
        return [(f"{self.health['failed']} {words}{': ' if words and reason else ''}{reason}", "p-bad")]

    def state(self, health: str) -> list[Part]:
        """Sign and word of a health, both in its colour."""
        return [(f"{self.health[health]} {health}", TONES[health])]

    def sparkline(self, beats: tuple[int, ...], width: int) -> str:
        """The last `width` beats by lateness in ms on a log scale from 8 ms to 1 s; a missed one is a dot."""
        return "".join(self._bar(ms) for ms in beats[-width:]) if width > 0 else ""

    def _bar(self, ms: int) -> str:
        if ms < 0:
            return self.missed
        return self.spark[min(len(self.spark) - 1, max(0, int(log2(max(ms, 1) / 8) + 1)))]

    def fit(self, text: str, width: int) -> str:
        """Exactly `width` cells; longer text ends in a cut sign."""
        if width <= 0:
            return ""
        if cell_len(text) <= width:
            return set_cell_size(text, width)
        return set_cell_size(text, width - 1) + self.cut

    def fit_middle(self, text: str, width: int) -> str:
        """Like `fit`, but the middle is cut: the end of a name tells it from its neighbours."""
        if cell_len(text) <= width or width < 6:
            return self.fit(text, width)
        tail = (width - 1) // 2
        return set_cell_size(text, width - 1 - tail) + self.cut + text[-tail:]


UNICODE = Glyphs(
    health={
        "alive": "●",
        "late": "◐",
        "stalled": "◌",
        "offered": "○",
        "orphan": "✗",
        "failed": "✗",
        "ended": "■",
        "held": "!",
        "waiting": "!",
        "frozen": "=",
        "unknown": "?",
    },
    tone={"plain": " ", "good": "✓", "warn": "◐", "bad": "✗"},
    office={kind: office.glyph for kind, office in KINDS.items()},
    spark="▁▂▃▄▅▆▇█",
    missed="·",
    opened="▾",
    closed="▸",
    tee="├─",
    elbow="└─",
    pipe="│ ",
    bar="▌",
    dot="·",
    cut="…",
    arrow="▸",
    good="✓",
    rule="─",
)

ASCII = Glyphs(
    health={
        "alive": "*",
        "late": "~",
        "stalled": "z",
        "offered": "o",
        "orphan": "x",
        "failed": "x",
        "ended": "-",
        "held": "!",
        "waiting": "!",
        "frozen": "=",
        "unknown": "?",
    },
    tone={"plain": " ", "good": "+", "warn": "~", "bad": "x"},
    office={"hermes": "H", "openfang": "F", "openclaw": "C", "zeroclaw": "Z", "child": ".", "microshark": "<"},
    spark="_.:-=+*#",
    missed="'",
    opened="v",
    closed=">",
    tee="|-",
    elbow="`-",
    pipe="| ",
    bar=">",
    dot="-",
    cut="~",
    arrow=">",
    good="+",
    rule="-",
)


def needs_ascii(environ: dict[str, str] | None = None) -> bool:
    """Whether this terminal cannot be trusted with more than ASCII: the Linux console, or a locale without UTF-8."""
    env = os.environ if environ is None else environ
    locale = env.get("LC_ALL") or env.get("LC_CTYPE") or env.get("LANG") or ""
    known = locale not in ("", "C", "POSIX")
    return env.get("TERM") == "linux" or (known and "utf" not in locale.lower())
