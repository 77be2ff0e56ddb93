"""One picture per screen, size and state that matters; the README shows them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from council_tui.control.views import CouncilGone
from council_tui.domain.errors import CouncilError

from .crew import empty_view, view
from .fake import FakeCouncil
from .stage import StillApp, settled

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.pilot import Pilot

HINT = "s spawns a child · g l shows the ledger, V verifies it · ? keys"


@dataclass(frozen=True)
class Case:
    """What to open and which keys to press."""

    size: tuple[int, int]
    keys: tuple[str, ...] = ()
    door: Callable[[], FakeCouncil] = FakeCouncil
    theme: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    then: Callable[[FakeCouncil], None] = FakeCouncil.change
    """What happens to the council once the keys have been pressed."""


def _refusing() -> FakeCouncil:
    door = FakeCouncil()
    door.refusal = CouncilError("the board is locked by another process")
    return door


def _troubled() -> FakeCouncil:
    """One hangs, one will not die, and this machine is short of memory."""
    short = "180 MiB of memory free, 320 wanted (limits.memory_floor_mb)"
    hang = {"health": "stalled", "standing": "stalled", "status": "waiting for the model", "idle_seconds": 412}
    left = "1 process will not die (pid 41733); next try in 84 s"
    stuck = {"health": "orphan", "standing": "silent", "phase": "reaping", "reason": left}
    changed = {"build": hang, "db-migration": stuck}
    base = view()
    return FakeCouncil(
        view(
            agents=tuple(replace(agent, **changed.get(agent.label, {})) for agent in base.agents),
            cards=tuple(replace(card, reason=short if card.state == "ready" else card.reason) for card in base.cards),
            holding=short,
            waiting=1,
        )
    )


def _ends(door: FakeCouncil) -> None:
    door.refusal = CouncilGone("fleet demo has ended with exit code 0")


SCREENS: dict[str, Case] = {
    "room-80x24": Case((80, 24)),
    "room-120x40": Case((120, 40), door=lambda: FakeCouncil(view(note=HINT))),
    "room-200x60": Case((200, 60)),
    "room-troubled": Case((120, 40), (*["j"] * 17,), door=_troubled),
    "agent-unkillable": Case((120, 40), (*["j"] * 17, "enter"), door=_troubled),
    "room-60x20": Case((60, 20)),
    "room-light": Case((120, 40), ("tab", "l"), theme="council-light"),
    "room-ascii": Case((80, 24), options={"ascii": True}),
    "board-80x24": Case((80, 24), ("2",)),
    "too-small": Case((59, 20)),
    "ledger": Case((120, 40), ("g", "l", "V")),
    "ledger-80x24": Case((80, 24), ("g", "l", "v")),
    "spawn-problem": Case((120, 40), ("s", "B", "a", "d", "tab", "l", "s")),
    "spawn": Case((120, 40), ("s",)),
    "spawn-80x24": Case((80, 24), ("s", "w", "e", "b", "tab", "l", "s")),
    "reap-alive": Case((120, 40), (*["j"] * 12, "x")),
    "reap-held": Case((80, 24), (*["j"] * 17, "x")),
    "help": Case((80, 24), ("?",)),
    "agent": Case((120, 40), (*["j"] * 5, "enter")),
    "agent-failed": Case((120, 40), (*["j"] * 19, "enter")),
    "card-80x24": Case((80, 24), ("2", "enter")),
    "quit": Case((120, 40), ("q",)),
    "stop": Case((120, 40), ("Z", *"sto")),
    "filter": Case((120, 40), ("/", "s", "h", "a", "r", "k")),
    "palette": Case((80, 24), (":",)),
    "empty": Case((120, 40), door=lambda: FakeCouncil(empty_view())),
    "gone": Case((120, 40), ("j",), then=_ends),
    "unread": Case((120, 40), door=_refusing),
}


@pytest.mark.parametrize("name", SCREENS)
def test_screen(name: str, snap_compare: Callable[..., bool]) -> None:
    """The picture is the one that a person has looked at."""
    case = SCREENS[name]
    door = case.door()
    app = StillApp(door, **case.options)
    if case.theme:
        app.theme = case.theme

    async def play(pilot: Pilot[None]) -> None:
        for key in ("", *case.keys):
            if key:
                await pilot.press(key)
            await settled(pilot)
        case.then(door)
        app.beat()
        await settled(pilot)

    assert snap_compare(app, terminal_size=case.size, run_before=play)
