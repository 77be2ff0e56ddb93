"""Each key and what it does; one sentence per test."""

from __future__ import annotations

import asyncio
import dataclasses

from textual.widgets import Input

from council_tui.console import keymap
from council_tui.console.screens.detail import DetailScreen
from council_tui.console.screens.go_to import GoToScreen
from council_tui.console.screens.help import HelpScreen
from council_tui.console.screens.ledger import Entries, LedgerScreen
from council_tui.console.screens.reap import ReapScreen
from council_tui.console.screens.room import RoomScreen
from council_tui.console.widgets.agent_tree import AgentTree
from council_tui.console.widgets.beats import Beats
from council_tui.console.widgets.tail import Tail
from council_tui.control.views import QuitOutcome
from council_tui.domain.card import CardState
from council_tui.domain.errors import CouncilError

from .fake import FakeCouncil, empty_view, view
from .stage import Stage, stage

VISUAL = "child:campaign-visual.7kq2m9xzw4"
ORPHAN = "child:db-migration.7kq2m9xzw4"


def tree_of(opened: Stage) -> AgentTree:
    return opened.room.query_one(AgentTree)


async def test_arrows_letters_pages_and_ends_move_the_cursor() -> None:
    async with stage() as opened:
        tree = tree_of(opened)
        rows = [tree.key(row) for row in tree.rows]
        for keys, at in (
            (("down", "j"), 2),
            (("up",), 1),
            (("k",), 0),
            (("end",), -1),
            (("home",), 0),
            (("G",), -1),
            (("pageup", "pageup"), 0),
            (("pagedown",), len(rows) - 1),
        ):
            await opened.press(*keys)
            assert tree.cursor == rows[at]


async def test_left_and_right_fold_and_unfold_and_go_to_the_parent() -> None:
    async with stage() as opened:
        tree = tree_of(opened)
        await opened.press(*["j"] * 5, "h")
        assert tree.selected is not None
        assert tree.selected.agent.label == "OpenClaw"
        await opened.press("left")
        assert VISUAL not in tree.where
        await opened.press("right", "h", "l")
        assert VISUAL in tree.where


async def test_the_selection_stays_with_its_agent_when_rows_move() -> None:
    async with stage() as opened:
        tree = tree_of(opened)
        await opened.press(*["j"] * 5)
        assert tree.cursor == VISUAL
        opened.door.change(agents=tuple(a for a in opened.door.view.agents if a.label != "secrets-scan"))
        await opened.beat()
        assert tree.cursor == VISUAL
        assert tree.where[VISUAL] == 4


async def test_numbers_and_tab_go_through_the_panes() -> None:
    async with stage() as opened:
        room = opened.room
        for key, pane in (("2", "board"), ("3", "beats"), ("4", "events"), ("1", "tree"), ("tab", "board")):
            await opened.press(key)
            assert room.pane == pane
            assert room.focused is room.pane_list(pane)
        await opened.press("shift+tab", "shift+tab")
        assert room.pane == "events"


async def test_lanes_are_walked_with_h_and_l_and_empty_ones_are_passed_over() -> None:
    door = FakeCouncil()
    door.view = dataclasses.replace(door.view, cards=tuple(c for c in door.view.cards if c.state != "review"))
    async with stage(door=door) as opened:
        board = opened.room.board
        await opened.press("2")
        assert board.current is CardState.RUNNING
        await opened.press("l")
        assert board.current is CardState.DONE
        await opened.press("left", "h")
        assert board.current is CardState.CLAIMED
        assert not board.lanes[CardState.REVIEW].display


async def test_no_lane_is_narrower_than_fourteen() -> None:
    for width in (100, 200):
        async with stage(width) as opened:
            lanes = [lane for lane in opened.room.board.lanes.values() if lane.display]
            assert lanes
            assert min(lane.outer_size.width for lane in lanes) >= 14


async def test_zoom_gives_one_pane_the_screen_and_escape_gives_it_back() -> None:
    async with stage() as opened:
        await opened.press("z")
        assert tree_of(opened).outer_size.width == 120
        await opened.press("escape")
        assert tree_of(opened).outer_size.width == 38


async def test_the_left_pane_is_resized_and_forgets_that_while_zoomed() -> None:
    async with stage() as opened:
        await opened.press(">", ">")
        assert tree_of(opened).outer_size.width == 42
        await opened.press("<", "z")
        assert tree_of(opened).outer_size.width == 120
        await opened.press(">", "z")
        assert tree_of(opened).outer_size.width == 40
        assert opened.app.said[-1].startswith("wider: one pane")


async def test_a_short_terminal_zooms_a_pane_that_has_no_room() -> None:
    async with stage(120, 24) as opened:
        await opened.press("3")
        assert opened.room.zoomed
        assert opened.room.query_one(Beats).size.height > 10


async def test_filter_keeps_the_ancestors_of_a_match_and_escape_clears_it() -> None:
    async with stage() as opened:
        tree = tree_of(opened)
        await opened.press("/", *"shark-0")
        assert [row.agent.label for row in tree.rows][:3] == ["Hermes", "ZeroClaw", "frame-swarm"]
        assert tree.selected is not None
        assert tree.selected.agent.label == "shark-01"
        await opened.press("enter")
        assert tree.has_focus
        assert "/shark-0" in opened.text()
        await opened.press("escape")
        assert len(tree.rows) == 24


