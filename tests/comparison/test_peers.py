"""How each peer is told what to keep, and how one that cannot be had is told of."""

from __future__ import annotations

import json
from configparser import ConfigParser, RawConfigParser
from pathlib import Path

import pytest

from comparison import environment
from comparison.environment import NotHere
from comparison.peers import MAKERS, Peer, circus_config, pm2_config, supervisord_config

FOLDER = Path("/tmp/cmp-x")
ARGV = ("/bin/sleep", "7 %d")


def test_supervisord_keeps_so_many_and_ends_whole_groups():
    config = RawConfigParser()
    config.read_string(supervisord_config(FOLDER, 40, ARGV))
    program = config["program:plain"]
    assert (program["command"], program["numprocs"]) == ("/bin/sleep '7 %%d'", "40")
    assert (program["stopasgroup"], program["killasgroup"]) == ("true", "true")
    assert int(config["supervisord"]["minfds"]) > 3 * 40


def test_circus_keeps_so_many_and_speaks_over_sockets_in_the_folder_only():
    config = ConfigParser(interpolation=None)
    config.read_string(circus_config(FOLDER, 40, ARGV))
    assert config["watcher:plain"]["numprocesses"] == "40"
    assert {config["circus"][name] for name in ("endpoint", "pubsub_endpoint")} == {
        "ipc:///tmp/cmp-x/e",
        "ipc:///tmp/cmp-x/p",
    }


def test_pm2_runs_the_program_itself_and_not_node():
    (app,) = json.loads(pm2_config(40, ARGV))["apps"]
    assert (app["script"], app["args"], app["instances"], app["interpreter"]) == ("/bin/sleep", ["7 %d"], 40, "none")


def test_a_peer_gets_a_home_of_its_own_and_nothing_of_our_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTHONPATH", "/ours")
    monkeypatch.setenv("SECRET", "ours")
    peer = Peer("x", "1", lambda folder, count, argv: [], environment=(("PM2_HOME", "{folder}"),))
    found = peer.variables(FOLDER)
    assert (found["HOME"], found["TMPDIR"], found["PM2_HOME"]) == (str(FOLDER),) * 3
    assert not {"PYTHONPATH", "SECRET"} & set(found)
    assert MAKERS["council-portable"](FOLDER).variables(FOLDER)["PYTHONPATH"] == "/ours"


def test_strong_mode_is_compared_only_where_there_is_one():
    with pytest.raises(NotHere, match="COUNCIL_TIER asks for it"):
        MAKERS["council-strong"](FOLDER)


def test_a_machine_without_node_says_so_and_installs_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotHere, match="node and npm are not installed"):
        MAKERS["pm2"](tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def test_an_installation_that_failed_is_told_with_its_last_line_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    for name, script in (("node", "exit 0"), ("npm", "echo first >&2; echo no such registry >&2; exit 7")):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    for _ in range(2):
        with pytest.raises(NotHere, match="npm install ended with 7: no such registry"):
            MAKERS["pm2"](tmp_path / "cache")
    (tmp_path / "npm").write_text("#!/bin/sh\nexit 0\n")
    package = environment.node_peers(tmp_path / "cache")
    package.mkdir(parents=True)
    (package / "package.json").write_text('{"version": "7.0.4"}')
    (tmp_path / "npm").write_text("#!/bin/sh\nexit 9\n")
    assert MAKERS["pm2"](tmp_path / "cache").version == "7.0.4"
