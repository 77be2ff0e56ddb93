"""Objects that tell of no fleet: a shipped plan, a report as it lies there, and the machine."""

from __future__ import annotations

from typing import Literal

from council_tui.headless.line import Line, Part


class ShippedLine(Line):
    """A shipped plan; `yaml` is null in the list of all of them."""

    type: Literal["shipped_plan"] = "shipped_plan"
    name: str
    summary: str
    yaml: str | None


class ReportLine(Line):
    """The newest report."""

    type: Literal["report"] = "report"
    path: str
    markdown: str


class TierPart(Part):
    """What stands between a program and the machine."""

    name: Literal["portable", "strong"]
    why: str
    """Why it is not strong; empty when it is."""
    enforces: list[str]
    forbidden: list[str]
    """Forbidden capabilities that a program is held to."""
    limits: dict[str, Literal["hard", "soft", "none"]]
    """By limit of a contract (memory, processes, cpus): whether nobody gets past it, a guardian looks, or neither."""
    cannot: list[str]


class VersionsPart(Part):
    """Of everything that council stands on; null for what is not installed."""

    council: str
    bubblewrap: str | None
    python: str
    sqlite: str
    textual: str
    kernel: str


class TerminalPart(Part):
    """The terminal of this command; `columns` is null where there is none."""

    columns: int | None
    rows: int | None
    colours: str
    term: str
    encoding: str
    locale: str


class LimitsPart(Part):
    """What a fleet may use; null where there is no limit."""

    open_files: int | None
    processes: int | None
    pid_max: int | None
    running: int
    agents: int
    """How many agents these limits allow at once."""
    by: str
    """The limit that is met first."""


class HomePart(Part):
    """The home."""

    path: str
    exists: bool
    writable: bool
    mode: str | None
    """Permissions, octal."""
    user: str | None
    """Whose files these are."""
    owner: int | None
    """The pid that runs a council there now."""


class ProcessPart(Part):
    """A process that carries the marker of a run of this home."""

    pid: int
    name: str
    run: str


class DoctorLine(Line):
    """The machine as council sees it."""

    type: Literal["doctor"] = "doctor"
    tier: TierPart
    versions: VersionsPart
    terminal: TerminalPart
    limits: LimitsPart
    home: HomePart
    leftovers: list[ProcessPart]
    notes: list[str]
    """Worth knowing; nothing has to be done."""
    problems: list[str]
    """What a person should mend; the exit code is 1 when there is one."""
