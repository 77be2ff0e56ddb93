"""One trial: a supervisor is started with plain children, loses some, is looked at, and is killed.

Nothing is ended but what a trial has started: each by its pid and its time of birth.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from comparison.peers import escaper, sleeper
from comparison.processes import Look, alive, command_line, escaped, of_trial
from council_tui.bench.load import pss
from council_tui.runner import guard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from comparison.peers import Peer

KILLED = 100
SETTLE_SECONDS = 2.5
"""After a start: some peers count a child as started only after a second."""
LEFT_SECONDS = 10.0
"""After the supervisor was killed: time for whoever ends by itself."""
_LEFT_PAUSE = 0.25
"""Between two looks through all processes."""
STOP_SECONDS = 30.0
PAUSE = 0.005
_CLEARING_PASSES, _CLEARING_PAUSE = 100, 0.05
_numbers = itertools.count()


class TooSlow(Exception):
    """Something did not happen in the time it was given; says what."""


def patience(count: int) -> float:
    """Seconds within which the slowest peer has started so many children, and more."""
    return 60 + 0.2 * count


def until(what: str, holds: Callable[[], bool], seconds: float) -> float:
    """Look until it holds; how long that took, in seconds. Raises `TooSlow`.

    A look is followed by a pause at least as long, so that looking never takes more than half of a processor.
    """
    began = time.monotonic()
    while True:
        looked = time.monotonic()
        if holds():
            return time.monotonic() - began
        now = time.monotonic()
        if now - began > seconds:
            raise TooSlow(f"{what}: not within {seconds:g} s")
        time.sleep(max(PAUSE, now - looked))


class Running:
    """A peer's supervisor with its children."""

    def __init__(self, peer: Peer, count: int, program: Callable[[str], tuple[str, ...]]) -> None:
        self.number = str(1_000_000_000 + 1000 * os.getpid() + next(_numbers))
        """No other process sleeps exactly so long."""
        self.argv = program(self.number)
        self.peer = peer
        self.folder = Path(tempfile.mkdtemp(prefix="cmp-", dir="/tmp"))
        self._known: dict[int, guard.Process] = {}
        self._top: guard.Process | None = None
        argv = peer.command(self.folder, count, self.argv)
        self._log = (self.folder / "log").open("wb")
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            env=peer.variables(self.folder),
            cwd=self.folder,
            start_new_session=True,
        )

    def supervisor(self) -> guard.Process:
        """The supervisor itself, the same one for as long as this trial lasts. Raises `TooSlow` without one."""
        if self._top is None:
            self._top = guard.read_process(self._pid())
        if self._top is None:
            raise TooSlow(f"{self.peer.name} has ended")
        return self._top

    def _pid(self) -> int:
        if not self.peer.pid_file:
            return self.process.pid
        try:
            return int((self.folder / self.peer.pid_file).read_text("ascii"))
        except (OSError, ValueError):
            raise TooSlow(f"{self.peer.name} has written no pid") from None

    def tree(self) -> list[guard.Process]:
        """The supervisor and all that hangs below it or was found to be of this trial; remembered for `clear`."""
        top = self.supervisor()
        # A pid of the dead may be a stranger's by now, and so may be what hangs below it.
        below = [top, *guard.descendants(top.pid)] if alive(top) else []
        found = [*below, *of_trial(self.number)]
        self._known |= {process.pid: process for process in found}
        return found

    def kill(self) -> None:
        """SIGKILL to the supervisor alone."""
        self.tree()
        guard.send(self.supervisor(), signal.SIGKILL)

    def stop(self) -> None:
        """End it in its own way, and wait for that. Raises `TooSlow`."""
        self.tree()
        top = self.supervisor()
        if self.peer.stop:
            quiet, variables = subprocess.DEVNULL, self.peer.variables(self.folder)
            subprocess.run(self.peer.stop, env=variables, stdout=quiet, stderr=quiet, timeout=STOP_SECONDS, check=False)
        else:
            guard.send(top, signal.SIGTERM)
        until(f"the end of {self.peer.name}", lambda: not self._up(top), STOP_SECONDS)

    def _up(self, top: guard.Process) -> bool:
        # Until it is waited for, our own child would stay as a zombie.
        self.process.poll()
        return alive(top)

    def left(self) -> list[guard.Process]:
        """What still lives of all that was ever seen of it."""
        self._known |= {process.pid: process for process in of_trial(self.number)}
        return [process for process in self._known.values() if alive(process)]

    def clear(self) -> None:
        """End whatever is left of it and remove its folder."""
        if self.process.returncode is None:
            self._known |= {process.pid: process for process in guard.descendants(self.process.pid)}
        with suppress(TooSlow):
            self.tree()
        for _ in range(_CLEARING_PASSES):
            if self.process.poll() is None:
                self.process.kill()
            # The oldest first: that is whoever replaces what ends.
            for process in sorted(self.left(), key=lambda one: one.start_time):
                guard.send(process, signal.SIGKILL)
            if self.process.poll() is not None and not self.left():
                break
            time.sleep(_CLEARING_PAUSE)
        self._log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def last_words(self) -> str:
        """The end of what the supervisor printed."""
        return (self.folder / "log").read_text("utf-8", "replace").strip()[-300:]


