"""Lines on demand: the base of every list. It draws what is on screen, selects by id and never lays out on a tick."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView

from council_tui.console import keymap
from council_tui.console.widgets.painted import Painted, clip

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.strip import Strip

    from council_tui.console.glyphs import Part

T = TypeVar("T")

READING = "reading the council"


class VirtualList(Painted, ScrollView, Generic[T], can_focus=True):
    """Rows of one kind. The selection is an id: it stays with its row wherever that moves."""

    BINDINGS: ClassVar = [*keymap.bindings("lists"), *keymap.bindings("rows")]
    ALLOW_SELECT = False
    CURSOR: ClassVar[bool] = True
    """False for pages that only scroll."""
    EMPTY: ClassVar[str] = "Nothing here yet."

    @dataclass
    class Chosen(Message):
        """The cursor is on another id, or on none."""

        source: VirtualList[object]

    @dataclass
    class Opened(Message):
        """Enter or a double click on a row."""

        source: VirtualList[object]

    def __init__(self, title: str = "", *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self.title = title
        self.items: list[T] = []
        self.rows: list[T] = []
        self.where: dict[str, int] = {}
        self.cursor: str | None = None
        self.needle = ""
        self.only_bad = False
        self.trouble = READING
        self.painted: dict[int, list[Part]] = {}
        self.lines_drawn = 0
        self._caption: tuple[str, str] = ("", "")
        if title:
            self.border_title = Content(title)

    # -- what a subclass says about its rows

    def key(self, item: T) -> str:
        """The id of a row."""
        raise NotImplementedError

    def line(self, item: T, line: int, width: int) -> list[Part]:
        """Line `line` of a row, in parts."""
        raise NotImplementedError

    def words(self, item: T) -> str:
        """What the filter looks at."""
        return self.key(item)

    def is_bad(self, item: T) -> bool:
        """Whether `!` keeps this row."""
        return False

    def height_of_row(self) -> int:
        """Lines of a row; the same for all rows."""
        return 1

    def caption(self) -> str:
        """What the border says about the title; empty for the title alone."""
        return self.title

    # -- new pictures

    def show(self, items: Sequence[T], trouble: str = "") -> None:
        """Take a new picture; only lines that look different are painted again."""
        self.items = list(items)
        self.trouble = trouble
        self.regroup()

    def regroup(self) -> None:
        """Choose the rows anew, keep the cursor on its id, repaint what changed."""
        before = self.where.get(self.cursor or "", 0)
        self.rows = self.pick()
        self.where = {self.key(item): index for index, item in enumerate(self.rows)}
        was = self.cursor
        if self.CURSOR and (self.cursor is None or self.cursor not in self.where):
            self.cursor = self.key(self.rows[min(before, len(self.rows) - 1)]) if self.rows else None
        self.stretch()
        self.freshen()
        if self.cursor != was:
            self.post_message(self.Chosen(self))  # type: ignore[arg-type]

    def pick(self) -> list[T]:
        """The items that the filter and `!` let through, in order."""
        needle = self.needle.casefold()
        return [
            item
            for item in self.items
            if (not needle or needle in self.words(item).casefold()) and (not self.only_bad or self.is_bad(item))
        ]

    def stretch(self) -> None:
        """Tell the scroll view how long the list is, without a layout: no scrollbar depends on it."""
        size = Size(self.size.width, len(self.rows) * self.height_of_row())
        if size != self.virtual_size:
            self.set_reactive(VirtualList.virtual_size, size)
            if self.scroll_y > self.max_scroll_y:
                self.scroll_to(y=self.max_scroll_y, animate=False)

    def freshen(self) -> None:
        """Repaint the visible lines that differ from what was painted."""
        width, height = self.size
        if not width:
            return
        for y in range(height):
            if self.parts_at(y + self.scroll_offset.y, width) != self.painted.get(y):
                self.refresh(Region(0, y, width, 1))
        self.freshen_border()

    def freshen_border(self) -> None:
        """Title and position in the border."""
        caption = (self.caption(), self.position())
        if caption != self._caption:
            self._caption = caption
            self.border_title, self.border_subtitle = Content(caption[0]), Content(caption[1])

    def position(self) -> str:
        """`1-7 of 24`, with the filter in front."""
        found = []
        if self.needle:
            found.append(f"/{self.needle}")
        if self.only_bad:
            found.append("! only bad")
        per = self.height_of_row()
        shown = max(1, self.size.height // per)
        if len(self.rows) > shown or found:
            first = self.scroll_offset.y // per + 1
            found.append(f"{min(first, len(self.rows))}-{min(first + shown - 1, len(self.rows))} of {len(self.rows):,}")
        return "  ".join(found)

    # -- drawing

    def void(self) -> str:
        """One sentence for an empty list: could not be read, nothing matches, or nothing yet."""
        if self.trouble:
            return self.trouble
        if self.items and self.needle and self.only_bad:
            return f"Nothing that is bad or waiting matches /{self.needle}: ! shows all, esc clears the filter."
        if self.items and self.needle:
            return f"Nothing matches /{self.needle}: esc clears it."
        if self.items and self.only_bad:
            return "Nothing here is bad or waiting: the filter ! hides the rest; ! again shows all."
        return self.EMPTY

    def parts_at(self, line: int, width: int) -> list[Part]:
        """The parts of one line of the whole list."""
        if not self.rows:
            return self._void_line(line, width)
        index, inner = divmod(line, self.height_of_row())
        if index >= len(self.rows):
            return []
        return clip(self.line(self.rows[index], inner, width), width, self.glyphs)

    def _void_line(self, line: int, width: int) -> list[Part]:
        # wrapped here, because a sentence that is cut says nothing
        words, lines = self.void().split(), [""]
        for word in words:
            if len(lines[-1]) + len(word) + 1 > max(1, width - 2) and lines[-1]:
                lines.append("")
            lines[-1] = f"{lines[-1]} {word}".strip()
        tone = "p-bad" if self.trouble and self.trouble != READING else "p-quiet"
        return [(" " + lines[line], tone)] if line < len(lines) else []

    def render_line(self, y: int) -> Strip:
        """Draw one visible line."""
        self.lines_drawn += 1
        width = self.size.width
        line = y + self.scroll_offset.y
        parts = self.parts_at(line, width)
        self.painted[y] = parts
        return self.paint(parts, width, self.overlay(line))

    def overlay(self, line: int) -> str:
        """The cursor's component class where the cursor is."""
        index = line // self.height_of_row()
        if not self.CURSOR or not self.rows or self.where.get(self.cursor or "") != index:
            return ""
        if line % self.height_of_row() == self.height_of_row() - 1 and self.height_of_row() > 1:
            return ""
        if self.has_focus:
            return "p-cursor-focus"
        # without the keys, only the list that had them last shows where it is
        return "p-cursor" if getattr(self.screen, "here", None) is self else ""

    # -- moving

    @property
    def selected(self) -> T | None:
        """The row under the cursor."""
        index = self.where.get(self.cursor or "")
        return None if index is None else self.rows[index]

    def choose(self, ident: str | None) -> None:
        """Put the cursor on an id and bring it into view."""
        if ident == self.cursor or ident is None or ident not in self.where:
            return
        old, self.cursor = self.cursor, ident
        for row in (old, ident):
            self.repaint_row(row)
        self.reveal()
        self.freshen_border()
        self.post_message(self.Chosen(self))  # type: ignore[arg-type]

    def repaint_row(self, ident: str | None) -> None:
        """Paint one row again, if it exists."""
        index = self.where.get(ident or "")
        if index is not None:
            per = self.height_of_row()
            self.refresh_lines(index * per, per)

    def reveal(self) -> None:
        """Scroll so that the cursor's row is in view."""
        index = self.where.get(self.cursor or "")
        if index is None:
            return
        per, top, height = self.height_of_row(), self.scroll_offset.y, self.size.height
        first, last = index * per, index * per + per
        if first < top or not height:
            self.scroll_to(y=first, animate=False)
        elif last > top + height:
            self.scroll_to(y=last - height, animate=False)

    def move(self, by: int) -> None:
        """Move the cursor by rows; pages scroll instead."""
        if not self.CURSOR:
            self.scroll_to(y=self.scroll_offset.y + by, animate=False)
            self.freshen_border()
        elif self.rows:
            index = self.where.get(self.cursor or "", 0)
            self.choose(self.key(self.rows[min(len(self.rows) - 1, max(0, index + by))]))

    def page(self, by: int) -> None:
        """Move by a screenful."""
        self.move(by * max(1, self.size.height // self.height_of_row() - 1))

    def edge(self, last: bool) -> None:
        """Move to the first or the last row."""
        self.move(len(self.rows) * (1 if last else -1))

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Keep the position in the border true."""
        super().watch_scroll_y(old_value, new_value)
        if self.is_mounted:
            self.freshen_border()

    def watch_has_focus(self, has_focus: bool) -> None:
        """The cursor looks different in the pane that has the keys."""
        super().watch_has_focus(has_focus)
        self.repaint_row(self.cursor)

    def on_resize(self) -> None:
        """A new width changes what a row says."""
        self.stretch()
        self.reveal()
        self.freshen()

    def row_at(self, y: int) -> str | None:
        """The id of the row at a line of the viewport."""
        index = (y + self.scroll_offset.y) // self.height_of_row()
        return self.key(self.rows[index]) if 0 <= index < len(self.rows) else None

    def on_click(self, event: events.Click) -> None:
        """Click selects, double click opens."""
        offset = event.get_content_offset(self)
        if offset is None or not self.CURSOR:
            return
        self.choose(self.row_at(offset.y))
        if event.chain == 2 and self.selected is not None:
            self.post_message(self.Opened(self))  # type: ignore[arg-type]
