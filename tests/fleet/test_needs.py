"""What a plan needs is looked for before anything is made."""

import subprocess
from pathlib import Path

import pytest

from council_tui.domain.errors import PlanInvalid
from council_tui.fleet.needs import check_needs
from council_tui.fleet.plan import load_plan


def test_outside_a_repository_the_audit_is_refused_with_one_sentence(tmp_path: Path):
    with pytest.raises(PlanInvalid) as caught:
        check_needs(load_plan("repo-audit"), tmp_path)
    assert [m.message for m in caught.value.mistakes] == [f"{tmp_path} is in no git repository; run this in a checkout"]


@pytest.mark.parametrize("flags", [[], ["--bare"]])
def test_below_a_repository_and_in_a_bare_one_it_is_let_through(tmp_path: Path, flags: list[str]):
    subprocess.run(["git", "init", "-q", *flags, str(tmp_path)], check=True)
    (tmp_path / "deep").mkdir()
    check_needs(load_plan("repo-audit"), tmp_path)
    check_needs(load_plan("repo-audit"), tmp_path / "deep")


def test_a_plan_without_needs_runs_anywhere(tmp_path: Path):
    check_needs(load_plan("handshake-drill"), tmp_path)


def test_without_git_that_is_the_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PlanInvalid) as caught:
        check_needs(load_plan("repo-audit"), tmp_path)
    assert "git is not installed" in caught.value.mistakes[0].message
