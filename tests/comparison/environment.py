"""The peers' own environment under a cache directory: they are no dependency of this project, not even of its tests."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

PYTHON_PEERS = ("supervisor>=4.3,<5", "circus>=0.19,<1")
NODE_PEERS = ("pm2@^7",)
INSTALL_SECONDS = 240.0


class NotHere(Exception):
    """A peer cannot be had on this machine; says why."""


def default_cache() -> Path:
    """Where the peers are installed unless something else is said."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "council-comparison"


def _run(argv: list[str], what: str) -> None:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotHere(f"{what}: {error}") from None
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip() or "no word").splitlines()[-1]
        raise NotHere(f"{what} ended with {done.returncode}: {last}")


def _ready(folder: Path, wanted: tuple[str, ...]) -> Path:
    """A marker that exists once exactly this was installed; anything else there is removed."""
    digest = hashlib.sha256(" ".join((sys.version, *wanted)).encode()).hexdigest()[:16]
    marker = folder / f"ready-{digest}"
    if not marker.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    return marker


def _python_with_pip() -> str:
    """This interpreter, or the one its virtual environment was made from."""
    base = str(Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}")
    for program in (sys.executable, base):
        if subprocess.run([program, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0:
            return program
    raise NotHere(f"neither {sys.executable} nor {base} has pip; install it, for example apt install python3-pip")


def python_peers(cache: Path) -> Path:
    """The `bin` directory with supervisord and circusd. Raises `NotHere`."""
    folder = cache / "python"
    marker = _ready(folder, PYTHON_PEERS)
    if not marker.exists():
        pip = _python_with_pip()
        _run([pip, "-m", "venv", "--without-pip", str(folder)], "making a virtual environment")
        _run([pip, "-m", "pip", "--python", str(folder), "install", "-q", *PYTHON_PEERS], "pip install")
        marker.touch()
    return folder / "bin"


def node_peers(cache: Path) -> Path:
    """The package folder of pm2. Raises `NotHere`."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        raise NotHere("node and npm are not installed")
    folder = cache / "node"
    marker = _ready(folder, NODE_PEERS)
    if not marker.exists():
        quiet = ["--no-audit", "--no-fund", "--ignore-scripts", "--no-update-notifier", "--prefix", str(folder)]
        _run(["npm", "install", *quiet, *NODE_PEERS], "npm install")
        marker.touch()
    return folder / "node_modules" / "pm2"


def python_version(bin_folder: Path, distribution: str) -> str:
    """The installed version of a Python peer."""
    code = f"from importlib.metadata import version; print(version({distribution!r}))"
    return subprocess.run(
        [bin_folder / "python", "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def node_version(package: Path) -> str:
    """The installed version of a Node package."""
    return str(json.loads((package / "package.json").read_text("utf-8"))["version"])
