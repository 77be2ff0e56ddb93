"""The nursery: a warm, single-threaded fork server that starts a runner in milliseconds.

It is exec'd before anything else exists, imports what a runner needs, freezes its heap so that forks share
it, and then only forks, waits and tells. It is a subreaper too: when a runner is killed, what the runner
guarded falls to the nursery, and the nursery ends it. It outlives a supervisor as long as runners live, and
serves whichever supervisor comes next: that one connects to the nursery's own socket.

Protocol: one JSON object a packet, SOCK_SEQPACKET.
in:  {"fork": {...RunnerSpec}, "id": n} | {"ping": n} | {"kill": p}
out: {"id": n, "pid": p, "start_time": t} | {"id": n, "error": text} | {"exit": p, "status": raw} | {"clean": p}
     {"pong": n}
and to a supervisor that connects, before anything else:
     {"runner": p, "start_time": t, "run": r, "status": raw or null, "clean": bool} for each that lives, is not
     proved clean, or that nobody has heard of since it ended, then {"listed": VERSION}
"""

from __future__ import annotations

import gc
import json
import os
import select
import selectors
import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from council_tui import __version__
from council_tui.runner import guard
from council_tui.runner.main import run
from council_tui.runner.spec import RunnerSpec
from council_tui.runner.warm import warm

PACKET = 64 * 1024
GRACE_SECONDS = 5.0
"""For what hides of which run it is, and so whose grace it has."""
_SWEEP_EVERY = 0.05


@dataclass(frozen=True)
class Ward:
    """A runner that was forked here."""

    run: str
    start_time: int
    grace: float
    """Seconds that its orphans have between SIGTERM and SIGKILL."""
    status: int | None = None
    """Raw wait status, once it has ended."""


