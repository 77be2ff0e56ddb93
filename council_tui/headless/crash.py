"""A fault of ours, told so that it can be reported: what and where, without values that could hold a secret."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

from council_tui import __version__
from council_tui.domain.text import safe

FRAMES = 8
_PACKAGE = Path(__file__).resolve().parent.parent


def crash_report(error: BaseException) -> str:
    """The kind of the error, its text and the last places in the code; no locals, no environment."""
    lines = [
        f"council: internal error: {type(error).__name__}: {safe(str(error), 300)}",
        f"  council {__version__}, Python {sys.version.split()[0]}, {sys.platform}",
    ]
    for frame in traceback.extract_tb(error.__traceback__)[-FRAMES:]:
        path = Path(frame.filename)
        inside = path.is_relative_to(_PACKAGE)
        shown = path.relative_to(_PACKAGE.parent) if inside else path.name
        lines.append(f"  {shown}:{frame.lineno} in {frame.name}")
    return "\n".join(lines) + "\n"
