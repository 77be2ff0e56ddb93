"""Every event has words, and none of them can act on a terminal."""

import pytest

from council_tui.control.telling import event_view, words
from council_tui.domain.events import Event, EventKind

NASTY = "\x1b[2J\u202e[bold]x\n"


@pytest.mark.parametrize("kind", list(EventKind))
def test_every_kind_of_event_has_words_even_without_its_data(kind: EventKind):
    tone, text = words(Event(1, "2026-01-01T00:00:00.000Z", kind))
    assert tone in ("plain", "good", "warn", "bad")
    assert text


@pytest.mark.parametrize("kind", list(EventKind))
def test_hostile_data_is_shown_and_never_obeyed(kind: EventKind):
    data = dict.fromkeys(("name", "title", "reason", "text", "path", "method", "block", "fail"), NASTY)
    view = event_view(Event(1, "2026-01-01T00:00:00.000Z", kind, "child:x.1", "t_1", "r_1", data))
    assert not any(ord(char) < 32 or char in "\x7f\u202e" for char in view.text)


def test_braces_in_data_are_data():
    _, text = words(Event(1, "2026-01-01T00:00:00.000Z", EventKind.STATUS, "child:x.1", data={"text": "{who} {0}"}))
    assert text == "x: {who} {0}"
