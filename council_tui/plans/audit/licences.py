"""Under which licence the project stands, and what it depends on: names, pins, gaps."""

from __future__ import annotations

import re
import sys
from collections import defaultdict

from council_tui.plans.audit.generated import debris, is_test, third_party
from council_tui.plans.audit.manifests import Dependency, Manifest, is_manifest, read_manifest
from council_tui.plans.audit.repo import Repo, open_repo, shown
from council_tui.plans.audit.report import Report, count, progress, run_tool

MAX_MANIFESTS = 60
LISTED = 40
_LICENCE_FILE = re.compile(r"(?i)^(licen[cs]es?|copying|unlicense)([._-][\w.-]*)?$")
_CODE = re.compile(r"(?i)\.(py|js|ts|c|h|go|rs|java|rb|sh)$")

_KNOWN = (
    ("AGPL-3.0", r"GNU AFFERO GENERAL PUBLIC LICENSE\s+Version 3"),
    ("LGPL-3.0", r"GNU LESSER GENERAL PUBLIC LICENSE\s+Version 3"),
    ("LGPL-2.1", r"GNU LESSER GENERAL PUBLIC LICENSE\s+Version 2\.1"),
    ("GPL-3.0", r"GNU GENERAL PUBLIC LICENSE\s+Version 3"),
    ("GPL-2.0", r"GNU GENERAL PUBLIC LICENSE\s+Version 2"),
    ("Apache-2.0", r"Apache License\W+Version 2\.0"),
    ("MPL-2.0", r"Mozilla Public License,? Version 2\.0|Mozilla Public License Version 2\.0"),
    ("Unlicense", r"This is free and unencumbered software released into the public domain"),
    ("CC0-1.0", r"CC0 1\.0 Universal"),
    ("BSD-3-Clause", r"Redistribution and use in source and binary forms[\s\S]*Neither the name"),
    ("BSD-2-Clause", r"Redistribution and use in source and binary forms"),
    ("ISC", r"Permission to use, copy, modify, and ?(?:or)? ?distribute this software for any"),
    ("MIT", r"Permission is hereby granted, free of charge, to any person obtaining\s+a\s+copy"),
)
"""SPDX identifiers by a phrase of the licence's own text, the narrower ones first."""

LOCKS = {
    "package.json": (
        "package-lock.json",
        "npm-shrinkwrap.json",
        "yarn.lock",
        "pnpm-lock.yaml",
        "bun.lock",
        "bun.lockb",
    ),
    "Cargo": ("Cargo.lock",),
    "go.mod": ("go.sum",),
    "pyproject": ("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml"),
}


def identify(text: str) -> str:
    """The SPDX identifier of a licence text, or an empty string when it is none of the common ones."""
    plain = re.sub(r"[\s*#>/]+", " ", text)
    return next((name for name, phrase in _KNOWN if re.search(phrase, plain, re.IGNORECASE)), "")


def _licence_files(repo: Repo, report: Report, paths: list[str], links: dict[str, str]) -> set[str]:
    top = [p for p in paths if "/" not in p and _LICENCE_FILE.match(p) and not _CODE.search(p)]
    top += [p for p in paths if re.match(r"(?i)licenses?/[^/]+$", p)]
    found: dict[str, str] = {}
    for path in top:
        found[path] = identify((repo.read(links.get(path, path), 64 * 1024) or b"").decode("utf-8", "replace"))
    if not found:
        report.add(
            "MEDIUM",
            "No licence file",
            "Without one nobody else may use, change or pass on this code; add a LICENSE at the top.",
            "git ls-files: no LICENSE, LICENCE, COPYING or UNLICENSE at the top",
        )
        return set()
    names = sorted({name for name in found.values() if name})
    report.add(
        "INFO",
        f"Licence: {', '.join(names) or 'a text of its own'}",
        f"In {', '.join(shown(p) for p in found)}.",
        [f"{shown(path)}: {name or 'not one of the common texts'}" for path, name in found.items()],
        path=shown(next(iter(found))),
    )
    return set(names)


def _same(declared: str, names: set[str]) -> bool:
    words = {re.sub(r"-(only|or-later)$|\+$", "", w) for w in re.findall(r"[A-Za-z0-9.+-]+", declared)}
    flat = {w.lower() for w in words}
    return any(name.lower() in flat or name.lower().split("-")[0] in flat for name in names)


def _declared(report: Report, manifest: Manifest, names: set[str]) -> None:
    if "/" in manifest.path or not manifest.is_package:
        return
    proof = f"{shown(manifest.path)}: license = {manifest.licence!r}"
    if not manifest.licence:
        text = "Package indexes and licence scanners read it there; add the SPDX identifier of the licence file."
        report.add("LOW", f"{shown(manifest.path)} declares no licence", text, proof, path=shown(manifest.path))
    elif names and not manifest.licence.startswith(("see ", "SEE ", "from ")) and not _same(manifest.licence, names):
        report.add(
            "MEDIUM",
            f"{shown(manifest.path)} says {manifest.licence[:60]}, the file {', '.join(sorted(names))}",
            "The two should name the same licence; whoever relies on one of them may be wrong.",
            proof,
            path=shown(manifest.path),
        )


