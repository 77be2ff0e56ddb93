"""A widget that draws its own lines from parts; colours come from component classes, so themes can change them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from council_tui.console.app import CouncilApp
    from council_tui.console.glyphs import Glyphs, Part


def width_of(parts: Iterable[Part]) -> int:
    """How many cells these parts take."""
    return sum(cell_len(text) for text, _ in parts)


def between(left: Sequence[Part], right: Sequence[Part], width: int, glyphs: Glyphs) -> list[Part]:
    """`left` and `right` at the two ends of a line; the left side gives way."""
    room = width - width_of(right)
    return [*clip(left, room, glyphs), *right] if room > 0 else clip(right, width, glyphs)


def clip(parts: Sequence[Part], width: int, glyphs: Glyphs) -> list[Part]:
    """Exactly `width` cells; the first part that does not fit is cut with a sign."""
    out: list[Part] = []
    for text, name in parts:
        size = cell_len(text)
        if size > width:
            out.append((glyphs.fit(text, width), name))
            return out
        out.append((text, name))
        width -= size
    if width > 0:
        out.append((" " * width, ""))
    return out


class Painted(Widget):
    """Base of every widget that paints parts."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "p-alive",
        "p-late",
        "p-bad",
        "p-ended",
        "p-good",
        "p-quiet",
        "p-strong",
        "p-frame",
        "p-key",
        "p-badge",
        "p-chosen",
        "p-cursor",
        "p-cursor-focus",
    }

    @property
    def council_app(self) -> CouncilApp:
        """The app, by its own type."""
        return cast("CouncilApp", self.app)

    @property
    def glyphs(self) -> Glyphs:
        """The app's set of signs."""
        return self.council_app.glyphs

    def paint(self, parts: Sequence[Part], width: int, over: str = "") -> Strip:
        """A strip of exactly `width` cells; `over` is a component class laid over everything."""
        base = self.rich_style
        top = self.get_component_rich_style(over, partial=True) if over else Style.null()
        plain = base + top
        segments: list[Segment] = []
        for text, name in parts:
            style = base + self.get_component_rich_style(name, partial=True) + top if name else plain
            # leading blanks go to the part before: SVG renderers drop them from the start of a text
            word = text.lstrip(" ")
            blanks = text[: len(text) - len(word)]
            if blanks and segments and segments[-1].style is not None and segments[-1].style.bgcolor == plain.bgcolor:
                segments[-1] = Segment(segments[-1].text + blanks, segments[-1].style)
            elif blanks:
                segments.append(Segment(blanks, plain))
            segments.append(Segment(word, style))
        return Strip(segments).adjust_cell_length(width, base + top).crop(0, width)


class Line(Painted):
    """One painted line; it is drawn again only when its parts change, and never laid out for that."""

    DEFAULT_CSS = "Line { height: 1; width: 1fr; }"

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self._painted: list[Part] | None = None

    def parts(self, width: int) -> list[Part]:
        """What the line says at this width."""
        raise NotImplementedError

    def freshen(self) -> None:
        """Repaint if the parts changed."""
        if self.size.width and self.parts(self.size.width) != self._painted:
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw the line."""
        width = self.size.width
        if y:
            return Strip.blank(width, self.rich_style)
        self._painted = self.parts(width)
        return self.paint(self._painted, width)
