"""One fleet of ill-behaved programs, run for real: none blocks, escapes, or takes anybody else with it."""

from __future__ import annotations

import hashlib
import json
import os
import re

import pytest
from supervisor.stage import REPORT_SCHEMA, child, plan_of, play, python, short_home

from council_tui.domain.events import EventKind as K
from council_tui.runner.log import ROTATE_AT

REPORT = '{"status": "DONE", "findings": [{"description": "seen it"}], "evidence": ["seen it"]}'
ASKED = {"output_schema": REPORT_SCHEMA}
MB = 1024 * 1024
UMASK = os.umask(0o022)
os.umask(UMASK)

ZOMBIES = """
import json, os, time
for _ in range(600):
    if os.fork() == 0:
        if os.fork() == 0:
            os._exit(0)
        os._exit(0)
    os.wait()
def zombies():
    found = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = open("/proc/%s/stat" % name).read().rpartition(")")[2].split()
            except OSError:
                continue
            found += fields[0] == "Z" and int(fields[1]) == os.getppid()
    return found
deadline = time.monotonic() + 10
while zombies() > 5 and time.monotonic() < deadline:
    time.sleep(0.05)
print(json.dumps({"status": "DONE", "findings": [], "evidence": [], "zombies": zombies()}))
"""

ENVIRONMENT = """
import json, os, sys
print(json.dumps({
    "status": "DONE", "findings": [], "evidence": [],
    "env": dict(os.environ), "stdin": sys.stdin.read(), "session": os.getsid(0) == os.getpid(),
    "group": os.getpgid(0) == os.getpid(), "umask": os.umask(0), "cwd": os.getcwd(),
    "fds": sorted(int(fd) for fd in os.listdir("/proc/self/fd"))[:-1],
}))
"""

ATTACH = """
import os, socket, sys
if len(sys.argv) > 1:  # as a daemon without any trace of where it came from
    if os.fork():
        os.wait(); sys.exit()
    os.setsid()
    if os.fork():
        os._exit(0)
    bare = {"NOTIFY_SOCKET": os.environ["NOTIFY_SOCKET"]}
    os.execve(sys.executable, [sys.executable, "-I", "-S", "-c", sys.argv[1]], bare)
path = os.path.join(os.path.dirname(os.path.dirname(os.environ["NOTIFY_SOCKET"])), "council.sock")
link = socket.socket(socket.AF_UNIX)
link.connect(path)
link.sendall(b'{"jsonrpc": "2.0", "id": 1, "method": "attach", "params": {}}\\n')
sys.stdout.write("the answer: " + link.recv(65536).decode())
"""

WAIT_FOR_DAEMON = ATTACH.replace("os.wait(); sys.exit()", "os.wait(); import time; time.sleep(1.5); sys.exit()")

STATUSES = """
import os, socket
link = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
link.connect(os.environ["NOTIFY_SOCKET"])
for number in range(500):
    link.send(("STATUS=step %d\\x1b[31m" % number).encode())
link.send(b"\\xff\\xfe no field at all")
"""

DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 1024)
        os.environ.clear()
        time.sleep(600)
    os._exit(0)