async def test_a_filter_without_a_match_says_so() -> None:
    async with stage(80, 24) as opened:
        await opened.press("/", *"nobody", "enter")
        assert "Nothing matches /nobody" in opened.text()


async def test_exclamation_mark_shows_only_what_is_bad() -> None:
    async with stage() as opened:
        await opened.press("3", "!")
        assert {agent.health for agent in opened.room.query_one(Beats).rows} == {"held", "late"}
        await opened.press("!", "2", "!")
        assert [card.label for card in opened.room.board.lane.rows] == ["db-migration", "shark-02"]
        await opened.press("escape")
        assert len(opened.room.board.lane.rows) == 11


async def test_copy_sends_the_id_of_the_selection_to_the_terminal() -> None:
    async with stage() as opened:
        await opened.press(*["j"] * 5, "y", "2", "y")
        assert opened.app.copied == [VISUAL, "t_000c7kq2"]


async def test_hold_keeps_the_picture_while_the_fleet_goes_on() -> None:
    async with stage() as opened:
        await opened.press("p")
        opened.door.change(clock="13:21:00Z")
        await opened.beat()
        assert "13:20:42Z" in opened.text()
        assert "picture held" in opened.text()
        await opened.press("p")
        assert "13:21:00Z" in opened.text()


async def test_help_lists_the_keys_of_the_focused_pane_and_the_same_key_closes_it() -> None:
    async with stage() as opened:
        await opened.press("2", "?")
        assert isinstance(opened.screen, HelpScreen)
        assert "the lane to the left" in opened.text()
        await opened.press("?")
        assert opened.screen is opened.room
        await opened.press("f1", "escape")
        assert opened.screen is opened.room


async def test_the_palette_runs_an_action_of_the_registry() -> None:
    async with stage() as opened:
        await opened.press("ctrl+p", *"light theme")
        await opened.pilot.press("enter")
        await opened.settle()
        assert opened.app.theme == "council-light"


async def test_go_shows_its_choices_and_goes() -> None:
    async with stage() as opened:
        await opened.press("g")
        assert isinstance(opened.screen, GoToScreen)
        await opened.press("l")
        assert isinstance(opened.screen, LedgerScreen)
        await opened.press("g", "r")
        assert opened.screen is opened.room


async def test_enter_opens_the_agent_and_escape_comes_back() -> None:
    async with stage() as opened:
        await opened.press(*["j"] * 5, "enter")
        assert isinstance(opened.screen, DetailScreen)
        assert "Hermes ▸ OpenClaw ▸ campaign-visual" in opened.text()
        await opened.press("4", "z", "escape", "escape")
        assert opened.screen is opened.room


async def test_the_detail_follows_the_pulse() -> None:
    async with stage() as opened:
        await opened.press("2", "enter")
        detail = opened.screen
        assert isinstance(detail, DetailScreen)
        opened.door.asked.clear()
        detail.asked = float("-inf")
        opened.door.change(clock="13:20:43Z")
        await opened.beat()
        assert ("detail", "t_000c7kq2") in opened.door.asked
        opened.door.change(cards=())
        await opened.beat()
        assert "is no longer on the board" in opened.text()


async def test_enter_on_an_event_opens_what_it_is_about() -> None:
    async with stage() as opened:
        await opened.press("4", "enter")
        assert isinstance(opened.screen, DetailScreen)
        assert opened.screen.label == "unit-tests"


async def test_the_event_log_follows_until_somebody_looks_back() -> None:
    async with stage() as opened:
        tail = opened.room.query_one(Tail)
        await opened.press("4", "k")
        assert not tail.following
        line = dataclasses.replace(opened.door.view.events[-1], seq=99, text="something new")
        opened.door.change(events=(*opened.door.view.events, line))
        await opened.beat()
        assert tail.cursor == "39"
        await opened.press("G")
        assert tail.cursor == "99"
        assert tail.following


async def test_pause_holds_dispatch_back_and_the_same_key_resumes_it() -> None:
    async with stage() as opened:
        await opened.press("P")
        await opened.beat()
        assert "dispatch paused" in opened.text()
        assert "resume" in opened.text()
        await opened.press("P")
        assert [call for call in opened.door.asked if call[0] == "pause"] == [("pause", True), ("pause", False)]


async def test_an_action_that_cannot_run_says_why() -> None:
    async with stage() as opened:
        await opened.press("x")
        assert opened.app.said == ["reap: Hermes is the council itself; q ends it"]


async def test_a_read_only_console_starts_and_ends_nothing() -> None:
    async with stage(read_only=True) as opened:
        await opened.press("j", "s", "x", "P")
        assert opened.screen is opened.room
        assert len([said for said in opened.app.said if said.endswith("read-only")]) == 3


async def test_a_refusal_of_the_council_is_said_in_its_own_words() -> None:
    async with stage() as opened:
        opened.door.refusal = CouncilError("another console is draining [bold]this[/bold] fleet")
        await opened.press("P")
        assert opened.app.said == ["another console is draining [bold]this[/bold] fleet"]


