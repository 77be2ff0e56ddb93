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
    finding = outcome.one("pytest could not be started: no module not_installed_anywhere in .venv/bin/python")
    assert finding["severity"] == "MEDIUM"
    assert "says nothing about the tests" in finding["description"]
    assert outcome.titles("HIGH") == []


def test_a_conftest_that_cannot_be_imported_is_no_test_failure(checkout: Checkout):
    own_python(checkout)
    checkout.write("pyproject.toml", '[project.optional-dependencies]\nqa = ["pytest>=8"]\n')
    checkout.write("conftest.py", "import not_installed_anywhere\n")
    checkout.write("tests/test_a.py", "def test_a(): pass\n")
    outcome = checkout.audit("tests")
    finding = outcome.one("pytest could not be started: no module not_installed_anywhere in .venv/bin/python")
    assert "`python3 -m pip --python .venv install -e '.[qa]'`" in finding["description"]
    assert "install -e '.[qa]'" in outcome.result["recommendation"]
    assert outcome.titles("HIGH") == []


def test_a_test_file_that_is_no_python_and_a_wrong_flag_are_no_test_failures(checkout: Checkout):
    own_python(checkout)
    checkout.write("tests/test_a.py", "def test_a(:\n")
    assert "SyntaxError" in checkout.audit("tests").one("pytest could not be started: 1 file")["description"]
    checkout.write("pytest.ini", "[pytest]\naddopts = --no-such-flag\n")
    assert "--no-such-flag" in checkout.audit("tests").one("it ended with exit status 4")["description"]


def test_an_own_environment_without_pytest_is_not_passed_over_for_another_python(checkout: Checkout):
    own_python(checkout, "exit 1")
    checkout.write("pyproject.toml", "[project]\nname = 'a'\n")
    checkout.write("tests/test_a.py", "def test_a(): assert False\n")
    outcome = checkout.audit("tests")
    finding = outcome.one("Tests were not run: pytest is not installed in .venv")
    assert (outcome.result["status"], finding["severity"]) == ("DONE", "MEDIUM")
    assert finding["title"].endswith("; install it with `python3 -m pip --python .venv install -e . pytest`")
    assert outcome.result["recommendation"].startswith(finding["title"])


@pytest.mark.parametrize(
    ("recipe", "title"),
    [
        ("no-such-program-here", "make test could not be started: the program no-such-program-here is not installed"),
        ("exec no-such-program-here", "the program no-such-program-here is not installed"),
        ("echo \"No module named 'nose'\"; exit 1", "no module nose in the Python that it runs with"),
        ("echo \"Cannot find module 'x'\"; exit 1", "make test could not be started: a package is not there"),
    ],
)
def test_other_runners_that_cannot_begin_are_no_test_failures(checkout: Checkout, recipe: str, title: str):
    checkout.write("Makefile", f"test:\n\t@{recipe}\n")
    outcome = checkout.audit("tests")
    assert outcome.one(title)["severity"] == "MEDIUM"
    assert outcome.titles("HIGH") == []


def test_a_failure_without_counts_says_how_it_ended(checkout: Checkout):
    checkout.write("Makefile", 'test:\n\t@echo "Ran 3 tests in 0.1s"; echo "No module named \'x\'"; exit 1\n')
    outcome = checkout.audit("tests")
    assert outcome.one("make test fails: exit status 2")["severity"] == "HIGH"
    assert "Read the end of its output" in outcome.result["recommendation"]


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
    checkout.write("requirements.txt", "attrs\n")
    checkout.write("Cargo.toml", "[package]\n")
    checkout.write("go.mod", "module a\n")
    checkout.write("a_test.go", "package a\n")
    outcome = checkout.audit("tests", env={"PATH": str(tools)})
    told = [title.removeprefix("Tests were not run: ") for title in outcome.titles("MEDIUM")]
    assert [title.partition(" is not installed")[0] for title in told] == ["pytest", "yarn", "cargo", "go"]
    assert "--python .venv install -r requirements.txt pytest`" in outcome.one("pytest is")["description"]


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
