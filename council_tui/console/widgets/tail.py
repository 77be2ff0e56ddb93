"""The event log: it follows the newest line until somebody looks back."""

from __future__ import annotations

from typing import ClassVar

from council_tui.console.glyphs import TONES, Part
from council_tui.console.widgets.virtual_list import VirtualList
from council_tui.control.views import EventView


class Tail(VirtualList[EventView]):
    """One row per event, oldest first."""

    EMPTY: ClassVar[str] = "No events yet: everything that happens is written here."

    def __init__(self, title: str, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(title, id=id)
        self.following = True

    def key(self, item: EventView) -> str:
        """Its number in the journal."""
        return str(item.seq)

    def words(self, item: EventView) -> str:
        """The whole line."""
        return f"{item.kind} {item.text} {item.agent or ''} {item.card or ''}"

    def is_bad(self, item: EventView) -> bool:
        """A warning or worse."""
        return item.tone in ("warn", "bad")

    def line(self, item: EventView, line: int, width: int) -> list[Part]:
        """Time, sign and what happened."""
        tone = TONES[item.tone]
        return [
            (f"{item.at[11:19]} ", "p-quiet"),
            (f"{self.glyphs.tone[item.tone]} ", tone),
            (item.text, tone if item.tone in ("warn", "bad") else ""),
        ]

    def regroup(self) -> None:
        """New lines keep the last one selected while following."""
        super().regroup()
        if self.following and self.rows:
            self.choose(self.key(self.rows[-1]))

    def choose(self, ident: str | None) -> None:
        """Looking back stops following; the last row starts it again."""
        super().choose(ident)
        self.following = not self.rows or self.cursor == self.key(self.rows[-1])
        self.freshen_border()

    def position(self) -> str:
        """`following`, or where we look back to."""
        found = super().position()
        return "  ".join(part for part in (found, "following" if self.following and self.rows else "") if part)

    def on_resize(self) -> None:
        """The last line stays in view."""
        self.reveal()
