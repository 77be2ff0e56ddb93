"""Reading dependency manifests: what each asks for, how tightly, and which licence it declares."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

Hold = Literal["pinned", "range", "open", "source"]
"""Exact version; some bound; none at all; a path, URL or repository."""

_REQUIREMENT = re.compile(
    r"^\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(\[[^\]]*\])?\s*(?:\(([^)]*)\)|([^;@#]*?))?\s*(@[^;]+)?(?:;.*)?$"
)
_GO = re.compile(r"^\s*(?:require\s+)?([\w.-]+\.[\w.-]+(?:/[^\s/]+)*)\s+(v\S+)\s*(//\s*indirect)?")
_COMMIT = re.compile(r"[0-9a-f]{40}|[@#]v?\d+\.\d+")


MAX_LINE = 1000
"""Characters; no honest requirement is longer, and patterns need not face what is."""


@dataclass(frozen=True)
class Dependency:
    """One asked-for package: its name as written, the constraint, the group it belongs to."""

    name: str
    constraint: str
    hold: Hold
    group: str = ""

    @property
    def key(self) -> str:
        """The name as package indexes compare it (PEP 503)."""
        return re.sub(r"[-_.]+", "-", self.name).lower()

    @property
    def moving(self) -> bool:
        """Whether it is fetched from a repository without naming a commit or a release."""
        remote = any(mark in self.constraint for mark in ("git+", "git://", "github:", ".git", "branch"))
        return self.hold == "source" and remote and not _COMMIT.search(self.constraint)


@dataclass
class Manifest:
    """One manifest: its dependencies, its declared licence, and why it could not be read."""

    path: str
    kind: str
    dependencies: list[Dependency] = field(default_factory=list)
    licence: str = ""
    problem: str = ""
    is_package: bool = False
    """Whether it describes a package of its own, which then should declare a licence."""


def _hold(constraint: str) -> Hold:
    text = constraint.strip()
    if not text or text in ("*", "latest", "x", ">=0", "any"):
        return "open"
    if any(mark in text for mark in ("://", "git+", "file:", "link:", "workspace:", "github:", "path", " @ ", "@ ")):
        return "source"
    return "pinned" if re.match(r"^={2,3}[^*]*$|^=?v?\d+(\.\d+)*([.-]?[a-z0-9+]+)*$", text) else "range"


def requirement(text: str, group: str = "") -> Dependency | None:
    """One PEP 508 line, or None when it is none."""
    match = _REQUIREMENT.match(text) if len(text) <= MAX_LINE else None
    if not match:
        return None
    constraint = (match.group(5) or match.group(3) or match.group(4) or "").strip()
    hold: Hold = "source" if match.group(5) else _hold(constraint)
    # A bare `1.2` is npm's and cargo's way to write; in a requirement it cannot occur.
    return Dependency(match.group(1), constraint, hold, group)


def _requirements_txt(manifest: Manifest, text: str) -> None:
    for raw in text.replace("\\\n", " ").splitlines():
        line = re.sub(r"(^|\s)#.*$", "", raw).strip()
        line = re.sub(r"\s--hash=\S+", "", line)
        if line.startswith(("git+", "http://", "https://", "-e ", "--editable ")):
            name = re.search(r"egg=([\w.-]+)", line)
            manifest.dependencies.append(Dependency(name.group(1) if name else line[:80], line, "source"))
        elif line and not line.startswith("-") and (found := requirement(line)):
            manifest.dependencies.append(found)


def _table(value: Any) -> dict[str, Any]:  # noqa: ANN401 - whatever the file holds
    return value if isinstance(value, dict) else {}


def _strings(value: Any) -> list[str]:  # noqa: ANN401
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _from_pairs(pairs: dict[str, Any], group: str, bare_is_range: bool) -> Iterable[Dependency]:
    for name, value in pairs.items():
        version = value if isinstance(value, str) else _table(value).get("version", "")
        table = _table(value)
        if {"git", "path", "url", "workspace"} & table.keys():
            words = " ".join(f"{k}={v}" for k, v in table.items() if isinstance(v, str))
            pinned = "@" + str(table["rev"]) if "rev" in table else ""
            yield Dependency(
                name,
                f"{words}{pinned}"
                + (" branch" if "git" in table and "rev" not in table and "tag" not in table else ""),
                "source",
                group,
            )
            continue
        constraint = str(version)
        hold = _hold(constraint)
        # In Cargo and Poetry a bare number means "compatible with", not "exactly".
        if bare_is_range and hold == "pinned" and not constraint.strip().startswith("="):
            hold = "range"
        yield Dependency(name, constraint, hold, group)


def _pyproject(manifest: Manifest, text: str) -> None:
    body = tomllib.loads(text)
    project, poetry = _table(body.get("project")), _table(_table(body.get("tool")).get("poetry"))
    manifest.is_package = bool(project.get("name") or poetry.get("name"))
    licence = project.get("license", poetry.get("license", ""))
    table = _table(licence)
    manifest.licence = licence if isinstance(licence, str) else str(table.get("text") or f"see {table.get('file')}")
    if not licence and any(s.startswith("License ::") for s in _strings(project.get("classifiers"))):
        names = [s.rpartition(" :: ")[2] for s in _strings(project.get("classifiers")) if s.startswith("License ::")]
        manifest.licence = ", ".join(names)
    groups = {"": project.get("dependencies")} | _table(project.get("optional-dependencies"))
    groups |= {f"group {k}": v for k, v in _table(body.get("dependency-groups")).items()}
    groups["build"] = _table(body.get("build-system")).get("requires")
    for group, lines in groups.items():
        manifest.dependencies += [d for line in _strings(lines) if (d := requirement(line, group))]
    sections = {"": poetry.get("dependencies"), "dev": poetry.get("dev-dependencies")}
    sections |= {k: _table(v).get("dependencies") for k, v in _table(poetry.get("group")).items()}
    for group, pairs in sections.items():
        found = _from_pairs(_table(pairs), group, bare_is_range=True)
        manifest.dependencies += [d for d in found if d.name != "python"]


def _package_json(manifest: Manifest, text: str) -> None:
    body = _table(json.loads(text))
    licence = body.get("license", body.get("licence", ""))
    manifest.licence = licence if isinstance(licence, str) else str(_table(licence).get("type", ""))
    manifest.is_package = bool(body.get("name")) and body.get("private") is not True
    for key in ("dependencies", "devDependencies", "optionalDependencies"):
        group = "" if key == "dependencies" else key.removesuffix("Dependencies")
        manifest.dependencies += _from_pairs(_table(body.get(key)), group, bare_is_range=False)


def _cargo(manifest: Manifest, text: str) -> None:
    body = tomllib.loads(text)
    package = _table(body.get("package"))
    licence = package.get("license") or (f"see {package['license-file']}" if "license-file" in package else "")
    manifest.licence = licence if isinstance(licence, str) else "from the workspace"
    manifest.is_package = bool(package.get("name")) and package.get("publish") is not False
    for key in ("dependencies", "dev-dependencies", "build-dependencies"):
        group = "" if key == "dependencies" else key.removesuffix("-dependencies")
        manifest.dependencies += _from_pairs(_table(body.get(key)), group, bare_is_range=True)


def _go_mod(manifest: Manifest, text: str) -> None:
    block = False
    for line in text.splitlines():
        if line.startswith(("require (", "require(")):
            block = True
        elif line.startswith(")"):
            block = False
        elif (block or line.startswith("require ")) and (match := _GO.match(line[:MAX_LINE])):
            group = "indirect" if match.group(3) else ""
            manifest.dependencies.append(Dependency(match.group(1), match.group(2), "pinned", group))


_READERS = (
    (re.compile(r"(^|/)pyproject\.toml$"), "pyproject", _pyproject),
    (
        re.compile(r"(?i)(^|/)(requirements[\w.-]*|[\w.-]+-requirements|constraints[\w.-]*)\.(txt|in)$"),
        "requirements",
        _requirements_txt,
    ),
    (re.compile(r"(^|/)requirements/[\w.-]+\.(txt|in)$"), "requirements", _requirements_txt),
    (re.compile(r"(^|/)package\.json$"), "package.json", _package_json),
    (re.compile(r"(^|/)Cargo\.toml$"), "Cargo", _cargo),
    (re.compile(r"(^|/)go\.mod$"), "go.mod", _go_mod),
)


def is_manifest(path: str) -> bool:
    """Whether the path names a manifest that can be read here."""
    return any(pattern.search(path) for pattern, _, _ in _READERS)


def read_manifest(path: str, data: bytes) -> Manifest:
    """Parse one manifest; what cannot be parsed is said in `problem`."""
    kind, reader = next((kind, reader) for pattern, kind, reader in _READERS if pattern.search(path))
    manifest = Manifest(path, kind)
    try:
        reader(manifest, data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        manifest.problem = f"{type(error).__name__}: {error}"
    return manifest
