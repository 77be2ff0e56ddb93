"""The pulse pulls, paints little and never waits."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

import pytest
from textual.screen import Screen

from council_tui.console.glyphs import ASCII, UNICODE, needs_ascii
from council_tui.console.pulse import Pulse
from council_tui.console.run import run_console
from council_tui.console.widgets.bars import tally
from council_tui.console.widgets.virtual_list import VirtualList
from council_tui.control.views import CouncilGone
from council_tui.domain.errors import CouncilError
from council_tui.domain.text import span

from .crew import view
from .fake import FakeCouncil
from .stage import StillApp, stage

if TYPE_CHECKING:
    from council_tui.control.views import AgentView, RoomView


def _later(agents: tuple[AgentView, ...]) -> tuple[AgentView, ...]:
    return tuple(
        dataclasses.replace(agent, age_seconds=(agent.age_seconds or 0) + 1, beats=(*agent.beats[1:], 300))
        for agent in agents
    )


def _crowd() -> FakeCouncil:
    base = view()
    agents = tuple(
        dataclasses.replace(base.agents[5], name=f"child:a{n}.r", label=f"a{n}", card=f"t_{n}") for n in range(976)
    )
    cards = tuple(dataclasses.replace(base.cards[n % 30], id=f"t_{n}", label=f"a{n}") for n in range(9970))
    return FakeCouncil(dataclasses.replace(base, agents=base.agents + agents, cards=base.cards + cards))


@pytest.fixture
def reflows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry per layout of a screen."""
    counted: list[int] = []
    original = Screen._refresh_layout

    def count(self: Screen[Any], *args: Any, **options: Any) -> None:
        counted.append(1)
        original(self, *args, **options)

    monkeypatch.setattr(Screen, "_refresh_layout", count)
    return counted


async def test_a_thousand_agents_and_ten_thousand_cards_cost_few_widgets_and_no_layout(reflows: list[int]) -> None:
    async with stage(door=_crowd()) as opened:
        widgets = list(opened.room.walk_children())
        assert len(widgets) <= 60
        lists = [widget for widget in widgets if isinstance(widget, VirtualList)]
        on_screen = sum(widget.size.height for widget in lists if widget.display)
        reflows.clear()
        for step in range(3):
            before = sum(widget.lines_drawn for widget in lists)
            event = dataclasses.replace(opened.door.view.events[-1], seq=1000 + step)
            opened.door.change(
                clock=f"13:20:5{step}Z",
                agents=_later(opened.door.view.agents),
                events=(*opened.door.view.events, event),
            )
            await opened.beat()
            assert 0 < sum(widget.lines_drawn for widget in lists) - before <= on_screen
        assert reflows == []


async def test_an_equal_picture_paints_nothing_but_clocks(reflows: list[int]) -> None:
    async with stage() as opened:
        lists = list(opened.room.query(VirtualList))
        reflows.clear()
        before = sum(widget.lines_drawn for widget in lists)
        opened.door.view = dataclasses.replace(opened.door.view, clock="13:20:43Z")
        await opened.beat()
        assert "13:20:43Z" in opened.text()
        handed_out: list[bool] = []
        opened.app._hand_out = handed_out.append  # type: ignore[method-assign,assignment]
        await opened.beat()
        assert handed_out == []
        assert sum(widget.lines_drawn for widget in lists) == before
        assert reflows == []


async def test_a_picture_that_cannot_be_read_leaves_the_last_one_and_says_why() -> None:
    async with stage() as opened:
        opened.door.refusal = CouncilError("the board is locked")
        await opened.beat()
        assert "could not be read: the board is locked" in opened.text()
        assert "campaign-visual" in opened.text()
        opened.door.refusal = None
        await opened.beat()
        assert "could not be read" not in opened.text()


async def test_what_lives_in_a_council_that_cannot_be_read_is_unknown() -> None:
    async with stage() as opened:
        opened.door.refusal = CouncilError("the board is locked")
        await opened.beat()
        text = opened.text()
        assert "● " not in text
        assert "? unknown" in text
        assert "alive" not in text
        assert "■ ended" in text
        assert "could not be read: the board is locked; it is asked again" in text
        opened.door.refusal = None
        await opened.beat()
        assert "● 12 alive" in opened.text()
        assert "unknown" not in opened.text()


async def test_a_council_that_has_ended_says_so_and_what_to_do() -> None:
    for size in ((120, 40), (80, 24)):
        async with stage(*size) as opened:
            opened.door.refusal = CouncilGone("fleet demo has ended with exit code 0")
            await opened.beat()
            assert "fleet demo has ended with exit code 0: press q; `council` starts a new one" in opened.text()
            assert "could not be read" not in opened.text()
            await opened.press("s", "P")
            assert opened.app.said == [
                "spawn: fleet demo has ended with exit code 0",
                "pause: fleet demo has ended with exit code 0",
            ]


def test_the_header_counts_each_agent_once_and_no_office_and_nothing_that_is_over() -> None:
    base = view()
    assert [(word, count) for _, word, count in tally(base)] == [
        ("alive", 12),
        ("late", 1),
        ("held", 1),
        ("waiting", 1),
        ("failed", 1),
    ]
    offices = tuple(agent for agent in base.agents if agent.kind in ("hermes", "openfang", "openclaw", "zeroclaw"))
    gone = dataclasses.replace(base.agents[5], health="orphan", ended=True)
    empty = dataclasses.replace(base, agents=(*offices, gone), cards=(), waiting=0, failed=0)
    assert tally(empty) == [("alive", "alive", 0)]
    going = dataclasses.replace(gone, ended=False)
    assert tally(dataclasses.replace(empty, agents=(going,)))[1:] == [("orphan", "being reaped", 1)]


