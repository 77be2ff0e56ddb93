"""Who is compared, and how each is told to keep so many plain children: its own defaults, and its own ways to end.

Every peer talks over Unix sockets in the trial's folder, and none of them logs what the children print.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from comparison.environment import NotHere, node_peers, node_version, python_peers, python_version
from council_tui import __version__
from council_tui.supervisor.limits import find_tier

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HERE = Path(__file__).resolve().parent
FLOOR = "floor"
TIERS = ("portable", "strong")


@dataclass(frozen=True)
class Peer:
    """One supervisor, as the comparison starts and stops it."""

    name: str
    version: str
    command: Callable[[Path, int, Sequence[str]], list[str]]
    """(folder, children, argv of a child) -> argv of the supervisor; writes what configuration that needs."""
    stop: tuple[str, ...] = ()
    """A command that ends it in order; without one it gets SIGTERM."""
    pid_file: str = ""
    """In the folder, for one that goes to the background."""
    environment: tuple[tuple[str, str], ...] = ()
    """Variables beyond the plain ones; `{folder}` is the trial's."""

    def variables(self, folder: Path) -> dict[str, str]:
        """The environment of the supervisor: what every program needs, a home of its own, and its own settings."""
        plain = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        own = {name: value.format(folder=folder) for name, value in self.environment}
        return {**plain, "HOME": str(folder), "TMPDIR": str(folder), **own}


def supervisord_config(folder: Path, count: int, argv: Sequence[str]) -> str:
    """Its file for so many children. A `%` would be an expansion."""
    return f"""[unix_http_server]
file={folder}/s
[supervisord]
nodaemon=true
logfile=/dev/null
logfile_maxbytes=0
pidfile={folder}/pid
minfds={3 * count + 100}
[program:plain]
command={shlex.join(argv).replace("%", "%%")}
process_name=%(program_name)s_%(process_num)d
numprocs={count}
autorestart=true
stdout_logfile=NONE
stderr_logfile=NONE
stopasgroup=true
killasgroup=true
"""


def circus_config(folder: Path, count: int, argv: Sequence[str]) -> str:
    """Its file for so many children."""
    return f"""[circus]
endpoint = ipc://{folder}/e
pubsub_endpoint = ipc://{folder}/p
statsd = False
httpd = False
loglevel = ERROR
[watcher:plain]
cmd = {argv[0]}
args = {shlex.join(argv[1:])}
numprocesses = {count}
warmup_delay = 0
copy_env = True
stop_children = True
"""


def pm2_config(count: int, argv: Sequence[str]) -> str:
    """Its file for so many children."""
    app = {
        "name": "plain",
        "script": argv[0],
        "args": list(argv[1:]),
        "interpreter": "none",
        "exec_mode": "fork",
        "instances": count,
        "out_file": "/dev/null",
        "error_file": "/dev/null",
        "pmx": False,
        "vizion": False,
    }
    return json.dumps({"apps": [app]})


def _floor(cache: Path) -> Peer:
    def command(folder: Path, count: int, argv: Sequence[str]) -> list[str]:
        return [sys.executable, str(HERE / "floor.py"), str(count), *argv]

    return Peer(FLOOR, f"Python {sys.version.split()[0]}", command)


def _council(tier: str, cache: Path) -> Peer:
    if tier == "strong" and not (found := find_tier()).strong:
        raise NotHere(f"no strong mode here: {found.why}")

    def command(folder: Path, count: int, argv: Sequence[str]) -> list[str]:
        return [sys.executable, str(HERE / "fleet.py"), tier, str(count), *argv]

    # Only we may be told where modules lie: a peer would find ours instead of its own.
    own = tuple((name, os.environ[name]) for name in ("PYTHONPATH",) if name in os.environ)
    return Peer(f"council-{tier}", __version__, command, environment=own)


def _supervisord(cache: Path) -> Peer:
    programs = python_peers(cache)

    def command(folder: Path, count: int, argv: Sequence[str]) -> list[str]:
        file = folder / "supervisord.conf"
        file.write_text(supervisord_config(folder, count, argv), "utf-8")
        return [str(programs / "supervisord"), "-c", str(file)]

    return Peer("supervisord", python_version(programs, "supervisor"), command)


def _circus(cache: Path) -> Peer:
    programs = python_peers(cache)

    def command(folder: Path, count: int, argv: Sequence[str]) -> list[str]:
        file = folder / "circus.ini"
        file.write_text(circus_config(folder, count, argv), "utf-8")
        return [str(programs / "circusd"), str(file)]

    return Peer("circus", python_version(programs, "circus"), command)


def _pm2(cache: Path) -> Peer:
    package = node_peers(cache)
    program = str(package / "bin" / "pm2")

    def command(folder: Path, count: int, argv: Sequence[str]) -> list[str]:
        file = folder / "fleet.config.json"
        file.write_text(pm2_config(count, argv), "utf-8")
        return ["node", program, "start", str(file)]

    own = (("PM2_HOME", "{folder}"), ("PM2_DISABLE_VERSION_CHECK", "true"))
    return Peer("pm2", node_version(package), command, ("node", program, "kill"), "pm2.pid", own)


MAKERS: dict[str, Callable[[Path], Peer]] = {
    FLOOR: _floor,
    **{f"council-{tier}": partial(_council, tier) for tier in TIERS},
    "supervisord": _supervisord,
    "circus": _circus,
    "pm2": _pm2,
}


def sleeper(number: str) -> tuple[str, ...]:
    """A plain child that can be told from all other processes. Raises `NotHere`."""
    program = shutil.which("sleep")
    if program is None:
        raise NotHere("there is no `sleep`")
    return program, number


def escaper(number: str) -> tuple[str, ...]:
    """A child that leaves processes behind. Raises `NotHere`."""
    shell = shutil.which("sh")
    if shell is None or shutil.which("setsid") is None:
        raise NotHere("there is no `sh` or no `setsid`")
    return shell, str(HERE / "escaper.sh"), number
