"""YAML with the line of every value, so that a mistake can be named where it was written.

The safe subset only: no tags beyond the plain types, no duplicate keys, and bounded nesting and alias
expansion, because a plan may come from a stranger.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml
from yaml.constructor import SafeConstructor

from council_tui.domain.errors import Mistake
from council_tui.domain.text import safe

if TYPE_CHECKING:
    from collections.abc import Iterator

Path = tuple[str | int, ...]
"""The way to a value from the top of the file: keys and positions."""

MAX_NODES = 100_000
"""Values in a document after its aliases are expanded."""
MAX_DEPTH = 40
"""Levels of nesting; the deepest sensible plan needs about twelve."""

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_SCALARS = frozenset(_TAG + name for name in ("str", "int", "float", "bool", "null", "timestamp"))
_MERGE = _TAG + "merge"


class Unreadable(Exception):
    """The text is no document that can be checked at all; `mistake` says why."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.mistake = Mistake("plan", message, line)


@dataclass
class Notes:
    """Mistakes as they are found, each with its place in the file; none is noted twice."""

    lines: dict[Path, int] = field(default_factory=dict)
    found: dict[tuple[str, str], Mistake] = field(default_factory=dict)

    def line(self, path: Path) -> int | None:
        """The line of a value, or of the nearest thing around it that was written."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.lines:
                return self.lines[path[:end]]
        return None

    def add(self, path: Path, message: str, line: int | None = None) -> None:
        """Note one mistake."""
        name = dotted(path)
        self.found.setdefault((name, message), Mistake(name, message, line or self.line(path)))

    def sorted(self) -> list[Mistake]:
        """All mistakes in the order of the file."""
        return sorted(self.found.values(), key=lambda m: m.line or 0)


def dotted(path: Path) -> str:
    """A path as people write it: `children[2].envelope.tools_scope`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += ("." if text else "") + safe(step, 80)
    return text or "plan"


def read_yaml(text: str) -> tuple[Any, Notes]:
    """The document's plain values and the notes made while reading it. Raises `Unreadable`."""
    try:
        _check_depth(text)
        nodes = list(yaml.compose_all(text, Loader=_LOADER))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise Unreadable(_syntax(error), mark.line + 1 if mark else None) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1 if isinstance(error.position, int) else None
        raise Unreadable("has a character that YAML does not allow; take it out or escape it", line) from None
    if not nodes:
        raise Unreadable("is empty; expected a fleet plan that begins with 'council: 1'")
    if len(nodes) > 1:
        raise Unreadable("holds more than one document; expected one plan a file", nodes[1].start_mark.line + 1)
    reader = _Reader()
    value = reader.value(nodes[0], ())
    return value, reader.notes


def _syntax(error: yaml.MarkedYAMLError) -> str:
    problem = safe(error.problem or "cannot be read", 200)
    context = f" ({safe(error.context, 200)})" if error.context else ""
    return f"is not valid YAML: {problem}{context}"


def _line(part: yaml.Node | yaml.Event) -> int:
    mark = part.start_mark
    return 1 if mark is None else mark.line + 1


def _check_depth(text: str) -> None:
    """Look at the nesting before anything recurses into it."""
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise Unreadable(f"is nested deeper than {MAX_DEPTH} levels", _line(event))
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


class _Reader:
    """Turns the node tree into plain values, counting every value an alias brings in again."""

    def __init__(self) -> None:
        self.notes = Notes()
        self._count = 0
        self._scalars = SafeConstructor()

    def value(self, node: yaml.Node, path: Path) -> Any:  # noqa: ANN401 - whatever the document holds
        self._count += 1
        line = _line(node)
        if self._count > MAX_NODES:
            raise Unreadable(f"holds more than {MAX_NODES} values, with its aliases expanded; make it smaller", line)
        if len(path) > MAX_DEPTH:
            raise Unreadable(f"is nested deeper than {MAX_DEPTH} levels, or an alias holds itself", line)
        self.notes.lines.setdefault(path, line)
        if isinstance(node, yaml.MappingNode) and node.tag == _TAG + "map":
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode) and node.tag == _TAG + "seq":
            return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode) and node.tag in _SCALARS:
            return self._scalar(node, path)
        self.notes.add(path, f"the tag {safe(node.tag, 80)} is not allowed; write plain YAML")
        return None

    def _scalar(self, node: yaml.ScalarNode, path: Path) -> Any:  # noqa: ANN401
        text = str(node.value)
        if any(char == "\0" or "\ud800" <= char <= "\udfff" for char in text):
            self.notes.add(path, "holds a character that no program can be given (NUL or half a surrogate pair)")
            return "unreadable"
        if node.tag == _TAG + "timestamp":
            return text
        try:
            return self._scalars.construct_object(node)
        except (ValueError, yaml.YAMLError):
            self.notes.add(path, f"{safe(text, 40)!r} cannot be read as a value; put it in quotes")
            return text

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        out: dict[str, Any] = {}
        written: dict[str, int] = {}
        for key_node, value_node, own in self._pairs(node, path, 0):
            line = _line(key_node)
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag != _TAG + "str":
                self.notes.add(path, "has a key that is no text; put it in quotes", line)
                continue
            key = str(key_node.value)
            if key not in written:
                written[key] = line
                self.notes.lines[(*path, key)] = line
                out[key] = self.value(value_node, (*path, key))
            elif own:
                self.notes.add((*path, key), f"is written twice; the first is in line {written[key]}", line)
        return out

    def _pairs(self, node: yaml.MappingNode, path: Path, level: int) -> Iterator[tuple[yaml.Node, yaml.Node, bool]]:
        """Key and value nodes, and whether they were written here: first these, then what `<<` brings in."""
        if level > MAX_DEPTH:
            raise Unreadable("merges itself with '<<'", _line(node))
        sources: list[yaml.Node] = []
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                sources += value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]
            else:
                yield key_node, value_node, level == 0
        for source in sources:
            if isinstance(source, yaml.MappingNode):
                self._count += len(source.value)
                yield from self._pairs(source, path, level + 1)
            else:
                self.notes.add(path, "'<<' takes a mapping or a list of mappings", _line(source))
