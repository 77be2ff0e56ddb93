"""Where a council lives on disk, and who owns it."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from council_tui.domain.errors import HomeUnusable
from council_tui.domain.text import safe

DIRECTORY = ".council"
_LOCK = "supervisor.lock"
_SOCKET_ROOM = len("/bodies/r_0123456789a")
"""Bytes of the longest socket's name below the runtime directory."""
_SOCKET_LIMIT = 108
"""Bytes of sun_path, the closing zero included (unix(7))."""
_MOUNTS = Path("/proc/self/mountinfo")
_NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "afs", "coda", "ceph", "lustre", "beegfs", "gpfs"}
    | {f"fuse.{name}" for name in ("sshfs", "glusterfs", "ceph", "s3fs", "rclone", "gcsfuse", "davfs")}
)
"""Types of file systems (proc_pid_mountinfo(5)) that another machine may change under us."""


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
    def plan(self) -> Path:
        """The plan of the newest fleet, as it was taken in."""
        return self.root / "plan.json"

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
        if len(os.fsencode(here)) + _SOCKET_ROOM < _SOCKET_LIMIT:
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
    def nursery(self) -> Path:
        """Where the process that starts runners waits for the next supervisor."""
        return self.runtime / "nursery.sock"

    @property
    def slices(self) -> Path:
        """Memory slices, one directory for each run."""
        return self.runtime / "slices"

    @property
    def bodies(self) -> Path:
        """Sockets on which bodies may speak sd_notify."""
        return self.runtime / "bodies"

    def prepare(self) -> None:
        """Create every directory, ours alone and 0700. Raises `HomeUnusable` with one sentence."""
        _nameable(self.root)
        if len(os.fsencode(self.runtime)) + _SOCKET_ROOM >= _SOCKET_LIMIT:
            raise HomeUnusable(f"{self.runtime} is too long a path for a socket; set TMPDIR to a shorter one")
        try:
            _take_root(self.root)
            if kind := network_file_system(self.root):
                raise HomeUnusable(
                    f"{self.root} lies on a network file system ({kind}), on which locks and databases do not hold; "
                    "choose a home on a disk of this machine with --home"
                )
            for path in (self.keys, self.logs, self.reports):
                _private(path, "choose another home with --home")
            way_out = "set TMPDIR to a place of your own"
            if self.runtime.parent != self.root:
                _private(self.runtime.parent, way_out)
            for path in (self.runtime, self.slices, self.bodies):
                _private(path, way_out)
        except OSError as error:
            raise cannot_use(self.root, error) from None
        if not os.access(self.root, os.W_OK | os.X_OK):
            raise HomeUnusable(f"cannot write to {self.root}; choose another home with --home")

    def tidy(self) -> None:
        """Remove a runtime directory outside the home, if no slice in it is in use; for the home's owner.

        The directory that holds those of all homes stays: another council may just be making its own in it.
        """
        if self.runtime.parent == self.root:
            return
        with contextlib.suppress(FileNotFoundError):
            if not any(self.slices.iterdir()):
                shutil.rmtree(self.runtime, ignore_errors=True)


