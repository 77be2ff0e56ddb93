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


class OutputLog:
    """Takes raw bytes of one body: writes, rotates, digests, and remembers the last line of stdout."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path = directory / "output.log"
        self._previous = directory / "output.log.1"
        self._fd = self._fresh()
        self._size = 0
        self._digest = hashlib.sha256()
        self._line = bytearray()
        self._last = b""
        self._overlong = False
        self.total = 0
        """Bytes seen, whatever was rotated away."""

    def _fresh(self) -> int:
        # Anew, whatever lies there: a FIFO put in its place would keep us waiting for a reader.
        self.path.unlink(missing_ok=True)
        return os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)

    def write(self, chunk: bytes, *, stdout: bool) -> None:
        """Take a chunk; `stdout` also feeds the last line. A full disk loses log text, never the body."""
        self.total += len(chunk)
        self._digest.update(chunk)
        if stdout:
            self._feed(chunk)
        try:
            if self._size + len(chunk) > ROTATE_AT:
                self._rotate()
            self._size += os.write(self._fd, chunk)
        except OSError:
            self._size += len(chunk)

    def _rotate(self) -> None:
        os.replace(self.path, self._previous)
        full, self._fd = self._fd, self._fresh()
        os.close(full)
        self._size = 0

    def _feed(self, chunk: bytes) -> None:
        first, *others = chunk.split(b"\n")
        self._line += first
        for line in others:
            self._end_line()
            self._line += line
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

    def tail(self, size: int = 2000) -> bytes:
        """The last bytes that are on disk."""
        with open(self.path, "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - size))
            return file.read()

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)
