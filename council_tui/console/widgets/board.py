"""The board: lanes side by side while each can be 14 wide, else as many as fit and a strip that names all."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from textual.containers import Horizontal, Vertical
from textual.message import Message

from council_tui.console import keymap
from council_tui.console.widgets.lane import Lane
from council_tui.console.widgets.painted import Line, width_of
from council_tui.domain.card import LANES, CardState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual import events
    from textual.app import ComposeResult

    from council_tui.console.glyphs import Part
    from council_tui.control.views import AgentView, CardView, RoomView

_LIVELY = (CardState.RUNNING, CardState.CLAIMED, CardState.REVIEW)
"""Lanes with something living, the likeliest first."""
NARROWEST = 14
COMFORTABLE = 16
"""When not all lanes fit at their narrowest, those that are drawn get this."""
WIDEST_WINDOW = 100
"""Below this screen width, one lane at a time."""


class LaneStrip(Line):
    """All lanes in one line; the open one in brackets."""

    class Picked(Message):
        """A lane's name was clicked."""

        def __init__(self, state: CardState) -> None:
            super().__init__()
            self.state = state

    def __init__(self) -> None:
        super().__init__(id="lane-strip")
        self.counts: dict[CardState, int] = {}
        self.current = LANES[0]

    def _names(self) -> Iterator[tuple[CardState, Part]]:
        for state, count in self.counts.items():
            name = f"{state.value.capitalize()} {count:,}"
            chosen = state is self.current
            yield state, (f"[{name}] " if chosen else f"{name}  ", "p-chosen" if chosen else "p-quiet")

    def parts(self, width: int) -> list[Part]:
        """Names and counts, scrolled so that the open lane is in view."""
        names = list(self._names())
        first = 0
        current = next((i for i, (state, _) in enumerate(names) if state is self.current), 0)
        while first < current and width_of(part for _, part in names[first : current + 1]) > width - 2:
            first += 1
        return [("<" if first else " ", "p-quiet"), *(part for _, part in names[first:])]

    def on_click(self, event: events.Click) -> None:
        """Open the lane under the mouse."""
        at = 1
        for state, (text, _) in self._names():
            if at <= event.x < at + len(text):
                self.post_message(self.Picked(state))
            at += len(text)


class Board(Vertical):
    """Eight lanes, of which the empty ones are not drawn."""

    BINDINGS = keymap.bindings("board")

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.strip = LaneStrip()
        self.lanes = {state: Lane(state) for state in LANES}
        self.current = CardState.RUNNING
        self._drawn: tuple[tuple[CardState, ...], bool] | None = None
        self._by_hand = False
        """Somebody chose a lane; until then the board shows the one where most is to be seen."""

    def compose(self) -> ComposeResult:
        """The strip above the lanes."""
        yield self.strip
        with Horizontal(id="lanes"):
            yield from self.lanes.values()

    @property
    def lane(self) -> Lane:
        """The lane that has the cursor."""
        return self.lanes[self.current]

    @property
    def selected(self) -> CardView | None:
        """The card under the cursor."""
        return self.lane.selected

    def show_room(self, view: RoomView | None, trouble: str = "") -> None:
        """Sort the cards into their lanes."""
        sorted_cards: dict[str, list[CardView]] = defaultdict(list)
        agents: dict[str, AgentView] = {}
        if view is not None:
            agents = {agent.name: agent for agent in view.agents}
            for card in view.cards:
                sorted_cards[card.state].append(card)
        for state, lane in self.lanes.items():
            lane.show_cards(sorted_cards[state], agents, trouble)
        if not self._by_hand and not self._has_keys():
            self.current = next((s for s in (*_LIVELY, *LANES) if sorted_cards[s]), self.current)
        self.regroup()

    def filled(self) -> list[CardState]:
        """Lanes with cards, in order; the current one always, so that the cursor has a place."""
        return [state for state in LANES if self.lanes[state].items or (state is self.current and self._has_keys())]

    def _has_keys(self) -> bool:
        return self.lane.has_focus

    def regroup(self) -> None:
        """Choose which lanes are drawn; a layout happens only when that set changes."""
        filled = self.filled() or [self.current]
        if self.current not in filled:
            self.current = filled[0]
        window = self._window(len(filled))
        first = max(0, min(filled.index(self.current) - window // 2, len(filled) - window))
        drawn = tuple(filled[first : first + window])
        narrow = self.app.size.width < WIDEST_WINDOW
        alone = not any(lane.items for lane in self.lanes.values())
        strip = len(drawn) < len(filled) or (narrow and not alone)
        for state, lane in self.lanes.items():
            lane.number = "2 " if not narrow and state is drawn[0] else ""
            lane.alone = alone
            lane.freshen()
        self.strip.counts = {state: len(self.lanes[state].rows) for state in filled}
        self.strip.current = self.current
        self.strip.freshen()
        if (drawn, strip) != self._drawn:
            self._drawn = (drawn, strip)
            self.strip.display = strip
            for state, lane in self.lanes.items():
                lane.display = state in drawn

    def _window(self, filled: int) -> int:
        if self.app.size.width < WIDEST_WINDOW:
            return 1
        return filled if filled * NARROWEST <= self.size.width else max(1, self.size.width // COMFORTABLE)

    def go(self, state: CardState) -> None:
        """Put the cursor into a lane."""
        self.current, self._by_hand = state, True
        self.regroup()
        self.lane.focus()

    def step(self, by: int) -> None:
        """One lane to the left or right."""
        filled = self.filled()
        if self.current in filled:
            self.go(filled[min(len(filled) - 1, max(0, filled.index(self.current) + by))])

    def narrow(self, needle: str, only_bad: bool) -> None:
        """The same filter for every lane."""
        for lane in self.lanes.values():
            lane.needle, lane.only_bad = needle, only_bad
            lane.regroup()
        self.regroup()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """A click into a lane makes it the current one."""
        lane = self.screen.focused
        if isinstance(lane, Lane) and lane.state is not self.current:
            self.current, self._by_hand = lane.state, True
            self.regroup()

    def on_lane_strip_picked(self, event: LaneStrip.Picked) -> None:
        """A click on a name opens its lane."""
        self.go(event.state)

    def on_resize(self) -> None:
        """Another width has room for another number of lanes."""
        self.regroup()
