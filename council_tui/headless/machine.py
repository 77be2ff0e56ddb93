"""Facts about this machine for `council doctor`, each read where the kernel or the program tells it."""

from __future__ import annotations

import locale
import os
import platform
import pwd
import resource
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from council_tui import __version__
from council_tui.board.board import load_tables
from council_tui.board.database import read_only_uri
from council_tui.board.home import OwnerLock
from council_tui.containers import seccomp
from council_tui.containers.sandbox import ENFORCED
from council_tui.domain.text import safe
from council_tui.headless.machine_lines import (
    HomePart,
    LimitsPart,
    ProcessPart,
    TerminalPart,
    TierPart,
    VersionsPart,
)
from council_tui.hosts import descriptors
from council_tui.runner import guard
from council_tui.runner.cgroup import CONTROLLERS
from council_tui.supervisor.limits import BY_LOOKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Literal

    from council_tui.board.home import Home
    from council_tui.board.projection import Run
    from council_tui.supervisor.limits import Tier

PROCESSES_PER_AGENT = {False: 2, True: 4}
"""A guardian and its program; in strong mode the two halves of bubblewrap stand between them."""
SPARE = 100
"""Processes that the council itself and its neighbours may need."""
OPEN_FILES = "open files (ulimit -Hn)"
ANSWER_SECONDS = 5.0

_PORTABLE = (
    "nothing outlives its guardian, a home and an environment of its own",
    "a slice that passes its ceiling is stopped (soft ceiling)",
)
_STRONG = (
    "processes in a namespace of their own, which ends with its guardian",
    "a slice of exactly its size (hard ceiling)",
    "the council's own home is not there for a program, nor what root could undo this with",
)
_SOCKETS = "sockets that others make in the file system later, elsewhere than in /run: they know no network namespace"
_NO_FILTER = (
    "AF_VSOCK and io_uring: no filter of system calls is known for this processor, and a network namespace leaves "
    "them open"
)
_OTHERS = "any {}forbidden capability: such a contract is refused, unless it says `enforcement: declared-only`"


def tier_part(tier: Tier) -> TierPart:
    """What this tier enforces, and what it cannot."""
    limits = {name: _held(name, tier) for name in CONTROLLERS}
    enforces, cannot = list(_PORTABLE), [_OTHERS.format("")]
    held = sorted(ENFORCED) if tier.strong else []
    if tier.strong:
        enforces = [*_STRONG, f"forbidden capabilities: {', '.join(held)}"]
        if seccomp.rules():
            enforces.append("a forbidden network: no socket to a virtual machine's host (AF_VSOCK), no io_uring")
        cannot = [_OTHERS.format("other "), *([] if seccomp.rules() else [_NO_FILTER]), _SOCKETS]
    return TierPart(
        name="strong" if tier.strong else "portable",
        why=tier.why,
        enforces=[*enforces, *_limits_held(limits)],
        forbidden=held,
        limits=limits,
        cannot=[*cannot, *_limits_open(limits, tier)],
    )


def _held(limit: str, tier: Tier) -> Literal["hard", "soft", "none"]:
    if tier.holds(limit):
        return "hard"
    return "soft" if limit in tier.groups or limit in BY_LOOKING else "none"


def _limits_held(limits: Mapping[str, str]) -> Iterator[str]:
    for how, words in (("hard", "by a cgroup that it cannot leave"), ("soft", "which it can pass for a moment")):
        if names := [name for name in limits if limits[name] == how]:
            yield f"limits of a contract, {words} ({how} limits): {', '.join(names)}"


def _limits_open(limits: Mapping[str, str], tier: Tier) -> Iterator[str]:
    for name in limits:
        if limits[name] == "none":
            why = safe(tier.no_groups.get(name) or tier.why, 200)
            yield f"a limit of {name} ({why}): refused as well, unless it says so"


def versions_part(tier: Tier, textual: str) -> VersionsPart:
    """Versions of what council stands on."""
    return VersionsPart(
        council=__version__,
        bubblewrap=_bubblewrap(tier.bwrap),
        python=platform.python_version(),
        sqlite=sqlite3.sqlite_version,
        textual=textual,
        kernel=platform.release(),
    )


