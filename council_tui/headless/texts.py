"""`council report`, `plans` and `schema`: texts that lie ready."""

from __future__ import annotations

import shlex
import sys
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from council_tui.domain.errors import CouncilError
from council_tui.domain.text import safe
from council_tui.headless.line import now
from council_tui.headless.machine_lines import ReportLine, ShippedLine
from council_tui.headless.printing import show, show_json, show_value
from council_tui.headless.signs import STRONG

if TYPE_CHECKING:
    from council_tui.board.home import Home


def report(home: Home, *, json: bool) -> int:
    """The Markdown report that was written last."""
    from council_tui.control.reading import newest_report

    path = newest_report(home)
    text = path.read_text(encoding="utf-8")
    if json:
        show_json(ReportLine(seq=0, at=now(), path=str(path), markdown=text))
        return 0
    for line in text.splitlines():
        sys.stdout.write(safe(line, 20_000) + "\n")
    return 0


def plans(name: str | None, *, json: bool) -> int:
    """The shipped plans, or one of them as YAML."""
    from council_tui.fleet.plan import shipped_plans, shipped_summary
    from council_tui.fleet.words import nearest

    names = shipped_plans()
    if name is not None and name not in names:
        guess = nearest(name, names) or f"; there are: {', '.join(names)}"
        raise CouncilError(f"there is no shipped plan {safe(name, 60)!r}{guess}")
    text = resources.files("council_tui.plans").joinpath(f"{name}.yaml").read_text("utf-8") if name else None
    if json:
        for known in [name] if name else names:
            show_json(ShippedLine(seq=0, at=now(), name=known, summary=shipped_summary(known), yaml=text))
    elif text is not None:
        sys.stdout.write(text)
    else:
        longest = max(map(len, names))
        show(Text.assemble((f"{known:<{longest}}  ", STRONG), shipped_summary(known)) for known in names)
    return 0


_UNIT = """\
# systemd user unit; keep it as ~/.config/systemd/user/council.service, then:
#   systemctl --user daemon-reload && systemctl --user enable --now council
# `council --home {plain}` attaches to it.
[Unit]
Description=council, the control room for a fleet of AI agents

[Service]
Type=notify
NotifyAccess=main
ExecStart={command}
WorkingDirectory={folder}
# Every process of the fleet goes with the service, whatever it did to get away.
KillMode=control-group
# Limits of a contract (memory, processes, cores) are held by control groups below the service's own.
Delegate=yes
DelegateSubgroup=council
TimeoutStopSec=90
WatchdogSec=30
Restart=on-failure
RestartSec=1

[Install]
WantedBy=default.target
"""


def _quoted(argument: str) -> str:
    """An argument as systemd.service(5) reads it back."""
    escaped = argument.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'


def unit(home: Home) -> int:
    """A systemd user unit that runs the council of a home."""
    command = (sys.executable, "-m", "council_tui", "--home", str(home.root), "serve")
    folder = str(Path.cwd()).replace("%", "%%")
    text = _UNIT.format(command=" ".join(map(_quoted, command)), folder=folder, plain=shlex.quote(str(home.root)))
    sys.stdout.write(text)
    return 0


def schema() -> int:
    """The JSON Schema of every line that `--json` prints."""
    from council_tui.headless import lines

    show_value(lines.schema())
    return 0
