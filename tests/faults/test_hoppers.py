"""Chains of processes that fork and leave: one at a time, in a session of its own, with nothing to know it by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from supervisor.stage import child, plan_of, play, python

from council_tui.runner import guard

if TYPE_CHECKING:
    from pathlib import Path

HOPPER = """
import os, signal, sys, time
end = time.monotonic() + 5
if os.fork():
    sys.exit()
os.setsid()
os.closerange(0, 64)
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
while time.monotonic() < end:
    if os.fork():
        os._exit(0)
"""


def test_chains_that_hop_from_process_to_process_do_not_outlive_their_run(home: Path):
    run = ["env", "-i", *python(HOPPER, "hopper-in-a-test")]
    played = play(home, plan_of(*(child(f"hops-{n}", run) for n in range(3))))
    assert {card.state for name, card in played.cards.items() if name.startswith("hops")} == {"done"}
    assert played.ending.audit["descendants"] == []
    # None at this moment would prove little: look often enough that a living chain is seen.
    for _ in range(50):
        assert not [p for p in guard.all_processes() if b"hopper-in-a-test" in _argv(p.pid)]


def _argv(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""