class Nursery:
    """The loop of the fork server. `path`: where the next supervisor finds it."""

    def __init__(self, control: socket.socket, path: str) -> None:
        self._control: socket.socket | None = control
        self._path = path
        self._door, self._inode = _listen(path)
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ)
        self._selector.register(self._door, selectors.EVENT_READ)
        self._wake_r, self._wake_w = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._selector.register(self._wake_r, selectors.EVENT_READ)
        self._runners: dict[int, Ward] = {}
        """Living runners by pid."""
        self._unclean: dict[int, Ward] = {}
        """Runners that have ended and whose orphans are not proved dead yet."""
        self._unheard: dict[int, Ward] = {}
        """Runners of which nothing is left and whose end no supervisor has heard of."""
        self._kill_at: dict[str | None, float] = {}
        """When patience with the orphans of a run ends; None: those that hide which run they are of."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake_w, warn_on_full_buffer=False)

    def serve(self) -> None:
        """Fork and wait until the supervisor is gone and the last runner with it."""
        while self._control is not None or self._runners or self._unclean:
            for key, _ in self._selector.select(_SWEEP_EVERY if self._unclean else None):
                if key.fd == self._wake_r:
                    with suppress(BlockingIOError):
                        os.read(self._wake_r, 4096)
                elif key.fileobj is self._door:
                    self._welcome()
                elif key.fileobj is self._control:
                    # Not one that was let go for another a moment ago.
                    self._read()
            self._collect()
            if self._unclean:
                # Where nothing can be looked at nobody is proved dead; the next look is near.
                with suppress(OSError):
                    self._sweep()
        self._remove_door()

    def _welcome(self) -> None:
        """Somebody connects: a supervisor, if there is none and it is no process of an agent."""
        try:
            came, _ = self._door.accept()
        except OSError:
            # Without a descriptor it goes on waiting at the door, and we must not turn in circles meanwhile.
            time.sleep(_SWEEP_EVERY)
            return
        pid, uid = guard.peer_of(came)
        if self._control is not None and left_alone(self._control):
            self._let_go(self._control)
        if self._control is not None or uid != os.getuid() or _agents(pid):
            came.close()
            return
        self._collect()
        self._control = came
        self._selector.register(came, selectors.EVENT_READ)
        # Also how those ended of which its predecessor was told: it may have died before it could write that down.
        for runner, ward in {**self._unheard, **self._unclean, **self._runners}.items():
            facts = {"start_time": ward.start_time, "status": ward.status, "clean": runner in self._unheard}
            self._send({"runner": runner, "run": ward.run, **facts})
        self._unheard = {}
        self._send({"listed": __version__})

    def _read(self) -> None:
        if self._control is None:
            return
        try:
            packet = self._control.recv(PACKET)
        except OSError:
            packet = b""
        if not packet:
            self._let_go(self._control)
            return
        request = json.loads(packet)
        if "ping" in request:
            self._send({"pong": request["ping"]})
            return
        if "kill" in request:
            # A child that nobody has waited for: its pid is nobody else's, whatever /proc shows to whom.
            if request["kill"] in self._runners:
                os.kill(request["kill"], signal.SIGKILL)
            return
        try:
            pid = self._fork(RunnerSpec(**request["fork"]))
        except OSError as error:
            self._send({"id": request["id"], "error": error.strerror})
            return
        self._send({"id": request["id"], "pid": pid, "start_time": self._runners[pid].start_time})

    def _let_go(self, control: socket.socket) -> None:
        """The supervisor is gone; what it had asked for and we have not read is nobody's any more."""
        self._selector.unregister(control)
        control.close()
        self._control = None
        for pid in self._runners:
            # A runner that was stopped cannot see that it is alone.
            os.kill(pid, signal.SIGCONT)

    def _fork(self, spec: RunnerSpec) -> int:
        pid = os.fork()
        if pid:
            try:
                process = guard.read_process(pid)
            except OSError:
                # Whoever asked hears that there is none, so there must be none.
                os.kill(pid, signal.SIGKILL)
                raise
            self._runners[pid] = Ward(spec.run, process.start_time if process else 0, spec.grace)
            return pid
        status = 70
        try:
            self._become_child()
            status = run(spec)
        finally:
            # Whatever goes wrong here: this is no second nursery.
            try:
                sys.stderr.flush()
            finally:
                os._exit(status)

    def _become_child(self) -> None:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        if self._control is not None:
            self._control.close()
        self._door.close()
        self._selector.close()
        os.close(self._wake_r)
        os.close(self._wake_w)
        os.setsid()

    def _collect(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self._runners:
                self._unclean[pid] = replace(self._runners.pop(pid), status=status)
                self._send({"exit": pid, "status": status})

    def _orphans(self) -> list[guard.Process]:
        """What hangs below us but below none of our runners: it lost the runner that guarded it."""
        found: list[guard.Process] = []
        for pid in guard.children_of(os.getpid()):
            if pid in self._runners or (top := guard.read_process(pid)) is None:
                continue
            if top.state not in "ZX":
                found.append(top)
            found += guard.descendants(pid)
        return found

    def _sweep(self) -> None:
        groups: dict[str | None, list[guard.Process]] = {}
        for process in self._orphans():
            groups.setdefault(guard.marker_of(process.pid), []).append(process)
        # One deadline for all orphans of a run: a chain of short-lived processes must not outlive it.
        self._kill_at = {name: at for name, at in self._kill_at.items() if name in groups}
        graces = {ward.run: ward.grace for ward in self._unclean.values()}
        for name, orphans in groups.items():
            self._end(name, orphans, graces.get(name or "", GRACE_SECONDS))
        for pid, ward in list(self._unclean.items()):
            # Who hides its run may be anyone's, so everyone waits for it.
            if ward.run not in groups and None not in groups:
                del self._unclean[pid]
                if not self._send({"clean": pid}):
                    self._unheard[pid] = ward

    def _end(self, name: str | None, orphans: list[guard.Process], grace: float) -> None:
        now = time.monotonic()
        if name not in self._kill_at:
            self._kill_at[name] = now + grace
            for process in orphans:
                guard.send(process, signal.SIGTERM)
                guard.send(process, signal.SIGCONT)
        if now >= self._kill_at[name]:
            for process in orphans:
                guard.send(process, signal.SIGKILL)

    def _send(self, message: dict[str, Any]) -> bool:
        if self._control is None:
            return False
        # A supervisor that just died takes no more news; the next read sees its end.
        try:
            self._control.send(json.dumps(message).encode())
        except OSError:
            return False
        return True

    def _remove_door(self) -> None:
        # A younger nursery may have put its own there.
        with suppress(OSError):
            if os.stat(self._path).st_ino == self._inode:
                os.unlink(self._path)


def _agents(pid: int) -> bool:
    """Whether a process belongs to an agent; one that cannot be looked at may."""
    try:
        return guard.is_below(pid, os.getpid()) or guard.marker_of(pid) is not None
    except OSError:
        return True


def left_alone(control: socket.socket) -> bool:
    """Whether nobody is at the other end any more, whatever is still to be read from it (poll(2), POLLHUP)."""
    look = select.poll()
    look.register(control, select.POLLHUP)
    return any(events & select.POLLHUP for _, events in look.poll(0))


def _listen(path: str) -> tuple[socket.socket, int]:
    """The socket at which the next supervisor asks for us, 0600, in place of an earlier nursery's; its inode."""
    with suppress(FileNotFoundError):
        os.unlink(path)
    door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    previous = os.umask(0o177)
    try:
        door.bind(path)
    finally:
        os.umask(previous)
    door.listen()
    return door, os.stat(path).st_ino


def main(fd: int, path: str) -> None:
    """Serve on an inherited socket."""
    guard.become_subreaper()
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        # It ends by itself once nobody needs it; a terminal's signals are the supervisor's business.
        signal.signal(number, signal.SIG_IGN)
    warm()
    gc.collect()
    gc.freeze()
    control = socket.socket(fileno=fd)
    # Where whoever started us has died meanwhile, a younger nursery may stand at our door by now.
    if not left_alone(control):
        Nursery(control, path).serve()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
