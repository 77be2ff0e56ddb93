"""The nursery: a warm, single-threaded fork server that starts a runner in milliseconds.

It is exec'd before anything else exists, imports what a runner needs, freezes its heap so that forks share
it, and then only forks, waits and tells. It is a subreaper too: when a runner is killed, what the runner
guarded falls to the nursery, and the nursery ends it. It outlives a supervisor as long as runners live.

Protocol: one JSON object a packet on a SOCK_SEQPACKET pair.
in:  {"fork": {...RunnerSpec}, "id": n} | {"ping": n}
out: {"id": n, "pid": p, "start_time": t} | {"id": n, "error": text} | {"exit": p, "status": raw} | {"clean": p}
     {"pong": n}
"""

from __future__ import annotations

import gc
import json
import os
import selectors
import signal
import socket
import sys
import time
from contextlib import suppress
from typing import Any

from council_tui.runner import guard
from council_tui.runner.main import run
from council_tui.runner.spec import RunnerSpec
from council_tui.runner.warm import warm

PACKET = 64 * 1024
GRACE_SECONDS = 5.0
_SWEEP_EVERY = 0.05


class Nursery:
    """The loop of the fork server."""

    def __init__(self, control: socket.socket) -> None:
        self._control: socket.socket | None = control
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ)
        self._wake_r, self._wake_w = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._selector.register(self._wake_r, selectors.EVENT_READ)
        self._runners: dict[int, str] = {}
        """The run of each runner by its pid."""
        self._unclean: dict[int, str] = {}
        """Runners that have ended and whose orphans are not proved dead yet."""
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
                else:
                    self._read()
            self._collect()
            if self._unclean:
                self._sweep()

    def _read(self) -> None:
        if self._control is None:
            return
        try:
            packet = self._control.recv(PACKET)
        except OSError:
            packet = b""
        if not packet:
            self._selector.unregister(self._control)
            self._control.close()
            self._control = None
            for pid in self._runners:
                # A runner that was stopped cannot see that it is alone.
                os.kill(pid, signal.SIGCONT)
            return
        request = json.loads(packet)
        if "ping" in request:
            self._tell({"pong": request["ping"]})
            return
        try:
            pid = self._fork(RunnerSpec(**request["fork"]))
        except OSError as error:
            self._tell({"id": request["id"], "error": error.strerror})
            return
        process = guard.read_process(pid)
        self._tell({"id": request["id"], "pid": pid, "start_time": process.start_time if process else 0})

    def _fork(self, spec: RunnerSpec) -> int:
        pid = os.fork()
        if pid:
            self._runners[pid] = spec.run
            return pid
        status = 70
        try:
            self._become_child()
            status = run(spec)
        finally:
            sys.stderr.flush()
            os._exit(status)

    def _become_child(self) -> None:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        if self._control is not None:
            self._control.close()
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
                self._unclean[pid] = self._runners.pop(pid)
                self._tell({"exit": pid, "status": status})

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
        for name, orphans in groups.items():
            self._end(name, orphans)
        for pid, name in list(self._unclean.items()):
            # Who hides its run may be anyone's, so everyone waits for it.
            if name not in groups and None not in groups:
                del self._unclean[pid]
                self._tell({"clean": pid})

    def _end(self, name: str | None, orphans: list[guard.Process]) -> None:
        now = time.monotonic()
        if name not in self._kill_at:
            self._kill_at[name] = now + GRACE_SECONDS
            for process in orphans:
                guard.send(process, signal.SIGTERM)
                guard.send(process, signal.SIGCONT)
        elif now >= self._kill_at[name]:
            for process in orphans:
                guard.send(process, signal.SIGKILL)

    def _tell(self, message: dict[str, Any]) -> None:
        if self._control is not None:
            # A supervisor that just died takes no more news; the next read sees its end.
            with suppress(OSError):
                self._control.send(json.dumps(message).encode())


def main(fd: int) -> None:
    """Serve on an inherited socket."""
    guard.become_subreaper()
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        # It ends by itself once nobody needs it; a terminal's signals are the supervisor's business.
        signal.signal(number, signal.SIG_IGN)
    warm()
    gc.collect()
    gc.freeze()
    Nursery(socket.socket(fileno=fd)).serve()


if __name__ == "__main__":
    main(int(sys.argv[1]))
