"""Who is who: a pid that changes hands, a pid that wraps around, a machine that changes its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from faults.namespaces import PIDS, inside

if TYPE_CHECKING:
    from pathlib import Path

PRELUDE = """
import json, os, signal, subprocess, sys, time
from council_tui.runner import guard

def next_pid(number):
    with open("/proc/sys/kernel/ns_last_pid", "w") as file:
        file.write(str(number - 1))

def sleeper():
    return subprocess.Popen(["sleep", "600"])
"""

REUSED = """
mine = sleeper()
seen, held = guard.read_process(mine.pid), os.pidfd_open(mine.pid)
mine.kill()
mine.wait()
# A start time has ticks of 10 ms: the next owner of the pid begins in a later one.
while time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK") < seen.start_time + 2:
    pass
next_pid(mine.pid)
stranger = sleeper()
sent = guard.send(seen, signal.SIGKILL)
try:
    signal.pidfd_send_signal(held, signal.SIGKILL)
    by_handle = "sent"
except ProcessLookupError:
    by_handle = "gone"
print(json.dumps([stranger.pid == mine.pid, sent, by_handle, stranger.poll()]))
stranger.kill()
stranger.wait()
"""

WRAPPED = """
next_pid(30000)
read, write = os.pipe()
parent = os.fork()
if parent == 0:
    next_pid(300)
    os.write(write, str(sleeper().pid).encode())
    signal.pause()
child = int(os.read(read, 20))
found = [process.pid for process in guard.descendants(os.getpid())]
print(json.dumps([parent, child, found, guard.is_below(child, parent)]))
guard.signal_tree(os.getpid(), signal.SIGKILL)
os.waitpid(parent, 0)
"""

RENAMED = """
import asyncio, json, os, socket, sys
from pathlib import Path
from supervisor.stage import Stage, alive, child, plan_of, runs_of
from council_tui.domain.events import EventKind as K

async def main(home):
    told = []
    for name in ("second.example", "third.example"):
        plan = plan_of(child("ends", "sleep 600"), child("works", "sleep 0.2; uname -n"))
        async with Stage(home, plan) as stage:
            await stage.wait(K.BODY_STARTED, "ends")
            await stage.wait(K.BODY_STARTED, "works")
            socket.sethostname(name)
            await stage.wait(K.CARD_DONE, "works")
            await stage.fleet.drain("enough")
            end = await stage.end()
            told.append([end.cards, end.ledger["verdict"], sum(map(len, end.audit.values()))])
    print(json.dumps([socket.gethostname(), alive(runs_of(home)), *told]))

os.environ["COUNCIL_TIER"] = "portable"
asyncio.run(main(Path(sys.argv[1])))
"""


def test_row_36_a_pid_that_was_given_to_somebody_else_is_not_signalled():
    assert inside(PIDS, PRELUDE + REUSED) == [True, False, "gone", None]


def test_row_37_a_child_with_a_lower_pid_than_its_parent_is_found():
    parent, child, found, below = inside(PIDS, PRELUDE + WRAPPED)
    assert (parent, child < parent, below) == (30000, True, True)
    assert found == [parent, child]


def test_row_35_a_changed_host_name_changes_nothing_about_who_is_who(home: Path):
    name, left, first, second = inside(("--uts",), RENAMED, str(home))
    assert (name, left) == ("third.example", [])
    assert first == second == [{"done": 1, "failed": 1}, "VALID", 0]
