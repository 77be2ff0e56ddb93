"""Reading a repository that nobody vouches for: never writing, never following a link out, never a hook.

Every git call goes through here, so that what the repository's own configuration could start (hooks,
file system monitors, diff programs, downloads of a partial clone) is switched off in one place.
"""

from __future__ import annotations

import os
import stat
import subprocess
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedReader
from typing import IO, TYPE_CHECKING

from council_tui.plans.audit.report import Blocked, Report, count

if TYPE_CHECKING:
    from collections.abc import Iterator

SAFE_OPTIONS = (
    *("-c", "safe.directory=*", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"),
    *("-c", "core.quotePath=false", "-c", "log.showSignature=false", "-c", "core.pager=cat"),
    *("-c", "color.ui=false", "-c", "log.follow=false", "-c", "log.mailmap=true"),
)
GIT_SECONDS = 60.0
MAX_READ = 2 * 1024 * 1024
"""Bytes read of one file; what is longer is counted as cut."""
CHUNK = 1024 * 1024


def git_environment() -> dict[str, str]:
    """The environment of every git call: no locks, no prompts, no network, no user configuration."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return clean | {
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_PAGER": "cat",
        "LC_ALL": "C",
    }


def shown(path: str) -> str:
    """A path as text: bytes that are no UTF-8 become visible escapes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


@dataclass(frozen=True)
class Entry:
    """A file that git knows or would add: its path from the top, its mode (octal text), if it is tracked."""

    path: str
    mode: str = "100644"
    tracked: bool = True


@dataclass
class Repo:
    """One repository. `root` is the top of the work tree, or the git directory when `bare`."""

    root: str
    bare: bool
    shallow: bool
    unborn: bool
    skipped: Counter[str] = field(default_factory=Counter)
    """Files that could not be read whole, by reason."""
    complaints: list[str] = field(default_factory=list)
    """What git said when it could not read on; what it gave before that counts."""
    _inside: dict[str, bool] = field(default_factory=dict)

    def git(self, *args: str, ok: tuple[int, ...] = (0,), seconds: float = GIT_SECONDS) -> bytes:
        """Standard output of one git command. Raises `ValueError` with git's own words on failure."""
        done = subprocess.run(
            _argv(args),
            cwd=self.root,
            env=git_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
        if done.returncode not in ok:
            raise ValueError(f"git {args[0]}: {_complaint(done.stderr)}")
        return done.stdout

    @contextmanager
    def stream(self, *args: str, stdin: IO[bytes] | None = None) -> Iterator[BufferedReader]:
        """Standard output of a running git command, which is ended when the block is left.

        Whoever stops before the end counts that in `skipped["time"]`; else git's exit status is judged too.
        """
        stops = self.skipped["time"]
        with (
            tempfile.TemporaryFile() as errors,
            subprocess.Popen(
                _argv(args),
                cwd=self.root,
                env=git_environment(),
                stdin=stdin or subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
            ) as process,
        ):
            assert isinstance(process.stdout, BufferedReader)
            try:
                yield process.stdout
                if self.skipped["time"] == stops and process.wait(GIT_SECONDS):
                    errors.seek(0)
                    self.complaints.append(f"git {args[0]}: {_complaint(errors.read())}")
            finally:
                process.kill()

    def records(self, *args: str, seconds: float, separator: bytes = b"\0") -> Iterator[bytes]:
        """Records of a git command's output as they come; ends early once `seconds` are over."""
        deadline = time.monotonic() + seconds
        with self.stream(*args) as output:
            rest = b""
            while chunk := output.read1(CHUNK):
                *whole, rest = (rest + chunk).split(separator)
                yield from whole
                if time.monotonic() > deadline:
                    self.skipped["time"] += 1
                    return
            if rest:
                yield rest

    def tracked(self) -> list[Entry]:
        """Tracked files, each path once even in the middle of a merge; submodules left out."""
        found: dict[str, Entry] = {}
        for record in self.git("ls-files", "-s", "-z").split(b"\0"):
            head, tab, path = record.partition(b"\t")
            mode = head[:6].decode()
            if tab and mode != "160000":
                name = os.fsdecode(path)
                found[name] = Entry(name, mode)
        return list(found.values())

    def submodules(self) -> list[str]:
        """Paths where another repository is mounted; what lies below them is not known here."""
        records = (r.partition(b"\t") for r in self.git("ls-files", "-s", "-z").split(b"\0"))
        return [os.fsdecode(path) for head, _, path in records if head.startswith(b"160000")]

    def files(self) -> list[Entry]:
        """Tracked files and those the next `git add .` would take; symbolic links and submodules left out."""
        others = self.git("ls-files", "-o", "--exclude-standard", "-z").split(b"\0")
        fresh = [Entry(os.fsdecode(p), tracked=False) for p in others if p and not p.endswith(b"/")]
        return [e for e in (*self.tracked(), *fresh) if e.mode != "120000"]

    def links(self) -> dict[str, str]:
        """Tracked symbolic links to files of this tree, each with the path of the file it ends at."""
        found = {}
        for entry in self.tracked():
            if entry.mode == "120000":
                real = os.path.realpath(os.path.join(self.root, entry.path))
                if os.path.isfile(real) and self._within(os.path.dirname(real)):
                    found[entry.path] = os.path.relpath(real, self.root)
        return found

    def read(self, path: str, limit: int = MAX_READ) -> bytes | None:
        """The first `limit` bytes of a regular file inside the tree, else None (counted in `skipped`)."""
        full = os.path.join(self.root, path)
        if not self._within(os.path.dirname(full)):
            self.skipped["outside the tree"] += 1
            return None
        try:
            handle = os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as error:
            if not os.path.islink(full):
                self.skipped[(error.strerror or "unreadable").lower()] += 1
            return None
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                return None
            data = file.read(limit + 1)
        if len(data) > limit:
            self.skipped["only the first part of a large file"] += 1
        return data[:limit]

    def _within(self, folder: str) -> bool:
        known = self._inside.get(folder)
        if known is None:
            real = os.path.realpath(folder)
            known = real == self.root or real.startswith(self.root.rstrip("/") + "/")
            self._inside[folder] = known
        return known

    def report_skipped(self, report: Report) -> None:
        """Say what was not looked at, so that silence about it is not taken for a clean bill."""
        skipped = {reason: n for reason, n in self.skipped.items() if reason != "time"}
        if skipped:
            parts = ", ".join(f"{reason}: {n}" for reason, n in sorted(skipped.items()))
            number = count(sum(skipped.values()), "file was", "files were")
            report.add("INFO", f"{number} not read whole", f"Left out, by reason: {parts}.", f"skipped - {parts}")
        self.report_complaints(report)

    def report_complaints(self, report: Report) -> None:
        """Say where git itself gave up."""
        if self.complaints:
            text = "The results cover what it could read. A partial clone has not all objects here; a damaged one "
            text += "shows in `git fsck`."
            report.add("LOW", "Git could not read everything", text, self.complaints)


def _argv(args: tuple[str, ...]) -> list[str]:
    return ["git", "--no-optional-locks", "--no-pager", *SAFE_OPTIONS, *args]


def _complaint(stderr: bytes) -> str:
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "failed without a word"


def open_repo(*, work_tree: bool = True) -> Repo:
    """The repository around the current directory. Raises `Blocked` with the one sentence a person needs."""
    probe = Repo(os.getcwd(), bare=False, shallow=False, unborn=False)
    try:
        words = probe.git("rev-parse", "--is-bare-repository", "--is-inside-work-tree", "--absolute-git-dir")
    except FileNotFoundError:
        raise Blocked("git is not installed; install it and run the audit again.") from None
    except ValueError as error:
        raise Blocked(_why_not(str(error), probe.root)) from None
    bare, inside, git_dir = words.rstrip(b"\n").split(b"\n", 2)
    if inside != b"true" and work_tree:
        raise Blocked(
            f"{shown(probe.root)} has no files checked out (a bare repository or the inside of .git); "
            "run the audit in a clone of it."
        )
    if inside == b"true":
        probe.root = os.path.realpath(os.fsdecode(probe.git("rev-parse", "--show-toplevel")[:-1]))
    else:
        probe.root = os.path.realpath(os.fsdecode(git_dir))
    probe.bare = bare == b"true"
    probe.shallow = probe.git("rev-parse", "--is-shallow-repository").strip() == b"true"
    probe.unborn = not probe.git("rev-parse", "-q", "--verify", "HEAD^{commit}", ok=(0, 1, 128)).strip()
    return probe


def _why_not(complaint: str, folder: str) -> str:
    if "not a git repository" in complaint:
        return f"{shown(folder)} is in no git repository; run the audit in a checkout, or `git init` there."
    return f"git cannot read the repository at {shown(folder)}: {complaint}"


def is_binary(data: bytes) -> bool:
    """Git's own test: a NUL byte near the start."""
    return b"\0" in data[:8000]
