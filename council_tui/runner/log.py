"""An agent's output on disk: whole, bounded, rotated, and never in the way of whoever writes it."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

ROTATE_AT = 8 * 1024 * 1024
"""Bytes in one file; the file before it is kept, so a log is at most twice this."""
LAST_LINE_CAP = 1024 * 1024
TAIL = 2000
"""Bytes of the end that are remembered, whatever became of the files."""


class OutputLog:
    """Takes raw bytes of one body: writes, rotates, digests, and remembers the last line of stdout.

    A disk that takes nothing loses log text, never the body: what was lost is counted.
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory / "output.log"
        self._previous = directory / "output.log.1"
        self._fd: int | None = None
        self._size = 0
        self._digest = hashlib.sha256()
        self._line = bytearray()
        self._last = b""
        self._overlong = False
        self._end = b""
        self.total = 0
        """Bytes seen, whatever was rotated away."""
        self.lost = 0
        """Bytes that never reached the disk."""
        self._trouble = ""
        try:
            self._fd = self._fresh()
        except OSError as error:
            self._trouble = error.strerror or "unusable"

    def _fresh(self) -> int:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Anew, whatever lies there: a FIFO put in its place would keep us waiting for a reader.
        self.path.unlink(missing_ok=True)
        return os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)

    def write(self, chunk: bytes, *, stdout: bool) -> None:
        """Take a chunk; `stdout` also feeds the last line."""
        self.total += len(chunk)
        self._digest.update(chunk)
        self._end = (self._end + chunk[-TAIL:])[-TAIL:]
        if stdout:
            self._feed(chunk)
        written = 0
        try:
            written = os.write(self._room_for(len(chunk)), chunk)
        except OSError as error:
            self._trouble = error.strerror or "unusable"
        self._size += len(chunk)
        # A disk that is nearly full takes a part.
        self.lost += len(chunk) - written

    def _room_for(self, size: int) -> int:
        """The descriptor to write so many bytes to; a file that could not be had is tried anew."""
        if self._fd is not None and self._size + size > ROTATE_AT:
            os.replace(self.path, self._previous)
            os.close(self._fd)
            self._fd = None
        if self._fd is None:
            self._fd, self._size = self._fresh(), 0
        return self._fd

    def _feed(self, chunk: bytes) -> None:
        first, newline, others = chunk.partition(b"\n")
        self._line += first
        if newline:
            self._end_line()
            between, newline, last = others.rpartition(b"\n")
            # Of a flood of lines only the last that is not blank counts: no loop over all of them.
            if newline and (told := between.rstrip()):
                self._line += told[told.rfind(b"\n") + 1 :]
                self._end_line()
            self._line += last
        if len(self._line) > LAST_LINE_CAP:
            self._line.clear()
            self._overlong = True

    def _end_line(self) -> None:
        if self._overlong or len(self._line) > LAST_LINE_CAP:
            self._last = b""
        elif self._line.strip():
            self._last = bytes(self._line)
        self._line.clear()
        self._overlong = False

    @property
    def last_line(self) -> bytes:
        """The last line of stdout that is not blank, with or without its newline; empty if it was too long."""
        if self._overlong:
            return b""
        return bytes(self._line).strip() or self._last.strip()

    @property
    def sha256(self) -> str:
        """Digest of everything the body printed, in the order it arrived."""
        return self._digest.hexdigest()

    def tail(self) -> bytes:
        """The last bytes, from memory: whatever stands at the file's path by now need not be the file."""
        return self._end

    @property
    def loss(self) -> str:
        """What never reached the disk, and why, for people; empty when everything did."""
        if not self.lost:
            return ""
        return f"{self.lost:,} bytes of its output are not in the log: {self._trouble or 'the disk took a part'}"

    def close(self) -> None:
        """Close the file."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
