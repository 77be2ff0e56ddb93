"""The `council` command: its arguments, and which part of the program answers them.

Everything heavy is imported where it is used, so that `--help` answers at once.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from typing import TYPE_CHECKING

from council_tui import __version__
from council_tui.headless.arguments import BAD_INPUT, Parser, index, seconds
from council_tui.headless.exits import MEANING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from council_tui.board.home import Home
    from council_tui.domain.errors import PlanInvalid

INTERNAL, INTERRUPTED = 70, 130

_EXAMPLES = """\
examples:
  council --run repo-audit        audit the git repository you stand in
  council                         open the control room on the same fleet
  council --demo                  look around in a fleet that has some trouble
  council --run plan.yaml --dry-run
  council --run plan.yaml --json | jq -r 'select(.type == "summary").exit'
  council events --follow         watch a fleet that runs elsewhere
  council verify                  check every signature of the ledger
  council doctor                  see what this machine enforces
  council --run plan.yaml --detach; council; council stop

exit codes of --run (several apply: the first of 130, 70, 2, 5, 4, 1, 3, 0):
"""
_ENVIRONMENT = """
environment:
  COUNCIL_HOME   the home, when --home is not given
  COUNCIL_TIER   portable: no namespaces, also where bubblewrap could make them
  NO_COLOR       no colours

