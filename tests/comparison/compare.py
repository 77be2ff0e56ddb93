"""Compare this supervisor with others: `python tests/comparison/compare.py --children 100 1000 --json`.

The same plain children under each, measured by the same eyes in the same run, beside a floor that does the
least anybody could do. The peers are installed into a cache directory, and only for this.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

if __name__ == "__main__":
    # Run as a script: the package lies beside the other tests.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from comparison.environment import NotHere, default_cache
from comparison.figures import (
    combine,
    containment_table,
    figures_table,
    growth,
    growth_table,
    ratio_table,
    ratios,
)
from comparison.peers import FLOOR, MAKERS, TIERS, Peer
from comparison.trial import TooSlow, containment, plain
from council_tui.bench.facts import machine, why_not
from council_tui.headless.arguments import count, seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

OURS = tuple(f"council-{tier}" for tier in TIERS)
NOTE = "council has no way to start a child without the whole handshake: that is what was measured."


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare this supervisor with others on this machine.")
    parser.add_argument("--children", type=count, nargs="+", default=[100, 1000], help="plain children, one size a run")
    parser.add_argument("--rounds", type=count, default=3, help="how often; medians are told")
    parser.add_argument("--peers", nargs="+", choices=MAKERS, default=list(MAKERS), help="who is compared")
    parser.add_argument("--watch", type=seconds, default=5.0, help="seconds to watch each standing idle")
    parser.add_argument("--cache", type=Path, default=default_cache(), help="where the peers are installed")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    return parser.parse_args(argv)


def _say(text: str) -> None:
    print(f"comparison: {text}", file=sys.stderr, flush=True)


def find(names: Sequence[str], cache: Path) -> tuple[list[Peer], dict[str, str]]:
    """Who is here, and why the others are not."""
    here: list[Peer] = []
    missing: dict[str, str] = {}
    for name in names:
        try:
            here.append(MAKERS[name](cache))
        except NotHere as error:
            missing[name] = str(error)
            _say(f"without {name}: {error}")
    return here, missing


def _tried(measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return measure()
    except (TooSlow, NotHere, psutil.Error, subprocess.SubprocessError) as error:
        return {"failed": str(error)}


def _trial(peer: Peer, children: int, watch: float) -> dict[str, Any]:
    reason = why_not(children, "strong" if peer.name == "council-strong" else "portable")
    found = {"failed": reason} if reason else _tried(partial(plain, peer, children, watch))
    _say(f"  {found['failed']}" if "failed" in found else "  started in {start_seconds} s".format(**found))
    return found


def compare(options: argparse.Namespace) -> dict[str, Any]:
    """Everything, as plain JSON values; what an interrupt kept from being measured is not in it."""
    peers, missing = find(options.peers, options.cache)
    rounds: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    held: dict[str, dict[str, Any]] = {}
    interrupted = False
    try:
        for peer, children in _turns(peers, options):
            rounds[peer.name, children].append(_trial(peer, children, options.watch))
        held = _held(peers)
    except KeyboardInterrupt:
        _say("interrupted; what was started is ended")
        interrupted = True
    runs = [{"peer": name, "children": size, **combine(found)} for (name, size), found in rounds.items()]
    return {
        "comparison": "supervisors",
        "note": NOTE,
        "interrupted": interrupted,
        "machine": machine(),
        "peers": {**{peer.name: {"version": peer.version} for peer in peers}, **_missing(missing)},
        "runs": runs,
        "ratios": ratios(runs),
        "growth": growth(runs),
        "containment": held,
    }


def _turns(peers: Sequence[Peer], options: argparse.Namespace) -> Iterator[tuple[Peer, int]]:
    """In each round every peer has its turn, so that noise meets all of them."""
    for children in options.children:
        for number in range(options.rounds):
            for peer in peers:
                _say(f"{peer.name}, {children} children, round {number + 1} of {options.rounds}")
                yield peer, children


def _held(peers: Sequence[Peer]) -> dict[str, dict[str, Any]]:
    """What each leaves behind; all at once, for nothing here is about time."""
    _say("one child whose processes hide, under each")
    with ThreadPoolExecutor(max(1, len(peers))) as pool:
        held = pool.map(lambda peer: _tried(partial(containment, peer)), peers)
        return {peer.name: found for peer, found in zip(peers, held, strict=True)}


def _missing(reasons: dict[str, str]) -> dict[str, dict[str, str]]:
    return {name: {"missing": reason} for name, reason in reasons.items()}


def shown(found: dict[str, Any]) -> str:
    """The tables, and who was not there."""
    parts = [
        figures_table(found["runs"]),
        ratio_table(found["ratios"], OURS),
        *([growth_table(found["growth"])] if found["growth"] else []),
        containment_table(found["containment"]),
        NOTE,
        *(f"not here: {name}: {said['missing']}" for name, said in found["peers"].items() if "missing" in said),
    ]
    return "\n\n".join(parts)


def main(argv: Sequence[str] | None = None) -> int:
    """Compare and print; 0, 1 when the floor or we could not be measured, 130 when interrupted."""
    options = _arguments(argv)
    # A polite end takes the same way as Ctrl-C: what was started is ended.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        found = compare(options)
    except KeyboardInterrupt:
        _say("interrupted before anything was started")
        return 130
    print(json.dumps(found) if options.json else shown(found))
    if found["interrupted"]:
        return 130
    needed = [run for run in found["runs"] if run["peer"] in (FLOOR, *OURS)]
    return 1 if any("failed" in run for run in needed) else 0


if __name__ == "__main__":
    sys.exit(main())
