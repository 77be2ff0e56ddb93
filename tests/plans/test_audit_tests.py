"""The tool that runs a project's own tests."""

import os
import sys
from pathlib import Path

import pytest

from council_tui.plans.audit.results import from_go, from_junit, from_output, tail
from plans.repository import Checkout

SUITE = """
import pathlib

def test_good():
    assert True

def test_bad():
    assert 1 == 2, "one is not two"
"""


def own_python(checkout: Checkout, body: str = 'exec "{python}" "$@"') -> None:
    """Give the project a `.venv` whose python has pytest: the one that runs this test."""
    script = checkout.write(".venv/bin/python", "#!/bin/sh\n" + body.replace("{python}", sys.executable) + "\n")
    script.chmod(0o755)
    checkout.write(".gitignore", ".venv/\n")


def test_a_failing_pytest_suite_is_reported_test_by_test_with_its_line(checkout: Checkout):
    own_python(checkout)
    checkout.write("tests/test_it.py", SUITE)
    outcome = checkout.audit("tests")
    assert outcome.one("pytest fails: 1 passed, 1 failed, 0 skipped")["severity"] == "HIGH"
    failing = outcome.one("Failing test: tests.test_it::test_bad")
    assert (failing["path"], failing["line"]) == ("tests/test_it.py", 8)
    assert "one is not two" in failing["description"]
    assert list(checkout.root.rglob("__pycache__")) == []


def test_a_passing_suite_that_writes_into_the_project_is_told_on(checkout: Checkout):
    own_python(checkout)
    checkout.write("test_it.py", "import pathlib\n\ndef test_it():\n    pathlib.Path('left.txt').write_text('x')\n")
    outcome = checkout.audit("tests")
    assert outcome.one("pytest passes: 1 passed, 0 failed, 0 skipped")["severity"] == "INFO"
    assert "left.txt" in outcome.one("The tests leave 1 file in the project")["description"]


def test_files_that_cannot_be_imported_are_one_finding_with_the_missing_package(checkout: Checkout):
    own_python(checkout)
    for name in "ab":
        checkout.write(f"tests/test_{name}.py", "import not_installed_anywhere\n")
    outcome = checkout.audit("tests")
    finding = outcome.one("pytest could not be run: 2 files cannot be imported")
    assert "No module named 'not_installed_anywhere'" in finding["description"]


def test_an_overrun_kills_the_whole_process_group_and_says_so(checkout: Checkout, tmp_path: Path):
    # The fifo ends when its last writer is gone, so reading it to the end proves that nobody is left.
    fifo = tmp_path / "alive"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    checkout.write("Makefile", f"test:\n\t@exec 9>{fifo}; sleep 600 & echo begun; sleep 600\n")
    outcome = checkout.audit("tests", "--seconds", "1")
    finding = outcome.one("make test overran 1 s")
    assert "its whole process group was killed" in finding["description"]
    assert "begun" in outcome.result["evidence"]
    os.set_blocking(reader, True)
    assert os.read(reader, 1) == b""
    os.close(reader)


def test_inside_a_test_run_of_the_audit_nothing_is_started(checkout: Checkout):
    checkout.write("Makefile", "test:\n\tfalse\n")
    outcome = checkout.audit("tests", env={"COUNCIL_AUDIT_NESTED": "1"})
    assert outcome.titles() == ["Not run inside a test run"]


def test_the_tests_know_that_they_are_nested_and_nothing_of_the_supervisor(checkout: Checkout, tmp_path: Path):
    checkout.write("Makefile", "test:\n\t@env\n")
    env = {"NOTIFY_SOCKET": str(tmp_path / "x"), "COUNCIL_SLICE": "/secret", "WATCHDOG_USEC": "1"}
    evidence = "\n".join(checkout.audit("tests", env=env).result["evidence"])
    assert "make test passes" in checkout.audit("tests").titles("INFO")[0]
    assert not any(word in evidence for word in ("NOTIFY_SOCKET", "COUNCIL_SLICE", "WATCHDOG_USEC"))


def test_a_missing_runner_says_what_to_install(checkout: Checkout, tmp_path: Path):
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("git", "sh"):
        found = next(p for d in os.environ["PATH"].split(":") if (p := Path(d) / name).exists())
        (tools / name).symlink_to(found)
    checkout.write("tests/test_a.py", "def test_a(): pass\n")
    checkout.write("package.json", '{"scripts": {"test": "mocha"}, "dependencies": {"a": "1"}}')
    checkout.write("yarn.lock", "")
    checkout.write("Cargo.toml", "[package]\n")
    checkout.write("go.mod", "module a\n")
    checkout.write("a_test.go", "package a\n")
    outcome = checkout.audit("tests", env={"PATH": str(tools)})
    assert [title.partition(" could")[0] for title in outcome.titles("MEDIUM")] == [
        "pytest",
        "yarn test",
        "cargo test",
        "go test",
    ]
    assert "pip install pytest" in outcome.one("pytest could")["description"]


def test_a_project_without_tests_and_npm_without_a_real_script_is_said(checkout: Checkout):
    checkout.write("package.json", '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}')
    assert checkout.audit("tests").one("No test setup found")["severity"] == "MEDIUM"


@pytest.mark.parametrize(
    ("output", "numbers"),
    [
        (
            "test result: ok. 3 passed; 0 failed; 1 ignored;\ntest result: FAILED. 2 passed; 1 failed; 0 ignored;",
            (5, 1, 1),
        ),
        ("# tests 4\n# pass 3\n# fail 1\n# skipped 0\n", (3, 1, 0)),
        ("  12 passing (30ms)\n  2 pending\n  1 failing\n", (12, 1, 2)),
        ("Tests:       1 failed, 2 skipped, 10 passed, 13 total", (10, 1, 2)),
        ("===== 4 passed, 1 warning in 0.10s =====", (4, 0, 0)),
    ],
)
def test_summaries_of_common_runners_are_read(output: str, numbers: tuple[int, int, int]):
    counts = from_output(output)
    assert (counts.passed, counts.failed, counts.skipped) == numbers


def test_output_without_numbers_is_not_taken_for_zero_tests():
    assert not from_output("all fine\n").known


def test_go_events_are_counted_and_other_lines_passed_over():
    counts = from_go('{"Action":"pass","Test":"A"}\nnoise\n{"Action":"fail","Test":"B","Package":"p"}\n[]\n')
    assert (counts.passed, counts.failed, counts.failures[0].name) == (1, 1, "p.B")


def test_a_junit_file_that_is_missing_broken_or_has_entities_is_not_read(tmp_path: Path):
    file = tmp_path / "a.xml"
    assert from_junit(file) is None
    file.write_text("<testsuite")
    assert from_junit(file) is None
    file.write_text('<!DOCTYPE x [<!ENTITY a "b">]><testsuite/>')
    assert from_junit(file) is None


def test_the_tail_is_the_last_lines_without_colours():
    assert tail("a\n\n\x1b[31mb\x1b[0m\n", 2) == ["a", "b"]