The home is where a council keeps its board, ledger, keys and logs: --home, else COUNCIL_HOME, else the
nearest .council directory upwards, else .council in the git repository, else the user's data directory.
"""


_NO_PLACING = ("", "dumb", "unknown")
"""Kinds of terminal on which no cursor can be moved (terminfo(5))."""
_HOME = "where the council keeps its files"


def _epilog() -> str:
    codes = "".join(f"  {code:<4}{words}\n" for code, words in MEANING.items())
    return _EXAMPLES + codes + _ENVIRONMENT


def build_parser() -> Parser:
    """The whole command line."""
    parser = Parser(
        prog="council",
        description="The control room for a fleet of AI agents. Without arguments it opens the room.",
        epilog=_epilog(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"council {__version__}")
    parser.add_argument("--home", metavar="DIR", help=_HOME)
    room = parser.add_argument_group("the control room")
    room.add_argument("--demo", action="store_true", help="open it on a fleet made for looking around")
    room.add_argument("--ascii", action="store_true", help="draw with ASCII only")
    room.add_argument("--read-only", action="store_true", help="look, and change nothing")
    room.add_argument("--take-over", action="store_true", help="take the fleet over from the process that runs it")
    run = parser.add_argument_group("run a fleet without it")
    run.add_argument("--run", metavar="PLAN", help="a plan file, or the name of a shipped plan")
    run.add_argument("--json", action="store_true", help="print JSON Lines: a snapshot, events, a summary")
    run.add_argument("--timeout", metavar="SECONDS", type=seconds, help="end the fleet after so long")
    run.add_argument("--detach", action="store_true", help="run it in the background; returns once it is open")
    run.add_argument("--dry-run", action="store_true", help="say what would happen, and start nothing")
    _add_commands(parser)
    return parser


def _add_commands(parser: Parser) -> None:
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="read what is there, and give orders")

    def add(name: str, words: str, *, json: bool = True, home: bool = True, own: bool = False) -> Parser:
        made: Parser = commands.add_parser(
            name, help=words, description=f"{words[0].upper()}{words[1:]}.", allow_abbrev=False, add_help=not own
        )
        # Suppressed defaults: what stood before the command must not be overwritten by what did not follow it.
        if home:
            made.add_argument("--home", metavar="DIR", default=argparse.SUPPRESS, help=_HOME)
        if json:
            made.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")
        return made

    add("board", "the cards, lane by lane")
    add("tree", "who spawned whom, and how each card stands")
    add("agents", "every agent with its state, process and card")
    events = add("events", "what happened in the newest fleet")
    events.add_argument("--follow", action="store_true", help="go on with what happens from now on, until Ctrl-C")
    events.add_argument("--all", action="store_true", help="from the first event of this home on")
    add("card", "one card in full").add_argument("id", metavar="ID", help="a card's id, or its name in the plan")
    word = add("comment", "put a comment of yours on a card", json=False)
    word.add_argument("id", metavar="ID", help="a card's id, or its name in the plan")
    word.add_argument("text", metavar="TEXT", help="what to say")
    stop = add("stop", "end the fleet that runs here, in order, and wait for that", json=False)
    stop.add_argument("--now", action="store_true", help="emergency stop: SIGKILL to every agent, no grace")
    for name, does in (("freeze", "stop an agent and all below it where they stand"), ("thaw", "let it go on")):
        order = add(name, does, json=False)
        order.add_argument("id", metavar="ID", help="its name, its card's id or name in the plan, or `all`")
    serve = add("serve", "run the council of a home without a terminal, until it is stopped")
    serve.add_argument("--until-done", action="store_true", help="leave once nothing is left to do")
    serve.add_argument("--wait", action="store_true", help="wait until the process that runs it has left")
    config = add("config", "print what other programs need to know of this one", json=False)
    config.add_argument("what", choices=("unit",), help="unit: a systemd user unit for `council serve`")
    add("ledger", "the rows of the ledger")
    verify = add("verify", "check the ledger; exit code 0 only when it is VALID")
    verify.add_argument("--entry", metavar="N", type=index, help="check this entry alone, and explain it")
    add("report", "the newest report, as Markdown")
    add("doctor", "what this machine enforces and can carry; exit code 1 when something wants mending")
    plans = add("plans", "the shipped plans", home=False)
    plans.add_argument("name", metavar="NAME", nargs="?", help="print this one as YAML")
    add("schema", "the JSON Schema of every line that --json prints", home=False)
    bench = add("bench", "measure this machine: spawn, board, ledger or console", json=False, home=False, own=True)
    bench.add_argument("rest", nargs=argparse.REMAINDER, metavar="...", help="what to measure, and how")


def _check(args: argparse.Namespace, parser: Parser) -> None:
    """Refuse flags that have no meaning together."""
    if args.run is not None:
        for flag, given in _of_the_room(args):
            if given:
                parser.error(f"{flag} belongs to the control room, not to --run")
        if args.detach and (args.json or args.dry_run):
            parser.error("--detach prints nothing of the fleet; follow it with `council events --follow --json`")
        if args.command is not None:
            parser.error(f"--run and {args.command} are two commands; give one")
        if args.dry_run and args.timeout is not None:
            parser.error("--dry-run runs nothing that --timeout could end")
        return
    for flag, given in (
        ("--timeout", args.timeout is not None),
        ("--dry-run", args.dry_run),
        ("--detach", args.detach),
    ):
        if given:
            parser.error(f"{flag} needs --run PLAN")
    if args.command is None and args.json:
        parser.error("--json needs --run PLAN or a command like board")
    if args.command == "bench" and args.home is not None:
        parser.error("bench makes a home of its own; --home does not belong to it")
    for flag, given in _of_the_room(args):
        if given and args.command is not None:
            parser.error(f"{flag} belongs to the control room, not to {args.command}")
    if args.take_over and (args.demo or args.read_only):
        parser.error("--take-over changes who runs a fleet; neither --demo nor --read-only go with it")


def _of_the_room(args: argparse.Namespace) -> tuple[tuple[str, bool], ...]:
    """Flags that have no meaning elsewhere, and whether they were given."""
    names = ("demo", "ascii", "read_only", "take_over")
    return tuple((f"--{name.replace('_', '-')}", getattr(args, name)) for name in names)


def find(args: argparse.Namespace) -> Home:
    """The home that the arguments name."""
    from pathlib import Path

    from council_tui.board.home import find_home

    return find_home(args.home, Path.cwd())


def open_console(args: argparse.Namespace) -> int:
    """Open the control room, which is the one thing that needs a terminal."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return _refuse("this is not a terminal; use council --run PLAN")
    if (kind := os.environ.get("TERM", "")) in _NO_PLACING:
        said = f"TERM is {kind}" if kind else "TERM is not set"
        return _refuse(f"this terminal cannot place text ({said}); use council --run PLAN")
    from council_tui.console.start import Look, start

    look = Look(demo=args.demo, ascii=args.ascii, read_only=args.read_only)
    return start(find(args), look, take_over=args.take_over)


def _refuse(sentence: str) -> int:
    sys.stderr.write(f"council: {sentence}\n")
    return BAD_INPUT


