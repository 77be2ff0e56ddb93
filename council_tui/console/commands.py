"""The command palette: the registry's actions by their words."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider

from council_tui.console import keymap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from council_tui.console.app import CouncilApp

_NOT_HERE = frozenset({"palette", "move", "page", "end", "pane", "back", "next-pane", "previous-pane"})
"""Keys of the moment that make no sense from a list of commands."""


class RegistryCommands(Provider):
    """What can be done on the screen below the palette, and where one can go."""

    def _choices(self) -> Iterator[tuple[str, Callable[[], None]]]:
        from council_tui.console.screens.base import CouncilScreen

        app = cast("CouncilApp", self.app)
        screen = self.screen
        if not isinstance(screen, CouncilScreen):
            return
        for action in keymap.actions(*screen.places()):
            if action.id not in _NOT_HERE:
                key = f"  [{action.key}]" if action.key else ""
                yield f"{action.words}{key}", partial(app.action_act, action.id)
        yield "go to the control room  [g r]", partial(app.go, "room")
        yield "go to the ledger  [g l]", partial(app.go, "ledger")

    async def discover(self) -> Hits:
        """Everything, before a letter is typed."""
        for words, run in self._choices():
            yield DiscoveryHit(self._plain(words), run, text=words)

    async def search(self, query: str) -> Hits:
        """What matches."""
        matcher = self.matcher(query)
        for words, run in self._choices():
            if (score := matcher.match(words)) > 0:
                yield Hit(score, matcher.highlight(words), run, text=words)

    @staticmethod
    def _plain(words: str) -> str:
        return words.replace("[", r"\[")
