"""A council that dies at a chosen point: `python crash.py HOME [POINT]` runs the fleet of crash rounds to its end.

A point is a place in the code and which time it is passed, as `disk claimed#2`; there the process ends itself
with SIGKILL. All of them are put in here, from outside: the product knows of none. Lines on standard output: when
it stood (`open`), how the fleet ended (`ended`), and how often each place was passed (`passed`).
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from council_tui.board import database
from council_tui.board.board import Board
from council_tui.board.home import Home
from council_tui.control.council import Council, Options
from council_tui.domain.wire import Call, decode
from council_tui.fleet import retries
from council_tui.hosts.local import LocalHost
from council_tui.ledger.envelope import open_strict
from council_tui.ledger.log import Ledger
from council_tui.runner import channel, guard
from council_tui.supervisor import slices

if TYPE_CHECKING:
    from collections.abc import Callable

    from council_tui.domain.wire import Reply
    from council_tui.fleet.plan import Plan

TESTS = Path(__file__).resolve().parent.parent
PATIENCE = 10.0
"""Seconds that every agent of the fleet looks for the next supervisor."""
OUT = "out"
"""Folder beside the home in which the bodies leave their marks."""

_MARK = """out=$1; name=$2; run=$COUNCIL_RUN
exec 9>>"$out/$name.lock"
flock -n 9 || echo "$name $run twice" >> "$out/marks"
echo "$name $run begun" >> "$out/marks"
"""
_BODIES = {
    "one": "sleep 0.3; echo fine",
    "two": "sleep 0.4; echo fine",
    "shark": "setsid sleep 0.3 & sleep 0.2; echo fine",
    "last": "echo fine",
    "mutates": 'sleep 0.2; echo "$name" >> "$out/$name.made"; echo fine',
    "deaf": "trap '' TERM; sleep 600; sleep 600; sleep 600",
    # Its first attempt takes its runner along.
    "again": '[ "$(grep -c "^$name " "$out/marks")" -gt 1 ] || { kill -9 $PPID; sleep 600; }; sleep 0.1; echo fine',
}
NAMES = frozenset(_BODIES)
MORTAL = frozenset({"deaf", "again"})
"""Whose runner may be on its way out at any time, whatever becomes of the supervisor."""
RETRIED = frozenset({"again"})
PARENT_OF = {"shark": "two"}


def plan(out: Path) -> Plan:
    """One of everything, and short."""
    from supervisor.stage import child, plan_of

    def one(name: str, **more: Any) -> dict[str, Any]:
        policy = {"parent_heartbeat_interval_seconds": PATIENCE / 2, "grace_seconds": 0.2, **more.pop("policy", {})}
        run = ["sh", "-c", _MARK + _BODIES[name], "sh", str(out), name]
        return child(name, run, policy=policy, **more)

    changes = {"action_class": "MUTATE", "rollback_plan": "rm made"}
    return plan_of(
        one("one"),
        one("two", parent="openclaw"),
        one("shark", parent="two"),
        one("last", after=["one", "two"]),
        one("mutates", envelope=changes, context={"memory_slice": {"shared_memory_path": str(out / "own")}}),
        one("deaf", policy={"run_ttl_seconds": 0.6}),
        one("again", parent="openfang", retries=1),
    )


class Points:
    """Counts every place that is passed, and dies at one. `at`: `PLACE#N`, or nothing."""

    def __init__(self, at: str = "") -> None:
        self._at = at
        self._lock = threading.Lock()
        self.passed: Counter[str] = Counter()

    def passing(self, place: str) -> None:
        """The end, if this is the place and the time."""
        with self._lock:
            self.passed[place] += 1
            if f"{place}#{self.passed[place]}" == self._at:
                os.kill(os.getpid(), signal.SIGKILL)
                # This thread never comes back from it; another one may be a moment slower.
                time.sleep(60)

    def around(self, owner: Any, name: str, place: Callable[..., str]) -> None:
        """Put a point before and one after a function; `place` names it by its arguments, "" for none."""
        inner = getattr(owner, name)

        def outer(*args: Any, **kwargs: Any) -> Any:
            where = place(*args, **kwargs)
            if not where:
                return inner(*args, **kwargs)
            self.passing(where)
            answer = inner(*args, **kwargs)
            self.passing(f"{where} done")
            return answer

        setattr(owner, name, outer)


def install(points: Points) -> None:
    """Put points into every door through which this process acts on the world."""
    _writes(points)
    _messages(points)
    points.around(guard, "send", lambda process, number: f"signal {signal.Signals(number).name}")
    points.around(slices, "make", lambda path, taken: "make slice")
    points.around(LocalHost, "start", lambda self: "start nursery")
    points.around(LocalHost, "_sent", lambda self, packet: "ask to fork" if b'"fork"' in packet else "")
    told = {"exit": "hear of exit", "clean": "hear of clean", "pid": "hear of birth"}
    points.around(LocalHost, "_take", lambda self, said: next((told[key] for key in told if key in said), ""))


def _writes(points: Points) -> None:
    """Journal and ledger: before it is queued, before and after it is on disk, and when it is answered."""
    queued: list[str] = []
    submit, attempt = database.Writer.submit, database.Writer._try
    write, append = Board._write, Ledger.append

    def tagged(self: Any, work: Callable[[Any], Any]) -> Any:
        places, queued[:] = tuple(queued), []

        def tagged_work(connection: Any) -> Any:
            return work(connection)

        tagged_work.places = places  # type: ignore[attr-defined]
        return submit(self, tagged_work)

    def committed(connection: Any, jobs: list[Any]) -> Any:
        places = [place for job in jobs for place in getattr(job.work, "places", ())]
        for place in places:
            points.passing(f"commit {place}")
        error = attempt(connection, jobs)
        for place in places:
            points.passing(f"disk {place}")
        return error

    def journalled(self: Any, events: list[Any], lines: list[Any]) -> Any:
        places = [str(event.kind) for event in events]
        for place in places:
            points.passing(f"queue {place}")
        queued[:] = places
        return write(self, events, lines)

    async def appended(self: Any, raw: bytes) -> Any:
        place = f"entry {open_strict(raw).statement.kind}"
        points.passing(f"queue {place}")
        queued[:] = [place]
        answer = await append(self, raw)
        points.passing(f"answer {place}")
        return answer

    database.Writer.submit = tagged  # type: ignore[method-assign]
    database.Writer._try = staticmethod(committed)  # type: ignore[method-assign,assignment]
    Board._write = journalled  # type: ignore[method-assign]
    Ledger.append = appended  # type: ignore[method-assign]


class Wire(asyncio.Transport):
    """A transport that is left as soon as it was written to."""

    def __init__(self, inner: asyncio.Transport, written: Callable[[], None]) -> None:
        self._inner = inner
        self._written = written

    def write(self, data: Any) -> None:
        self._inner.write(data)
        self._written()

    def __getattribute__(self, name: str) -> Any:
        if name in ("write", "_inner", "_written", "__class__"):
            return object.__getattribute__(self, name)
        return getattr(object.__getattribute__(self, "_inner"), name)


def _messages(points: Points) -> None:
    """Every call and reply, before and after it is sent and when it is received."""
    answering: contextvars.ContextVar[str] = contextvars.ContextVar("answering", default="")
    asked: dict[tuple[int, int], str] = {}
    sending = [""]
    packed, peer = channel.packed, channel.Peer
    made, take, answer, call = peer.connection_made, peer._take, peer._answer, peer.call

    def packing(message: Call | Reply) -> bytes:
        what = f"{message.method}" if isinstance(message, Call) else f"answer to {answering.get()}"
        points.passing(f"send {what}")
        sending[0] = what
        return packed(message)

    def connected(self: Any, transport: Any) -> None:
        made(self, Wire(transport, lambda: points.passing(f"sent {sending[0]}")))

    def taking(self: Any, line: bytes) -> None:
        message = decode(line)
        what = message.method if isinstance(message, Call) else f"answer to {asked.pop((id(self), message.id), '')}"
        points.passing(f"got {what}")
        take(self, line)

    async def answered(self: Any, request: Call) -> None:
        answering.set(request.method)
        await answer(self, request)

    async def calling(self: Any, method: str, *more: Any) -> Any:
        asked[id(self), self._next_id] = method
        return await call(self, method, *more)

    channel.packed = packing
    peer.connection_made, peer._take = connected, taking  # type: ignore[method-assign]
    peer._answer, peer.call = answered, calling  # type: ignore[method-assign,assignment]


def tell(word: str, fact: Any) -> None:
    """One line for whoever started us."""
    print(json.dumps([word, fact]), flush=True)


async def main(home: Path, points: Points) -> None:
    """Run the fleet to its end, or go on with it."""
    out = home.parent / OUT
    out.mkdir(exist_ok=True)
    council = Council(Home(home), Options(plan(out)))
    await council.open()
    tell("open", time.monotonic())
    end = await council.run()
    await council.close()
    tell("ended", end.as_json())
    tell("passed", points.passed)


if __name__ == "__main__":
    sys.path.insert(0, str(TESTS))
    retries.RETRY_BASE_SECONDS = 0.2
    chosen = Points(sys.argv[2] if len(sys.argv) > 2 else "")
    install(chosen)
    asyncio.run(main(Path(sys.argv[1]), chosen))
