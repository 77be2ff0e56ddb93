"""Broken relative links, images and anchors in the project's Markdown files. Nothing is fetched."""

from __future__ import annotations

import difflib
import posixpath
import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from urllib.parse import unquote

from council_tui.plans.audit.generated import debris, third_party
from council_tui.plans.audit.markdown import Document, Link, parse
from council_tui.plans.audit.repo import Entry, Repo, open_repo, shown
from council_tui.plans.audit.report import Report, Severity, count, progress, run_tool

MARKDOWN = (".md", ".markdown", ".mdown", ".mkd")
IMAGE = re.compile(r"(?i)\.(png|jpe?g|gif|svg|webp|bmp|ico|mp4|webm)$")
_SCHEME = re.compile(r"(?i)^[a-z][a-z0-9+.-]*:|^//")
_TEMPLATE = re.compile(r"\{[{%]|<%|\$\{|\$\(|^\{|^@|^%|\{\w+\}|^<|^\.\.\.$|^(url|link|path|href|src)$", re.IGNORECASE)
_FIXTURE = re.compile(
    r"(?i)(^|/)(tests?|testdata|test_data|fixtures?|__tests__|spec|snapshots?|templates?|snippets?|_?includes?|_?partials?)/"
)
_OLD = re.compile(r"(?i)(^|/)(change(s|log)|history|news|releases?|archive)([\w.-]*)(/|$)")
_SITE = re.compile(
    r"(^|/)(mkdocs[\w.-]*\.ya?ml|docusaurus\.config\.\w+|_config\.ya?ml|conf\.py|book\.toml|hugo\.toml|\.vitepress/config\.\w+"
    r"|astro\.config\.\w+|_quarto\.ya?ml|zensical\.toml|antora\.yml|hugo\.ya?ml|gatsby-config\.\w+|mint\.json)$"
)


@dataclass
class Tree:
    """What a link can point to: files, folders, mounted repositories, and the anchors of Markdown files."""

    files: set[str]
    folders: set[str]
    opaque: tuple[str, ...]
    """Submodules and symbolic links to folders: below them everything is taken as existing."""
    documents: dict[str, Document] = field(default_factory=dict)
    sites: tuple[str, ...] = ()
    """Folders with the configuration of a site generator, which has links of its own making."""

    def in_site(self, source: str) -> bool:
        """Whether a generator may turn the file into a page; files at the top are read where they are."""
        return "/" in source and any(not site or source.startswith(site + "/") for site in self.sites)

    def find(self, path: str, *, site: bool = False) -> str | None:
        """The file or folder that the path names, if any; in a site also the page of that address."""
        if path in self.files or path in self.folders or path in (".", ""):
            return path
        if any(path == place or path.startswith(place + "/") for place in self.opaque):
            return path
        if site:
            stem = re.sub(r"(/|/index\.html|\.html)$", "", path)
            for candidate in (
                f"{stem}.md",
                f"{stem}.mdx",
                f"{stem}/index.md",
                f"{stem}/README.md",
                f"{stem}/_index.md",
            ):
                if candidate in self.files:
                    return candidate
        return None


def build_tree(repo: Repo, entries: list[Entry]) -> Tree:
    """The tree as others will see it: what git tracks, and what it would add."""
    every = repo.tracked() + [e for e in entries if not e.tracked]
    files = {e.path for e in every}
    folders = {parent for path in files for parent in _parents(path)}
    opaque = (*repo.submodules(), *(e.path for e in every if e.mode == "120000"))
    return Tree(files, folders, opaque, sites=_sites(files))


def _sites(files: set[str]) -> tuple[str, ...]:
    return tuple(sorted({path[: match.start()] for path in files if (match := _SITE.search(path))}))


def _parents(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[: n + 1]) for n in range(len(parts))]


def suggestion(tree: Tree, wanted: str) -> str:
    """A file that was probably meant: other case, moved elsewhere, or nearly the same name beside it."""
    folded = wanted.lower()
    folder, _, name = wanted.rpartition("/")
    for path in tree.files:
        if path.lower() == folded:
            return path
    same = sorted(p for p in tree.files if name and p.rpartition("/")[2] == name)
    if same and len(same) <= 3:
        return same[0]
    beside = [p for p in tree.files if p.rpartition("/")[0] == folder]
    near = difflib.get_close_matches(wanted, beside, n=1, cutoff=0.8)
    return near[0] if near else ""


