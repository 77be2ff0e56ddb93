"""Strong mode: a body inside namespaces of its own, made by bubblewrap (bwrap(1), namespaces(7)).

The PID namespace ends with the runner; the slice is a tmpfs of exactly the contract's size; a forbidden
network is a network namespace with nothing in it; forbidden writing is a read-only mount of everything but
the slice. The council's own home is not there at all.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from council_tui.containers.command import Launch

NETWORK, WRITE = "network", "write"
ENFORCED = frozenset({NETWORK, WRITE})
"""Forbidden capabilities that strong mode can hold a program to."""
PROBE_SECONDS = 10.0


@dataclass(frozen=True)
class Sandbox:
    """What to build around one body."""

    program: str
    """Path of bwrap."""
    hidden: str
    """The council's home."""
    data: str
    """The slice, which becomes the tmpfs."""
    limit: int
    """Its size in bytes."""
    notify: str
    """The socket on which the body may speak sd_notify."""
    network: bool = True
    write: bool = True


def _arguments(box: Sandbox) -> list[str]:
    """The mounts and namespaces, outermost first: later ones lie on top."""
    arguments = ["--unshare-pid", "--unshare-ipc", "--die-with-parent"]
    arguments += ["--bind" if box.write else "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    if not box.network:
        # Sockets that lie in the file system are no part of a network namespace.
        arguments += ["--unshare-net", "--tmpfs", "/run"]
    arguments += ["--tmpfs", box.hidden]
    arguments += ["--perms", "0700", "--size", str(box.limit), "--tmpfs", box.data]
    return [*arguments, "--bind", box.notify, box.notify]


def wrap(plan: Launch, box: Sandbox, status_fd: int) -> Launch:
    """The same program, started inside the sandbox; bwrap tells its pids on `status_fd` as JSON lines."""
    head = [
        box.program,
        *_arguments(box),
        "--json-status-fd",
        str(status_fd),
        "--chdir",
        plan.cwd,
        "--unsetenv",
        "PWD",
        "--",
    ]
    return replace(plan, argv=(*head, *plan.argv), cwd="/")


def probe(program: str | None) -> str:
    """Why this machine has no strong mode; empty when it has. Takes some milliseconds."""
    if program is None:
        return "bubblewrap is not installed"
    trial = ["--unshare-pid", "--unshare-ipc", "--unshare-net", "--die-with-parent", "--ro-bind", "/", "/"]
    trial += ["--dev", "/dev", "--proc", "/proc", "--perms", "0700", "--size", "65536", "--tmpfs", "/tmp"]
    try:
        done = subprocess.run(
            [program, *trial, "true"], stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap cannot be run: {error}"
    if done.returncode == 0:
        return ""
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return f"bubblewrap cannot make namespaces here: {said[-1] if said else f'exit status {done.returncode}'}"
