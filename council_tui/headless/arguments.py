"""How every command refuses a wrong command line: one sentence, and what may have been meant.

Imports nothing heavy, because `--help` needs it.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

BAD_INPUT = 2


class Parser(argparse.ArgumentParser):
    """A parser whose refusals suggest what may have been meant here."""

    def error(self, message: str) -> NoReturn:
        """End with exit code 2 and one sentence."""
        guess = self._guess(message) or ";"
        self.exit(BAD_INPUT, f"council: {_plain(message)}{guess} see {self.prog} --help\n")

    def parse(self, argv: Sequence[str] | None, free: str = "") -> argparse.Namespace:
        """Parse everything; what is too much is refused by the command that it was given to.

        The command called `free` gets what is left over in `rest`: it reads its arguments itself.
        """
        args, left = self.parse_known_args(argv)
        command = getattr(args, "command", None)
        if left and command and command == free:
            args.rest = [*args.rest, *left]
        elif left:
            self._refuse_extra(command, left)
        return args

    def _refuse_extra(self, command: str | None, left: list[str]) -> NoReturn:
        mine = self._commands().get(command or "", self)
        word = left[0].partition("=")[0]
        if command and word in mine.words():
            mine.error(f"{word} belongs behind {command}")
        if command and word in self.words():
            mine.error(f"{word} does not belong to {command}")
        mine.error(f"unrecognized arguments: {' '.join(left)}")

    def words(self) -> list[str]:
        """Every flag and every word that this parser knows."""
        known: list[str] = []
        for action in self._actions:
            known += action.option_strings
            known += [str(choice) for choice in action.choices or ()]
        return known

    def _commands(self) -> dict[str, Parser]:
        found = (action.choices for action in self._actions if isinstance(action, argparse._SubParsersAction))
        return {name: parser for choices in found for name, parser in choices.items()}

    def _guess(self, message: str) -> str:
        wrong = message.rpartition("arguments: ")[2] if "arguments: " in message else message.partition("choice: ")[2]
        word = wrong.strip().partition(" ")[0].strip("'").partition("=")[0]
        close = nearest(word, self.words())
        return f"; did you mean {close}? Else" if close else ""


def nearest(word: str, known: Iterable[str]) -> str:
    """The nearest of the known words, never the word itself; empty when none is near."""
    from difflib import get_close_matches

    close = get_close_matches(word, [name for name in known if name != word], n=1, cutoff=0.6) if word else []
    return close[0] if close else ""


def _plain(message: str) -> str:
    """argparse's own words, for people."""
    message = message.replace("unrecognized arguments:", "unknown:").partition(" (choose from")[0]
    for theirs, ours in (
        ("argument COMMAND: invalid choice:", "there is no command"),
        ("argument BENCHMARK: invalid choice:", "there is no benchmark"),
        ("the following arguments are required:", "expected"),
        ("expected at least one argument", "needs a value"),
        ("expected one argument", "needs a value"),
        ("expected 2 arguments", "needs two values"),
        ("argument ", ""),
    ):
        message = message.replace(theirs, ours)
    return "".join(char if char.isprintable() else "?" for char in message)


def seconds(text: str) -> float:
    """A number of seconds above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return value


def index(text: str) -> int:
    """The index of a ledger entry."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no index of an entry; they count from 0")
    return int(text)


def count(text: str) -> int:
    """A whole number above 0."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number above 0")
    return int(text)
