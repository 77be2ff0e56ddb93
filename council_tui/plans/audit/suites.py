"""Which test suites a project has, and how each is run without leaving anything in the project."""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from council_tui.plans.audit.pythons import find_python

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from council_tui.plans.audit.pythons import Python
    from council_tui.plans.audit.repo import Repo

_NO_TEST = re.compile(r"no test specified")
_PY_TEST = re.compile(r"(^|/)(test_[^/]*|[^/]*_test)\.py$")


@dataclass(frozen=True)
class Suite:
    """One test suite: what it is, the command, why it exists, or what is missing to run it."""

    name: str
    argv: tuple[str, ...]
    because: str
    missing: str = ""
    """What is not there, like `cargo is not installed`; empty when the command can be run."""
    advice: str = ""
    """One sentence: how to get what is missing."""
    python: Python | None = None
    """For a suite that runs in a Python."""

    @property
    def shown(self) -> str:
        """The command as a person would type it, without the switches that only keep the project clean."""
        plain = [
            word for word in self.argv if word not in ("-p", "no:cacheprovider") and not word.startswith("--junitxml")
        ]
        return " ".join([self.python.shown, *plain[1:]] if self.python else plain)


def _text(repo: Repo, path: str) -> str:
    return (repo.read(path) or b"").decode("utf-8", "replace")


def _why_pytest(repo: Repo, names: set[str]) -> str:
    for name, mark in (
        ("pytest.ini", "["),
        ("pytest.toml", "["),
        (".pytest.toml", "["),
        ("pyproject.toml", "[tool.pytest"),
        ("tox.ini", "[pytest]"),
        ("setup.cfg", "[tool:pytest]"),
    ):
        if name in names and mark in _text(repo, name):
            return f"{name} has a section {mark.strip('[]')}" if mark != "[" else name
    if "conftest.py" in names or "tests/conftest.py" in names:
        return "conftest.py"
    found = next((n for n in sorted(names) if _PY_TEST.search(n) and n.split("/")[0] in ("test", "tests")), "")
    return found or next((n for n in sorted(names) if _PY_TEST.search(n) and "/" not in n), "")


def pytest_suite(repo: Repo, names: set[str], scratch: Path) -> Suite | None:
    """pytest, in the project's own environment if it has one, else in `python3`."""
    because = _why_pytest(repo, names)
    if not because:
        return None
    python, usable = find_python(repo, names, toolchain_environment(scratch))
    flags = ("-p", "no:cacheprovider", f"--junitxml={scratch / 'pytest.xml'}")
    argv = (python.program, "-m", "pytest", *flags)
    if usable:
        return Suite("pytest", argv, because, python=python)
    advice = f"Install it with `{python.install('pytest')}`."
    return Suite("pytest", argv, because, f"pytest is not installed in {python.place}", advice, python)


def npm_suite(repo: Repo, names: set[str], scratch: Path) -> Suite | None:
    """The `test` script of package.json, with the package manager whose lock file is there."""
    if "package.json" not in names:
        return None
    script = _package_script(_text(repo, "package.json"))
    if not script or _NO_TEST.search(script):
        return None
    locks = (("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lock", "bun"), ("bun.lockb", "bun"))
    manager = next((tool for lock, tool in locks if lock in names), "npm")
    missing, advice = _unless_there(manager, f"Install Node.js and {manager}.")
    wants = "ependencies" in _text(repo, "package.json")
    if not missing and wants and not os.path.isdir(os.path.join(repo.root, "node_modules")):
        missing, advice = "the packages of package.json are not installed", f"Install them with `{manager} install`."
    because = f'package.json: "test": "{script}"'
    return Suite(f"{manager} test", (manager, "run", "test"), because, missing, advice)


def _unless_there(program: str, advice: str) -> tuple[str, str]:
    return ("", "") if shutil.which(program) else (f"{program} is not installed", advice)


def _package_script(text: str) -> str:
    try:
        body: Any = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    scripts = body.get("scripts") if isinstance(body, dict) else None
    script = scripts.get("test") if isinstance(scripts, dict) else None
    return script if isinstance(script, str) else ""


def cargo_suite(repo: Repo, names: set[str], scratch: Path) -> Suite | None:
    """`cargo test`, offline, with its build results outside the project."""
    if "Cargo.toml" not in names:
        return None
    argv: tuple[str, ...] = (
        "cargo",
        "test",
        "--offline",
        "--no-fail-fast",
        "--target-dir",
        str(scratch / "target"),
    )
    if "Cargo.lock" in names:
        argv = (*argv, "--locked")
    return Suite("cargo test", argv, "Cargo.toml", *_unless_there("cargo", "Install Rust from https://rustup.rs."))


def go_suite(repo: Repo, names: set[str], scratch: Path) -> Suite | None:
    """`go test ./...` with one JSON event a line."""
    if "go.mod" not in names or not any(name.endswith("_test.go") for name in names):
        return None
    missing = _unless_there("go", "Install Go from https://go.dev/dl.")
    return Suite("go test", ("go", "test", "-json", "./..."), "go.mod and *_test.go files", *missing)


def make_suite(repo: Repo, names: set[str], scratch: Path) -> Suite | None:
    """`make test`, where nothing more specific was found."""
    for name in ("Makefile", "makefile", "GNUmakefile"):
        if name in names and re.search(r"(?m)^test\s*:(?!=)", _text(repo, name)):
            missing = _unless_there("make", "Install it with your system's package manager.")
            return Suite("make test", ("make", "test"), f"{name}: target test", *missing)
    return None


_FINDERS: tuple[Callable[[Repo, set[str], Path], Suite | None], ...] = (
    pytest_suite,
    npm_suite,
    cargo_suite,
    go_suite,
)


def find_suites(repo: Repo, scratch: Path) -> list[Suite]:
    """The suites at the top of the project; `scratch` is where they may write."""
    names = {entry.path for entry in repo.files()}
    found = [suite for finder in _FINDERS if (suite := finder(repo, names, scratch))]
    if not found and (suite := make_suite(repo, names, scratch)):
        found.append(suite)
    return found


def toolchain_environment(scratch: Path) -> dict[str, str]:
    """The environment of a test run: caches go to `scratch`, installed toolchains are found, no downloads."""
    home = os.path.expanduser("~" + _user())
    own = {
        "PYTHONDONTWRITEBYTECODE": "1",
        "COVERAGE_FILE": str(scratch / "coverage"),
        "GOCACHE": str(scratch / "go-build"),
        "GOPROXY": "off",
        "GOFLAGS": "-mod=readonly",
        "npm_config_update_notifier": "false",
        "npm_config_cache": str(scratch / "npm"),
        "NO_UPDATE_NOTIFIER": "1",
        "CI": "1",
        "TMPDIR": str(scratch),
    }
    # The body's HOME is private and empty: without these, installed toolchains would look missing.
    places = {
        "CARGO_HOME": ".cargo",
        "RUSTUP_HOME": ".rustup",
        "GOMODCACHE": "go/pkg/mod",
        "PYTHONUSERBASE": ".local",
    }
    known = {key: os.path.join(home, rest) for key, rest in places.items()}
    # What this program was told about its own run and its own supervisor is not the tests' business.
    passed = {k: v for k, v in os.environ.items() if not k.startswith(("COUNCIL_", "NOTIFY_", "WATCHDOG_", "GIT_"))}
    return {k: v for k, v in known.items() if os.path.isdir(v)} | passed | own


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        print(f"user {os.getuid()} has no entry in the password file", file=sys.stderr)
        return ""
