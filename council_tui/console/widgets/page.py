"""Lines that only scroll: facts, history, logs, contracts and help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from council_tui.console.glyphs import Part
from council_tui.console.widgets.virtual_list import VirtualList

NumberedLine = tuple[int, list[Part]]


class Page(VirtualList[NumberedLine]):
    """Painted lines without a cursor."""

    CURSOR: ClassVar[bool] = False

    def __init__(
        self,
        title: str = "",
        *,
        empty: str = "Nothing here yet.",
        follow: bool = False,
        id: str | None = None,  # noqa: A002
    ) -> None:
        super().__init__(title, id=id)
        self.empty = empty
        self.follow = follow
        self.heading = title

    def key(self, item: NumberedLine) -> str:
        """Its number."""
        return str(item[0])

    def line(self, item: NumberedLine, line: int, width: int) -> list[Part]:
        """Its parts."""
        return item[1]

    def words(self, item: NumberedLine) -> str:
        """Its text."""
        return "".join(text for text, _ in item[1])

    def caption(self) -> str:
        """The heading that was last given."""
        return self.heading

    def void(self) -> str:
        """What would be here."""
        return self.trouble or (super().void() if self.needle else self.empty)

    def write(self, lines: Sequence[list[Part]], trouble: str = "") -> None:
        """Show these lines; a page that follows stays at its end unless it was scrolled away."""
        at_end = self.scroll_offset.y >= self.max_scroll_y
        self.show(list(enumerate(lines)), trouble)
        if self.follow and at_end and self.size.height:
            self.scroll_to(y=self.max_scroll_y, animate=False)
            self.freshen()

    def on_resize(self) -> None:
        """A page that follows is still at its end when it got another size."""
        super().on_resize()
        if self.follow:
            self.scroll_to(y=self.max_scroll_y, animate=False)


def pairs(facts: Sequence[tuple[str, str]], width: int = 14) -> list[list[Part]]:
    """Names and values in two columns; an empty name starts a group with the value as heading."""
    lines: list[list[Part]] = []
    for name, value in facts:
        if name:
            lines.append([(f"{name:<{width}} ", "p-quiet"), (value, "")])
        else:
            if lines:
                lines.append([])
            lines.append([(value, "p-strong")])
    return lines