@contextmanager
def running(peer: Peer, count: int, program: Callable[[str], tuple[str, ...]]) -> Iterator[Running]:
    """A started peer, and nothing of it afterwards. A `TooSlow` inside gets the peer's last words."""
    started = Running(peer, count, program)
    try:
        yield started
    except TooSlow as error:
        raise TooSlow(f"{error}; it said: {started.last_words() or 'nothing'}") from None
    finally:
        started.clear()


def plain(peer: Peer, count: int, watch: float) -> dict[str, Any]:
    """Start so many plain children, lose some, stand idle for `watch` seconds, kill the supervisor."""
    with running(peer, count, sleeper) as started:
        look = Look(started.argv)
        until(f"{count} children", lambda: len(look.living()) >= count, patience(count))
        seconds = time.monotonic() - started.began
        time.sleep(SETTLE_SECONDS)
        found = {"start_seconds": round(seconds, 3), **_weight(started), **_idle(started, watch)}
        found |= _replaced(look, count)
        return found | _killed(started)


def _weight(started: Running) -> dict[str, Any]:
    """Memory of the supervisor, and of everything of the peer that is no plain child."""
    top, children = started.supervisor().pid, {process.pid for process in of_trial(started.number)}
    others = {process.pid for process in started.tree()} - children
    alone, together = pss([top]), pss(others)
    return {
        "supervisor_rss_mb": round(psutil.Process(top).memory_info().rss / 2**20, 1),
        "supervisor_pss_mb": None if alone is None else round(alone, 1),
        "everything_pss_mb": None if together is None else round(together, 1),
        "processes": len(others),
    }


def _idle(started: Running, watch: float) -> dict[str, Any]:
    top = psutil.Process(started.supervisor().pid)
    before, began = sum(top.cpu_times()[:2]), time.monotonic()
    time.sleep(watch)
    spent = sum(top.cpu_times()[:2]) - before
    return {"idle_cpu_percent": round(100 * spent / (time.monotonic() - began), 2)}


def _replaced(look: Look, count: int) -> dict[str, Any]:
    """Kill some children at once; seconds until all are there again, none of them an old one."""
    doomed = sorted(look.exact())[:KILLED]
    processes = [process for pid in doomed if (process := guard.read_process(pid)) is not None]
    gone = set(doomed)
    began = time.monotonic()
    for process in processes:
        guard.send(process, signal.SIGKILL)
    until(f"{len(doomed)} children replaced", lambda: len(look.living() - gone) >= count, patience(count))
    return {"killed": len(doomed), "replace_seconds": round(time.monotonic() - began, 3)}


def _killed(started: Running) -> dict[str, Any]:
    """SIGKILL to the supervisor; what is left of all it had, and how soon that was nothing."""
    began = time.monotonic()
    started.kill()
    started.process.wait(STOP_SECONDS)
    gone: float | None = None
    while time.monotonic() - began < LEFT_SECONDS and gone is None:
        time.sleep(_LEFT_PAUSE)
        gone = None if started.left() else round(time.monotonic() - began, 2)
    return {"left_after_kill": len(started.left()), "gone_after_kill_seconds": gone}


def containment(peer: Peer) -> dict[str, str]:
    """Which processes of a program that hides them are left after a stop in order, and after SIGKILL."""
    return {"escaped_stop": _escapes(peer, Running.stop), "escaped_kill": _escapes(peer, Running.kill)}


def _escapes(peer: Peer, end: Callable[[Running], None]) -> str:
    with running(peer, 1, escaper) as started:

        def here() -> str:
            return escaped(started.number, (command_line(process.pid) for process in of_trial(started.number)))

        until("all five processes", lambda: len(here()) == 5, patience(1))
        end(started)
        began = time.monotonic()
        while time.monotonic() - began < LEFT_SECONDS and here():
            time.sleep(_LEFT_PAUSE)
        return here()
