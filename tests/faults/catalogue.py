"""The index of the failure catalogue, kept in the docstrings of the files that show its rows.

    row NN: tests/supervisor/test_reaper.py::test_name, ::test_name_in_this_file
    row NN: cannot occur: why not

A line that is indented goes on with the one before it; `own NAME:` and `item NAME:` are written alike.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
_ENTRY = re.compile(r"((?:row|own|item) [^:]+):(?: |$)")
_TARGET = re.compile(r"(?P<file>[\w./-]*)::(?P<name>\w+)")
CANNOT = "cannot occur: "


def index_of(file: str | Path) -> dict[str, str]:
    """What the docstring of a file says of each row, own finding and item, by its name (`row 26`)."""
    entries: dict[str, str] = {}
    name = ""
    for line in (ast.get_docstring(ast.parse(Path(file).read_text())) or "").splitlines():
        if found := _ENTRY.match(line):
            name = found[1]
            assert name not in entries, f"{name} is told twice"
            entries[name] = line[found.end() :]
        elif name and line.startswith(" "):
            entries[name] = f"{entries[name]} {line.strip()}".strip()
        else:
            name = ""
    return entries


def tests_of(file: Path) -> set[str]:
    """The names of the tests in a file, without importing it."""
    if not file.is_file():
        return set()
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, functions)}


def mistakes(file: str | Path, rows: range) -> list[str]:
    """What is wrong with an index: a row that is not told, a test that does not exist, a reason that is none."""
    entries = index_of(file)
    found = [f"row {row:02} is not told" for row in rows if f"row {row:02}" not in entries]
    for name, said in entries.items():
        if said.startswith(CANNOT):
            found += [f"{name}: why?"] if len(said) < len(CANNOT) + 10 else []
            continue
        targets = [part.strip() for part in said.split(",")]
        for target in targets:
            parts = _TARGET.fullmatch(target)
            where = Path(file) if parts is None or not parts["file"] else ROOT / parts["file"]
            if parts is None or parts["name"] not in tests_of(where) or not parts["name"].startswith("test_"):
                found.append(f"{name}: there is no test {target}")
    return found
