"""The lines around every screen: counts above, tabs, the demo's hint and the keys below."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from council_tui.console import keymap
from council_tui.console.glyphs import TONES, Part
from council_tui.console.widgets.painted import Line, between, clip, width_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual import events

    from council_tui.console.pulse import Picture
    from council_tui.console.screens.base import CouncilScreen
    from council_tui.control.views import RoomView


def tally(view: RoomView) -> list[tuple[str, str, int]]:
    """(health, word, how many) of what lives, what needs a person and what failed; everything counts once.

    The offices are the council itself: only children and microsharks count.
    """
    living = Counter(a.health for a in view.agents if not a.ended and a.kind in ("child", "microshark"))
    counts = (
        ("alive", "alive", living["alive"] + living["offered"]),
        ("late", "late", living["late"]),
        ("stalled", "stalled", living["stalled"]),
        ("orphan", "being reaped", living["orphan"] + living["failed"]),
        ("held", "held", living["held"]),
        ("waiting", "waiting", max(0, view.waiting - living["held"])),
        ("failed", "failed", view.failed),
    )
    return [(health, word, count) for health, word, count in counts if count or health == "alive"]


class ScreenLine(Line):
    """A line that reads from the screen it is on."""

    @property
    def host(self) -> CouncilScreen:
        """The screen, by its own type."""
        from council_tui.console.screens.base import CouncilScreen

        assert isinstance(self.screen, CouncilScreen)
        return self.screen


class TopBar(ScreenLine):
    """Where we are, how the fleet is, and what needs a person."""

    def parts(self, width: int) -> list[Part]:
        """As many words as fit."""
        picture = self.council_app.picture
        left: list[Part] = [
            (" ", ""),
            ("council", "p-badge"),
            (f"  {self._place()}", "p-strong"),
            *self._badges(picture),
        ]
        if picture.view is None:
            said: Part = (f"{picture.trouble} ", "p-bad") if picture.trouble else ("reading ", "p-quiet")
            return between(left, [said], width, self.glyphs)
        view = picture.view
        for wordy, ledger in ((True, True), (False, True), (False, False)):
            right = self._counts(view, wordy, ledger)
            if width_of(left) + width_of(right) + 1 <= width:
                return between(left, right, width, self.glyphs)
        for wordy in (True, False):
            short: list[Part] = [(" ", ""), ("council", "p-badge"), *self._badges(picture, wordy)]
            right = self._counts(view, False, False)
            if width_of(short) + width_of(right) + 1 <= width:
                break
        return between(short, right, width, self.glyphs)

    def _place(self) -> str:
        view = self.council_app.picture.view
        fleet = view.fleet if view is not None else ""
        place = self.host.place
        return f"{fleet} {self.glyphs.arrow} {place}" if fleet else place

    def _badges(self, picture: Picture, wordy: bool = True) -> Iterator[Part]:
        view = picture.view
        if picture.trouble and view is not None:
            yield ("  ", "")
            yield (f" {picture.badge if wordy or picture.stale else 'no answer'} ", "p-bad")
        if view is not None and view.paused:
            yield ("  dispatch paused", "p-late")
        elif view is not None and view.holding:
            yield ("  births wait", "p-late")
        if view is not None and view.attached:
            yield ("  attached", "p-quiet")
        if self.council_app.held:
            yield ("  picture held", "p-late")
        if self.council_app.read_only:
            yield ("  read-only", "p-quiet")

    def _counts(self, view: RoomView, wordy: bool, ledger: bool) -> list[Part]:
        glyphs, gap = self.glyphs, "  " if wordy else " "
        parts: list[Part] = []
        stale = self.council_app.picture.stale
        rows = [] if stale else tally(view)
        if wordy:
            said = [(f"{glyphs.health[health]} {count:,} {word}", TONES[health]) for health, word, count in rows]
        else:
            # without words, what shares a sign is one number
            by_sign = {glyphs.health[health]: TONES[health] for health, _, _ in rows}
            said = [
                (f"{sign}{sum(n for health, _, n in rows if glyphs.health[health] == sign):,}", tone)
                for sign, tone in by_sign.items()
            ]
        for part in said:
            parts += [part, (gap, "")]
        if ledger:
            parts += [*self._ledger(view, wordy), (gap, "")]
        return [*parts, (f"{'last read ' if stale and wordy else ''}{view.clock} ", "p-quiet")]

    def _ledger(self, view: RoomView, wordy: bool) -> list[Part]:
        head = view.ledger
        if head.verdict == "VALID":
            sign, tone = self.glyphs.good, "p-good"
        elif head.verdict == "UNKNOWN":
            sign, tone = self.glyphs.health["offered"], "p-quiet"
        else:
            sign, tone = self.glyphs.health["failed"], "p-bad"
        size = f"{head.verified}/{head.size}" if wordy and head.verdict != "UNKNOWN" else f"{head.size}"
        word = f" {head.verdict.lower()}" if tone == "p-bad" else " unverified" if wordy and tone == "p-quiet" else ""
        return [(f"ledger {sign} {size}{word}", tone)]


class TabStrip(ScreenLine):
    """The panes of a screen that shows one at a time."""

    def _tabs(self) -> Iterator[tuple[str, Part]]:
        host = self.host
        for number, pane in enumerate(host.panes(), 1):
            name = f"{number} {host.pane_title(pane)}"
            chosen = pane == host.pane
            yield pane, (f"[{name}]" if chosen else f" {name} ", "p-chosen" if chosen else "p-quiet")

    def parts(self, width: int) -> list[Part]:
        """Numbers are the keys."""
        gap = " " if width >= 76 else ""
        return [(" ", ""), *((text + gap, tone) for _, (text, tone) in self._tabs())]

    def on_click(self, event: events.Click) -> None:
        """A click opens the pane."""
        at, gap = 1, 1 if self.size.width >= 76 else 0
        for pane, (text, _) in self._tabs():
            if at <= event.x < at + len(text):
                self.host.go_pane(pane)
            at += len(text) + gap


class NoteLine(ScreenLine):
    """One line of advice above the keys: what to do about a council that cannot be read, or the demo's hint."""

    def _note(self) -> Part:
        picture = self.council_app.picture
        view = picture.view
        if picture.advice:
            return picture.advice, "p-bad"
        if view is None or not view.note:
            return "", ""
        held = any(agent.health == "held" for agent in view.agents)
        note = f"x on the held orphan reaps it · {view.note}" if held else view.note
        return note.replace("·", self.glyphs.dot), "p-late"

    def parts(self, width: int) -> list[Part]:
        """The note, cut with a sign where it does not fit."""
        text, tone = self._note()
        return clip([(f" {text}", tone)], width, self.glyphs) if text else []

    def freshen(self) -> None:
        """Take no room without a note."""
        self.display = bool(self._note()[0])
        super().freshen()


