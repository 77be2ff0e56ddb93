"""The console's reference, in a process of its own: a Textual app with one line that counts keys."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from textual.app import App
from textual.widgets import Static

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult

FIRST = "ready"


class Bare(App[None]):
    """Says how many keys have come."""

    keys = 0

    def compose(self) -> ComposeResult:
        """One line."""
        yield Static(FIRST)

    def on_key(self, event: events.Key) -> None:
        """Count it and say so."""
        self.keys += 1
        self.query_one(Static).update(f"key {self.keys};", layout=False)


if __name__ == "__main__":
    os.write(int(sys.argv[1]), b"0\n")
    os.close(int(sys.argv[1]))
    Bare().run()
