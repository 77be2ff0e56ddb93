"""A council takes every descriptor that it may have; what it starts finds the limit that it was started with."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from faults.shortage import no_descriptors

from council_tui.hosts import descriptors

TESTS = Path(__file__).resolve().parent.parent
FLEET = """
import json, os, resource, sys
from pathlib import Path
os.environ["COUNCIL_TIER"] = "portable"
from supervisor.stage import child, plan_of, play
played = play(Path(sys.argv[1]), plan_of(child("told", "ulimit -Sn; ulimit -Hn")))
print(json.dumps([resource.getrlimit(resource.RLIMIT_NOFILE)[0], played.output("told").decode().split()]))
"""
COMMAND = """
import json, subprocess
from council_tui.hosts import descriptors
descriptors.widen()
print(subprocess.run(descriptors.as_given(["sh", "-c", 'ulimit -Sn; echo "$0|$1"', "a b", "c'd"]),
                     capture_output=True, text=True).stdout)
"""
REFUSED = """
from council_tui.domain.errors import CouncilError
from council_tui.hosts import descriptors
try:
    descriptors.make_room()
except CouncilError as error:
    print(error)
"""


def limited(code, *arguments, soft, hard):
    """What a Python program prints that is started under these limits."""
    line = f'ulimit -Sn {soft} && ulimit -Hn {hard} && exec "$0" "$@"'
    environment = {**os.environ, "PYTHONPATH": f"{TESTS.parent}{os.pathsep}{TESTS}"}
    argv = ["sh", "-c", line, sys.executable, "-c", code, *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, env=environment, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_council_takes_all_it_can_get_and_its_programs_keep_what_it_was_given(home):
    assert json.loads(limited(FLEET, str(home), soft=300, hard=700)) == [700, ["300", "700"]]


def test_a_command_runs_as_given_with_every_word_as_it_is():
    assert limited(COMMAND, soft=200, hard=300) == "200\na b|c'd\n\n"


def test_where_nothing_was_changed_a_command_is_what_it_was(monkeypatch):
    monkeypatch.setattr(descriptors, "GIVEN", resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    assert descriptors.as_given(("a", "b")) == ["a", "b"]


@pytest.mark.parametrize(
    ("hard", "most", "room"), [(1000, 1000, 900), (50, 50, 0), (resource.RLIM_INFINITY, None, None)]
)
def test_there_is_room_for_as_many_agents_as_files_are_left(monkeypatch, hard, most, room):
    monkeypatch.setattr(descriptors.resource, "getrlimit", lambda which: (10, hard))
    assert (descriptors.limit(), descriptors.most(), descriptors.room()) == (10, most, room)


def test_what_is_open_is_counted_also_when_nothing_more_can_be_opened():
    before = descriptors.used()
    read, write = os.pipe()
    assert descriptors.used() == before + 2
    with no_descriptors():
        assert descriptors.used() >= descriptors.limit() - 8
        with pytest.raises(OSError, match="Too many open files"):
            descriptors.need(1)
    with no_descriptors(3):
        descriptors.need(3)
        with pytest.raises(OSError, match="Too many open files"):
            descriptors.need(4)
        descriptors.need(3)
    os.close(read)
    os.close(write)


def test_a_council_that_could_not_come_up_is_refused_in_one_sentence():
    told = limited(REFUSED, soft=20, hard=40)
    assert told == (
        "a council needs 40 open files to start, and there are fewer left: this process may have 40 open (ulimit -Hn); "
        "raise that limit, or end something, then start again\n"
    )
