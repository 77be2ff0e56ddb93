"""Signs, words and colours of states on a plain terminal; the word carries the state, the rest repeats it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from council_tui.control.views import AgentView, CardView

ALIVE, LATE, BAD, GOOD, QUIET, STRONG = "#5fb3f0", "#e8a317", "#f4764a", "#58c7ab", "#8793a3", "bold"
TONES = {"plain": QUIET, "good": GOOD, "warn": LATE, "bad": BAD}
HEALTH_STYLE = {
    "alive": ALIVE,
    "late": LATE,
    "stalled": LATE,
    "offered": QUIET,
    "orphan": BAD,
    "failed": BAD,
    "ended": QUIET,
    "held": BAD,
    "waiting": LATE,
    "frozen": LATE,
}


@dataclass(frozen=True)
class Signs:
    """One set of signs."""

    good: str
    bad: str
    alive: str
    late: str
    stalled: str
    open: str
    idle: str
    wait: str
    ended: str
    tee: str
    elbow: str
    pipe: str
    dot: str
    done_bar: str
    rest_bar: str
    spark: str
    office: dict[str, str]

    def health(self, health: str) -> str:
        """The sign of an agent's health."""
        return {
            "alive": self.alive,
            "late": self.late,
            "stalled": self.stalled,
            "offered": self.open,
            "orphan": self.bad,
            "failed": self.bad,
            "ended": self.ended,
            "held": self.wait,
            "waiting": self.wait,
            "frozen": self.wait,
        }[health]

    def tone(self, tone: str) -> str:
        """The sign of an event's tone."""
        return {"plain": self.dot, "good": self.good, "warn": self.late, "bad": self.bad}[tone]

    def sparkline(self, beats: tuple[int, ...], width: int) -> str:
        """The last beats by how late each was, from 8 ms to 1 s; one that never came is a dot."""
        return "".join(
            self.dot if ms < 0 else self.spark[min(len(self.spark) - 1, (max(ms, 1) >> 3).bit_length())]
            for ms in beats[-width:]
        )


UNICODE = Signs(
    good="✓",
    bad="✗",
    alive="●",
    late="◐",
    stalled="◌",
    open="○",
    idle="·",
    wait="!",
    ended="■",
    tee="├─ ",
    elbow="└─ ",
    pipe="│  ",
    dot="·",
    done_bar="━",
    rest_bar="─",
    spark="▁▂▃▄▅▆▇█",
    office={"hermes": "⬢", "openfang": "■", "openclaw": "▲", "zeroclaw": "◆"},
)
ASCII = Signs(
    good="+",
    bad="x",
    alive="*",
    late="~",
    stalled="z",
    open="o",
    idle=".",
    wait="!",
    ended="-",
    tee="|- ",
    elbow="`- ",
    pipe="|  ",
    dot="-",
    done_bar="=",
    rest_bar="-",
    spark=".:-=+*#%",
    office={"hermes": "H", "openfang": "F", "openclaw": "C", "zeroclaw": "Z"},
)


def signs_for(stream: TextIO) -> Signs:
    """Unicode where the stream and the terminal can be trusted with it."""
    utf = "utf" in (stream.encoding or "").lower()
    return UNICODE if utf and os.environ.get("TERM") != "linux" else ASCII


_FAILED = {"protocol_violation": "violation"}
"""Where the word for a failure is too long for its column."""
_TROUBLE = ("late", "stalled", "held", "orphan", "failed")


def standing(card: CardView, agent: AgentView | None, signs: Signs) -> tuple[str, str, str]:
    """(sign, word, style) of a card as it stands."""
    match card.state:
        case "done":
            return signs.good, "done", GOOD
        case "failed":
            return signs.bad, _FAILED.get(card.fail or "failed", card.fail or "failed"), BAD
        case "blocked":
            return _blocked(card, signs)
        case "running" | "claimed" | "review" if agent is not None and agent.health in _TROUBLE:
            word = "ending" if agent.health in ("orphan", "failed") else agent.health
            return signs.health(agent.health), word, HEALTH_STYLE[agent.health]
        case "running" | "review":
            return signs.alive, card.state, ALIVE
        case "claimed":
            return signs.open, "claimed", ALIVE
        case "ready":
            return signs.open, "offered" if agent is not None and agent.health == "offered" else "ready", QUIET
        case _:
            return signs.idle, "waits" if card.after else card.state, QUIET


def _blocked(card: CardView, signs: Signs) -> tuple[str, str, str]:
    match card.block:
        case "dependency":
            return signs.idle, "blocked", LATE
        case "transient":
            return signs.open, "retries", LATE
        case "capability":
            return signs.bad, "refused", BAD
        case "needs_input":
            return signs.wait, "asks you", LATE
        case _:
            return signs.wait, card.block or "blocked", LATE


def clock(seconds: float) -> str:
    """`0:07`, `12:40`, `1:02:03`."""
    whole = max(0, int(seconds))
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