os.wait()
print("all done")
"""

CHILDREN = [
    child("stderr-flood", "head -c 10485760 /dev/zero >&2"),
    child("long-line", f"head -c 5242880 /dev/zero | tr '\\0' x; echo; echo '{REPORT}'", envelope=ASKED),
    child("endless-line", f"head -c 5242880 /dev/zero | tr '\\0' ' '; printf %s '{REPORT}'", envelope=ASKED),
    child("no-text", r"printf '\377\376\303'; printf 'caf\351\n\342\202'"),
    child("escapes", r"printf '\033[2J\033]0;title\007\033[31m[bold red]markup[/] \342\200\256evil'"),
    child("no-newline", f"printf %s '{REPORT}'", envelope=ASKED),
    child("keeps-the-pipe", f"setsid sleep 600 & echo '{REPORT}'", envelope=ASKED),
    child("daemon", python(DAEMON)),
    child(
        "deaf-fifty",
        "trap '' TERM; for i in $(seq 49); do setsid sh -c \"trap '' TERM; sleep 600; :\" & done; wait",
        policy={"run_ttl_seconds": 2},
    ),
    child("stopped", "kill -STOP $$; sleep 600", policy={"run_ttl_seconds": 2}),
    child("zombies", python(ZOMBIES), envelope=ASKED),
    child("environment", python(ENVIRONMENT), envelope=ASKED, workdir="/tmp"),
    child("no-program", ["/no/such/program"]),
    child("no-workdir", ["echo", "hi"], workdir="/no/such/folder"),
    child("no-json", 'echo \'{"status": "DONE", "findings": [], "evidence": [NaN]}\'', envelope=ASKED),
    child("deep-json", python("print('{\"status\":\"DONE\",\"x\":' + '[' * 60 + ']' * 60 + '}')"), envelope=ASKED),
    child("bad-exit", f"echo '{REPORT}'; exit 3", envelope=ASKED),
    child("killed", "kill -KILL $$"),
    child("asks", 'echo \'{"status": "BLOCKED", "findings": [], "evidence": [], "recommendation": "which one?"}\''),
    child("no-report", ["true"], envelope=ASKED),
    child(
        "overfills-and-leaves",
        'head -c 4194304 /dev/zero > "$COUNCIL_SLICE/much"',
        context={"memory_slice": {"memory_limit_mb": 1}},
    ),
    child(
        "locks-its-slice", 'mkdir -p "$COUNCIL_SLICE/a/b" && touch "$COUNCIL_SLICE/a/b/c" && chmod 0 "$COUNCIL_SLICE/a"'
    ),
    child("removes-its-slice", 'cd / && rm -rf "$(dirname "$COUNCIL_SLICE")" && echo gone'),
    child("attaches", python(ATTACH)),
    child("attaches-in-disguise", python(WAIT_FOR_DAEMON, ATTACH)),
    child("talks", python(STATUSES)),
]


@pytest.fixture(scope="module")
def fleet():
    with pytest.MonkeyPatch.context() as patch, short_home() as home:
        patch.setenv("SECRET_TOKEN", "s3cr3t")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "s3cr3t")
        yield play(home, plan_of(*CHILDREN))


def test_the_fleet_leaves_nothing_behind_and_its_ledger_holds(fleet):
    assert fleet.ending.exit == 1
    assert fleet.ending.audit == {"descendants": [], "open_claims": [], "unsigned_reports": [], "slices": []}
    assert fleet.ending.ledger["verdict"] == "VALID"
    assert list(fleet.home.slices.iterdir()) == list(fleet.home.bodies.iterdir()) == []


def test_ten_megabytes_on_stderr_block_nobody_and_are_digested_whole(fleet):
    evidence = fleet.cards["stderr-flood"].result["evidence"]
    digest = hashlib.sha256(bytes(10 * MB)).hexdigest()
    assert fleet.cards["stderr-flood"].state == "done"
    assert f"output sha256 {digest} ({10 * MB} bytes)" in evidence


def test_a_log_is_rotated_and_bounded(fleet):
    folder = fleet.home.logs / fleet.cards["stderr-flood"].run
    sizes = {file.name: file.stat().st_size for file in folder.iterdir()}
    assert set(sizes) == {"output.log", "output.log.1"}
    assert max(sizes.values()) <= ROTATE_AT


@pytest.mark.parametrize("name", ["long-line", "no-newline"])
def test_a_report_is_found_after_any_line_and_without_a_newline(fleet, name):
    assert fleet.cards[name].state == "done"
    assert fleet.cards[name].findings == 1


def test_what_ends_an_overlong_line_is_no_report(fleet):
    assert (fleet.cards["endless-line"].state, fleet.cards["endless-line"].fail) == ("failed", "protocol_violation")


def test_bytes_that_are_no_text_are_kept_whole_and_shown_safely(fleet):
    assert fleet.output("no-text") == b"\xff\xfe\xc3caf\xe9\n\xe2\x82"
    shown = fleet.cards["no-text"].result["evidence"][-1]
    assert shown.startswith("output ends: ")
    assert "�" in shown


def test_escape_sequences_are_kept_on_disk_and_never_acted_on(fleet):
    assert fleet.output("escapes").startswith(b"\x1b[2J\x1b]0;title\x07")
    shown = fleet.cards["escapes"].result["evidence"][-1]
    assert not re.search("[\x00-\x1f\x7f\u202e]", shown)
    assert "[bold red]markup" in shown


@pytest.mark.parametrize("name", ["keeps-the-pipe", "daemon"])
def test_whatever_a_program_leaves_behind_is_ended_and_does_not_delay_its_result(fleet, name):
    assert fleet.cards[name].state == "done"
    assert fleet.cards[name].result["evidence"][-1] == "1 process was left behind by the program and ended"


def test_a_tree_of_fifty_that_ignores_sigterm_is_dead_after_its_grace(fleet):
    # Two processes for each of the 49, and the program itself.
    assert len(fleet.first("deaf-fifty", K.REAP_STARTED).data["pids"]) >= 50
    reaped = fleet.first("deaf-fifty", K.REAPED).data
    assert (reaped["signal"], reaped["survivors"]) == (9, [])
    assert fleet.cards["deaf-fifty"].fail == "expired"


def test_a_stopped_program_is_woken_to_hear_its_sigterm(fleet):
    assert fleet.first("stopped", K.REAPED).data == {"exit_status": None, "signal": 15, "survivors": []}


def test_what_is_adopted_does_not_pile_up_as_zombies(fleet):
    assert fleet.cards["zombies"].state == "done"
    assert fleet.cards["zombies"].result["zombies"] <= 5


def test_a_body_sees_the_variables_of_the_allow_list_and_no_secret(fleet):
    seen = fleet.cards["environment"].result["env"]
    passed = {"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM"} & set(os.environ)
    own = {
        "HOME",
        "TMPDIR",
        "NOTIFY_SOCKET",
        "WATCHDOG_USEC",
        "COUNCIL_SLICE",
        "COUNCIL_RUN",
        "COUNCIL_AGENT",
        "COUNCIL_CARD",
        "COUNCIL_PARENT",
    }
    assert set(seen) - {"LC_CTYPE"} == (passed | own) - {"LC_CTYPE"}
    assert "s3cr3t" not in json.dumps(seen)
    assert seen["HOME"] == seen["TMPDIR"] == seen["COUNCIL_SLICE"]
    assert seen["HOME"].endswith(f"/slices/{fleet.cards['environment'].run}/data")


def test_a_body_has_its_own_session_a_closed_stdin_and_no_descriptor_of_ours(fleet):
    facts = fleet.cards["environment"].result
    assert (facts["session"], facts["group"], facts["stdin"]) == (True, True, "")
    assert facts["umask"] == UMASK
    assert facts["cwd"] == "/tmp"
    assert facts["fds"] == [0, 1, 2]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("no-program", "cannot start /no/such/program: No such file or directory"),
        ("no-workdir", "cannot start echo: No such file or directory: /no/such/folder"),
        ("bad-exit", "exit status 3: seen it"),
        ("killed", "signal 9: command: sh -c 'kill -KILL $$'"),
    ],
)
def test_a_program_that_fails_is_an_error_that_says_how(fleet, name, reason):
    assert (fleet.cards[name].state, fleet.cards[name].fail) == ("failed", "error")
    assert fleet.cards[name].reason == reason
    assert fleet.cards[name].entry is not None, "an error is an answer, and signed"


@pytest.mark.parametrize("name", ["no-report", "no-json", "deep-json"])
def test_exit_0_without_a_report_that_can_be_carried_is_a_violation(fleet, name):
    assert (fleet.cards[name].state, fleet.cards[name].fail) == ("failed", "protocol_violation")
    assert K.PROTOCOL_VIOLATION in [event.kind for event in fleet.of(name)]
    assert fleet.cards[name].entry is None


def test_a_program_that_asks_blocks_its_card_for_a_person(fleet):
    asks = fleet.cards["asks"]
    assert (asks.state, asks.block, asks.reason) == ("blocked", "needs_input", "which one?")


def test_a_slice_that_was_overfilled_just_before_the_end_is_a_breach_too(fleet):
    breach = fleet.first("overfills-and-leaves", K.SLICE_BREACHED).data
    assert breach["used"] > breach["limit"] == MB
    assert fleet.cards["overfills-and-leaves"].fail == "protocol_violation"


def test_a_slice_is_cleared_even_when_its_body_locked_it(fleet):
    assert fleet.first("locks-its-slice", K.SLICE_CLEARED).data["cleared"] is True


def test_a_body_that_removes_its_own_slice_harms_only_itself(fleet):
    assert fleet.cards["removes-its-slice"].state == "done"
    assert fleet.first("removes-its-slice", K.SLICE_CLEARED).data["cleared"] is True


@pytest.mark.parametrize("name", ["attaches", "attaches-in-disguise"])
def test_no_process_of_an_agent_may_attach_as_operator(fleet, name):
    assert b"the answer: " in fleet.output(name)
    assert b"an agent's process may not act as an operator" in fleet.output(name)


def test_a_flood_of_status_lines_reaches_the_journal_as_a_few_safe_ones(fleet):
    said = [event.data["text"] for event in fleet.of("talks") if event.kind is K.STATUS]
    assert 1 <= len(said) < 50
    assert all(re.fullmatch(r"step \d+␛\[31m", text) for text in said)
