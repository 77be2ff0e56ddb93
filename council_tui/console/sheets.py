"""Where the style sheets are: inside the package when installed, beside it in a checkout."""

from __future__ import annotations

from pathlib import Path, PurePath

_PACKAGE = Path(__file__).resolve().parent.parent
NAMES = ("app", "lists", "room", "screens", "dialogs")


def folder() -> Path:
    """The folder that holds the sheets; found from this file, never by scanning `sys.path`."""
    inside = _PACKAGE / "styles"
    return inside if inside.is_dir() else _PACKAGE.parent / "styles"


def paths() -> list[str | PurePath]:
    """The sheets in the order in which they apply."""
    return [folder() / f"{name}.tcss" for name in NAMES]