def _listing(path: str, dependencies: list[Dependency]) -> list[str]:
    """The dependencies as evidence, a dozen a line."""
    starts = range(0, min(len(dependencies), 12 * LISTED // 2), 12)
    return [f"{path}: {_names(dependencies[start : start + 12])}" for start in starts]


def _names(dependencies: list[Dependency]) -> str:
    return ", ".join(f"{d.name} {d.constraint}".strip() for d in dependencies[:LISTED])


def _pins(report: Report, manifest: Manifest) -> None:
    path, every = shown(manifest.path), manifest.dependencies
    if not every:
        return
    holds = {hold: [d for d in every if d.hold == hold] for hold in ("pinned", "range", "open", "source")}
    words = f"{len(holds['pinned'])} pinned, {len(holds['range'])} by range"
    words += f", {len(holds['open'])} without a version"
    words += f", {len(holds['source'])} from a path or URL" if holds["source"] else ""
    title = f"{path}: {count(len(every), 'dependency', 'dependencies')}"
    report.add("INFO", title, f"{words}.", _listing(path, every), path=path)
    loose = [d for d in holds["open"] if d.group != "build"]
    # An .in or pyproject is compiled into a lock file; a .txt and package.json are installed as they are.
    if (
        loose
        and manifest.kind in ("package.json", "requirements")
        and not manifest.path.endswith(".in")
        and not is_test(manifest.path)
    ):
        report.add(
            "LOW",
            f"{path}: {count(len(loose), 'dependency', 'dependencies')} without any version",
            "Tomorrow's release is installed unseen; give each at least a lower bound: " + _names(loose),
            f"{path}: {_names(loose)}",
            path=path,
        )
    moving = [d for d in every if d.moving]
    if moving:
        text = "Whoever can push there changes what you install; name a commit: " + _names(moving)
        title = f"{path}: {count(len(moving), 'dependency', 'dependencies')} from a moving branch"
        report.add("MEDIUM", title, text, f"{path}: {_names(moving)}", path=path)


def _duplicates(report: Report, manifest: Manifest) -> None:
    groups: dict[tuple[str, str], list[Dependency]] = defaultdict(list)
    for dependency in manifest.dependencies:
        groups[dependency.group, dependency.key].append(dependency)
    # Markers may choose between several lines for one name: only an equal constraint is surely a slip.
    twice = [ds for ds in groups.values() if len({d.constraint for d in ds}) < len(ds)]
    if twice:
        text = "Listed more than once with the same constraint: " + ", ".join(ds[0].name for ds in twice)
        path = shown(manifest.path)
        report.add(
            "LOW",
            f"{path}: {count(len(twice), 'dependency', 'dependencies')} listed twice",
            text,
            f"{path}: {text}",
            path=path,
        )


def _locks(report: Report, manifests: list[Manifest], paths: set[str]) -> None:
    covered: dict[str, list[str]] = defaultdict(list)
    for manifest in manifests:
        locks = LOCKS.get(manifest.kind, ())
        places = {manifest.path.rpartition("/")[0], ""}
        there = [p for lock in locks for place in places if (p := f"{place}/{lock}".lstrip("/")) in paths]
        path = shown(manifest.path)
        if there:
            covered[there[0]].append(path)
        elif manifest.kind in ("package.json", "go.mod") and manifest.dependencies and not manifest.is_package:
            text = "Two installs can give two programs; commit the lock file of the package manager."
            proof = f"git ls-files: none of {', '.join(locks)}"
            report.add("LOW", f"{path} has no lock file", text, proof, path=path)
    for lock, users in covered.items():
        text = f"It fixes what is left open by {', '.join(users[:8])}{' and more' if len(users) > 8 else ''}."
        report.add("INFO", f"Lock file: {shown(lock)}", text, f"git ls-files: {shown(lock)}", path=shown(lock))


def _manifests(repo: Repo, report: Report, paths: list[str]) -> list[Manifest]:
    names = [p for p in paths if is_manifest(p) and not debris(p) and not third_party(p) and not _fixture(p)]
    names.sort(key=lambda path: (path.count("/"), path))
    if len(names) > MAX_MANIFESTS:
        text = f"The {MAX_MANIFESTS} nearest to the top were read."
        report.add(
            "INFO",
            f"{count(len(names), 'dependency manifest')}",
            text,
            f"git ls-files: {len(names)} manifests",
        )
    found = []
    for path in names[:MAX_MANIFESTS]:
        if data := repo.read(path):
            manifest = read_manifest(path, data)
            found.append(manifest)
            if manifest.problem:
                report.add(
                    "MEDIUM" if "/" not in path else "LOW",
                    f"{shown(path)} cannot be read",
                    f"It is not what its name says: {manifest.problem}",
                    f"{shown(path)}: {manifest.problem}",
                    path=shown(path),
                )
    return found


def _fixture(path: str) -> bool:
    folder = path.rpartition("/")[0]
    return bool(folder) and is_test(folder + "/")


def work(report: Report) -> None:
    """Fill the report with licence and dependency facts."""
    repo = open_repo()
    links = repo.links()
    paths = [entry.path for entry in repo.files()]
    progress("reading licence files")
    names = _licence_files(repo, report, [*paths, *links], links)
    progress("reading dependency manifests")
    manifests = _manifests(repo, report, paths)
    for manifest in manifests:
        _declared(report, manifest, names)
        _pins(report, manifest)
        _duplicates(report, manifest)
    _locks(report, manifests, set(paths))
    if not manifests:
        text = "No pyproject.toml, requirements*.txt, package.json, Cargo.toml or go.mod."
        report.add("INFO", "No dependency manifest found", text, "git ls-files: none")
    repo.report_skipped(report)
    todo = [f.title for f in report.findings if f.severity in ("HIGH", "MEDIUM", "LOW")]
    report.recommendation = f"Look at: {'; '.join(todo[:4])}." if todo else "Nothing to do."


if __name__ == "__main__":
    sys.exit(run_tool(work))
