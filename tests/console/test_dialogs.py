"""The dialogs: what they ask, what they send and what they refuse."""

from __future__ import annotations

import asyncio
import dataclasses

from textual.widgets import Input

from council_tui.console.screens.reap import ReapScreen
from council_tui.control.views import CouncilGone, Left, QuitOutcome
from council_tui.domain.errors import CouncilError

from .crew import empty_view, view
from .fake import FakeCouncil
from .stage import Stage, stage

VISUAL = "child:campaign-visual.7kq2m9xzw4"
ORPHAN = "child:db-migration.7kq2m9xzw4"


def dialog_of(opened: Stage) -> str:
    """The text inside the dialog alone."""
    box = opened.screen.query_one(".dialog").region
    lines = opened.text().split("\n")[box.y : box.bottom]
    return "\n".join(line[box.x : box.right] for line in lines)


# -- reaping


async def test_a_living_agent_is_reaped_only_by_the_word() -> None:
    async with stage() as opened:
        await opened.press(*["j"] * 5, "x", "y", "enter", "x")
        assert isinstance(opened.screen, ReapScreen)
        assert ("reap", VISUAL) not in opened.door.asked
        opened.screen.query_one("#reap-word", Input).value = ""
        await opened.press(*"reap", "enter")
        assert ("reap", VISUAL) in opened.door.asked
        assert opened.screen is opened.room


async def test_a_key_that_is_not_the_word_is_answered() -> None:
    async with stage() as opened:
        await opened.press(*["j"] * 5, "x")
        assert "It is alive, so y is not enough: type the word reap" in opened.text()
        await opened.press("y")
        assert "'y' does nothing here" in opened.text()
        await opened.press("enter")
        assert "Type the word reap, or esc to keep it." in opened.text()
        assert ("reap", VISUAL) not in opened.door.asked


async def test_nothing_is_reaped_of_a_council_that_cannot_be_read() -> None:
    async with stage() as opened:
        await opened.press(*["j"] * 17, "x")
        opened.door.refusal = CouncilGone("fleet demo has ended with exit code 1")
        await opened.beat()
        assert "Nothing can be reaped now: fleet demo has ended with exit code 1." in opened.text()
        await opened.press("y")
        assert ("reap", ORPHAN) not in opened.door.asked
        await opened.press("escape", "x")
        assert opened.screen is opened.room
        assert opened.app.said[-1] == "reap: fleet demo has ended with exit code 1"


async def test_a_reap_whose_processes_cannot_be_shown_is_not_offered() -> None:
    async with stage() as opened:
        opened.door.refuse_preview = CouncilError("it is not alive any more")
        await opened.press(*["j"] * 17, "x", "y")
        assert "Its processes are not known" in opened.text()
        assert ("reap", ORPHAN) not in opened.door.asked


async def test_a_held_orphan_is_reaped_by_y_and_kept_by_escape_or_enter() -> None:
    async with stage() as opened:
        await opened.press(*["j"] * 17, "x", "escape", "x", "enter")
        assert opened.screen is opened.room
        assert ("reap", ORPHAN) not in opened.door.asked
        await opened.press("x", "y")
        assert ("reap", ORPHAN) in opened.door.asked


async def test_the_reap_dialog_disarms_when_its_target_changes() -> None:
    async with stage() as opened:
        await opened.press(*["j"] * 17, "x")
        opened.door.set_health("db-migration", "alive")
        await opened.beat()
        assert "It was held and is alive now" in opened.text()
        await opened.press("y")
        assert ("reap", ORPHAN) not in opened.door.asked


async def test_the_reap_dialog_names_processes_and_descendants() -> None:
    async with stage() as opened:
        await opened.press(*["j"] * 12, "x")
        assert "psql --no-psqlrc council" in opened.text()
        assert "4 agents below it end with it" in opened.text()


# -- spawning


async def test_spawn_is_sent_with_the_office_of_the_selection_once_it_is_valid() -> None:
    async with stage() as opened:
        await opened.press(*["j"] * 5, "s", *"web-copy", "tab", *"python3 -m 'my writer'")
        assert "task_name: web-copy" in opened.text()
        await opened.press("ctrl+j")
        sent = next(call[1] for call in opened.door.asked if call[0] == "spawn")
        assert (sent.parent, sent.label, sent.run) == ("openclaw", "web-copy", ("python3", "-m", "my writer"))
        assert opened.screen is opened.room


async def test_spawn_waits_for_what_is_wrong_and_shows_it_at_its_field() -> None:
    async with stage() as opened:
        await opened.press("s", *"Bad", "ctrl+j")
        assert "a name has lower case letters" in opened.text()
        assert "Spawn waits: 2 things to mend" in opened.text()
        assert not [call for call in opened.door.asked if call[0] == "spawn"]
        field = opened.screen.query_one("#field-memory_limit_mb", Input)
        field.value = "much"
        await opened.settle()
        assert "'much' is not a whole number" in opened.text()
        await opened.press("escape")
        assert opened.screen is opened.room


