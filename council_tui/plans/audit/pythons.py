"""Which Python a project's tests run with, and how to install into it.

A project with an environment of its own is tested in that one only: another Python on the machine may have
pytest, and would still lack the project's packages.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from council_tui.plans.audit.repo import Repo

PROBE_SECONDS = 30
FOLDERS = (".venv", "venv", "env")
_PROJECT = ("pyproject.toml", "setup.py", "setup.cfg")
_LISTS = ("requirements-dev.txt", "dev-requirements.txt", "requirements-test.txt", "requirements.txt")


@dataclass(frozen=True)
class Python:
    """An interpreter."""

    program: str
    folder: str
    """The project's environment, relative to its top; empty for the machine's own Python."""
    project: str
    """What pip has to install for the project and its tests, like `-e '.[dev]'`; empty when nothing says so."""

    @property
    def shown(self) -> str:
        """As a person would type it, standing in the project."""
        return f"{self.folder}/bin/python" if self.folder else self.program

    @property
    def place(self) -> str:
        """Where things are installed."""
        return self.folder or self.program

    def install(self, *packages: str) -> str:
        """The command that installs these, and the project where it says what it needs.

        It works for environments without pip, and leaves the machine's own Python alone.
        """
        target = self.folder or FOLDERS[0]
        first = "" if self.folder else f"python3 -m venv --without-pip {target} && "
        extras = [] if self.project.endswith("]'") else list(packages)
        words = [self.project, *extras] if self.project else [*packages]
        return f"{first}python3 -m pip --python {target} install {' '.join(words)}"


def find_python(repo: Repo, names: set[str], environment: Mapping[str, str]) -> tuple[Python, bool]:
    """The Python to test with, and whether it has pytest."""
    project = _project(repo, names)
    own = [folder for folder in FOLDERS if os.access(_program(repo, folder), os.X_OK)]
    for folder in own:
        if _has_pytest(_program(repo, folder), environment):
            return Python(_program(repo, folder), folder, project), True
    if own:
        return Python(_program(repo, own[0]), own[0], project), False
    found = shutil.which("python3")
    return Python(found or "python3", "", project), found is not None and _has_pytest(found, environment)


def _program(repo: Repo, folder: str) -> str:
    return os.path.join(repo.root, folder, "bin", "python")


def _has_pytest(python: str, environment: Mapping[str, str]) -> bool:
    probe = subprocess.run(
        [python, "-c", "import pytest"],
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PROBE_SECONDS,
        check=False,
    )
    return probe.returncode == 0


def _project(repo: Repo, names: set[str]) -> str:
    if "pyproject.toml" in names and (extra := _extra_with_pytest(repo.read("pyproject.toml") or b"")):
        return f"-e '.[{extra}]'"
    if any(name in names for name in _PROJECT):
        return "-e ."
    return next((f"-r {name}" for name in _LISTS if name in names), "")


def _extra_with_pytest(raw: bytes) -> str:
    """The optional dependencies that bring pytest, by name; empty when none do."""
    try:
        body = tomllib.loads(raw.decode("utf-8", "replace"))
    except (tomllib.TOMLDecodeError, RecursionError):
        return ""
    project = body.get("project")
    extras = project.get("optional-dependencies") if isinstance(project, dict) else None
    for name, wanted in extras.items() if isinstance(extras, dict) else ():
        if isinstance(wanted, list) and any(str(item).lower().startswith("pytest") for item in wanted):
            return str(name)
    return ""
