"""A real terminal for a program under measurement: keys go in, and the moment of each byte that comes out is kept."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil

from council_tui.domain.errors import CouncilError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

WIDTH, HEIGHT = 120, 40
PATIENCE = 30.0
"""Seconds for anything to appear before the measurement is given up."""
_CHUNK = 65536


class NothingPainted(CouncilError):
    """The program under measurement did not show what it should have."""


class Terminal:
    """A Python module running in a pseudo-terminal of 120 columns and 40 rows (pty(7))."""

    def __init__(self, module: str, arguments: Sequence[object]) -> None:
        self._fd, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
        report, told = os.pipe()
        environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
        self.began = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *map(str, arguments), str(told)],
            stdin=inner,
            stdout=inner,
            stderr=inner,
            pass_fds=(told,),
            env=environment | {"TERM": "xterm-256color", "COLORTERM": "truecolor", "COLUMNS": "", "LINES": ""},
            start_new_session=True,
        )
        os.close(inner)
        os.close(told)
        self._report = report
        self.facts = psutil.Process(self._process.pid)
        self.bytes_out = 0

    def preparation(self) -> float:
        """Seconds that the program spent on its own data before it became a console."""
        said = os.read(self._report, 100)
        if not said:
            raise NothingPainted("the program under measurement did not start")
        return float(said)

    def until(self, seen: Callable[[bytes], bool]) -> tuple[float, bytes]:
        """(moment, output since the call) of the first output that shows it. Raises `NothingPainted`."""
        got = b""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            chunk = self._read(deadline - time.monotonic())
            now = time.monotonic()
            got += chunk
            if chunk and seen(got):
                return now, got
        raise NothingPainted(f"the program under measurement did not paint what it should within {PATIENCE:g} s")

    def watch(self, seconds: float) -> None:
        """Take what comes for a while."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._read(left)

    def press(self, key: bytes, seen: Callable[[bytes], bool]) -> tuple[float, bytes]:
        """(seconds from the key to the paint that shows it, output meanwhile)."""
        began = time.monotonic()
        os.write(self._fd, key)
        moment, got = self.until(seen)
        return moment - began, got

    def cpu(self) -> float:
        """CPU seconds of the program so far."""
        times = self.facts.cpu_times()
        return float(times.user + times.system)

    def _read(self, timeout: float) -> bytes:
        ready, _, _ = select.select([self._fd], [], [], max(0.0, timeout))
        if not ready:
            return b""
        try:
            chunk = os.read(self._fd, _CHUNK)
        except OSError:
            raise NothingPainted("the program under measurement has ended") from None
        self.bytes_out += len(chunk)
        return chunk

    def close(self) -> None:
        """End the program and give the terminal back."""
        self._process.terminate()
        deadline = time.monotonic() + PATIENCE
        # Its last words need a reader, or it waits for room in the terminal and never ends.
        with suppress(NothingPainted):
            while self._process.poll() is None and time.monotonic() < deadline:
                self._read(0.1)
        try:
            self._process.wait(max(1.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._fd)
        os.close(self._report)
