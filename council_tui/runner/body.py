"""The body of an agent: the program itself, its output, and its exit as the runner sees it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from typing import TYPE_CHECKING

from council_tui.containers.command import Exit, Launch
from council_tui.runner import guard

if TYPE_CHECKING:
    from council_tui.runner.log import OutputLog

_CHUNK = 256 * 1024
_KILL_PASSES = 200
_PASS_PAUSE = 0.02
"""Seconds between looks while a tree dies."""
_LONGEST_PASS = 0.5
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
        self.last_output = self._loop.time()

    @property
    def pid(self) -> int:
        """The program's pid."""
        if self._popen is None:
            raise RuntimeError("the body was not started")
        return self._popen.pid

    def start(self, launch: Launch) -> None:
        """Exec the program in a session of its own, stdin closed. Raises OSError when it cannot start."""
        self._loop.add_signal_handler(signal.SIGCHLD, self.reap_zombies)
        out_r, out_w = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        err_r, err_w = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        for fd in (out_w, err_w):
            os.set_blocking(fd, True)
        try:
            self._popen = subprocess.Popen(
                launch.argv,
                stdin=subprocess.DEVNULL,
                stdout=out_w,
                stderr=err_w,
                cwd=launch.cwd,
                env=launch.env,
                start_new_session=True,
            )
        except OSError:
            os.close(out_r)
            os.close(err_r)
            raise
        finally:
            os.close(out_w)
            os.close(err_w)
        for fd, stdout in ((out_r, True), (err_r, False)):
            self._streams[fd] = stdout
            self._loop.add_reader(fd, self._read, fd)
        self.reap_zombies()

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
        self.last_output = self._loop.time()
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
        me = os.getpid()
        if guard.signal_tree(me, signal.SIGTERM):
            # A stopped process acts on SIGTERM only once it goes on.
            guard.signal_tree(me, signal.SIGCONT)
            waited, last = 0.0, self._loop.time()
            while waited < grace and not self.reap_zombies():
                await asyncio.sleep(_PASS_PAUSE)
                now = self._loop.time()
                # A pause of our own is no grace that the tree had.
                waited += min(now - last, _LONGEST_PASS)
                last = now
        return await self.kill_tree()

    async def kill_tree(self) -> list[int]:
        """SIGKILL in passes, for a tree that forks while it is being killed."""
        me = os.getpid()
        for _ in range(_KILL_PASSES):
            guard.signal_tree(me, signal.SIGKILL)
            await asyncio.sleep(0)
            if self.reap_zombies():
                return []
            await asyncio.sleep(_PASS_PAUSE)
        return [process.pid for process in guard.descendants(me)]

    def freeze(self) -> list[int]:
        """SIGSTOP everything; the pids that were stopped."""
        return guard.signal_tree(os.getpid(), signal.SIGSTOP)

    def outcome(self) -> Exit:
        """How it ended and what it printed; call it after `exited`."""
        self.drain()
        status = self.exited.result()
        by_signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        return Exit(
            status=os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
            signal=by_signal,
            last_line=self._log.last_line,
            output_sha256=self._log.sha256,
            output_bytes=self._log.total,
            tail=self._log.tail(),
            log_path=str(self._log.path),
        )
