"""Lines that only scroll: facts, history, logs, contracts and help."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len, chop_cells

from council_tui.console import keymap
from council_tui.console.glyphs import Part
from council_tui.console.widgets.virtual_list import VirtualList

if TYPE_CHECKING:
    from collections.abc import Sequence

NumberedLine = tuple[int, list[Part]]


class Page(VirtualList[NumberedLine], inherit_bindings=False):
    """Painted lines without a cursor."""

    CURSOR: ClassVar[bool] = False
    BINDINGS: ClassVar = keymap.bindings("lists")

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
        self.facts: Sequence[tuple[str, str]] | None = None

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

    def write_facts(self, facts: Sequence[tuple[str, str]]) -> None:
        """Show names and values; wrapped anew in every width."""
        self.facts = facts
        self.write(pairs(facts, self.size.width))

    def on_resize(self) -> None:
        """Facts are wrapped anew; a page that follows is still at its end."""
        if self.facts is not None:
            self.write(pairs(self.facts, self.size.width))
        if self.follow:
            self.scroll_to(y=self.max_scroll_y, animate=False)


def pairs(facts: Sequence[tuple[str, str]], width: int) -> list[list[Part]]:
    """Names and values in two columns, values wrapped; an empty name starts a group with the value as heading."""
    lines: list[list[Part]] = []
    name_width = min(20, width // 2, max((len(name) for name, _ in facts), default=0) + 1)
    for name, value in facts:
        if name:
            first, *rest = wrapped(value, max(8, width - name_width - 1))
            lines.append([(f"{name[:name_width]:<{name_width}} ", "p-quiet"), (first, "")])
            lines += [[(" " * (name_width + 1), ""), (more, "")] for more in rest]
        else:
            if lines:
                lines.append([])
            lines.append([(value, "p-strong")])
    return lines


def wrapped(text: str, width: int) -> list[str]:
    """`text` in lines of at most `width` cells; at blanks where there are some, else anywhere."""
    lines = [""]
    for word in text.split(" "):
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if cell_len(joined) <= width:
            lines[-1] = joined
            continue
        if lines[-1]:
            lines.append("")
        *full, last = chop_cells(word, width) or [""]
        lines[-1:] = [*full, last]
    return lines
