"""Refusals a person can act on: what was wrong, where, and what to do."""

from __future__ import annotations

from dataclasses import dataclass


class CouncilError(Exception):
    """Root of every error this program raises on purpose; its text is one clear sentence."""


class Refused(CouncilError):
    """A rule said no. `field` is the dotted path of what was refused, `rule` why."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(f"{field}: {rule}")
        self.field = field
        self.rule = rule


@dataclass(frozen=True)
class Mistake:
    """One mistake in a file: where it is, what was found and what was expected."""

    field: str
    """Dotted path, e.g. `children[2].envelope.tools_scope`."""
    message: str
    """One sentence: what is wrong and what was expected."""
    line: int | None = None
    """Line in the file, from 1."""

    def render(self, source: str) -> str:
        """`file:line: field: message`."""
        where = f"{source}:{self.line}" if self.line else source
        return f"{where}: {self.field}: {self.message}"


class PlanInvalid(CouncilError):
    """A plan with every mistake in it, so that one edit can mend them all."""

    def __init__(self, source: str, mistakes: list[Mistake]) -> None:
        super().__init__(f"{source} has {len(mistakes)} mistake{'s' if len(mistakes) != 1 else ''}")
        self.source = source
        self.mistakes = mistakes


class IllegalMove(CouncilError):
    """A card or a run was asked to make a step that its state machine forbids."""


class StaleRun(CouncilError):
    """A write carried the fencing token of a run that no longer owns the card."""


class HomeUnusable(CouncilError):
    """The home cannot be used: no permission, or damaged."""


class HomeOwned(HomeUnusable):
    """Another process runs a council in this home."""
