"""What each exit code of `--run` says, in words; imports nothing, because `--help` prints it."""

from __future__ import annotations

MEANING: dict[int, str] = {
    0: "all cards are done and verified",
    1: "at least one card failed",
    2: "the plan, a flag or the home is wrong; nothing was started",
    3: "something waits for a person; everything else is finished",
    4: "the budget is spent",
    5: "the final audit found a living process, an open claim, an unsigned report, a slice or a bad ledger",
    70: "internal error",
    130: "interrupted; every agent was ended in order",
}
