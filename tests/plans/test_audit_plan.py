"""The shipped audit plan itself, and what every one of its tools has in common."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from council_tui.fleet.plan import load_plan
from council_tui.plans.audit.report import MAX_BYTES, Report, count, size
from plans.repository import Checkout, run_tool

TOOLS = [
    "history",
    "large_files",
    "tests",
    "secrets_files",
    "secrets_history",
    "secrets_ignored",
    "licences",
    "links",
    "docs",
]
READS_FILES = ["tests", "secrets_files", "secrets_ignored", "licences", "links", "docs"]


def test_the_plan_loads_and_has_children_under_all_three_offices_and_two_microsharks():
    plan = load_plan("repo-audit")
    assert {o.parent for o in plan.orders if o.kind == "child"} == {"zeroclaw", "openfang", "openclaw"}
    assert [o.parent for o in plan.orders if o.kind == "microshark"] == ["secrets", "secrets"]
    assert plan.budget_minutes == 15


def test_every_child_of_the_plan_is_read_only_declares_its_schema_and_has_a_short_title():
    for order in load_plan("repo-audit").orders:
        assert order.envelope.read_only
        assert order.envelope.schema_declared
        assert len(order.title) <= 40


def test_all_children_of_the_plan_share_one_output_schema():
    orders = load_plan("repo-audit").orders
    assert all(order.envelope.output_schema == orders[0].envelope.output_schema for order in orders)


def test_every_tool_that_the_plan_starts_exists():
    started = [order.run[3].rpartition(".")[2] for order in load_plan("repo-audit").orders]
    assert sorted(started) == sorted(TOOLS)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_directory_that_is_no_repository_blocks_with_one_sentence(tool: str, tmp_path: Path):
    outcome = run_tool(tool, tmp_path, home=tmp_path / "home")
    assert (outcome.code, outcome.result["status"]) == (0, "BLOCKED")
    assert "is in no git repository; run the audit in a checkout" in outcome.result["recommendation"]


@pytest.mark.parametrize("tool", TOOLS)
def test_a_repository_without_a_commit_is_no_error(tool: str, checkout: Checkout):
    outcome = checkout.audit(tool)
    assert (outcome.code, outcome.result["status"]) == (0, "DONE")


def test_a_missing_git_blocks_and_says_what_to_install(tmp_path: Path):
    outcome = run_tool("history", tmp_path, home=tmp_path / "home", env={"PATH": str(tmp_path)})
    assert outcome.result["status"] == "BLOCKED"
    assert "git is not installed" in outcome.result["recommendation"]


@pytest.mark.parametrize("tool", READS_FILES)
def test_a_bare_repository_blocks_what_needs_files(tool: str, checkout: Checkout, tmp_path: Path):
    bare = tmp_path / "bare.git"
    checkout.git("init", "-q", "--bare", str(bare))
    outcome = run_tool(tool, bare, home=tmp_path / "home")
    assert outcome.result["status"] == "BLOCKED"
    assert "run the audit in a clone of it" in outcome.result["recommendation"]


def test_history_and_size_are_read_from_a_bare_repository(checkout: Checkout, tmp_path: Path):
    checkout.write("a.txt", "one\n")
    checkout.commit()
    bare = tmp_path / "bare.git"
    checkout.git("clone", "-q", "--bare", str(checkout.root), str(bare))
    for tool in ("history", "large_files", "secrets_history"):
        assert run_tool(tool, bare, home=tmp_path / "home").result["status"] == "DONE"


def test_a_subdirectory_audits_the_whole_repository(checkout: Checkout):
    checkout.write("deep/er/a.md", "[gone](nowhere.md)\n")
    assert checkout.audit("links", cwd="deep/er").one("Broken link")["path"] == "deep/er/a.md"


def test_git_variables_of_the_caller_do_not_lead_elsewhere(checkout: Checkout, tmp_path: Path):
    checkout.write("a.txt", "one\n")
    checkout.commit()
    outcome = checkout.audit("history", env={"GIT_DIR": str(tmp_path / "nowhere")})
    assert outcome.one("1 commit by 1 author")


def hostile(checkout: Checkout, flag: Path) -> None:
    script = checkout.write(".git/own", f"#!/bin/sh\ntouch {flag}\ncat\n")
    script.chmod(0o755)
    checkout.write(".gitattributes", "*.txt diff=own filter=own\n")
    checkout.write("a.txt", "# TODO: one\n")
    checkout.commit()
    for key in (
        "core.fsmonitor",
        "core.pager",
        "diff.own.textconv",
        "filter.own.clean",
        "diff.external",
        "gpg.program",
    ):
        checkout.git("config", key, str(script))
    checkout.git("config", "log.showSignature", "true")


def test_nothing_that_the_repository_configures_is_started(checkout: Checkout, tmp_path: Path):
    flag = tmp_path / "started"
    hostile(checkout, flag)
    for tool in TOOLS:
        if tool != "tests":
            checkout.audit(tool)
    assert not flag.exists()


def test_an_audit_leaves_the_repository_byte_for_byte_as_it_was(checkout: Checkout):
    checkout.write("a.md", "[x](y.md)\n# TODO: one\n")
    checkout.commit()

    def picture() -> dict[str, tuple[int, int]]:
        files = [p for p in checkout.root.rglob("*") if p.is_file()]
        return {str(p): (p.stat().st_mtime_ns, p.stat().st_size) for p in files}

    before = picture()
    for tool in TOOLS:
        checkout.audit(tool)
    assert picture() == before


def test_odd_names_links_out_of_the_tree_and_unreadable_files_are_survived(checkout: Checkout, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "id_rsa").write_text("-----BEGIN RSA PRIVATE KEY-----\n" + "Ab1+" * 20 + "\n")
    checkout.write(os.fsdecode(b"b\xff\x1b[31mname.md"), "[x](gone.md)\n")
    checkout.write("binary.bin", bytes(range(256)) * 40)
    checkout.write("long.js", "token = " + "a" * 1_500_000)
    (checkout.root / "out").symlink_to(outside)
    (checkout.root / "loop").symlink_to(".")
    (checkout.root / "dangling.md").symlink_to("nowhere")
    checkout.commit()
    checkout.git("rm", "-rq", "--cached", "out")
    os.mkfifo(checkout.root / "pipe.md")
    for tool in TOOLS:
        outcome = checkout.audit(tool)
        assert (outcome.code, outcome.result["status"]) == (0, "DONE")
        assert "private key" not in str(outcome.result).lower().replace("*.pem", "")
        assert "\x1b" not in "".join(outcome.lines)


def test_a_folder_replaced_by_a_link_out_of_the_tree_is_not_followed(checkout: Checkout, tmp_path: Path):
    checkout.write("docs/a.md", "fine\n")
    checkout.commit()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.md").write_text("[x](gone.md)\n")
    (checkout.root / "docs" / "a.md").unlink()
    (checkout.root / "docs").rmdir()
    (checkout.root / "docs").symlink_to(outside)
    outcome = checkout.audit("links")
    assert "outside the tree" in outcome.one("not read whole")["description"]
    assert not outcome.titles("MEDIUM", "LOW")


def test_submodules_and_a_shallow_detached_clone_are_understood(checkout: Checkout, tmp_path: Path):
    checkout.write("a.txt", "one\n")
    checkout.commit()
    checkout.git("submodule", "add", "-q", str(checkout.root), "below")
    checkout.write("README.md", "[inside](below/whatever.md)\n" + "word " * 50)
    checkout.commit()
    copy = Checkout(tmp_path / "copy")
    checkout.git("clone", "-q", "--depth", "1", f"file://{checkout.root}", str(copy.root))
    copy.git("checkout", "-q", "--detach")
    assert {"The clone is shallow", "HEAD is detached"} <= set(copy.audit("history").titles("INFO"))
    assert not copy.audit("links").titles("MEDIUM", "LOW")


def test_progress_goes_to_stdout_and_as_a_status_to_the_supervisor(checkout: Checkout, tmp_path: Path):
    address = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.bind(str(address))
        outcome = checkout.audit("links", env={"NOTIFY_SOCKET": str(address)})
        assert channel.recv(4096) == b"STATUS=reading 0 Markdown files"
    assert outcome.lines[0] == "reading 0 Markdown files"


def test_a_supervisor_that_does_not_listen_stops_nothing(checkout: Checkout, tmp_path: Path):
    outcome = checkout.audit("links", env={"NOTIFY_SOCKET": str(tmp_path / "nobody")})
    assert outcome.result["status"] == "DONE"
    assert "no status sent" in outcome.stderr


def test_a_damaged_repository_is_an_error_with_the_words_of_git(checkout: Checkout):
    checkout.write("a.txt", "one\n")
    checkout.commit()
    tree = checkout.git("rev-parse", "HEAD^{tree}").strip()
    (checkout.root / ".git/objects" / tree[:2] / tree[2:]).unlink()
    outcome = run_tool("large_files", checkout.root, home=checkout.root.parent / "home")
    assert (outcome.code, outcome.result["status"]) == (1, "ERROR")
    assert "git ls-tree: fatal: not a tree object" in outcome.result["recommendation"]


def test_a_partial_clone_is_read_as_far_as_it_goes_and_nothing_is_downloaded(checkout: Checkout, tmp_path: Path):
    for number in range(3):
        checkout.write("a.txt", f"{number}\n")
        checkout.commit()
    checkout.git("config", "uploadpack.allowFilter", "true")
    copy = Checkout(tmp_path / "copy")
    checkout.git("clone", "-q", "--filter=blob:none", f"file://{checkout.root}", str(copy.root))
    packs = set((copy.root / ".git/objects/pack").iterdir())
    assert "3 commits by 1 author" in str(copy.audit("history").titles("INFO"))
    assert copy.audit("secrets_history").one("Git could not read everything")["severity"] == "LOW"
    assert copy.audit("large_files").one("1 tracked file")
    assert set((copy.root / ".git/objects/pack").iterdir()) == packs


@pytest.mark.skipif(os.getuid() != 0, reason="only root may give files away")
def test_a_repository_of_somebody_else_is_read_all_the_same(checkout: Checkout):
    checkout.write("a.txt", "one\n")
    checkout.commit()
    for path in (checkout.root, *checkout.root.rglob("*")):
        os.chown(path, 65534, 65534)
    assert checkout.audit("history").one("1 commit by 1 author")


def test_a_report_keeps_the_worst_hundred_findings_and_counts_the_rest():
    report = Report()
    for number in range(300):
        report.add("LOW", f"small {number}", "text", f"evidence {number}")
    report.add("HIGH", "big", "text", "evidence")
    result = report.result()
    assert len(result["findings"]) == 100
    assert result["findings"][0]["title"] == "big"
    assert (result["left_out"], result["findings"][-1]["title"]) == (202, "202 more findings were left out")


def test_a_report_never_grows_beyond_its_limit():
    report = Report()
    for number in range(100):
        report.add("LOW", "\x1b" * 500, "\u202e" * 5000, ["\0" * 5000 + str(number + n) for n in range(20)])
    assert len(json.dumps(report.result())) <= MAX_BYTES


def test_numbers_are_written_for_people():
    assert (count(1, "file"), count(1204, "file"), count(2, "stash", "stashes")) == (
        "1 file",
        "1,204 files",
        "2 stashes",
    )
    assert (size(34), size(1536), size(5 * 1024**3)) == ("34 B", "1.5 KiB", "5.0 GiB")


def test_an_installed_tool_starts_as_a_module_in_isolated_mode(checkout: Checkout):
    probe = subprocess.run([sys.executable, "-I", "-c", "import council_tui"], capture_output=True, check=False)
    if probe.returncode:
        pytest.skip("the package is not installed in this environment")
    done = subprocess.run(
        [sys.executable, "-I", "-m", "council_tui.plans.audit.links"],
        cwd=checkout.root,
        capture_output=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1].startswith(b'{"status": "DONE"')
