"""Links, headings and anchors of a Markdown file, code left out (CommonMark, GitHub's heading anchors)."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from typing import Literal

_FENCE = re.compile(r"^[\s>]*(?:[-*+]\s+|\d+[.)]\s+)?(`{3,}|~{3,})(.*)$")
_LIST = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s")
_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_INLINE = re.compile(
    r"\]\(\s*(<[^>\n]*>|(?:[^\s()\\<]|\\.|\((?:[^\s()\\]|\\.)*\))(?:[^\s()\\]|\\.|\((?:[^\s()\\]|\\.)*\))*)"
    r"(?:\s+(?:\"[^\"]*\"|'[^']*'|\([^)]*\)))?\s*\)"
)
_DEFINITION = re.compile(r"^\s{0,3}(?:>\s?)*\[([^\]^][^\]]*)\]:\s*(<[^>]*>|\S+)")
_REFERENCE = re.compile(r"(?<![\w\])\\])!?\[((?:[^\[\]\\]|\\.){1,200})\]\[([^\[\]]{0,100})\]")
_HTML = re.compile(r"<(?:a|img|source)\b[^>]*?\b(?:href|src)\s*=\s*[\"']([^\"'>]+)[\"']", re.IGNORECASE)
_HTML_ID = re.compile(r"<[a-z][\w-]*\b[^>]*?\b(?:id|name)\s*=\s*[\"']?([^\"'\s>]+)", re.IGNORECASE)
_BARE = re.compile(r"https?://[^\s<>)\]\"']+")
_ATX = re.compile(r"^\s{0,3}(?:>\s?)*(?:[-*+]\s+)?(#{1,6})\s+(.*?)(?:\s+#+)?\s*$")
_CUSTOM_ID = re.compile(r"\s*\{:?\s*#([\w:.-]+)[^}]*\}\s*$")
_SETEXT = re.compile(r"^\s{0,3}(=+|-+)\s*$")


MAX_LINE = 10_000
"""Characters; a longer line is data, not prose, and is passed over."""


@dataclass(frozen=True)
class Link:
    """Where a link points, as written; the line counts from 1."""

    target: str
    line: int
    kind: Literal["link", "reference"] = "link"


@dataclass
class Document:
    """What one Markdown file holds."""

    links: list[Link] = field(default_factory=list)
    undefined: list[tuple[str, int]] = field(default_factory=list)
    """Labels that are used as `[text][label]` and defined nowhere, with their lines."""
    headings: list[tuple[int, str, int]] = field(default_factory=list)
    """Level, plain text, line."""
    anchors: set[str] = field(default_factory=set)
    external: int = 0
    generated: bool = False
    """A generator adds headings of its own here (mkdocstrings' `:::`)."""


def without_code(text: str) -> list[str]:
    """The lines of the text with code, comments and front matter emptied; line numbers stay true."""
    text = re.sub(r"<!--.*?(?:-->|\Z)", lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.DOTALL)
    lines, fence = [line if len(line) <= MAX_LINE else "" for line in text.split("\n")], ""
    if lines and lines[0].rstrip() == "---" and (end := _front_matter(lines)):
        lines[: end + 1] = [""] * (end + 1)
    in_list = previous_blank = indented = False
    for index, line in enumerate(lines):
        if fence:
            mark = line.lstrip(" \t>").rstrip()
            if mark and set(mark) == {fence[0]} and len(mark) >= len(fence):
                fence = ""
            lines[index] = ""
            continue
        opening = _FENCE.match(line)
        if opening and not (opening.group(1)[0] == "`" and "`" in opening.group(2)):
            fence, lines[index] = opening.group(1), ""
            continue
        blank = not line.strip()
        in_list = bool(_LIST.match(line)) or (in_list and (blank or line[0] in " \t"))
        indented = line.startswith(("    ", "\t")) and not in_list and (previous_blank or indented)
        lines[index] = "" if indented else _CODE_SPAN.sub(lambda m: " " * len(m.group()), line)
        previous_blank = blank
    return lines


def _front_matter(lines: list[str]) -> int:
    return next((n for n, line in enumerate(lines[1:60], 1) if line.rstrip() in ("---", "...")), 0)


def plain(heading: str) -> str:
    """A heading's text without images, link targets, tags and emphasis."""
    text = re.sub(r"!\[[^\]]*\](?:\([^)]*\)|\[[^\]]*\])", "", heading)
    text = re.sub(r"\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])", r"\1", text)
    return re.sub(r"<[^>]+>", "", text).replace("`", "").replace("*", "").strip()


def slug(heading: str) -> str:
    """GitHub's anchor for a heading: lower case, punctuation dropped, spaces to dashes."""
    kept = (c for c in plain(heading).lower() if c in "-_ " or unicodedata.category(c)[0] in "LNM")
    return "".join(kept).replace(" ", "-")


def parse(text: str) -> Document:
    """Read one file. Never fails: what is no Markdown holds no links."""
    document, raw = Document(), text.split("\n")
    lines = without_code(text)
    document.generated = any(line.startswith("::: ") for line in lines)
    labels: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        _headings(document, lines, raw, number)
        document.anchors.update(m.lower() for m in _HTML_ID.findall(line))
        if definition := _DEFINITION.match(line):
            labels[_label(definition.group(1))] = definition.group(2)
            document.links.append(Link(_bare(definition.group(2)), number, "reference"))
            continue
        found = [m.group(1) for m in _INLINE.finditer(line)] + _HTML.findall(line)
        document.links += [Link(_bare(target), number) for target in found]
        document.external += len(_BARE.findall(_INLINE.sub("", _HTML.sub("", line))))
    for number, line in enumerate(lines, 1):
        for match in _REFERENCE.finditer(line):
            label = match.group(2) or match.group(1)
            if _label(label) not in labels and not label.startswith("^"):
                document.undefined.append((label, number))
    return document


def _bare(target: str) -> str:
    return target[1:-1] if target.startswith("<") and target.endswith(">") else target


def _label(text: str) -> str:
    return " ".join(text.split()).casefold()


def _headings(document: Document, lines: list[str], raw: list[str], number: int) -> None:
    line = lines[number - 1]
    title, level = "", 0
    if match := _ATX.match(line):
        # The anchor keeps the text of code spans, which were emptied here.
        original = _ATX.match(raw[number - 1])
        title, level = (original or match).group(2), len(match.group(1))
    elif number > 1 and _SETEXT.match(line) and lines[number - 2].strip() and not _LIST.match(lines[number - 2]):
        title, level = raw[number - 2].strip(), 1 if line.strip().startswith("=") else 2
    if not level:
        return
    if custom := _CUSTOM_ID.search(title):
        document.anchors.add(custom.group(1).lower())
        title = title[: custom.start()]
    base = anchor = slug(title)
    repeat = 0
    while anchor in document.anchors:
        repeat += 1
        anchor = f"{base}-{repeat}"
    document.anchors.add(anchor)
    document.headings.append((level, title, number))
