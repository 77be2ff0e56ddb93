"""Strong mode: a body inside namespaces of its own, made by bubblewrap (bwrap(1), namespaces(7)).

The PID namespace ends with the runner; the slice is a tmpfs of exactly the contract's size; a forbidden
network is a network namespace with nothing in it, a filter of system calls for what such a namespace does not
hold, and no socket in sight; forbidden writing is a read-only mount of everything but the slice. The council's
own home is not there at all, and cgroups can only be looked at.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from council_tui.containers import seccomp
from council_tui.containers.sockets import below, places, to_cover

if TYPE_CHECKING:
    from council_tui.containers.command import Launch

NETWORK, WRITE = "network", "write"
ENFORCED = frozenset({NETWORK, WRITE})
"""Forbidden capabilities that strong mode can hold a program to."""
PROBE_SECONDS = 10.0
KERNEL = "/sys"
WRAPPERS = 2
"""Processes of bubblewrap itself around a body: the one that waits, and the namespace's init."""

_KEPT = {
    "CHOWN": 0,
    "DAC_OVERRIDE": 1,
    "FOWNER": 3,
    "FSETID": 4,
    "KILL": 5,
    "SETGID": 6,
    "SETUID": 7,
    "SETPCAP": 8,
    "NET_BIND_SERVICE": 10,
    "NET_RAW": 13,
    "SYS_CHROOT": 18,
    "AUDIT_WRITE": 29,
    "SETFCAP": 31,
}
"""What a program of root may still do, as in containers elsewhere, with each one's bit (capabilities(7)).

Root with all of them would mount over, or take away, whatever is built here.
"""
_SYS_ADMIN = 1 << 21
_FILTERED = 2
"""SECCOMP_MODE_FILTER."""


@dataclass(frozen=True)
class Sandbox:
    """What to build around one body."""

    program: str
    """Path of bwrap."""
    hidden: tuple[str, ...]
    """The council's home, and where its sockets lie when that is elsewhere."""
    data: str
    """The slice, which becomes the tmpfs."""
    limit: int
    """Its size in bytes."""
    notify: str
    """The socket on which the body may speak sd_notify."""
    workdir: str
    """Where the body starts; never covered."""
    network: bool = True
    write: bool = True
    sockets: tuple[str, ...] = ()
    """Sockets of others to cover one by one."""


def _status() -> dict[str, str]:
    """Our own /proc/self/status."""
    with open("/proc/self/status", encoding="utf-8", errors="replace") as file:
        return {name: value.strip() for name, _, value in (line.partition(":") for line in file)}


def _privileges() -> list[str]:
    """Root gives up what the sandbox could be undone with; anybody else has none of it in there."""
    if os.geteuid() != 0:
        return []
    # Only of what we have: asked for more, bwrap keeps everything and says nothing.
    ours = int(_status()["CapPrm"], 16)
    kept = [name for name, bit in _KEPT.items() if ours >> bit & 1]
    return ["--cap-drop", "ALL", *(word for name in kept for word in ("--cap-add", f"CAP_{name}"))]


def _machine(limit: int, *, write: bool) -> list[str]:
    """Namespaces and the file system, with whatever reaches past it (/dev, /proc/sys, cgroups) closed."""
    arguments = ["--unshare-pid", "--unshare-ipc", "--die-with-parent", *_privileges()]
    arguments += ["--bind" if write else "--ro-bind", "/", "/"]
    if os.path.isdir(KERNEL):
        # With everything mounted below it: the kernel's settings, and the cgroups of others.
        arguments += ["--ro-bind", KERNEL, KERNEL]
    # Its files belong to root, whatever root may still do otherwise.
    arguments += ["--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys", "--dev", "/dev"]
    arguments += ["--perms", "1777", "--size", str(limit), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]
    return arguments


def _arguments(box: Sandbox) -> list[str]:
    """The mounts and namespaces, outermost first: later ones lie on top."""
    arguments = _machine(box.limit, write=box.write)
    covered = [] if box.network else places(box.hidden)
    if not box.network:
        arguments += ["--unshare-net", *(word for place in covered for word in ("--tmpfs", place))]
    if below(box.workdir, covered):
        arguments += ["--bind" if box.write else "--ro-bind", box.workdir, box.workdir]
    arguments += [word for path in box.hidden for word in ("--tmpfs", path)]
    arguments += ["--perms", "0700", "--size", str(box.limit), "--tmpfs", box.data]
    arguments += ["--bind", box.notify, box.notify]
    arguments += [word for path in box.sockets for word in ("--ro-bind", "/dev/null", path)]
    # Each is memory of the machine, and the slice is all that a program may have of it.
    return [*arguments, *(word for path in (*covered, *box.hidden) for word in ("--remount-ro", path))]


def with_sockets(box: Sandbox) -> Sandbox:
    """The same with the sockets that are there now covered, for a forbidden network. Raises `TooManySockets`."""
    if box.network:
        return box
    covered = (*places(box.hidden), *box.hidden)
    return replace(box, sockets=tuple(path for path in to_cover(covered, (box.workdir,)) if path != box.notify))


def wrap(plan: Launch, box: Sandbox, status_fd: int) -> Launch:
    """The same program, started inside the sandbox; bwrap tells its pids on `status_fd` as JSON lines."""
    rules = b"" if box.network else seccomp.rules()
    filters = (_readable(rules),) if rules else ()
    head = [
        box.program,
        *_arguments(box),
        *(word for fd in filters for word in ("--seccomp", str(fd))),
        "--json-status-fd",
        str(status_fd),
        "--chdir",
        plan.cwd,
        "--unsetenv",
        "PWD",
        "--",
    ]
    return replace(plan, argv=(*head, *plan.argv), cwd="/", fds=filters)


def _readable(content: bytes) -> int:
    """A descriptor from which these bytes, a few hundred, can be read."""
    ours, theirs = os.pipe2(os.O_CLOEXEC)
    os.write(theirs, content)
    os.close(theirs)
    return ours


def probe(program: str | None) -> str:
    """Why this machine has no strong mode; empty when it has. Takes some milliseconds."""
    if program is None:
        return "bubblewrap is not installed"
    rules = seccomp.rules()
    filters = (_readable(rules),) if rules else ()
    trial = [*_machine(65536, write=False), "--unshare-net", "--perms", "0700", "--size", "65536", "--tmpfs", "/tmp"]
    trial += [word for fd in filters for word in ("--seccomp", str(fd))]
    try:
        done = subprocess.run(
            [program, *trial, "cat", "/proc/self/status"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_SECONDS,
            check=False,
            pass_fds=filters,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap cannot be run: {error}"
    finally:
        for fd in filters:
            os.close(fd)
    if done.returncode == 0:
        return _short_of(done.stdout.decode("utf-8", "replace"), filtered=bool(rules))
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return f"bubblewrap cannot make namespaces here: {said[-1] if said else f'exit status {done.returncode}'}"


def _short_of(status: str, *, filtered: bool) -> str:
    """What the trial's own /proc/self/status shows to be missing; empty when nothing is."""
    facts = {name: value.strip() for name, _, value in (line.partition(":") for line in status.splitlines())}
    if int(facts.get("CapEff", "0"), 16) & _SYS_ADMIN:
        return "bubblewrap leaves a program the right to undo it (CAP_SYS_ADMIN)"
    if filtered and facts.get("Seccomp") != str(_FILTERED):
        return "bubblewrap does not filter system calls here"
    return ""