async def test_the_hint_follows_the_state_and_is_cut_with_a_sign() -> None:
    note = "s spawns a child · g l shows the ledger, V verifies it · ? keys"
    async with stage(80, 24, FakeCouncil(view(note=note))) as opened:
        assert "x on the held orphan reaps it · s spawns" in opened.text()
        assert next(line for line in opened.text().split("\n") if "x on the held" in line).rstrip().endswith("…")
        opened.door.set_health("db-migration", "failed")
        await opened.beat()
        assert "held orphan" not in opened.text()
        assert note in opened.text()
    async with stage(120, 40, FakeCouncil(view(note=note)), ascii=True) as opened:
        assert "x on the held orphan reaps it - s spawns a child - g l" in opened.text()


async def test_a_slow_council_is_asked_once_and_blocks_no_key() -> None:
    answered = asyncio.Event()

    class Slow(FakeCouncil):
        pulls = 0

        async def room(self) -> RoomView:
            self.pulls += 1
            if self.pulls > 1:
                await answered.wait()
            return self.view

    door = Slow()
    async with stage(door=door) as opened:
        now = 100.0
        opened.app.pulse.clock = lambda: now
        opened.app.beat()
        await opened.pilot.press("j")
        now += 3
        opened.app.beat()
        await opened.pilot.press("j")
        assert door.pulls == 2
        assert "no answer for 3s" in opened.text()
        assert opened.room.here.cursor != opened.room.here.key(opened.room.here.rows[0])
        answered.set()
        await opened.settle()
        assert "no answer" not in opened.text()


async def test_a_pull_that_breaks_is_an_error_of_ours_and_not_swallowed() -> None:
    class Broken(FakeCouncil):
        async def room(self) -> RoomView:
            raise ZeroDivisionError

    pulse = Pulse(Broken())
    with pytest.raises(ZeroDivisionError):
        await pulse.pull()
    assert not pulse.busy


async def test_text_of_agents_is_never_markup() -> None:
    async with stage() as opened:
        assert "214 of 380 [bold]passed[/bold]" in opened.text()
        agents = tuple(dataclasses.replace(agent, label="[red]x[/red]") for agent in opened.door.view.agents)
        opened.door.change(agents=agents)
        await opened.beat()
        await opened.press("j", "x")
        assert "Reap [red]x[/red]?" in opened.text()


async def test_a_terminal_below_the_least_size_gets_one_sentence_and_gets_the_room_back() -> None:
    async with stage(59, 20) as opened:
        assert "council needs a terminal of 60 by 16; this one is 59 by 20." in opened.text()
        assert "Hermes" not in opened.text()
        await opened.pilot.resize_terminal(120, 40)
        await opened.until("Hermes")


async def test_no_color_leaves_the_terminal_its_own_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = StillApp(FakeCouncil())
    async with app.run_test(size=(80, 24)) as pilot:
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert app.native_ansi_color
        assert app.no_color


@pytest.mark.parametrize("ms", [0, 1, 8, 40, 999, 10**9])
def test_a_sparkline_has_a_bar_for_every_lateness(ms: int) -> None:
    for glyphs in (UNICODE, ASCII):
        assert " " not in glyphs.spark
        assert glyphs.sparkline((ms,), 5) in glyphs.spark
    assert UNICODE.sparkline((-1, ms), 2)[0] == "·"
    assert UNICODE.sparkline((1, 2, 3), 0) == ""


def test_lateness_rises_with_the_bar() -> None:
    bars = [UNICODE.spark.index(UNICODE.sparkline((ms,), 1)) for ms in (4, 16, 60, 200, 800, 5000)]
    assert bars == sorted(bars)
    assert bars[0] == 0
    assert bars[-1] == 7


def test_names_are_cut_in_the_middle_and_spans_are_short() -> None:
    assert UNICODE.fit_middle("campaign-visual", 11) == "campa…isual"
    assert UNICODE.fit("编辑编辑", 5) == "编辑…"
    assert [span(seconds) for seconds in (None, 0, 99, 100, 7200, 200000)] == ["", "0s", "99s", "1m", "2h", "2d"]


def test_ascii_is_chosen_for_terminals_that_need_it() -> None:
    assert needs_ascii({"TERM": "linux"})
    assert needs_ascii({"TERM": "xterm", "LANG": "de_DE.ISO-8859-1"})
    assert not needs_ascii({"TERM": "xterm", "LANG": "C.UTF-8"})
    assert all(ord(char) < 128 for char in ASCII.spark + "".join(ASCII.health.values()) + "".join(ASCII.tone.values()))


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_ends_the_console_in_order(number: signal.Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[StillApp] = []

    class Headless(StillApp):
        async def run_async(self, **options: Any) -> None:
            opened.append(self)
            await super().run_async(headless=True, size=(80, 24), **options)

        def on_ready(self) -> None:
            os.kill(os.getpid(), number)

    monkeypatch.setattr("council_tui.console.run.CouncilApp", Headless)
    assert await run_console(FakeCouncil(), demo=True) is None
    assert not opened[0].is_running
    assert signal.getsignal(number) is signal.SIG_DFL
