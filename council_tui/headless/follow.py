"""`council events`: the journal of the newest fleet, and what is added to it while somebody watches."""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

from council_tui.control import reading
from council_tui.domain.events import EventKind
from council_tui.headless.printing import show, show_json
from council_tui.headless.reads import event_text
from council_tui.headless.signs import signs_for

if TYPE_CHECKING:
    from council_tui.board.home import Home
    from council_tui.control.reading import Reader, Snapshot
    from council_tui.domain.events import Event

POLL_SECONDS = 0.25


class _Printer:
    """Prints events one way or the other, and knows what cards are called."""

    def __init__(self, picture: Snapshot, *, json: bool) -> None:
        self._json = json
        self._titles = {card.id: card.label for card in picture.cards}
        self._signs = signs_for(sys.stdout)
        self.seq = 0
        """Of the last event that was printed."""

    def print(self, event: Event) -> None:
        """One event."""
        self.seq = event.seq
        if event.kind is EventKind.CARD_CREATED and event.card is not None:
            self._titles[event.card] = str(event.data["plan_id"])
        if self._json:
            from council_tui.headless.lines import event_line

            show_json(event_line(event))
        else:
            show([event_text(event, lambda card: self._titles.get(card, card), self._signs)])


def events(home: Home, *, json: bool, follow: bool, everything: bool) -> int:
    """Print the events of the newest fleet, or all; with `follow`, go on until SIGINT."""
    with reading.Reader(home) as reader:
        picture = reader.snapshot()
        printer = _Printer(picture, json=json)
        began = picture.fleet.seq - 1 if picture.fleet is not None and not everything else 0
        if follow and json:
            # A consumer gets one whole picture, and from there on what changes it.
            from council_tui.headless.lines import snapshot_line

            show_json(snapshot_line(picture))
            began = picture.seq
        printer.seq = began
        for event in reader.events(began):
            printer.print(event)
        if follow:
            _follow(reader, printer)
            if json:
                _last(reader, printer)
    return 0


def _follow(reader: Reader, printer: _Printer) -> None:
    try:
        while True:
            sys.stdout.flush()
            time.sleep(POLL_SECONDS)
            for event in reader.events(printer.seq):
                printer.print(event)
    except KeyboardInterrupt:
        return


def _last(reader: Reader, printer: _Printer) -> None:
    """The summary: the fleet's own when it has ended, else how its cards stand."""
    from council_tui.headless import lines

    picture = reader.snapshot()
    if picture.fleet is not None and picture.fleet.ending is not None:
        show_json(lines.summary_line(printer.seq, picture.fleet.ending))
        return
    cards = dict(Counter(card.state for card in picture.cards))
    show_json(lines.unfinished_line(printer.seq, cards, None, "the fleet goes on; only the watching has ended"))
