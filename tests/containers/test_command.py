"""What any program leaves behind becomes a result, and exit 0 alone is none."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council_tui.containers.command import Exit, judge, launch
from council_tui.domain.envelope import DERIVED_SCHEMA, Envelope
from council_tui.domain.wire import MAX_NESTING, Call, decode, encode

RUN = ("tool", "--flag", "a b")


def envelope(derived: bool = False) -> Envelope:
    return Envelope(
        task_name="one",
        task_description="do it",
        output_schema=DERIVED_SCHEMA,
        time_budget_minutes=1,
        autonomy_band="AUTONOMOUS",
        tools_scope=("exec",),
        rollback_plan="No changes",
        derived=("output_schema",) if derived else (),
    )


def ended(line: bytes = b"", status: int | None = 0, signal: int | None = None, tail: bytes = b"") -> Exit:
    return Exit(status, signal, line, "ab" * 32, len(tail), tail, "/log")


def line(status="DONE", **more) -> bytes:
    return json.dumps({"status": status, "findings": [], "evidence": ["seen"], **more}).encode()


def test_a_program_without_a_schema_answers_with_its_exit_and_its_output():
    result, violation = judge(RUN, envelope(derived=True), ended(tail=b"all\x1b[31m well\n"))
    assert violation is None
    assert result.status == "DONE"
    assert result.evidence[0] == "command: tool --flag 'a b'"
    assert result.evidence[-1] == "output ends: all␛[31m well"


def test_of_long_output_the_very_end_is_shown():
    result, _ = judge(RUN, envelope(derived=True), ended(tail=b"begin" + b"x" * 1500 + b"the last words\n"))
    assert result.evidence[-1].startswith("output ends: …xxx")
    assert result.evidence[-1].endswith("xthe last words")


@pytest.mark.parametrize("bad", [b"", b"text", b"[1]", b'{"status": 1', b'{"status": "DONE", "x": Infinity}', b"{" * 9])
def test_exit_0_without_the_report_that_was_asked_for_is_a_violation(bad):
    _, violation = judge(RUN, envelope(), ended(bad))
    assert violation == "exited 0 without the report that its contract asks for"


def test_a_report_that_breaks_its_schema_is_a_violation():
    _, violation = judge(RUN, envelope(), ended(b'{"status": "DONE"}'))
    assert violation is not None
    assert violation.startswith("its report breaks the contract: ")


@pytest.mark.parametrize(("status", "signal", "how"), [(3, None, "exit status 3"), (None, 9, "signal 9")])
def test_a_bad_exit_is_an_error_whatever_was_printed(status, signal, how):
    result, violation = judge(RUN, envelope(), ended(line(), status, signal))
    assert (result.status, result.problems, violation) == ("ERROR", (how,), None)
    result, violation = judge(RUN, envelope(), ended(b"no report", status, signal))
    assert (result.status, result.problems, violation) == ("ERROR", (how,), None)


@pytest.mark.parametrize("said", [b"", line()])
def test_output_that_was_not_kept_is_told_as_evidence(said):
    end = replace(ended(said), loss="7 bytes of its output are not in the log: No space left on device")
    result, _ = judge(RUN, envelope(derived=True), end)
    assert result.evidence[-1] == end.loss


@pytest.mark.parametrize("said", ["BLOCKED", "ERROR"])
def test_an_agent_may_say_itself_that_it_could_not(said):
    result, violation = judge(RUN, envelope(), ended(line(said)))
    assert (result.status, violation) == (said, None)


@given(st.integers(1, MAX_NESTING + 5))
def test_whatever_is_taken_as_a_report_fits_into_a_message(depth):
    nested = b'{"status":"DONE","findings":[],"evidence":["seen"],"x":' + b"[" * depth + b"]" * depth + b"}"
    result, violation = judge(RUN, envelope(), ended(nested))
    if violation is None:
        call = decode(encode(Call("returned", {"result": result.as_json()}, 1)))
        assert isinstance(call, Call)


def test_placeholders_are_filled_in_and_the_environment_is_ours(monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "s3cr3t")
    monkeypatch.setenv("PATH", "/bin")
    plan = launch(
        ("{python}", "{workdir}/x", "{other}"),
        workdir="/w",
        data="/slice/data",
        notify="/n.sock",
        watchdog_seconds=2,
        names={"COUNCIL_RUN": "r_1"},
    )
    assert plan.argv == (sys.executable, "/w/x", "{other}")
    assert plan.cwd == "/w"
    assert plan.env["WATCHDOG_USEC"] == "4000000"
    assert plan.env["HOME"] == "/slice/data"
    assert plan.env["PATH"] == "/bin"
    assert "SECRET_TOKEN" not in plan.env
