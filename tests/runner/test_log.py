"""An agent's output on disk: bounded, and in nobody's way."""

from __future__ import annotations

import hashlib
import os
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council_tui.runner import log as module
from council_tui.runner.log import OutputLog


@pytest.fixture
def log(tmp_path):
    log = OutputLog(tmp_path / "run")
    yield log
    log.close()


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=8))
def test_the_last_line_does_not_depend_on_how_the_output_was_cut(tmp_path_factory, raw, cuts):
    log = OutputLog(tmp_path_factory.mktemp("log"))
    edges = sorted({0, len(raw), *(cut for cut in cuts if cut < len(raw))})
    for start, end in pairwise(edges):
        log.write(raw[start:end], stdout=True)
    lines = [line.strip() for line in raw.split(b"\n") if line.strip()]
    assert log.last_line == (lines[-1] if lines else b"")
    assert log.sha256 == hashlib.sha256(raw).hexdigest()
    assert log.tail() == raw
    log.close()


def test_stderr_is_kept_and_is_never_the_last_line(log):
    log.write(b"result\n", stdout=True)
    log.write(b"a warning\n", stdout=False)
    assert log.last_line == b"result"
    assert log.tail() == b"result\na warning\n"


def test_an_overlong_line_is_no_last_line_and_the_one_after_it_is(log, monkeypatch):
    monkeypatch.setattr(module, "LAST_LINE_CAP", 100)
    log.write(b"x" * 150, stdout=True)
    assert log.last_line == b""
    log.write(b'{"end": "of it"}', stdout=True)
    assert log.last_line == b""
    log.write(b"\nshort", stdout=True)
    assert log.last_line == b"short"


def test_two_files_are_kept_and_each_is_bounded(log, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "ROTATE_AT", 100)
    for number in range(50):
        log.write(b"%02d" % number * 20, stdout=True)
    kept = {name: (tmp_path / "run" / name).stat().st_size for name in os.listdir(tmp_path / "run")}
    assert set(kept) == {"output.log", "output.log.1"}
    assert max(kept.values()) <= 100
    assert log.total == 50 * 40


def test_a_rotation_that_fails_keeps_the_log_and_the_program_going(log, monkeypatch):
    monkeypatch.setattr(module, "ROTATE_AT", 10)

    def full(*_):
        raise OSError(28, "No space left on device")

    log.write(b"12345678", stdout=True)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        log.write(b"lost", stdout=True)
    log.write(b"kept\n", stdout=True)
    assert log.last_line == b"12345678lostkept"
    assert log.tail() == b"12345678lostkept\n"
    assert log.path.read_bytes() == b"kept\n"
    assert log.path.with_name("output.log.1").read_bytes() == b"12345678"
    assert log.loss == "4 bytes of its output are not in the log: No space left on device"


def test_a_log_whose_folder_cannot_be_had_is_begun_as_soon_as_it_can(tmp_path):
    (tmp_path / "logs").write_text("in the way")
    log = OutputLog(tmp_path / "logs" / "run")
    log.write(b"lost\n", stdout=True)
    (tmp_path / "logs").unlink()
    log.write(b"kept\n", stdout=True)
    log.close()
    assert log.path.read_bytes() == b"kept\n"
    assert log.tail() == b"lost\nkept\n"
    assert log.loss == "5 bytes of its output are not in the log: Not a directory"


def test_a_disk_that_takes_a_part_of_a_chunk_loses_the_rest_and_says_so(log, monkeypatch):
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda fd, chunk: write(fd, chunk[:3]))
        log.write(b"12345", stdout=True)
    log.write(b"67", stdout=True)
    assert log.path.read_bytes() == b"12367"
    assert log.loss == "2 bytes of its output are not in the log: the disk took a part"


def test_what_stands_in_the_logs_place_by_now_is_not_taken_for_the_log(log):
    log.write(b"said\n", stdout=True)
    log.path.unlink()
    os.mkfifo(log.path)
    assert log.tail() == b"said\n"


def test_a_log_is_its_owners_alone_and_follows_no_link(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "output.log").symlink_to(tmp_path / "elsewhere")
    log = OutputLog(tmp_path / "run")
    assert not (tmp_path / "elsewhere").exists()
    assert log.path.stat().st_mode & 0o777 == 0o600
    log.close()


def test_a_fifo_in_the_logs_place_keeps_nobody_waiting(tmp_path):
    os.mkfifo(tmp_path / "output.log")
    log = OutputLog(tmp_path)
    log.write(b"said\n", stdout=True)
    log.close()
    assert (tmp_path / "output.log").read_bytes() == b"said\n"