@dataclass
class Checker:
    """Checks one link after the other and counts what it passes over."""

    tree: Tree
    report: Report
    counts: Counter[str] = field(default_factory=Counter)

    def check(self, source: str, link: Link) -> None:
        """Look one link of the file `source` up; a broken one becomes a finding."""
        target = link.target.strip().replace("\\", "")
        if _SCHEME.match(target):
            self.counts["external"] += target.lower().startswith(("http", "//"))
            return
        if not target or _TEMPLATE.search(target):
            self.counts["templates"] += 1
            return
        self.counts["checked"] += 1
        raw, _, anchor = target.partition("#")
        path = unquote(raw.partition("?")[0])
        if not path:
            self._anchor(source, link, source, anchor)
            return
        places = self._places(source, path)
        if not places:
            self.counts["checked"] -= 1
            self.counts["beyond"] += 1
            return
        site = self.tree.in_site(source)
        found = next((f for place in places if (f := self.tree.find(place, site=site)) is not None), None)
        if found is None:
            self._broken(source, link, places[0])
        elif anchor:
            self._anchor(source, link, found, anchor)

    def _places(self, source: str, path: str) -> list[str]:
        """Where the path may lead, from the top of the repository; empty when it leaves it."""
        folder, site = posixpath.dirname(source), self.tree.in_site(source)
        if path.startswith("/"):
            # From the top of the repository on a hosting service, of the site on a generated one.
            top = posixpath.normpath(path.lstrip("/") or ".")
            return [] if site and self.tree.find(top, site=True) is None else [top]
        joined = [posixpath.normpath(posixpath.join(folder, path))]
        if joined[0] == ".." or joined[0].startswith("../"):
            return []
        if site:
            # A page guide.md is served as guide/, so its links may count from there.
            page = posixpath.splitext(posixpath.basename(source))[0]
            joined.append(posixpath.normpath(posixpath.join(folder, page, path)))
        return joined

    def _broken(self, source: str, link: Link, place: str) -> None:
        kind = "image" if IMAGE.search(place) else "link"
        meant = suggestion(self.tree, place)
        hint = f" Was {shown(meant)} meant?" if meant else ""
        severity: Severity = "LOW" if _OLD.search(source) or self.tree.in_site(source) else "MEDIUM"
        self._add(
            severity,
            f"Broken {kind}: {link.target}",
            f"{shown(place)} does not exist.{hint}",
            source,
            link.line,
        )

    def _anchor(self, source: str, link: Link, target: str, anchor: str) -> None:
        document = self.tree.documents.get(target)
        wanted = unquote(anchor).lower().removeprefix("user-content-")
        if document is None or document.generated or wanted in ("", "top") or wanted in document.anchors:
            return
        if self.tree.in_site(target) and _squeezed(wanted) in {_squeezed(a) for a in document.anchors}:
            return
        near = difflib.get_close_matches(wanted, document.anchors, n=1, cutoff=0.6)
        hint = f" Was #{near[0]} meant?" if near else ""
        text = f"{shown(target)} has no heading or id #{wanted}.{hint}"
        self._add("LOW", f"Broken anchor: {link.target}", text, source, link.line)

    def _add(self, severity: Severity, title: str, text: str, source: str, line: int) -> None:
        place = shown(source)
        self.report.add(severity, title, f"In {place}, line {line}: {text}", f"{place}:{line}: {title}", place, line)

    def undefined(self, source: str, document: Document) -> None:
        """Report reference links whose label is defined nowhere in the file."""
        if self.tree.in_site(source):
            # Site generators resolve such labels from an index of their own.
            return
        for label, line in document.undefined[:10]:
            title = f"Undefined reference: [{label}]"
            self._add("LOW", title, f"No line `[{label}]: …` says where it leads.", source, line)


def _squeezed(anchor: str) -> str:
    """Site generators agree on the words of an anchor, not on the dashes between them."""
    return re.sub(r"[-_.]+", "-", anchor).strip("-")


def work(report: Report) -> None:
    """Fill the report with links that lead nowhere."""
    repo = open_repo()
    entries = repo.files()
    tree = build_tree(repo, entries)
    names = [e.path for e in entries if e.path.lower().endswith(MARKDOWN)]
    names = [n for n in names if not debris(n) and not third_party(n)]
    progress(f"reading {count(len(names), 'Markdown file')}")
    for name in names:
        if data := repo.read(name):
            tree.documents[name] = parse(data.decode("utf-8-sig", "replace"))
    checker = Checker(tree, report)
    for name, document in tree.documents.items():
        if _FIXTURE.search(name):
            continue
        for link in document.links:
            checker.check(name, link)
        checker.undefined(name, document)
        checker.counts["external"] += document.external
    _overview(report, checker, len(names))
    repo.report_skipped(report)
    bad = sum(1 for f in report.findings if f.severity != "INFO")
    report.recommendation = f"Repair {count(bad, 'broken link')}." if bad else "Nothing to do: no broken link."


def _overview(report: Report, checker: Checker, files: int) -> None:
    counts = checker.counts
    passed = [f"{counts['external']:,} external (not fetched)"]
    passed += [f"{counts['templates']:,} from templates"] if counts["templates"] else []
    passed += (
        [f"{counts['beyond']:,} that lead out of the repository or into a generated site"] if counts["beyond"] else []
    )
    text = f"{count(counts['checked'], 'relative link')} checked; not checked: {', '.join(passed)}."
    report.add(
        "INFO",
        f"{count(files, 'Markdown file')}, {count(counts['checked'], 'relative link')} checked",
        text,
        text,
    )


if __name__ == "__main__":
    sys.exit(run_tool(work))
