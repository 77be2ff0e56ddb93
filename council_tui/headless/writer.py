"""Standard output and error: written by a thread, so that a reader who is slow or gone never holds up a fleet."""

from __future__ import annotations

import contextlib
import os
import queue
import select
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 2.0
"""Seconds that a reader has, once everything else is over and somebody wants out."""

WATCH_SECONDS = 0.5


def give_up(fd: int) -> None:
    """Let whatever is still written to `fd` vanish: its reader is gone."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), fd)


class Output:
    """Takes text and writes it in order. `on_end` is called in the writing thread when it stops.

    Its argument is True when it stopped because nobody reads any more; later text is dropped.
    """

    def __init__(self, fd: int, on_end: Callable[[bool], None] = lambda gone: None) -> None:
        self._fd = fd
        self._queue: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"fd-{fd}", daemon=True)
        self._on_end = on_end
        self._gone = False
        self._thread.start()

    def write(self, text: str) -> None:
        """Queue a text; never waits."""
        if not self._gone:
            self._queue.put(text)

    def finish(self) -> None:
        """Nothing more will come."""
        self._queue.put(None)

    def close(self, patience: float) -> None:
        """Finish, and wait for the last text, at most `patience` seconds."""
        self.finish()
        self._thread.join(patience)

    def _run(self) -> None:
        try:
            while (text := self._next()) is not None:
                self._write(memoryview(text.encode("utf-8", "backslashreplace")))
        except OSError:
            self._gone = True
            give_up(self._fd)
        self._on_end(self._gone)

    def _next(self) -> str | None:
        """The next text; raises OSError when the reader leaves meanwhile, for a quiet fleet writes nothing."""
        watch = select.poll()
        watch.register(self._fd, 0)
        while True:
            with contextlib.suppress(queue.Empty):
                return self._queue.get(timeout=WATCH_SECONDS)
            if any(found & (select.POLLERR | select.POLLHUP) for _, found in watch.poll(0)):
                raise BrokenPipeError

    def _write(self, raw: memoryview) -> None:
        # Not through sys.stdout: a thread that hangs in there would hold its lock at exit.
        while raw:
            with contextlib.suppress(BlockingIOError):
                select.select([], [self._fd], [])
                raw = raw[os.write(self._fd, raw) :]
