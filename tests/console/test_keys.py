"""Each key and what it does; one sentence per test."""

from __future__ import annotations

import dataclasses

from council_tui.console import keymap
from council_tui.console.screens.detail import DetailScreen
from council_tui.console.screens.go_to import GoToScreen
from council_tui.console.screens.help import HelpScreen
from council_tui.console.screens.ledger import Entries, LedgerScreen
from council_tui.console.screens.room import RoomScreen
from council_tui.console.widgets.agent_tree import AgentTree
from council_tui.console.widgets.beats import Beats
from council_tui.console.widgets.tail import Tail
from council_tui.domain.card import CardState
from council_tui.domain.errors import CouncilError

from .crew import empty_view, view
from .fake import FakeCouncil
from .stage import Stage, stage

VISUAL = "child:campaign-visual.7kq2m9xzw4"


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


async def test_the_board_opens_where_something_lives_until_somebody_chooses_a_lane() -> None:
    door = FakeCouncil()
    everything = door.view.cards
    door.view = dataclasses.replace(door.view, cards=tuple(c for c in everything if c.state in ("backlog", "done")))
    async with stage(80, 24, door) as opened:
        board = opened.room.board
        assert board.current is CardState.BACKLOG
        door.change(cards=tuple(c for c in everything if c.state in ("backlog", "review")))
        await opened.beat()
        assert board.current is CardState.REVIEW
        await opened.press("2", "h")
        door.change(cards=everything)
        await opened.beat()
        await opened.press("1")
        await opened.beat()
        assert board.current is CardState.BACKLOG


async def test_what_waits_for_a_person_is_on_top_of_its_lane() -> None:
    async with stage() as opened:
        lanes = opened.room.board.lanes
        assert [card.label for card in lanes[CardState.RUNNING].rows[:3]] == [
            "db-migration",
            "shark-02",
            "policy-review",
        ]
        assert [card.label for card in lanes[CardState.BLOCKED].rows] == ["publish", "translate"]


async def test_a_failure_says_why_wherever_it_is_selected() -> None:
    async with stage() as opened:
        await opened.press(*["j"] * 19)
        assert "✗ error: 3 links answer 404" in opened.text()
        assert "lived 18s" in opened.text()
        await opened.press("enter")
        assert "✗ error: 3 links answer 404" in opened.text()
        assert "no heartbeat yet" not in opened.text()
        assert "up 0s" not in opened.text()
        await opened.press("escape", "2", "G", "l", "l", "l", "l")
        assert opened.room.board.current is CardState.FAILED
        assert opened.text().count("3 links answ") == 2
        await opened.press("enter")
        assert "✗ error: 3 links answer 404" in opened.text()


async def test_an_ended_agents_last_words_are_not_shown_as_if_it_lived() -> None:
    async with stage() as opened:
        await opened.press(*["j"] * 3)
        assert "said last: working through its list" in opened.text()
        await opened.press("enter")
        assert "said last: working through its list" in opened.text()


async def test_no_fact_of_the_selection_is_cut() -> None:
    async with stage(100, 40) as opened:
        await opened.press(*["j"] * 15)
        pane = opened.room.query_one("#selected")
        lines = ["".join(text for text, _ in row[1]) for row in pane.rows]
        assert max(len(line) for line in lines) <= pane.size.width
        assert any("portable; soft slice; declared only: no network" in line for line in lines)
        assert "…" not in "".join(lines)


async def test_an_empty_list_names_the_filter_that_emptied_it() -> None:
    door = FakeCouncil()
    door.view = dataclasses.replace(door.view, agents=door.view.agents[:4], cards=door.view.cards[:1])
    async with stage(door=door) as opened:
        await opened.press("!")
        assert "Nothing here is bad or" in opened.text()
        await opened.press("/", *"fang", "enter")
        assert "Nothing that is bad or" in opened.text()
        await opened.press("escape", "escape", "enter", "1", "!")
        assert opened.screen.query_one("#facts").rows


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
        assert opened.app.copied == [VISUAL, "t_009c7kq2"]


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
        assert ("detail", "t_009c7kq2") in opened.door.asked
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
