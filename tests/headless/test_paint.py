"""The live display as lines: it fits every terminal, keeps what matters, and lets no agent draw in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from council_tui.control.views import AgentView, CardView, LedgerView, RoomView
from council_tui.domain.card import LANES
from council_tui.headless import paint
from council_tui.headless.signs import ASCII, UNICODE, Signs

HERMES = AgentView("hermes:1", "Hermes", "hermes", None, "alive", "dispatching", beats=(0, 9, -1, 1200))
OFFICE = AgentView("openclaw:office.1", "OpenClaw", "openclaw", "hermes:1", "alive", "running", pid=7)


def room(cards: list[CardView], *agents: AgentView) -> RoomView:
    """A room with these cards."""
    return RoomView(1, "fleet", "00:00:00Z", (HERMES, OFFICE, *agents), tuple(cards), (), LedgerView(3))


def card(number: int, state: str = "running", **more: object) -> CardView:
    """A card below OpenClaw."""
    return CardView(f"t_{number}", "A title", state, f"child-{number}", OFFICE.name, **more)  # type: ignore[arg-type]


def frame(view: RoomView, width: int, height: int, signs: Signs = UNICODE) -> list[str]:
    """The display as plain lines."""
    lines = paint.frame(view, width=width, height=height, elapsed=61, minutes=2, note="note", signs=signs)
    return [line.plain for line in lines]


@given(
    states=st.lists(st.sampled_from([str(lane) for lane in LANES]), max_size=60),
    reason=st.text(max_size=80),
    width=st.integers(40, 200),
    height=st.integers(10, 60),
)
def test_a_frame_never_leaves_the_terminal(states: list[str], reason: str, width: int, height: int):
    cards = [card(i, state, reason=reason.replace("\n", " ")) for i, state in enumerate(states)]
    lines = frame(room(cards), width, height)
    assert len(lines) <= height
    assert all(cell_len(line) <= width for line in lines)


def test_when_rows_do_not_fit_what_is_done_gives_way_first():
    cards = [card(i, "done") for i in range(50)] + [card(99, "failed", fail="error", reason="it broke")]
    lines = frame(room(cards), 80, 20)
    assert any("it broke" in line for line in lines)
    assert any("more" in line for line in lines)


def test_at_sixty_columns_state_name_and_reason_are_there():
    lines = frame(room([card(1, "failed", fail="expired", reason="lived longer than its 2 s")]), 60, 20)
    row = next(line for line in lines if "child-1" in line)
    assert "expired" in row
    assert "lived longer" in row


def test_a_microshark_hangs_below_the_child_that_spawned_it():
    shark = CardView("t_9", "A shark", "running", "shark", "child:child-1.abc", kind="microshark")
    rows = paint.tree((HERMES, OFFICE), (card(1), shark), UNICODE)
    assert [row.card.label if row.card else row.agent.label for row in rows if row.card or row.agent] == [
        "Hermes",
        "OpenClaw",
        "child-1",
        "shark",
    ]
    assert rows[-1].prefix == "      └─ "


def test_ascii_needs_nothing_but_ascii():
    assert all(line.replace("…", "~").isascii() for line in frame(room([card(1), card(2, "done")]), 100, 20, ASCII))


@pytest.mark.parametrize(("ms", "bar"), [(0, "▁"), (8, "▂"), (1200, "█"), (-1, "·")])
def test_a_beat_is_as_high_as_it_was_late(ms: int, bar: str):
    assert UNICODE.sparkline((ms,), 5) == bar


@pytest.mark.parametrize(
    ("state", "more", "word"),
    [
        ("blocked", {"block": "hold"}, "hold"),
        ("blocked", {"block": "needs_input"}, "asks you"),
        ("blocked", {"block": "capability"}, "refused"),
        ("failed", {"fail": "protocol_violation"}, "violation"),
        ("backlog", {"after": ("other",)}, "waits"),
    ],
)
def test_every_way_a_card_stands_has_its_word(state: str, more: dict[str, object], word: str):
    assert any(word in line for line in frame(room([card(1, state, **more)]), 80, 20))
