"""`council doctor`: what this machine can hold a program to, how large a fleet it carries, and what wants mending.

It looks only: nothing is made, and the one program that it starts, to try the namespaces, is over before it
answers.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import TYPE_CHECKING

from rich.text import Text

from council_tui.board.home import network_file_system
from council_tui.domain.errors import CouncilError
from council_tui.domain.text import safe
from council_tui.headless.line import now
from council_tui.headless.machine import (
    OPEN_FILES,
    home_part,
    leftovers,
    limits_part,
    me,
    terminal_part,
    tier_part,
    versions_part,
)
from council_tui.headless.machine_lines import DoctorLine
from council_tui.headless.printing import show, show_json
from council_tui.headless.signs import BAD, GOOD, LATE, QUIET, STRONG, signs_for
from council_tui.runner import guard
from council_tui.supervisor.limits import find_tier

if TYPE_CHECKING:
    from collections.abc import Iterator

    from council_tui.board.home import Home
    from council_tui.headless.machine_lines import HomePart, LimitsPart, ProcessPart, TerminalPart, VersionsPart
    from council_tui.headless.signs import Signs

WAL_SAFE = (3, 51, 3)
"""The first SQLite without the WAL-reset bug."""
NARROWEST = (80, 24)
_NAME = 12


def examine(home: Home) -> DoctorLine:
    """Look at everything once."""
    tier = find_tier()
    versions, terminal = versions_part(tier, version("textual")), terminal_part()
    place = home_part(home)
    left, unread = leftovers(home) if place.owner is None else ([], "")
    return DoctorLine(
        seq=0,
        at=now(),
        tier=tier_part(tier),
        versions=versions,
        terminal=terminal,
        limits=limits_part(strong=tier.strong),
        home=place,
        leftovers=left,
        notes=list(_notes(versions, terminal)),
        problems=[*_ground(home), *_problems(place, left), *([unread] if unread else [])],
    )


def _notes(versions: VersionsPart, terminal: TerminalPart) -> Iterator[str]:
    if tuple(map(int, versions.sqlite.split("."))) < WAL_SAFE:
        yield (
            f"SQLite {versions.sqlite} has the WAL-reset bug, which needs two writers at once; "
            "a council has a single writer, so nothing has to be done"
        )
    if terminal.columns is not None and terminal.rows is not None:
        wide, high = NARROWEST
        if terminal.columns < wide or terminal.rows < high:
            yield f"the control room shows more from {wide}x{high} cells on"
    if "utf" not in terminal.encoding.lower():
        yield "the locale is not UTF-8; signs are drawn with ASCII"


def _ground(home: Home) -> Iterator[str]:
    """What no council could stand on."""
    try:
        guard.boot_id()
    except CouncilError as error:
        yield str(error)
    there = next((folder for folder in (home.root, *home.root.parents) if folder.exists()), home.root)
    if kind := network_file_system(there):
        yield f"{safe(str(home.root), 400)} lies on a network file system ({kind}); choose another home with --home"


def _problems(place: HomePart, left: list[ProcessPart]) -> Iterator[str]:
    path = safe(place.path, 400)
    if not place.writable:
        yield f"{path} cannot be written to; choose another home with --home, or mend its permissions"
    if place.user is not None and place.user != me():
        yield f"{path} belongs to {place.user}; choose another home with --home"
    if place.mode is not None and int(place.mode, 8) & 0o077:
        yield f"others may look into {path} (mode {place.mode}); chmod 700 it"
    if left:
        pids = " ".join(str(process.pid) for process in left[:20])
        yield f"nobody looks after what is left of an earlier council: `council` ends it at its start, or kill {pids}"


def doctor(home: Home, *, json: bool) -> int:
    """Tell how the machine stands; 0, or 1 when a person should mend something."""
    found = examine(home)
    if json:
        show_json(found)
    else:
        show(_page(found, signs_for(sys.stdout)))
    return 1 if found.problems else 0


def _pair(name: str, value: str | Text) -> Text:
    return Text.assemble((f"{name:<{_NAME}}", QUIET), value)


def _page(found: DoctorLine, signs: Signs) -> Iterator[Text]:
    tier, versions = found.tier, found.versions
    yield _pair("tier", Text.assemble((tier.name, STRONG), f": {safe(tier.why, 300) or 'bubblewrap makes namespaces'}"))
    for word, items in (("enforces", tier.enforces), ("cannot", tier.cannot)):
        for index, item in enumerate(items):
            yield _pair(word if index == 0 else "", item)
    yield _pair("bubblewrap", versions.bubblewrap or "not installed; `apt install bubblewrap` or your system's way")
    yield _pair("versions", f"council {versions.council}, Python {versions.python}, SQLite {versions.sqlite}")
    yield _pair("", f"Textual {versions.textual}, Linux {versions.kernel}")
    yield _pair("terminal", _terminal(found.terminal))
    yield _pair("limits", _limits(found.limits))
    refused = "; a plan that may want more at once is refused" if found.limits.by == OPEN_FILES else ""
    yield _pair("", f"at most {found.limits.agents:,} agents at once, bounded by {found.limits.by}{refused}")
    yield _pair("home", _home(found.home))
    for process in found.leftovers:
        yield _pair("left over", f"process {process.pid} ({safe(process.name, 40)}) of run {process.run}")
    for note in found.notes:
        yield _pair("note", Text(note, LATE))
    for problem in found.problems:
        yield _pair("mend", Text(f"{signs.bad} {problem}", BAD))
    if not found.problems:
        yield _pair("mend", Text(f"{signs.good} nothing", GOOD))


def _terminal(terminal: TerminalPart) -> str:
    size = "none here" if terminal.columns is None else f"{terminal.columns}x{terminal.rows}, {terminal.colours}"
    return (
        f"{size}; TERM {safe(terminal.term, 40) or 'not set'}; locale {safe(terminal.locale, 40)}, {terminal.encoding}"
    )


def _limits(limits: LimitsPart) -> str:
    def told(value: int | None) -> str:
        return "any number of" if value is None else f"{value:,}"

    return (
        f"{told(limits.open_files)} open files, {told(limits.processes)} processes of yours, "
        f"{told(limits.pid_max)} in all, {limits.running:,} running"
    )


def _home(home: HomePart) -> str:
    path = safe(home.path, 400)
    if not home.exists:
        return f"{path}, not made yet"
    who = f"process {home.owner} runs a council in it" if home.owner is not None else "nobody runs a council in it"
    return f"{path} of {home.user} (mode {home.mode}); {who}"