async def test_an_empty_room_answers_every_key() -> None:
    async with stage(80, 24, FakeCouncil(empty_view())) as opened:
        await opened.press(
            "j", "h", "l", "enter", "x", "y", "!", "2", "h", "l", "j", "enter", "3", "4", "G", "s", "escape"
        )
        assert opened.screen is opened.room
        assert opened.app.said == [
            "open: nothing is selected",
            "reap: no agent is selected",
            "open: nothing is selected",
        ]


async def test_the_mouse_selects_opens_and_scrolls() -> None:
    async with stage() as opened:
        tree = tree_of(opened)
        await opened.pilot.click(AgentTree, offset=(12, 6))
        assert tree.cursor == VISUAL
        await opened.pilot.click(AgentTree, offset=(12, 6), times=2)
        await opened.settle()
        assert isinstance(opened.screen, DetailScreen)


async def test_clicks_on_the_bars_do_what_their_keys_do() -> None:
    async with stage(80, 24) as opened:
        await opened.pilot.click("TabStrip", offset=(24, 0))
        await opened.settle()
        assert opened.room.pane == "board"
        await opened.pilot.click("LaneStrip", offset=(4, 0))
        assert opened.room.board.current is CardState.BACKLOG
        await opened.pilot.click("KeyBar", offset=(2, 0))
        await opened.settle()
        assert isinstance(opened.screen, HelpScreen)


# -- the ledger


async def test_v_verifies_the_entry_and_capital_v_the_whole_ledger() -> None:
    async with stage() as opened:
        await opened.press("g", "l", "j", "v")
        assert ("verify", 146) in opened.door.asked
        assert "entry 146: valid" in opened.text()
        await opened.press("V")
        assert ("verify", None) in opened.door.asked
        assert "whole ledger: valid, 148 checked" in opened.text()


async def test_enter_shows_the_entry_on_the_whole_screen_and_escape_goes_back() -> None:
    async with stage() as opened:
        await opened.press("g", "l", "enter")
        screen = opened.screen
        assert screen.zoomed
        await opened.press("escape")
        assert not screen.zoomed
        assert screen.pane == "entries"


async def test_new_and_old_entries_are_read_when_they_are_needed() -> None:
    door = FakeCouncil(view(ledger=dataclasses.replace(view().ledger, size=1200, verified=1200)))
    async with stage(door=door) as opened:
        await opened.press("g", "l")
        entries = opened.screen.query_one(Entries)
        assert len(entries.rows) == 500
        await opened.press("G")
        assert len(entries.rows) == 1000
        opened.door.rows = (*opened.door.rows, dataclasses.replace(opened.door.rows[-1], index=1200))
        opened.door.change(ledger=dataclasses.replace(opened.door.view.ledger, size=1201))
        await opened.beat()
        assert entries.rows[0].index == 1200


async def test_a_verification_that_cannot_run_and_a_bad_entry_are_both_said() -> None:
    async with stage() as opened:
        await opened.press("g", "l")
        opened.door.refusal = CouncilError("the ledger is locked")
        await opened.press("v")
        assert opened.app.said == ["the ledger is locked"]
        opened.door.refusal = None
        rows = opened.door.rows
        opened.door.rows = (*rows[:-1], dataclasses.replace(rows[-1], verdict="BAD_SIGNATURE"))
        opened.screen._read(100)
        await opened.settle()
        await opened.press("!")
        assert [entry.index for entry in opened.screen.query_one(Entries).rows] == [147]
        assert "✗ bad_signature" in opened.text()


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
        await opened.press("alt+enter")
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


# -- leaving


async def test_quit_asks_and_stays_or_drains_and_tells_what_ended() -> None:
    async with stage() as opened:
        await opened.press("q", "escape")
        assert opened.screen is opened.room
        await opened.press("ctrl+c", "e")
        assert opened.app.outcome is not None
        assert opened.app.outcome.ended == 19
        assert not opened.app.is_running


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
        assert opened.app.outcome == QuitOutcome(3, 0)


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


# -- the registry


def test_every_action_has_somebody_who_does_it() -> None:
    screens = {"ledger": LedgerScreen}
    for action in keymap.ACTIONS:
        if action.call or action.id == "quit":
            continue
        owner = screens.get(action.where, RoomScreen)
        assert hasattr(owner, f"do_{action.id.replace('-', '_')}"), action.id


def test_no_key_means_two_things_in_one_place() -> None:
    places = (("everywhere", "lists", "rows", "tree", "room"), ("everywhere", "lists", "rows", "board", "room"))
    for group in (*places, ("everywhere", "lists", "rows", "ledger")):
        keys = [key for action in keymap.actions(*group) for key in action.keys]
        assert len(keys) == len(set(keys))


def test_the_table_has_a_row_for_every_action() -> None:
    table = keymap.markdown_table()
    assert table.count("\n") == len(keymap.ACTIONS) + 2
    assert "| Control room | `s` | spawn a child; shows the contract before it is sent | `spawn` |" in table
