"""Any legal history verifies; any single change to it does not."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from council_tui.ledger.envelope import open_strict
from council_tui.ledger.verdicts import Verdict
from council_tui.ledger.verify import verify_log
from tests.ledger.builders import HERMES, Fleet, seen, tamper, work, write

KINDS = {3: "zeroclaw", 2: "child", 1: "microshark"}
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def histories() -> st.SearchStrategy[Fleet]:
    """Fleets that did only what they may: spawn, report, observe, revoke."""
    steps = st.tuples(st.sampled_from(["spawn", "work", "see", "end"]), st.integers(0, 99))
    return st.lists(steps, min_size=3, max_size=14).map(play)


def play(steps: list[tuple[str, int]]) -> Fleet:
    """A legal history out of any choices; a choice that would not be legal spawns an office instead."""
    fleet = Fleet()
    depth, line = {HERMES: 3}, {HERMES: (HERMES,)}
    ended: set[str] = set()
    for number, (step, choice) in enumerate([("spawn", 0), *steps]):
        living = [name for name in depth if not ended & set(line[name])]
        agent = living[choice % len(living)]
        below = [name for name in living if agent in line[name][:-1]]
        if step == "work" and agent != HERMES:
            fleet.sign(agent, "ascension", work(findings=choice))
        elif step == "see" and below:
            fleet.sign(agent, "observation", seen(below[choice % len(below)]))
        elif step == "end" and below:
            target = below[choice % len(below)]
            fleet.sign(agent, "revocation", {"of": target, "reason": "run ended"})
            ended.add(target)
        else:
            parent = agent if depth[agent] else HERMES
            child = f"{KINDS[depth[parent]]}:{number}"
            fleet.adopt(parent, child, depth[parent] - 1)
            depth[child], line[child] = depth[parent] - 1, (*line[parent], child)
    return fleet


def audit(fleet: Fleet, raws: list[bytes] | None = None, *changes: str) -> Verdict:
    """The verdict on a file with these entries, after changes made behind its back."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        write(path, fleet, raws)
        if changes:
            tamper(path, *changes)
        return verify_log(path, root_public=fleet.root.public).verdict


@QUICK
@given(histories())
def test_a_legal_history_is_valid(fleet):
    assert audit(fleet) is Verdict.VALID


@QUICK
@given(histories(), st.data())
def test_a_change_without_the_logs_key_is_never_valid(fleet, data):
    last = len(fleet.raws) - 1
    index = data.draw(st.integers(0, last))
    raw = fleet.raws[index]
    place = data.draw(st.integers(0, len(raw) - 1))
    flipped = raw[:place] + bytes([raw[place] ^ data.draw(st.integers(1, 255))]) + raw[place + 1 :]
    other = data.draw(st.integers(0, last).filter(lambda value: value != index))
    swap = [
        f"UPDATE entry SET idx = -1 WHERE idx = {index}",
        f"UPDATE entry SET idx = {index} WHERE idx = {other}",
        f"UPDATE entry SET idx = {other} WHERE idx = -1",
    ]
    change = data.draw(
        st.sampled_from(
            [
                [f"UPDATE entry SET raw = x'{flipped.hex()}' WHERE idx = {index}"],
                [f"DELETE FROM entry WHERE idx = {index}"],
                [f"DELETE FROM entry WHERE idx >= {index}"],
                [f"INSERT INTO entry SELECT {last + 1}, leaf, raw FROM entry WHERE idx = {index}"],
                swap,
            ]
        )
    )
    assert audit(fleet, None, *change) is not Verdict.VALID


@QUICK
@given(histories(), st.data())
def test_a_change_by_the_logs_owner_inside_an_agents_history_is_never_valid(fleet, data):
    agents = [open_strict(raw).statement.agent for raw in fleet.raws]
    inner = [at for at, name in enumerate(agents) if name in agents[at + 1 :]]
    index = data.draw(st.sampled_from(inner or [0]))
    later = next((at for at in range(index + 1, len(agents)) if agents[at] == agents[index]), None)
    raws = list(fleet.raws)
    change = data.draw(st.sampled_from(["drop", "repeat", "flip", "swap"]))
    if change == "flip":
        place = data.draw(st.integers(0, len(raws[index]) - 1))
        raw = raws[index]
        raws[index] = raw[:place] + bytes([raw[place] ^ data.draw(st.integers(1, 255))]) + raw[place + 1 :]
    elif change == "repeat" or later is None:
        raws.append(raws[index])
    elif change == "drop":
        del raws[index]
    else:
        raws[index], raws[later] = raws[later], raws[index]
    assert audit(fleet, raws) is not Verdict.VALID
