"""The control room on a pty: it draws, it answers, and however it ends it gives the terminal back."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pexpect
import psutil
import pyte
import pytest

ALTERNATE_OFF = "\x1b[?1049l"
PATIENCE = 30


class Terminal:
    """A `council` on a pty of 120x40, and the screen as a person would see it."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        env = {
            "PATH": os.environ["PATH"],
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "TEXTUAL_DISABLE_KITTY_KEY": "1",
        }
        self.child = pexpect.spawn(
            sys.executable,
            ["-m", "council_tui", *arguments],
            env=env | environment,
            dimensions=(40, 120),
            timeout=PATIENCE,
            encoding="utf-8",
        )
        self.child.delaybeforesend = None
        self.raw = ""
        self.screen = pyte.Screen(120, 40)
        self._stream = pyte.Stream(self.screen)

    def until(self, pattern: str, *, at_cursor: bool = False) -> str:
        """Read until the screen, or the line that the cursor is on, shows `pattern`; that text."""
        wanted = re.compile(pattern)
        deadline = time.monotonic() + PATIENCE
        while not wanted.search(text := self._text(at_cursor)):
            if time.monotonic() > deadline:
                raise AssertionError(f"{pattern!r} was never shown; last screen:\n{text}")
            try:
                chunk = self.child.read_nonblocking(65536, PATIENCE)
            except pexpect.EOF:
                raise AssertionError(f"ended before {pattern!r} was shown; last screen:\n{text}") from None
            self._take(chunk)
        return text

    def _text(self, at_cursor: bool) -> str:
        lines = self.screen.display
        return lines[self.screen.cursor.y] if at_cursor else "\n".join(lines)

    def _take(self, chunk: str) -> None:
        self.raw += chunk
        self._stream.feed(chunk)

    def rest(self) -> str:
        """Everything up to the end of the program."""
        while True:
            try:
                self._take(self.child.read_nonblocking(65536, PATIENCE))
            except pexpect.EOF:
                self.child.close()
                return self.raw


@pytest.fixture
def home() -> Iterator[str]:
    root = tempfile.mkdtemp(prefix="tty-")
    yield f"{root}/home"
    shutil.rmtree(root, ignore_errors=True)


def below(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


def test_the_demo_draws_answers_and_ends_everything_on_q():
    term = Terminal("--demo")
    screen = term.until(r"went-quiet\s+● alive")
    assert "Hermes" in screen
    assert "Heartbeats" in screen
    started = below(term.child.pid)
    term.child.send("?")
    term.until("Everywhere")
    term.child.send("?")
    term.child.send("q")
    term.until("agents live")
    term.child.send("e")
    end = term.rest()
    assert ALTERNATE_OFF in end
    assert re.search(r"\d+ agents ended, 0 left; ledger VALID", end)
    assert term.child.exitstatus == 0
    assert not [p for p in started if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_gives_the_terminal_back_and_ends_the_fleet(number: signal.Signals):
    term = Terminal("--demo")
    term.until(r"went-quiet\s+● alive")
    started = below(term.child.pid)
    os.kill(term.child.pid, number)
    assert ALTERNATE_OFF in term.rest()
    _, alive = psutil.wait_procs(started, timeout=PATIENCE)
    assert not alive


def test_ctrl_j_sends_the_spawn_dialog_and_the_wheel_scrolls_its_contract(home: str):
    term = Terminal("--home", home)
    term.until(r"OpenClaw\s+● alive")
    term.child.send("s")
    term.until(r"Spawn wants: name, command\.")
    term.child.send("hello\t")
    term.until("command", at_cursor=True)
    term.child.send("echo hello")
    term.until(r"Valid\.")
    term.until(r"1-\d+ of \d+")
    term.child.send("\x1b[<65;90;10M" * 3)
    term.until(r" [2-9]-\d+ of \d+")
    term.child.send("\x1b[6~")
    term.until(r" [12]\d-\d+ of \d+")
    term.child.send("\n")
    term.until(r"hello: card t_\w+ is on the board")
    term.until(r"Done 1")
    term.child.send("q")
    assert "0 left; ledger VALID" in term.rest()


def test_a_console_says_whether_the_council_it_was_attached_to_goes_on_or_has_ended(home: str, tmp_path: Path):
    flag, plan = tmp_path / "flag", tmp_path / "plan.yaml"
    plan.write_text(
        "council: 1\nname: waits\n"
        "defaults: {envelope: {time_budget_minutes: 5, autonomy_band: AUTONOMOUS, tools_scope: [exec], "
        "rollback_plan: No changes}}\n"
        f"children: [{{id: waiter, parent: zeroclaw, run: [sh, -c, 'until [ -e {flag} ]; do sleep 0.1; done']}}]\n"
    )
    run = subprocess.Popen(
        [sys.executable, "-m", "council_tui", "--home", home, "--run", str(plan), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert run.stdout is not None
    with run.stdout:
        assert any('"body_started"' in line for line in run.stdout)
        guests = [Terminal("--home", home), Terminal("--home", home)]
        for guest in guests:
            guest.until(r"waiter\s+● alive")
        guests[0].child.send("q")
        assert f"the council goes on in process {run.pid}" in guests[0].rest()
        flag.touch()
        run.stdout.read()
        assert run.wait() == 0
    screen = guests[1].until("fleet waits has ended with exit code 0: press q; `council` starts a new one")
    assert "alive" not in screen
    assert re.search(r"OpenClaw\s+\? unknown", screen)
    guests[1].child.send("q")
    end = guests[1].rest().rpartition(ALTERNATE_OFF)[2]
    assert "fleet waits has ended with exit code 0" in end
    assert "goes on" not in end


def test_without_colour_no_colour_is_sent(home: str):
    term = Terminal("--home", home, NO_COLOR="1")
    term.until("OpenClaw")
    term.child.send("q")
    end = term.rest()
    assert not re.search(r"\x1b\[[0-9;]*[34]8;[25]", end)


def test_after_a_kill_the_next_start_finds_nothing_alive_and_says_what_it_ended(home: str, tmp_path: Path):
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "council: 1\nname: long\n"
        "defaults: {envelope: {time_budget_minutes: 5, autonomy_band: AUTONOMOUS, tools_scope: [exec], "
        "rollback_plan: No changes}, lifecycle_policy: {grace_seconds: 0.5, patience_seconds: 1}}\n"
        "children: [{id: sleeper, parent: zeroclaw, run: [sleep, '600']}]\n"
    )
    run = subprocess.Popen(
        [sys.executable, "-m", "council_tui", "--home", home, "--run", str(plan), "--json"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert run.stdout is not None
    with run.stdout:
        assert any('"body_started"' in line for line in run.stdout)
        started = below(run.pid)
        run.kill()
        run.wait()
    _, alive = psutil.wait_procs(started, timeout=PATIENCE)
    assert not alive
    term = Terminal("--home", home)
    term.until(r"sleeper: is gone; its card is told")
    term.until(r"Do the rest\? \[Y/n\]")
    term.child.send("\r")
    term.until(r"Failed 1")
    term.until(r"sleeper\s+✗ orphan")
    term.child.send("q")
    assert "0 left; ledger VALID" in term.rest()


def test_a_pipe_is_refused_with_one_sentence(home: str):
    done = subprocess.run(
        [sys.executable, "-m", "council_tui", "--home", home], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "not a terminal" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not Path(home).exists()
