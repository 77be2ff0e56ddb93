"""Commits, people, branches, sizes."""

from collections import Counter

from council_tui.plans.audit.history import bus_factor
from plans.repository import Checkout


def test_the_bus_factor_is_the_fewest_people_with_half_of_the_commits():
    assert bus_factor(Counter(a=5, b=3, c=2)) == 1
    assert bus_factor(Counter(a=3, b=3, c=3)) == 2
    assert bus_factor(Counter()) == 0


def test_history_names_authors_hot_spots_and_a_bus_factor_of_one(checkout: Checkout):
    for number in range(24):
        checkout.write("hot.py", f"x = {number}\n")
        checkout.write("CHANGELOG.md", f"{number}\n")
        checkout.commit(f"change {number}", author="Ada" if number else "Bob")
    outcome = checkout.audit("history")
    assert "24 commits by 2 authors" in outcome.one("24 commits by")["title"]
    assert outcome.one("Bus factor 1")["severity"] == "LOW"
    assert outcome.one("Most changed: hot.py (24 of 24 commits)")
    assert outcome.one("No commit for")["severity"] == "LOW"


def test_a_lone_author_is_a_fact_and_no_complaint(checkout: Checkout):
    for number in range(22):
        checkout.write("a.py", f"x = {number}\n")
        checkout.commit()
    assert checkout.audit("history").one("Bus factor 1")["severity"] == "INFO"


def test_large_commits_are_listed_but_not_the_first_one(checkout: Checkout):
    checkout.write("a.txt", "x\n" * 5000)
    checkout.commit("import")
    checkout.write("b.txt", "x\n" * 1500)
    checkout.commit("generated")
    finding = checkout.audit("history").one("Largest commits: up to 1,500 lines")
    assert finding["description"].startswith("1 commit of the last 2")


def test_forgotten_branches_and_stashes_are_named_and_release_branches_left_alone(checkout: Checkout):
    checkout.write("a.txt", "one\n")
    checkout.commit()
    for name in ("topic/x", "release/1.0"):
        checkout.git("switch", "-q", "-c", name, "main")
        checkout.write(f"{name[-1]}.txt", name)
        checkout.commit()
    checkout.git("switch", "-q", "main")
    checkout.git("branch", "merged")
    checkout.write("a.txt", "two\n")
    checkout.git("stash", "push", "-q")
    outcome = checkout.audit("history")
    assert "topic/x" in outcome.one("1 unmerged branch idle for 90 days")["description"]
    assert "merged" in outcome.one("1 local branch is merged")["description"]
    assert outcome.one("1 stash kept")
    assert "release/1.0" not in str(outcome.findings)


def test_large_files_reports_size_binaries_debris_and_what_only_the_history_holds(checkout: Checkout):
    checkout.write("old.bin", b"\0\1" * 1_600_000)
    checkout.commit()
    checkout.git("rm", "-q", "old.bin")
    checkout.write("big.csv", "1,2,3\n" * 200_000)
    checkout.write("tool.exe", b"\0" * 100_000)
    checkout.write("tests/data/tiny.zip", b"PK")
    checkout.write("web/node_modules/a/index.js", "x\n")
    checkout.write("vendor/lib.go", "x\n")
    checkout.commit()
    outcome = checkout.audit("large_files")
    assert outcome.one("Large file: big.csv (1.1 MiB)")["path"] == "big.csv"
    assert outcome.one("Only in the history: old.bin (3.1 MiB)")["severity"] == "LOW"
    assert outcome.one("1 file tracked: compiled programs")["path"] == "tool.exe"
    assert outcome.one("Installed packages tracked: web/node_modules (1 file)")
    assert outcome.one("Vendored code: vendor")["severity"] == "INFO"
    assert not [title for title in outcome.titles() if "archives" in title]


def test_a_lean_repository_has_nothing_to_do(checkout: Checkout):
    checkout.write("a.py", "x = 1\n")
    checkout.commit()
    outcome = checkout.audit("large_files")
    assert outcome.titles("HIGH", "MEDIUM", "LOW") == []
    assert outcome.result["recommendation"] == "Nothing to do; the repository is lean."
