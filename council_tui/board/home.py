"""Where a council lives on disk, and who owns it."""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from council_tui.domain.errors import HomeUnusable

DIRECTORY = ".council"
_SOCKET_ROOM = 60
"""Bytes that a socket's name may need below the runtime directory; sun_path holds 107 in all (unix(7))."""


@dataclass(frozen=True)
class Home:
    """The files of one council. Nothing is created until `prepare`."""

    root: Path

    @property
    def board(self) -> Path:
        """The board's database."""
        return self.root / "board.db"

    @property
    def ledger(self) -> Path:
        """The ledger's database."""
        return self.root / "ledger.db"

    @property
    def keys(self) -> Path:
        """Key files, 0700."""
        return self.root / "keys"

    @property
    def logs(self) -> Path:
        """One directory of output for each run."""
        return self.root / "logs"

    @property
    def reports(self) -> Path:
        """The Markdown reports of finished fleets."""
        return self.root / "reports"

    @property
    def runtime(self) -> Path:
        """Sockets and slices; somewhere shorter when the home's path is too long for a socket."""
        here = self.root / "run"
        if len(os.fsencode(here)) + _SOCKET_ROOM < 108:
            return here
        digest = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"council-{os.getuid()}" / digest

    @property
    def socket(self) -> Path:
        """Where the supervisor listens."""
        return self.runtime / "council.sock"

    @property
    def beats(self) -> Path:
        """Where heartbeats arrive."""
        return self.runtime / "beats.sock"

    @property
    def slices(self) -> Path:
        """Memory slices, one directory for each run."""
        return self.runtime / "slices"

    @property
    def bodies(self) -> Path:
        """Sockets on which bodies may speak sd_notify."""
        return self.runtime / "bodies"

    def prepare(self) -> None:
        """Create every directory, 0700. Raises `HomeUnusable` with one sentence."""
        try:
            made = not self.root.exists()
            for path in (self.root, self.keys, self.logs, self.reports, self.runtime, self.slices, self.bodies):
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if made and self.root.name == DIRECTORY:
                # A home inside a repository must not show up in its status.
                (self.root / ".gitignore").write_text("*\n", encoding="ascii")
        except OSError as error:
            raise HomeUnusable(
                f"cannot use {self.root} as home: {error.strerror}; choose another with --home"
            ) from None
        if not os.access(self.root, os.W_OK | os.X_OK):
            raise HomeUnusable(f"cannot write to {self.root}; choose another home with --home")


def find_home(explicit: str | None, cwd: Path) -> Home:
    """--home, else COUNCIL_HOME, else the nearest .council upwards, else a place for a new one.

    A new home is made in the git repository that `cwd` lies in, so that every command in there finds it
    again; where there is none, or it cannot be written to, in the user's data directory.
    """
    if explicit:
        return Home(Path(explicit).absolute())
    if named := os.environ.get("COUNCIL_HOME"):
        return Home(Path(named).absolute())
    folders = (cwd, *cwd.parents)
    for folder in folders:
        if (folder / DIRECTORY).is_dir():
            return Home(folder / DIRECTORY)
    top = next((folder for folder in folders if (folder / ".git").exists()), None)
    if top is not None and os.access(top, os.W_OK | os.X_OK):
        return Home(top / DIRECTORY)
    from platformdirs import user_data_path

    return Home(user_data_path("council", appauthor=False))


class OwnerLock:
    """An flock on `supervisor.lock`: the kernel drops it with its owner, so it is never stale."""

    def __init__(self, home: Home) -> None:
        self._path = home.root / "supervisor.lock"
        self._fd: int | None = None

    def take(self) -> bool:
        """Try to own the home; False when another process does."""
        try:
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise HomeUnusable(f"cannot open {self._path}: {error.strerror}") from None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return False
        os.ftruncate(fd, 0)
        os.write(fd, f"{os.getpid()}\n".encode())
        self._fd = fd
        return True

    def owner(self) -> int | None:
        """The pid that the owner wrote, for messages only."""
        try:
            return int(self._path.read_text(encoding="ascii").strip())
        except (OSError, ValueError):
            return None

    def held(self) -> int | None:
        """The pid of the process that owns the home at this moment, or None; takes nothing itself.

        It asks the kernel's list (proc_locks(5)): trying the lock would keep its next owner out.
        """
        try:
            inode = self._path.stat().st_ino
            lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
        except OSError:
            return None
        locked = any(
            fields[1] == "FLOCK" and fields[5].rpartition(":")[2] == str(inode)
            for fields in (line.split() for line in lines if "->" not in line)
        )
        return self.owner() if locked else None

    def release(self) -> None:
        """Give the home back."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
