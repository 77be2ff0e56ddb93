"""Limits of a contract on memory, processes and processor time: held by a cgroup, by looking, or refused."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from runner.kernel import FakeKernel

from council_tui.board.home import Home
from council_tui.containers.sandbox import probe
from council_tui.domain.errors import Refused
from council_tui.domain.events import EventKind as K
from council_tui.domain.order import materialise
from council_tui.runner import cgroup
from council_tui.runner.cgroup import Group
from council_tui.supervisor import groups, limits
from council_tui.supervisor.limits import MAX_WORDS, Tier, enforcement, find_tier
from supervisor.stage import Stage, child, plan_of, play, python, short_home, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from council_tui.domain.contract import SpawnContext
    from supervisor.stage import Played

FOLDERS, REASONS = cgroup.find()
WHY = probe(shutil.which("bwrap")) or "; ".join(REASONS.values())
held = pytest.mark.skipif(bool(WHY), reason=WHY or "cgroups can be made")

NO_GROUPS = dict.fromkeys(cgroup.CONTROLLERS, "not ours")
WEAK = Tier("portable", "", "no bubblewrap", {}, NO_GROUPS)
LEAVABLE = Tier("portable", "", "no bubblewrap", dict.fromkeys(cgroup.CONTROLLERS, "/g"))
NAMESPACES = Tier("strong", "/usr/bin/bwrap", "", {}, NO_GROUPS)
WHOLE = Tier("strong", "/usr/bin/bwrap", "", dict.fromkeys(cgroup.CONTROLLERS, "/g"))


def context(*, mode: str = "required", forbid: tuple[str, ...] = (), **limits: object) -> SpawnContext:
    """A contract with these limits."""
    families = {
        "enforcement": mode,
        "inheritance": {"forbidden_capabilities": list(forbid)},
        "resource_limits": limits,
    }
    return materialise(
        plan_of(child("x", "true", context=families)).orders[0],
        parent_id="zeroclaw:office.1",
        parent=None,
        parent_task="t_0",
        task="t_1",
        slice_path="/s",
        spawn_ts="2026-01-01T00:00:00Z",
    )


@pytest.mark.parametrize(
    ("tier", "words"),
    [
        (WEAK, "portable; soft slice; soft limits"),
        (LEAVABLE, "portable; soft slice; soft limits"),
        (NAMESPACES, "strong; hard slice; soft limits"),
        (WHOLE, "strong; hard slice; hard limits"),
    ],
)
def test_each_machine_says_how_it_holds_memory_and_processes(tier, words):
    assert enforcement(context(memory_mb=64, processes=8), tier) == words


def test_processor_time_that_nothing_holds_is_refused_or_said():
    for tier in (WEAK, NAMESPACES):
        with pytest.raises(Refused, match="not ours") as refused:
            enforcement(context(cpus=0.5), tier)
        assert refused.value.field == "resource_limits.cpus"
        words = enforcement(context(cpus=0.5, mode="declared-only"), tier)
        assert words.endswith("slice; declared only: cpus limit")
    assert enforcement(context(cpus=0.5), LEAVABLE).endswith("soft limits")
    assert enforcement(context(cpus=0.5), WHOLE).endswith("hard limits")


def test_a_hard_ceiling_is_refused_wherever_a_program_could_get_past_it():
    for tier, why in ((WEAK, "no bubblewrap"), (LEAVABLE, "no bubblewrap"), (NAMESPACES, "not ours")):
        with pytest.raises(Refused, match=why) as refused:
            enforcement(context(memory_mb=64, ceiling="hard", mode="declared-only"), tier)
        assert refused.value.field == "resource_limits.ceiling"
    assert enforcement(context(memory_mb=64, ceiling="hard"), WHOLE).endswith("hard limits")
    assert enforcement(context(ceiling="hard"), WEAK) == "portable; soft slice"


def test_the_words_always_fit_into_a_report():
    partly = Tier("strong", "/usr/bin/bwrap", "", {"memory": "/g"}, NO_GROUPS)
    bans = ("network", "write", "search", *(f"ban-{number}" for number in range(20)))
    every = {"memory_mb": 64, "processes": 8, "cpus": 1}
    for tier in (WEAK, LEAVABLE, NAMESPACES, partly, WHOLE):
        for forbid in (bans, bans[:2], bans[:3], ()):
            assert len(enforcement(context(mode="declared-only", forbid=forbid, **every), tier)) <= MAX_WORDS


def test_a_machine_in_portable_mode_by_wish_tries_no_cgroup():
    tier = find_tier()
    assert (dict(tier.groups), tier.why) == ({}, "COUNCIL_TIER asks for it")


HOG = "import time; block = bytearray(120 << 20); time.sleep(60)"
SHARES = """
import os, time
block = bytearray(40 << 20)
for _ in range(4):
    if os.fork() == 0:
        time.sleep(0.6)
        os._exit(0)
