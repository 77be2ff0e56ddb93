"""Lines of text on standard output: coloured on a terminal, plain elsewhere, never cut."""

from __future__ import annotations

import io
import json
import sys
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.text import Text

    from council_tui.headless.line import Line


def rendered(lines: Iterable[Text]) -> str:
    """The lines as they go to standard output. NO_COLOR is honoured."""
    if not sys.stdout.isatty():
        return "".join(f"{line.plain.rstrip()}\n" for line in lines)
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, highlight=False, emoji=False, markup=False)
    for line in lines:
        # The terminal wraps by itself, so that a path can be copied whole.
        console.print(line, soft_wrap=True)
    return out.getvalue()


def width() -> int:
    """Cells of a line: those of the terminal, or plenty where there is none."""
    return Console().width if sys.stdout.isatty() else 200


def show(lines: Iterable[Text]) -> None:
    """Print lines."""
    sys.stdout.write(rendered(lines))


def show_json(line: Line) -> None:
    """Print one object, and let it go at once: somebody may be following."""
    sys.stdout.write(line.line())
    sys.stdout.flush()


def show_value(value: object) -> None:
    """Print a JSON value for people and programs alike."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")
