"""A council in the background: a process of its own, without a terminal, that goes on when this one has ended."""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from council_tui.control.readiness import VARIABLE
from council_tui.domain.errors import CouncilError
from council_tui.domain.wire import MAX_DATAGRAM, parse_notify
from council_tui.hosts.descriptors import as_given

if TYPE_CHECKING:
    from types import TracebackType

    from council_tui.board.home import Home

START_SECONDS = 120.0
"""That a background council has to come up, on a machine that may be busy."""
LOOK_SECONDS = 0.1
TOLD_BYTES = 2000
MOST_BYTES = 8 * 1024 * 1024
"""Of the log, beyond which the next start begins a new one and keeps this one beside it."""
LOG = "council.log"


class NotStarted(CouncilError):
    """The background council ended before it was ready; the text says why, as far as it said so itself."""


class Background:
    """Starts `council` with these arguments in a session of its own; for `with`. It writes to logs/council.log."""

    def __init__(self, home: Home, arguments: list[str]) -> None:
        self.log = home.logs / LOG
        self._home = home
        self._arguments = arguments
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Background:
        self._home.prepare()
        self._folder = tempfile.TemporaryDirectory(prefix="council-")
        path = str(Path(self._folder.name) / "ready")
        self._heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._heard.bind(path)
        self._heard.settimeout(LOOK_SECONDS)
        if self.log.is_file() and self.log.stat().st_size > MOST_BYTES:
            self.log.replace(self.log.with_suffix(".log.1"))
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        fd = os.open(self.log, flags, 0o600)
        self._from = os.fstat(fd).st_size
        try:
            self._process = subprocess.Popen(
                as_given([sys.executable, "-m", "council_tui", "--home", str(self._home.root), *self._arguments]),
                stdin=subprocess.DEVNULL,
                stdout=fd,
                stderr=fd,
                start_new_session=True,
                env={**os.environ, VARIABLE: path},
            )
        finally:
            os.close(fd)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._heard.close()
        self._folder.cleanup()
        if self._process is not None and self._process.poll() is None:
            # It goes on, and its end is not ours to wait for.
            self._process.returncode = 0

    @property
    def pid(self) -> int:
        """The background process."""
        if self._process is None:
            raise RuntimeError("nothing was started")
        return self._process.pid

    def wait(self, name: str, value: str) -> None:
        """Wait until it tells `name=value`. Raises `NotStarted` when it ends before that, or takes too long."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            try:
                said = parse_notify(self._heard.recv(MAX_DATAGRAM))
            except TimeoutError:
                if self._process is not None and self._process.poll() is not None:
                    raise NotStarted(self._last_words()) from None
                continue
            if said.get(name) == value:
                return
        raise NotStarted(f"process {self.pid} did not come up within {START_SECONDS:g} s; see {self.log}")

    def end(self) -> None:
        """End a process that is not needed after all, and wait for that."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()

    @property
    def status(self) -> int | None:
        """Its exit status, once it has ended."""
        return self._process.poll() if self._process is not None else None

    def _last_words(self) -> str:
        with self.log.open("rb") as file:
            file.seek(self._from)
            said = file.read()[-TOLD_BYTES:].decode("utf-8", "replace").strip()
        return said.rpartition("\n")[2].removeprefix("council: ") or f"it ended at once; see {self.log}"


def command(home: Home) -> str:
    """What a person types to reach this home from anywhere."""
    return f"council --home {shlex.quote(str(home.root))}"


def detach(home: Home, arguments: list[str]) -> int:
    """Run a fleet in the background; returns once it is open. The exit code is its own when it does not open."""
    with Background(home, arguments) as started:
        try:
            started.wait("READY", "1")
        except NotStarted as error:
            sys.stderr.write(f"council: {error}\n")
            return started.status or 70
        council = command(home)
        print(f"the fleet runs in process {started.pid}: `{council}` shows it, `{council} stop` ends it")
        print(f"log {started.log}")
    return 0