time.sleep(0.5)
"""
FORKS = """
import os, time
made = 0
try:
    for _ in range(30):
        if os.fork() == 0:
            time.sleep(60)
        made += 1
except BlockingIOError:
    pass
print(made, flush=True)
if made == 30:
    time.sleep(60)
"""
LIMITS = {"resource_limits": {"memory_mb": 64, "processes": 12}}


@pytest.fixture(scope="module")
def watched() -> Iterator[Played]:
    """A fleet on a machine without cgroups."""
    with short_home() as home:
        runs = {"hog": python(HOG), "shares": python(SHARES), "forks": python(FORKS), "parent": "true"}
        children = [child(name, run, context=LIMITS) for name, run in runs.items()]
        below = child("below", "true", parent="parent", context={"resource_limits": {"processes": 4}})
        yield play(home, plan_of(*children, below))


@pytest.mark.parametrize(
    ("name", "of", "reason"),
    [
        ("hog", "memory", "MiB of memory, its limit is 64 MiB"),
        ("forks", "processes", "processes and threads, its limit is 12"),
    ],
)
def test_a_tree_past_its_limit_is_ended_without_grace_and_its_card_says_which(watched, name, of, reason):
    card, breach = watched.cards[name], watched.first(name, K.LIMIT_BREACHED).data
    assert (card.fail, breach["of"], breach["reason"]) == ("protocol_violation", of, card.reason)
    assert card.reason.endswith(reason)
    assert watched.first(name, K.SIGNALLED).data["signal"] == "SIGKILL"
    assert watched.first(name, K.REAPED).data["survivors"] == []


def test_a_tree_that_shares_its_memory_is_within_its_limit(watched):
    assert watched.cards["shares"].state == "done"


def test_a_microshark_has_what_it_does_not_limit_limited_as_its_parent_is(watched):
    contract = watched.first("below", K.AGENT_STARTED).data["contract"]
    expected = {"memory_mb": 64, "processes": 4, "cpus": None, "ceiling": "any"}
    assert contract["resource_limits"] == expected
    assert watched.cards["below"].state == "done"


def test_what_an_office_spawns_has_no_limits_of_the_office(watched):
    assert "resource_limits" not in watched.first("zeroclaw", K.AGENT_STARTED).data["contract"]


LEAVES = """
import ctypes, os
left = 0
for folder, _, files in os.walk("/sys/fs/cgroup"):
    for name in {"cgroup.procs", "tasks"} & set(files):
        try:
            with open(f"{folder}/{name}", "w") as file:
                file.write("0")
            left += 1
        except OSError:
            pass
# In namespaces of its own a program may mount what it finds, but sees no more than its own level.
libc, top = ctypes.CDLL(None), os.environ["COUNCIL_SLICE"]
libc.unshare(0x10000000 | 0x02000000 | 0x00020000)
for number, (kind, option) in enumerate(((b"cgroup", b"memory"), (b"cgroup", b"pids"), (b"cgroup2", None))):
    path = f"{top}/{number}"
    os.mkdir(path)
    libc.mount(b"none", path.encode(), kind, 0, option)
    for file, value in (("memory.limit_in_bytes", "-1"), ("memory.max", "max"), ("pids.max", "max")):
        try:
            fd = os.open(f"{path}/{file}", os.O_WRONLY)
            os.write(fd, value.encode())
        except OSError:
            pass