def _bubblewrap(program: str) -> str | None:
    """`bubblewrap 0.8.0` says which; asked for by name when the tier does not use it."""
    try:
        done = subprocess.run(
            [program or "bwrap", "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=ANSWER_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return safe(done.stdout.decode("utf-8", "replace").strip().rpartition(" ")[2], 40) or None


def terminal_part() -> TerminalPart:
    """The terminal on standard output."""
    there = sys.stdout.isatty()
    size = os.get_terminal_size(sys.stdout.fileno()) if there else None
    return TerminalPart(
        columns=size.columns if size else None,
        rows=size.lines if size else None,
        colours={"truecolor": "all colours", "256": "256 colours", "standard": "16 colours"}.get(
            Console().color_system or "", "no colours"
        ),
        term=os.environ.get("TERM", ""),
        encoding=sys.stdout.encoding or "",
        locale=locale.setlocale(locale.LC_CTYPE),
    )


def _number(path: str) -> int | None:
    """The number in a kernel file, or None where there is no such limit."""
    try:
        text = Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def _soft(which: int) -> int | None:
    limit, _ = resource.getrlimit(which)
    return None if limit in (-1, resource.RLIM_INFINITY) else limit


def limits_part(*, strong: bool) -> LimitsPart:
    """The limits, and how many agents fit into the narrowest of them."""
    files, mine, pids = descriptors.most(), _soft(resource.RLIMIT_NPROC), _number("/proc/sys/kernel/pid_max")
    running, each = sum(1 for _ in guard.all_processes()), PROCESSES_PER_AGENT[strong]
    if os.getuid() == 0:
        # setrlimit(2): the limit on processes is not enforced for root.
        mine = None
    room = {
        OPEN_FILES: descriptors.room(),
        "processes (ulimit -u)": None if mine is None else (mine - running - SPARE) // each,
        "kernel.pid_max": None if pids is None else (pids - running - SPARE) // each,
    }
    known = {name: max(0, value) for name, value in room.items() if value is not None}
    by = min(known, key=lambda name: known[name], default="nothing")
    agents = known.get(by, 0)
    return LimitsPart(open_files=files, processes=mine, pid_max=pids, running=running, agents=agents, by=by)


def home_part(home: Home) -> HomePart:
    """The home as it lies there, or as it could be made."""
    there = home.root.exists()
    at = next((folder for folder in (home.root, *home.root.parents) if folder.exists()), Path("/"))
    return HomePart(
        path=str(home.root),
        exists=there,
        writable=at.is_dir() and os.access(at, os.W_OK | os.X_OK),
        mode=f"{home.root.stat().st_mode & 0o777:03o}" if there else None,
        user=_user(home.root.stat().st_uid) if there else None,
        owner=OwnerLock(home).held(),
    )


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def me() -> str:
    """The user that this command runs as."""
    return _user(os.getuid())


def leftovers(home: Home) -> tuple[list[ProcessPart], str]:
    """Living processes of this home's runs while nobody owns it, and why they could not be looked for."""
    if not home.board.is_file():
        return [], ""
    try:
        board = sqlite3.connect(read_only_uri(home.board), uri=True, isolation_level=None)
        try:
            runs = load_tables(board, archived=True).runs
        finally:
            board.close()
    except (sqlite3.Error, OSError, ValueError) as error:
        return [], f"{safe(str(home.board), 400)} cannot be read: {safe(str(error), 200)}"
    bodies = {process.pid: run for process, run in guard.all_marked() if run in runs}
    guards = {run.pid: run.id for run in runs.values() if run.pid is not None and _lives(run)}
    return [ProcessPart(pid=pid, name=_name(pid), run=run) for pid, run in sorted({**guards, **bodies}.items())], ""


def _lives(run: Run) -> bool:
    if run.boot_id != guard.boot_id() or run.pid is None:
        return False
    return run.start_time is not None and guard.running(run.pid, run.start_time) is not None


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "gone by now"