def _run(args: argparse.Namespace) -> int:
    from pathlib import Path

    from council_tui.domain.errors import PlanInvalid
    from council_tui.fleet.needs import check_needs
    from council_tui.fleet.plan import load_plan

    try:
        plan = load_plan(args.run)
        check_needs(plan, Path.cwd())
    except PlanInvalid as error:
        return _mistakes(error, json=args.json)
    if args.dry_run:
        from council_tui.headless.dry_run import dry_run

        return dry_run(plan, json=args.json)
    if args.detach:
        from council_tui.control.background import detach

        timeout = [] if args.timeout is None else ["--timeout", str(args.timeout)]
        return detach(find(args), ["--run", args.run, *timeout])
    from council_tui.headless.run import Request, run_plan

    return run_plan(Request(plan, find(args), args.json, args.timeout, args.home))


def _mistakes(error: PlanInvalid, *, json: bool) -> int:
    """Tell every mistake of a plan, each with its place."""
    from council_tui.domain.text import safe

    if json:
        from council_tui.headless.lines import mistakes_line
        from council_tui.headless.printing import show_json

        show_json(mistakes_line(error))
        return _refuse(f"{safe(str(error), 2000)}; nothing was started")
    for mistake in error.mistakes:
        sys.stderr.write(safe(mistake.render(error.source), 2000) + "\n")
    return BAD_INPUT


def _read(args: argparse.Namespace) -> int:
    """The commands that read, and those that give orders."""
    match args.command:
        case "stop" | "freeze" | "thaw":
            from council_tui.headless import orders

            if args.command == "stop":
                return orders.stop(find(args), at_once=args.now)
            return orders.freeze(find(args), args.id, frozen=args.command == "freeze")
        case "serve":
            from council_tui.headless.run import Request, run_plan

            stays = not args.until_done
            return run_plan(Request(None, find(args), args.json, None, args.home, stays=stays, waits=args.wait))
        case "board" | "tree" | "agents":
            from council_tui.headless import reads

            show: Callable[..., int] = getattr(reads, args.command)
            return show(find(args), json=args.json)
        case "card":
            from council_tui.headless.reads import card

            return card(find(args), args.id, json=args.json)
        case "comment":
            import asyncio

            from council_tui.control.comment import comment

            asyncio.run(comment(find(args), args.id, args.text))
            return 0
        case "events":
            from council_tui.headless.follow import events

            return events(find(args), json=args.json, follow=args.follow, everything=args.all)
        case "doctor":
            from council_tui.headless.doctor import doctor

            return doctor(find(args), json=args.json)
        case "ledger" | "verify":
            return _ledger(args)
        case _:
            return _text(args)


def _ledger(args: argparse.Namespace) -> int:
    from council_tui.headless import proofs

    if args.command == "verify":
        return proofs.verify(find(args), args.entry, json=args.json)
    return proofs.ledger(find(args), json=args.json)


def _text(args: argparse.Namespace) -> int:
    from council_tui.headless import texts

    if args.command == "report":
        return texts.report(find(args), json=args.json)
    if args.command == "config":
        return texts.unit(find(args))
    return texts.plans(args.name, json=args.json) if args.command == "plans" else texts.schema()


def _dispatch(args: argparse.Namespace) -> int:
    if args.run is not None:
        return _run(args)
    if args.command is None:
        return open_console(args)
    if args.command == "bench":
        from council_tui.bench import main as bench

        return bench([*args.rest, *(["--json"] if args.json else [])])
    return _read(args)


def _interrupt_on_signals() -> None:
    """Until a fleet takes the signals over, each of them ends the command like Ctrl-C does."""

    def interrupted(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)


def _open_what_is_closed() -> None:
    """Stand in for standard streams that whoever started us has closed, as cron and daemons may.

    Without it the next file that is opened gets such a number, and what is meant for a person is written into it.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number is the one that is missing.
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; its exit code."""
    _open_what_is_closed()
    _interrupt_on_signals()
    for stream in (sys.stdout, sys.stderr):
        # Text of ours must come through on any terminal, however little it can show.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    parser = build_parser()
    args = parser.parse(argv, free="bench")
    _check(args, parser)
    try:
        code = _dispatch(args)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        # A fleet that has begun takes the signals over and tells its own end.
        sys.stderr.write(f"council: interrupted{' before anything was started' if args.run else ''}\n")
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        return _failed(error)


def _directory_is_gone() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _failed(error: Exception) -> int:
    from council_tui.domain.errors import CouncilError

    if isinstance(error, CouncilError):
        return _refuse(str(error))
    if isinstance(error, FileNotFoundError) and _directory_is_gone():
        return _refuse("the current directory is gone; change into one that exists")
    from council_tui.headless.crash import crash_report

    sys.stderr.write(crash_report(error))
    return INTERNAL