async def test_spawn_says_when_the_council_refuses_and_lets_one_try_again() -> None:
    async with stage(80, 24) as opened:
        await opened.press("s", *"web", "tab", *"ls")
        await opened.press("shift+tab", "shift+tab", "left", "pagedown", "pageup")
        opened.door.refusal = CouncilError("OpenClaw has 5 children already")
        await opened.press("ctrl+j")
        assert "It was refused: OpenClaw has 5 children already" in opened.text()
        opened.door.refusal = None
        await opened.press("ctrl+j")
        assert opened.door.asked[-1][1].parent == "openclaw"


async def test_nothing_is_wrong_before_anything_is_typed_and_all_is_told_when_one_tries_to_send() -> None:
    async with stage() as opened:
        await opened.press("s")
        assert "Spawn wants: name, command." in opened.text()
        assert "✗" not in dialog_of(opened)
        await opened.press("ctrl+j")
        assert "✗ name a program to run" in opened.text()
        assert "Spawn waits: 2 things to mend" in opened.text()


async def test_the_contract_is_scrolled_beside_the_form_and_below_it() -> None:
    for width, height, pages in ((120, 18, 4), (80, 24, 2)):
        async with stage(width, height) as opened:
            await opened.press("s", *"web", "tab", *"ls")
            assert "rollback_plan" not in opened.text()
            await opened.press(*["pagedown"] * pages)
            assert "rollback_plan: No changes" in opened.text()
            await opened.press(*["pageup"] * pages)
            assert "rollback_plan" not in opened.text()


# -- leaving


async def test_quit_asks_and_stays_or_drains_and_tells_what_ended() -> None:
    async with stage() as opened:
        await opened.press("q", "escape")
        assert opened.screen is opened.room
        await opened.press("ctrl+c", "e")
        assert opened.app.left is not None
        assert opened.app.left.outcome.ended == 19
        assert not opened.app.is_running


async def test_leaving_it_running_ends_nobody_and_says_so() -> None:
    async with stage() as opened:
        await opened.press("q", "l")
        assert opened.app.left is not None
        assert (opened.app.left.background, opened.app.left.outcome.ended) == (True, 0)
        assert not opened.app.is_running
        assert ("drain",) not in opened.door.asked


async def test_a_drain_and_an_emergency_stop_want_their_word_and_keep_the_room_open() -> None:
    for key, word, call in (("D", "drain", "drain"), ("Z", "stop", "stop_at_once")):
        async with stage() as opened:
            await opened.press(key, *"yes", "enter")
            assert "does nothing here" in opened.text()
            assert not [what for what in opened.door.asked if what[0] == call]
            await opened.press("escape")
            assert opened.screen is opened.room
            await opened.press(key, *word, "enter")
            assert (call,) in opened.door.asked
            assert opened.screen is opened.room


async def test_a_drain_shows_what_ends_while_it_ends() -> None:
    ended = asyncio.Event()

    class Slow(FakeCouncil):
        async def drain(self) -> QuitOutcome:
            await ended.wait()
            return QuitOutcome(3, 0)

    async with stage(door=Slow()) as opened:
        await opened.press("q")
        await opened.pilot.press("e")
        line = dataclasses.replace(opened.door.view.events[-1], seq=99, text="SIGTERM to build")
        opened.door.change(events=(*opened.door.view.events, line))
        opened.app.beat()
        await opened.until("18 agents left")
        assert "SIGTERM to build" in opened.text()
        await opened.pilot.press("escape", "e")
        assert opened.app.is_running
        ended.set()
        await opened.settle()
        assert opened.app.left == Left(QuitOutcome(3, 0))


async def test_a_drain_that_fails_leaves_the_console_open() -> None:
    async with stage() as opened:
        await opened.press("q")
        opened.door.refusal = CouncilError("one survivor could not be ended")
        await opened.press("e")
        assert "one survivor could not be ended" in opened.text()
        assert opened.app.is_running


async def test_quit_leaves_at_once_when_nothing_lives_or_the_council_is_another_process() -> None:
    for door in (FakeCouncil(empty_view()), FakeCouncil(view(attached=True))):
        async with stage(door=door) as opened:
            await opened.press("q")
            assert not opened.app.is_running
            assert ("drain",) not in door.asked


async def test_ctrl_q_and_escape_never_leave() -> None:
    async with stage() as opened:
        await opened.press("ctrl+q", "escape", "escape")
        assert opened.app.is_running
        assert opened.screen is opened.room
