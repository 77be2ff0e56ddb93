"""Standard output and error: readers that are slow or gone, and faults of ours."""

from __future__ import annotations

import os
import threading

from council_tui.headless.crash import crash_report
from council_tui.headless.writer import Output


def test_a_reader_that_sleeps_holds_nobody_up():
    reader, writer = os.pipe()
    ended = threading.Event()
    output = Output(writer, lambda gone: ended.set())
    for _ in range(100):
        output.write("x" * 65536)
    assert not ended.is_set()
    output.finish()
    taken = 0
    while taken < 100 * 65536:
        taken += len(os.read(reader, 1 << 20))
    assert ended.wait(10)
    os.close(reader)
    os.close(writer)


def test_a_reader_that_is_gone_is_told_once_and_the_rest_is_dropped():
    reader, writer = os.pipe()
    os.close(reader)
    told: list[bool] = []
    ended = threading.Event()
    output = Output(writer, lambda gone: (told.append(gone), ended.set())[0])
    output.write("nobody reads this")
    assert ended.wait(10)
    output.write("nor this")
    output.close(5)
    assert told == [True]
    os.close(writer)


def test_a_crash_report_tells_where_and_no_values():
    secret = "sk-local-value"
    try:
        raise KeyError("missing\x1b[2J") from None
    except KeyError as error:
        report = crash_report(error)
    assert secret not in report
    assert "\x1b" not in report
    assert "test_a_crash_report" in report
    assert report.startswith("council: internal error: KeyError")