def ordinary(path: Path, last: int | None = None) -> bytes:
    """What an ordinary file holds, or its last so many bytes.

    Raises OSError, also for anything else in its place: a FIFO there would keep us waiting for who never writes.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "it is no ordinary file", str(path))
        if last is not None:
            file.seek(max(0, os.fstat(fd).st_size - last))
        return file.read()


def cannot_use(root: Path, error: OSError) -> HomeUnusable:
    """What a person can do about a home that could not be taken; the error says what went wrong."""
    where = f" ({error.filename})" if error.filename and str(error.filename) != str(root) else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return HomeUnusable(
            f"cannot use {root} as home: {error.strerror}{where}; make room on its disk, or choose another with --home"
        )
    if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN):
        return HomeUnusable(f"this machine has no more to give: {error.strerror}; end something, then start again")
    return HomeUnusable(f"cannot use {root} as home: {error.strerror}{where}; choose another with --home")


def network_file_system(path: Path) -> str:
    """The type of the file system that `path` lies on, if it is one of other machines; else empty."""
    try:
        where = path.stat().st_dev
        lines = _MOUNTS.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return ""
    number = f"{os.major(where)}:{os.minor(where)}"
    for line in lines:
        place, _, rest = line.partition(" - ")
        kind = rest.partition(" ")[0]
        if kind in _NETWORK and number in place.split(" ")[:3]:
            return kind
    return ""


def _nameable(root: Path) -> None:
    """Contracts and messages carry this path as text, one line of it."""
    text = str(root)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise HomeUnusable(f"the path {safe(text, 300)} is not UTF-8; choose another home with --home") from None
    if any(ord(char) < 0x20 or ord(char) == 0x7F for char in text):
        raise HomeUnusable(f"the path {safe(text, 300)} holds a control character; choose another home with --home")


def _take_root(root: Path) -> None:
    """The home itself, made or found. A directory that others may change, or with a life of its own, is not taken."""
    made = not root.exists()
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = root.stat()
    if found.st_uid != os.geteuid():
        raise HomeUnusable(f"{root} belongs to user {found.st_uid}; choose another home with --home")
    if made or (root / _LOCK).exists() or not any(root.iterdir()):
        root.chmod(0o700)
    elif found.st_mode & 0o022:
        # Perhaps it is a project or a temporary directory that others need: its mode is not ours to change.
        raise HomeUnusable(f"{root} can be changed by others; run `chmod go-w` on it or choose another with --home")
    if made and root.name == DIRECTORY:
        # A home inside a repository must not show up in its status.
        (root / ".gitignore").write_text("*\n", encoding="ascii")


def _private(path: Path, way_out: str) -> None:
    """A directory that is ours alone: made, or found to be one. Raises `HomeUnusable`."""
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    try:
        # Held by descriptor: whatever is put in its place between the look and the change is not followed.
        fd = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC)
    except NotADirectoryError:
        raise HomeUnusable(f"{path} is a link or a file, not a directory; move it away or {way_out}") from None
    try:
        found = os.fstat(fd)
        if found.st_uid != os.geteuid():
            raise HomeUnusable(f"{path} belongs to user {found.st_uid}; have it removed or {way_out}")
        if stat.S_IMODE(found.st_mode) != 0o700:
            os.chmod(f"/proc/self/fd/{fd}", 0o700)
    finally:
        os.close(fd)


def _pids() -> list[int]:
    with contextlib.suppress(OSError):
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]
    return []


def _has_open(pid: int, path: Path) -> bool:
    """Whether a process of ours has this file open (proc_pid_fd(5))."""
    try:
        there = path.stat()
        fds = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return False
    for fd in fds:
        with contextlib.suppress(OSError):
            if os.path.samestat(os.stat(f"/proc/{pid}/fd/{fd}"), there):
                return True
    return False


def _home_at(path: str | Path) -> Home:
    """Without `..` and doubled slashes, which contracts refuse; a link stays a link."""
    whole = os.path.abspath(path)
    return Home(Path(f"/{whole.lstrip('/')}"))


def find_home(explicit: str | None, cwd: Path) -> Home:
    """--home, else COUNCIL_HOME, else the nearest .council upwards, else a place for a new one.

    A new home is made in the git repository that `cwd` lies in, so that every command in there finds it
    again; where there is none, or it cannot be written to, in the user's data directory.
    """
    if explicit:
        return _home_at(explicit)
    if named := os.environ.get("COUNCIL_HOME"):
        return _home_at(named)
    folders = (cwd, *cwd.parents)
    for folder in folders:
        if (folder / DIRECTORY).is_dir():
            return Home(folder / DIRECTORY)
    top = next((folder for folder in folders if (folder / ".git").exists()), None)
    if top is not None and os.access(top, os.W_OK | os.X_OK):
        return Home(top / DIRECTORY)
    from platformdirs import user_data_path

    return _home_at(user_data_path("council", appauthor=False))


class OwnerLock:
    """An flock on `supervisor.lock` and on the home itself: the kernel drops it with its owner, so it is never stale.

    The file tells who; the directory keeps a second owner out also when someone deletes the file.
    """

    def __init__(self, home: Home) -> None:
        self._root = home.root
        self._path = home.root / _LOCK
        self._held: list[int] = []

    def take(self) -> bool:
        """Try to own the home; False when another process does."""
        directory = self._lock(self._root, os.O_RDONLY | os.O_DIRECTORY)
        file = None if directory is None else self._lock(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
        if file is None:
            self.release()
            return False
        if not stat.S_ISREG(os.fstat(file).st_mode):
            self.release()
            raise HomeUnusable(f"{self._path} is no ordinary file; move it away, then start again")
        if not self._is_at(file):
            self.release()
            raise HomeUnusable(f"{self._path} was replaced by someone at this moment; try again")
        try:
            os.ftruncate(file, 0)
            os.write(file, f"{os.getpid()}\n".encode())
        except OSError as error:
            self.release()
            raise HomeUnusable(
                f"cannot write {self._path}: {error.strerror}; make room there, then start again"
            ) from None
        return True

    def _lock(self, path: Path, flags: int) -> int | None:
        try:
            fd = os.open(path, flags | os.O_CLOEXEC, 0o600)
        except OSError as error:
            self.release()
            raise HomeUnusable(f"cannot open {path}: {error.strerror}") from None
        self._held.append(fd)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        except OSError as error:
            self.release()
            raise HomeUnusable(f"cannot lock {path}: {error.strerror}; choose another home with --home") from None
        return fd

    def _is_at(self, fd: int) -> bool:
        """Whether the locked file is still the one that others find at its path."""
        try:
            return os.path.samestat(os.fstat(fd), self._path.stat())
        except FileNotFoundError:
            return False

    def owner(self) -> int | None:
        """The pid that the owner wrote, for messages only; where it is gone, of a process that has the lock open."""
        try:
            written = int(ordinary(self._path).decode("ascii").strip())
        except (OSError, ValueError):
            written = None
        if written is not None and os.path.exists(f"/proc/{written}"):
            return written
        return next((pid for pid in _pids() if _has_open(pid, self._path)), written)

    def held(self) -> int | None:
        """The pid of the process that owns the home at this moment, or None; takes nothing itself.

        It asks the kernel's list (proc_locks(5)): trying the lock would keep its next owner out.
        """
        inodes = set()
        for path in (self._path, self._root):
            with contextlib.suppress(OSError):
                inodes.add(str(path.stat().st_ino))
        try:
            lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
        except OSError:
            return None
        for fields in (line.split() for line in lines if "->" not in line):
            if fields[1] == "FLOCK" and fields[5].rpartition(":")[2] in inodes:
                return self.owner() or int(fields[4])
        return None

    def release(self) -> None:
        """Give the home back."""
        while self._held:
            os.close(self._held.pop())
