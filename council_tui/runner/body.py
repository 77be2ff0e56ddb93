"""The body of an agent: the program itself, its output, and its exit as the runner sees it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from typing import TYPE_CHECKING

from council_tui.containers.command import Exit, Launch
from council_tui.runner import guard

if TYPE_CHECKING:
    from collections.abc import Callable

    from council_tui.runner.log import OutputLog

_CHUNK = 256 * 1024
_KILL_SECONDS = 5.0
"""How long a tree is killed before it counts as one that will not die."""
_PASS_PAUSE = 0.02
"""Seconds between looks at a tree that was killed, unless a child's end comes first."""
_GRACE_PAUSE = 0.5
"""The same for one that was asked to end."""
_LONGEST_PASS = 1.0
"""Seconds that one look may count for; a longer one was a pause of ours."""


class Body:
    """One started program. The runner must be a subreaper before it makes one."""

    def __init__(self, log: OutputLog) -> None:
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._streams: dict[int, bool] = {}
        self._popen: subprocess.Popen[bytes] | None = None
        self.exited: asyncio.Future[int] = self._loop.create_future()
        """The raw wait status, once the program itself has ended."""
        self._stirred = asyncio.Event()
        """Set whenever a child of ours has ended."""
        self.inside: int | None = None
        """In strong mode the namespace's init, by its pid out here; None before it is known."""
        self._boxed = False
        self._status_fd: int | None = None
        self._status = b""

    @property
    def pid(self) -> int:
        """The program's pid."""
        if self._popen is None:
            raise RuntimeError("the body was not started")
        return self._popen.pid

    def start(self, plan: Launch, box: Callable[[int], Launch] | None = None) -> None:
        """Exec the program in a session of its own, stdin closed. Raises OSError when it cannot start.

        `box` wraps it for strong mode, given the descriptor on which the wrapper tells its pids.
        """
        self._loop.add_signal_handler(signal.SIGCHLD, self._child_ended)
        pipes = [os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK) for _ in range(2 if box is None else 3)]
        for _, end in pipes:
            os.set_blocking(end, True)
        (_, out), (_, err) = pipes[:2]
        passed = [end for _, end in pipes[2:]]
        wrapped = plan
        try:
            wrapped = plan if box is None else box(passed[0])
            self._popen = subprocess.Popen(
                wrapped.argv,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=wrapped.cwd,
                env=wrapped.env,
                start_new_session=True,
                pass_fds=(*passed, *wrapped.fds),
            )
        except (OSError, ValueError):
            for ours, _ in pipes:
                os.close(ours)
            raise
        finally:
            for end in (*(end for _, end in pipes), *wrapped.fds):
                os.close(end)
        for (fd, _), stdout in zip(pipes, (True, False), strict=False):
            self._streams[fd] = stdout
            self._loop.add_reader(fd, self._read, fd)
        if passed:
            self._boxed = True
            self._status_fd = pipes[2][0]
            self._loop.add_reader(self._status_fd, self._read_status)
        self.reap_zombies()

    def _read_status(self) -> None:
        """What the wrapper tells, which comes in pieces: the pid of the namespace's init."""
        if self._status_fd is None:
            return
        try:
            piece = os.read(self._status_fd, 4096)
        except OSError:
            piece = b""
        self._status += piece
        for line in self._status.split(b"\n")[:-1]:
            told = json.loads(line)
            self.inside = told.get("child-pid", self.inside)
        if not piece:
            self._close_status()

    def _close_status(self) -> None:
        if self._status_fd is not None:
            self._loop.remove_reader(self._status_fd)
            os.close(self._status_fd)
            self._status_fd = None

    @property
    def spared(self) -> frozenset[int]:
        """Whom a polite signal must not reach: with the wrapper or its init gone, the body has no grace."""
        if not self._boxed:
            return frozenset()
        return frozenset(pid for pid in (self.pid, self.inside) if pid is not None)

    def leftovers(self) -> int:
        """How many processes the program left behind."""
        spared = self.spared
        return sum(1 for pid in self._living() if pid not in spared)

    def _living(self) -> list[int]:
        """Pids below this runner; where nothing can be looked at just now, the program itself may be there."""
        try:
            return [process.pid for process in guard.descendants(os.getpid())]
        except OSError:
            return [self.pid]

    @staticmethod
    def _signal(number: int, spared: frozenset[int] = frozenset()) -> bool:
        """Signal the tree; False only if there was nobody. Who could not look has proved nothing, and looks again."""
        try:
            return bool(guard.signal_tree(os.getpid(), number, spared))
        except OSError:
            return True

    def _read(self, fd: int) -> None:
        try:
            chunk = os.read(fd, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._close_stream(fd)
            return
        self._log.write(chunk, stdout=self._streams[fd])

    def _close_stream(self, fd: int) -> None:
        self._loop.remove_reader(fd)
        del self._streams[fd]
        os.close(fd)

    def drain(self) -> None:
        """Take what is already in the pipes, without waiting for whoever still holds them open."""
        for fd in list(self._streams):
            while fd in self._streams:
                try:
                    chunk = os.read(fd, _CHUNK)
                except OSError:
                    break
                if not chunk:
                    self._close_stream(fd)
                    break
                self._log.write(chunk, stdout=self._streams[fd])

    def close(self) -> None:
        """Stop reading."""
        for fd in list(self._streams):
            self._close_stream(fd)
        self._close_status()

    def _child_ended(self) -> None:
        self._stirred.set()
        self.reap_zombies()

    async def _next_end(self, at_most: float) -> None:
        """Until a child of ours has ended, or for so many seconds.

        Hundreds of guards that keep looking would take the very time in which their trees could die.
        """
        self._stirred.clear()
        alarm = self._loop.call_later(at_most, self._stirred.set)
        try:
            await self._stirred.wait()
        finally:
            alarm.cancel()

    def reap_zombies(self) -> bool:
        """Collect every child that ended, ours and the adopted: a subreaper that does not piles them up.

        True when there is no child left at all, which proves the tree dead: what loses its parent becomes
        our child.
        """
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            if self._popen is not None and pid == self._popen.pid and not self.exited.done():
                self._popen.returncode = os.waitstatus_to_exitcode(status)
                self.exited.set_result(status)

    async def end_tree(self, grace: float) -> list[int]:
        """SIGTERM, up to `grace` seconds, SIGKILL, until nothing is left; the pids that would not die."""
        spared = self.spared
        if self._signal(signal.SIGTERM, spared):
            # A stopped process acts on SIGTERM only once it goes on.
            self._signal(signal.SIGCONT, spared)
            waited, last = 0.0, self._loop.time()
            while waited < grace and not self.reap_zombies():
                await self._next_end(min(grace - waited, _GRACE_PAUSE))
                now = self._loop.time()
                # A pause of our own is no grace that the tree had.
                waited += min(now - last, _LONGEST_PASS)
                last = now
        return await self.kill_tree()

    async def kill_tree(self) -> list[int]:
        """SIGKILL in passes, for a tree that forks while it is being killed."""
        until = self._loop.time() + _KILL_SECONDS
        while not self.reap_zombies():
            if self._loop.time() > until:
                return self._living()
            self._signal(signal.SIGKILL)
            # Each hop of a chain that forks and leaves is a child of ours that ends: it wakes us to the next one.
            await self._next_end(_PASS_PAUSE)
        return []

    def freeze(self) -> list[int]:
        """SIGSTOP everything; the pids that were stopped."""
        return guard.signal_tree(os.getpid(), signal.SIGSTOP, self.spared)

    def resume(self) -> list[int]:
        """SIGCONT everything; the pids that go on."""
        return guard.signal_tree(os.getpid(), signal.SIGCONT, self.spared)

    @property
    def how_it_ended(self) -> tuple[int | None, int | None]:
        """(exit status, signal), one of them None; only after `exited`."""
        return ended_with(self.exited.result(), boxed=self._boxed)

    def outcome(self) -> Exit:
        """How it ended and what it printed; call it after `exited`."""
        self.drain()
        status, by_signal = self.how_it_ended
        return Exit(
            status=status,
            signal=by_signal,
            last_line=self._log.last_line,
            output_sha256=self._log.sha256,
            output_bytes=self._log.total,
            tail=self._log.tail(),
            log_path=str(self._log.path),
            loss=self._log.loss,
        )


def ended_with(raw: int, *, boxed: bool) -> tuple[int | None, int | None]:
    """(exit status, signal) from a raw wait status; a wrapper tells a signal as 128 and its number."""
    if os.WIFSIGNALED(raw):
        return None, os.WTERMSIG(raw)
    code = os.WEXITSTATUS(raw)
    if boxed and 128 < code <= 128 + signal.NSIG:
        return None, code - 128
    return code, None
