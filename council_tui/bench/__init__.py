"""`council bench`: what this machine and this build can do, each figure beside a floor measured in the same run.

Ratios are what to compare: seconds of a shared machine swing by a factor of two or three.
"""

from __future__ import annotations

import argparse
import importlib
import json
import signal
import sys
from typing import TYPE_CHECKING, Any, Protocol, cast

from council_tui.bench.facts import machine
from council_tui.bench.figures import table
from council_tui.domain.errors import CouncilError
from council_tui.headless.arguments import Parser, count, seconds

if TYPE_CHECKING:
    from collections.abc import Sequence


TIERS = ("portable", "strong")


class _Benchmark(Protocol):
    def measure(self, options: argparse.Namespace) -> dict[str, Any]:
        """Everything this benchmark has to say, as plain JSON values."""


def _watch(text: str) -> float:
    value = seconds(text)
    if value > 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is more than an hour")
    return value


def _grace(text: str) -> float:
    value = seconds(text)
    if value > 60:
        raise argparse.ArgumentTypeError(f"{text!r} is more than the minute that a contract may say")
    return value


def _parser() -> Parser:
    parser = Parser(
        prog="council bench",
        allow_abbrev=False,
        description="Measure this build on this machine, in a temporary home, beside floors of the same run.",
    )
    common = Parser(add_help=False)
    common.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    kinds = parser.add_subparsers(dest="command", required=True, metavar="BENCHMARK")

    spawn = kinds.add_parser("spawn", parents=[common], help="handshakes, memory, beats, deaths and reaps")
    sizes = [10, 100, 1000, 2000]
    spawn.add_argument("--children", type=count, nargs="+", default=sizes, help="fleet sizes, one run each")
    spawn.add_argument("--tier", choices=TIERS, nargs="+", default=TIERS, help="enforcement to measure, one run each")
    spawn.add_argument("--beats", type=_watch, default=5.0, help="seconds to watch the fleet beat, and stand idle")
    spawn.add_argument("--interval", type=_watch, default=1.0, help="seconds between two beats")
    spawn.add_argument("--grace", type=_grace, default=5.0, help="seconds between SIGTERM and SIGKILL of the deaf tree")

    board = kinds.add_parser("board", parents=[common], help="claims, journal appends and replay")
    board.add_argument("--claims", type=count, default=2000, help="cards to claim over the socket")
    board.add_argument("--events", type=count, default=5000, help="events to append and replay")

    ledger = kinds.add_parser("ledger", parents=[common], help="signing, appending, proving and auditing")
    ledger.add_argument("--entries", type=count, default=5000, help="entries in the log")
    ledger.add_argument("--memory", type=count, nargs=2, default=[2000, 20000], help="two sizes to compare memory at")

    console = kinds.add_parser("console", parents=[common], help="key to paint, first paint, CPU and memory")
    console.add_argument("--agents", type=count, default=1000, help="rows of the hierarchy")
    console.add_argument("--cards", type=count, default=10_000, help="cards on the board")
    console.add_argument("--keys", type=count, default=200, help="key presses at random moments")
    console.add_argument("--watch", type=_watch, default=5.0, help="seconds to watch the room live without keys")
    console.add_argument("--seed", type=int, default=7, help="of the council that is shown")
    return parser


def main(argv: Sequence[str]) -> int:
    """Run one benchmark and print what it found; 0, or 1 when it could not be run."""
    options = _parser().parse(argv)
    benchmark = cast("_Benchmark", importlib.import_module(f"council_tui.bench.{options.command}"))
    # A polite end takes the same way as Ctrl-C: what was started is reaped and the temporary home is removed.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        found = {"bench": options.command, "machine": machine(), **benchmark.measure(options)}
    except CouncilError as error:
        print(f"council bench {options.command}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("council: interrupted; what was measured is gone", file=sys.stderr)
        return 130
    finally:
        signal.signal(signal.SIGTERM, before)
    print(json.dumps(found) if options.json else table(found))
    return 0
