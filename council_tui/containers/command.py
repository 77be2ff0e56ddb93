"""Any program as an agent: its argv and environment, and how its exit and its output become a result."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from council_tui.domain.evidence import Result, check_result
from council_tui.domain.text import safe, safe_bytes
from council_tui.domain.wire import MAX_NESTING, BadMessage, parse_json

if TYPE_CHECKING:
    from council_tui.domain.envelope import Envelope

_PASSED_ON = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "COUNCIL_AUDIT_NESTED")
"""The only variables of ours that a body sees; everything else could hold a secret."""


_TOLD = 1000
"""Bytes of the output's end that a result made of it shows."""
_LEVELS_AROUND = 8
"""What a report may have fewer than a message: it has to fit into one."""


@dataclass(frozen=True)
class Launch:
    """What to exec."""

    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    fds: tuple[int, ...] = ()
    """Descriptors that it inherits; whoever starts it closes them here."""


@dataclass(frozen=True)
class Exit:
    """How a body ended."""

    status: int | None
    """Exit status, or None when a signal ended it."""
    signal: int | None
    last_line: bytes
    output_sha256: str
    output_bytes: int
    tail: bytes
    log_path: str
    loss: str = ""
    """What of the output could not be kept, in words; empty when all of it was."""


def launch(
    run: tuple[str, ...], *, workdir: str, data: str, notify: str, watchdog_seconds: float, names: dict[str, str]
) -> Launch:
    """Fill in `{python}` and `{workdir}` and build the environment of a body.

    `data` is its slice, which is also its HOME; `names` are the COUNCIL_* facts it may know.
    """
    filled = tuple(part.replace("{python}", sys.executable).replace("{workdir}", workdir) for part in run)
    env = {key: os.environ[key] for key in _PASSED_ON if key in os.environ}
    env |= {
        "HOME": data,
        "TMPDIR": data,
        "COUNCIL_SLICE": data,
        "NOTIFY_SOCKET": notify,
        "WATCHDOG_USEC": str(int(watchdog_seconds * 2_000_000)),
    }
    return Launch(filled, workdir, env | names)


def _returned(line: bytes) -> dict[str, Any] | None:
    """The JSON object in the last line, or None."""
    if not line.startswith(b"{"):
        return None
    try:
        value = parse_json(line, MAX_NESTING - _LEVELS_AROUND)
    except BadMessage:
        return None
    return value if isinstance(value, dict) else None


def _wrapped(run: tuple[str, ...], end: Exit) -> Result:
    """A result made of what any program leaves behind: command line, status, output digest and tail."""
    how = f"signal {end.signal}" if end.signal is not None else f"exit status {end.status}"
    evidence = [f"command: {shlex.join(run)}", how, f"output sha256 {end.output_sha256} ({end.output_bytes} bytes)"]
    last = end.tail.strip()
    if last:
        evidence.append(f"output ends: {'…' if len(last) > _TOLD else ''}{safe_bytes(last[-_TOLD:], _TOLD)}")
    good = end.status == 0
    problem = () if good else (how,)
    return Result("DONE" if good else "ERROR", (), tuple(evidence), "", problem)


def judge(run: tuple[str, ...], envelope: Envelope, end: Exit) -> tuple[Result, str | None]:
    """(result, protocol violation or None) of a body that has ended.

    An exit status of 0 without the report that the contract asks for is a violation, never done; a bad exit
    status is an ERROR whatever was printed. What of the output was not kept is told as evidence.
    """
    result, violation = _judge(run, envelope, end)
    if end.loss:
        result = replace(result, evidence=(*result.evidence, end.loss))
    return result, violation


def _judge(run: tuple[str, ...], envelope: Envelope, end: Exit) -> tuple[Result, str | None]:
    value = _returned(end.last_line)
    if value is None:
        wrapped = _wrapped(run, end)
        if end.status == 0 and envelope.schema_declared:
            return wrapped, "exited 0 without the report that its contract asks for"
        return wrapped, None
    result = check_result(value, envelope)
    if result.problems and end.status == 0:
        return result, f"its report breaks the contract: {result.problems[0]}"
    if end.status != 0 and result.status == "DONE":
        how = f"signal {end.signal}" if end.signal is not None else f"exit status {end.status}"
        return Result("ERROR", result.findings, result.evidence, result.recommendation, (how,), result.extra), None
    return result, None


def not_started(plan: Launch, error: OSError | ValueError) -> Result:
    """The result of a program that never ran; a missing work directory is told from a missing program."""
    named = error.filename if isinstance(error, OSError) and error.filename else plan.argv[0]
    why = error.strerror if isinstance(error, OSError) else str(error)
    what = safe(f"cannot start {plan.argv[0]}: {why}" + (f": {named}" if named != plan.argv[0] else ""), 500)
    return Result("ERROR", evidence=(what,), problems=(what,))