class LastEvents(ScreenLine):
    """The newest events in one line, where the event log has no place of its own."""

    def parts(self, width: int) -> list[Part]:
        """Newest first."""
        view = self.council_app.picture.view
        parts: list[Part] = [(" ", "")]
        for event in reversed(view.events[-3:] if view is not None else ()):
            gap = f"  {self.glyphs.dot} " if len(parts) > 1 else ""
            parts += [
                (f"{gap}{event.at[11:19]} ", "p-quiet"),
                (self.glyphs.tone[event.tone].strip(), TONES[event.tone]),
            ]
            parts.append((f" {event.text}".replace("  ", " "), ""))
        return clip(parts, width, self.glyphs)


class KeyBar(ScreenLine):
    """The keys that matter here, from the registry; what cannot be done now is dimmed."""

    def _entries(self, width: int) -> list[tuple[keymap.Action, str]]:
        """(action, its words in the line), without what there is no room for."""
        host = self.host
        rows = [action for action in keymap.actions(*host.places()) if action.keys and host.word_for(action)]
        rows.sort(key=lambda action: action.group)
        while rows and sum(len(action.key) + len(host.word_for(action)) + 3 for action in rows) + 4 > width:
            rows.remove(max(rows, key=lambda action: action.rank))
        return [(action, host.word_for(action)) for action in rows]

    def _spans(self, width: int) -> Iterator[tuple[keymap.Action | None, list[Part]]]:
        group = 0
        for action, word in self._entries(width):
            if group and action.group != group:
                yield None, [(f"{self.glyphs.pipe}", "p-frame")]
            group = action.group
            off = bool(self.host.why_not(action.id))
            yield action, [(action.key, "p-ended" if off else "p-key"), (f" {word}  ", "p-ended" if off else "")]

    def parts(self, width: int) -> list[Part]:
        """Help, what can be done here, where one can go."""
        return [(" ", ""), *(part for _, parts in self._spans(width) for part in parts)]

    def on_click(self, event: events.Click) -> None:
        """A click does what the key does."""
        at = 1
        for action, parts in self._spans(self.size.width):
            size = width_of(parts)
            if action is not None and at <= event.x < at + size:
                self.council_app.action_act(action.id)
            at += size


class TooSmall(ScreenLine):
    """What a terminal below 60 by 16 shows instead of a screen."""

    def parts(self, width: int) -> list[Part]:
        """One sentence."""
        columns, rows = self.app.size
        return [(f"council needs a terminal of 60 by 16; this one is {columns} by {rows}.", "")]