print("left", left, flush=True)
block = bytearray(120 << 20)
print("got past it")
"""
HARD = {"resource_limits": {"memory_mb": 64, "processes": 12, "cpus": 1, "ceiling": "hard"}}


@held
def test_a_cgroup_holds_a_tree_that_does_what_it_can_to_get_out_and_is_gone_afterwards(monkeypatch):
    monkeypatch.delenv("COUNCIL_TIER", raising=False)
    with short_home() as home:
        fleet = play(
            home,
            plan_of(
                child("leaves", python(LEAVES), context=HARD),
                child("forks", python(FORKS), context=HARD),
                child("within", "true", context=HARD),
            ),
        )
        assert fleet.output("leaves") == b"left 0\n"
        killed = "the kernel ended 1 process of it at its memory limit of 64 MiB"
        assert fleet.cards["leaves"].reason == f"signal 9: {killed}"
        # The program itself is one of the twelve; bubblewrap's two are not.
        assert fleet.output("forks") == b"11\n"
        assert "the kernel refused it another process once, its limit is 12" in fleet.cards["forks"].result["evidence"]
        assert fleet.cards["within"].state == "done"
        assert fleet.first("within", K.AGENT_STARTED).data["enforcement"] == "strong; hard slice; hard limits"
        assert fleet.ending.audit["slices"] == []
        runs = {str(card.run) for card in fleet.cards.values()}
        assert not runs & {run for folder in FOLDERS.values() for run in cgroup.runs_at(folder)}


@held
async def test_the_cgroup_of_a_runner_that_was_killed_goes_away_with_its_tree(monkeypatch):
    monkeypatch.delenv("COUNCIL_TIER", raising=False)
    with short_home() as home:
        async with Stage(home, plan_of(child("shot", "exec sleep 656", context=HARD))) as stage:
            await stage.wait(K.BODY_STARTED, "shot")
            seat = stage.seat("shot")
            doors = [Path(folder, f"council-{seat.run}", "tree", "cgroup.procs") for folder in FOLDERS.values()]
            await until(lambda: all(len(door.read_text().split()) == 3 for door in doors))
            os.kill(seat.pid or 0, 9)
            await stage.wait(K.CARD_FAILED, "shot")
            assert not any(door.parents[1].exists() for door in doors)


def test_what_a_dead_supervisor_left_is_cleared_and_what_is_not_ours_or_lives_is_not(tmp_path, monkeypatch):
    (tmp_path / "cgroup").mkdir()
    kernel = FakeKernel(tmp_path / "cgroup", monkeypatch)
    folder = str(kernel.unified(given="memory pids cpu"))
    home = Home(tmp_path / "home")
    home.prepare()
    assert groups.known(home) == []
    groups.note(home, {"memory": folder, "processes": folder}.values())
    groups.note(home, [folder])
    assert groups.known(home) == [folder]
    for run in ("r_dead", "r_alive", "r_of_another_home"):
        Group(run, {"memory": folder}).make(context(memory_mb=64).resource_limits)
    groups.clear_leftovers(home, {"r_dead", "r_alive"}, {"r_alive"})
    assert sorted(cgroup.runs_at(folder)) == ["r_alive", "r_of_another_home"]
    assert groups.clear(home, "r_alive") == []
    assert cgroup.runs_at(folder) == ["r_of_another_home"]


@pytest.mark.skipif(bool(REASONS), reason="; ".join(REASONS.values()) or "cgroups can be made")
def test_without_bubblewrap_a_cgroup_holds_what_does_not_try_to_leave_it_and_that_is_called_soft(monkeypatch):
    monkeypatch.delenv("COUNCIL_TIER", raising=False)
    monkeypatch.setattr(limits, "probe", lambda program: "bubblewrap is not installed")
    cores = {"resource_limits": {"memory_mb": 64, "cpus": 0.5}}
    with short_home() as home:
        fleet = play(home, plan_of(child("hog", python("block = bytearray(120 << 20)"), context=cores)))
    assert fleet.cards["hog"].reason == "signal 9: the kernel ended 1 process of it at its memory limit of 64 MiB"
    assert fleet.first("hog", K.AGENT_STARTED).data["enforcement"] == "portable; soft slice; soft limits"


def test_a_program_does_not_start_where_its_cgroup_cannot_be_made(home, tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "find_tier", lambda: Tier("portable", "", "", {"memory": "/nowhere"}))
    fleet = play(home, plan_of(child("kept-out", f"touch {tmp_path}/started", context=LIMITS)))
    assert fleet.cards["kept-out"].reason.startswith("cannot start sh: No such file or directory: /nowhere/council-r_")
    assert os.listdir(tmp_path) == []
