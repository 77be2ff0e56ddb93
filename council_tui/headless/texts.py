"""`council report`, `plans` and `schema`: texts that lie ready."""

from __future__ import annotations

import sys
from importlib import resources
from typing import TYPE_CHECKING

from rich.text import Text

from council_tui.domain.errors import CouncilError
from council_tui.domain.text import safe
from council_tui.headless.printing import show, show_value
from council_tui.headless.signs import STRONG

if TYPE_CHECKING:
    from council_tui.board.home import Home


def report(home: Home) -> int:
    """The Markdown report that was written last."""
    from council_tui.control.reading import newest_report

    path = newest_report(home)
    for line in path.read_text(encoding="utf-8").splitlines():
        sys.stdout.write(safe(line, 20_000) + "\n")
    return 0


def plans(name: str | None) -> int:
    """The shipped plans, or one of them as YAML."""
    from council_tui.fleet.plan import shipped_plans, shipped_summary
    from council_tui.fleet.words import nearest

    names = shipped_plans()
    if name is None:
        longest = max(map(len, names))
        show(Text.assemble((f"{known:<{longest}}  ", STRONG), shipped_summary(known)) for known in names)
        return 0
    if name not in names:
        guess = nearest(name, names) or f"; there are: {', '.join(names)}"
        raise CouncilError(f"there is no shipped plan {safe(name, 60)!r}{guess}")
    sys.stdout.write(resources.files("council_tui.plans").joinpath(f"{name}.yaml").read_text("utf-8"))
    return 0


def schema() -> int:
    """The JSON Schema of every line that `--json` prints."""
    from council_tui.headless import lines

    show_value(lines.schema())
    return 0
