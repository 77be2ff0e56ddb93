"""The ledger: every signed entry, newest first, and what a verification says about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from council_tui.console import keymap
from council_tui.console.screens.base import CouncilScreen
from council_tui.console.widgets.page import Page
from council_tui.console.widgets.painted import between
from council_tui.console.widgets.virtual_list import VirtualList
from council_tui.control.views import EntryView, LedgerView, VerifyView
from council_tui.domain.ids import agent_label

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from council_tui.console.glyphs import Part
    from council_tui.console.pulse import Picture

CHUNK = 500
"""Entries read at once; older ones follow when the cursor comes near the end."""

NEAR = 50


class Entries(VirtualList[EntryView]):
    """One row per entry."""

    EMPTY: ClassVar[str] = "No entries yet: each signed report of an agent becomes one."
    covered = 0
    """Entries below this index stand under the last verification of the whole ledger, which was valid."""

    def verdict(self, item: EntryView) -> str:
        """Its own verdict, or that of the whole."""
        return item.verdict or ("VALID" if item.index < self.covered else "")

    def key(self, item: EntryView) -> str:
        """Its index."""
        return str(item.index)

    def words(self, item: EntryView) -> str:
        """The whole row."""
        return f"{item.index} {item.kind} {item.agent} {item.card} {item.verdict} {item.detail}"

    def is_bad(self, item: EntryView) -> bool:
        """Verified, and not valid."""
        return self.verdict(item) not in ("", "VALID")

    def line(self, item: EntryView, line: int, width: int) -> list[Part]:
        """Index, time, kind, agent, card, verdict."""
        glyphs, said = self.glyphs, self.verdict(item)
        if said == "VALID":
            verdict: Part = (f" {glyphs.good} valid", "p-good")
        elif said:
            verdict = (f" {glyphs.health['failed']} {said.lower()}", "p-bad")
        else:
            verdict = (f" {glyphs.health['offered']} not verified", "p-quiet")
        wide = width >= 96
        kind = 18 if wide else 12
        agent = max(10, width - kind - (58 if wide else 48 if width >= 72 else 35))
        left: list[Part] = [
            (f"{item.index:>6} ", "p-strong"),
            (f"{item.at[11:19]} ", "p-quiet"),
            (f" {glyphs.fit(item.kind.replace('_', ' '), kind)} ", ""),
            (glyphs.fit_middle(item.agent if wide else agent_label(item.agent), agent) + " ", ""),
        ]
        if width >= 72:
            left.append((glyphs.fit(item.card, 12), "p-quiet"))
        if width >= 96:
            left.append((f"  {item.leaf[:12]}", "p-quiet"))
        return between(left, [(verdict[0].ljust(15), verdict[1])], width, glyphs)


class LedgerScreen(CouncilScreen):
    """Entries above, the selected one and its checks below."""

    WHERE: ClassVar[str] = "ledger"
    BINDINGS: ClassVar = keymap.bindings("ledger")
    PANES: ClassVar = (("entries", "Entries"), ("entry", "Entry"))

    def __init__(self) -> None:
        super().__init__()
        self.place = "ledger"
        self.loaded: dict[int, EntryView] = {}
        self.reading = False
        self.size_seen = -1
        self.checks: dict[int, VerifyView] = {}
        self.whole: VerifyView | None = None
        self.checking = ""

    def body(self) -> ComposeResult:
        """Two panes."""
        yield Entries("1 Entries", id="entries")
        yield Page("2 Entry", empty="No entry is selected.", id="entry")

    def on_mount(self) -> None:
        """Mark the panes."""
        self.query_one("#entries").add_class("pane")
        self.query_one("#entry").add_class("pane")

    def show_picture(self, picture: Picture, changed: bool) -> None:
        """Read what was appended since."""
        super().show_picture(picture, changed)
        head = picture.view.ledger if picture.view is not None else LedgerView()
        size = head.size
        covered = head.verified if head.verdict == "VALID" else 0
        if covered != self.query_one(Entries).covered:
            self.query_one(Entries).covered = covered
            self._show()
        if size > self.size_seen and not self.reading and picture.view is not None:
            self._read(self.size_seen if self.loaded else max(0, size - CHUNK))

    def _read(self, start: int) -> None:
        self.reading = True

        def take(entries: tuple[EntryView, ...]) -> None:
            self.reading = False
            self.loaded.update((entry.index, entry) for entry in entries)
            self.size_seen = max(self.loaded, default=-1) + 1
            self._show()

        door = self.council_app.door
        self.council_app.ask(lambda: door.entries(start, CHUNK), take, group="entries", otherwise=self._trouble)

    def _trouble(self, error: Exception) -> None:
        self.reading = False
        self.query_one(Entries).show((), f"could not be read: {error}")

    def _show(self) -> None:
        if not self.is_mounted:
            return
        rows = [self.loaded[index] for index in sorted(self.loaded, reverse=True)]
        self.query_one(Entries).show(rows)
        self._show_entry()
        self.freshen_bars()

    def pane_title(self, pane: str) -> str:
        """How many entries there are."""
        view = self.council_app.picture.view
        if pane == "entries" and view is not None:
            return f"Entries {view.ledger.size:,}"
        return super().pane_title(pane)

    def on_virtual_list_chosen(self, event: VirtualList.Chosen) -> None:
        """Show the entry; fetch older ones near the end."""
        self._show_entry()
        entries = self.query_one(Entries)
        oldest = min(self.loaded, default=0)
        if oldest > 0 and not self.reading and entries.where.get(entries.cursor or "", 0) > len(entries.rows) - NEAR:
            self._read(max(0, oldest - CHUNK))

    def _show_entry(self) -> None:
        page = self.query_one("#entry", Page)
        entry = self.query_one(Entries).selected
        page.heading = f"2 Entry {entry.index}" if entry is not None else "2 Entry"
        lines: list[list[Part]] = []
        if self.checking:
            lines += [[(self.checking, "p-late")], []]
        if self.whole is not None:
            lines += [*self._check("whole ledger", self.whole), []]
        if entry is not None:
            if (check := self.checks.get(entry.index)) is not None:
                lines += [*self._check(f"entry {entry.index}", check), []]
            lines += self._facts(entry)
        page.write(lines)

    def _facts(self, entry: EntryView) -> list[list[Part]]:
        found = (
            ("kind", entry.kind.replace("_", " ")),
            ("agent", entry.agent),
            ("card", entry.card),
            ("time", entry.at),
            ("leaf", entry.leaf),
            ("verdict", self.query_one(Entries).verdict(entry).lower() or "not verified yet: v verifies it"),
            ("detail", entry.detail),
        )
        return [[(f"{name:<10}", "p-quiet"), (value, "")] for name, value in found if value]

    def _check(self, what: str, check: VerifyView) -> list[list[Part]]:
        good = check.verdict == "VALID"
        glyphs = self.council_app.glyphs
        sign, tone = (glyphs.good, "p-good") if good else (glyphs.health["failed"], "p-bad")
        bad = f", first bad entry {check.first_bad}" if check.first_bad is not None else ""
        head = f"{sign} {what}: {check.verdict.lower()}, {check.checked:,} checked{bad}"
        return [[(head, tone)], *([(f"  {line}", "")] for line in check.lines)]

    # -- actions

    def why_not(self, action: str) -> str:
        """The reasons of the ledger."""
        if action in ("verify", "open") and self.query_one(Entries).selected is None:
            return f"{action}: there is no entry yet"
        if action in ("verify", "verify-all") and self.checking:
            return f"{action}: a verification is running"
        return ""

    def do_verify(self) -> None:
        """Verify the selected entry."""
        entry = self.query_one(Entries).selected
        if entry is not None:
            self._verify(entry.index)

    def do_verify_all(self) -> None:
        """Verify the whole ledger."""
        self._verify(None)

    def _verify(self, index: int | None) -> None:
        self.checking = "verifying the whole ledger" if index is None else f"verifying entry {index}"
        self._show_entry()
        self.freshen_bars()

        def take(check: VerifyView) -> None:
            self.checking = ""
            if index is None:
                self.whole = check
            else:
                self.checks[index] = check
            if self.is_mounted:
                self._show_entry()
                self._read(max(0, self.size_seen - CHUNK))

        def failed(error: Exception) -> None:
            self.checking = ""
            self.council_app.fail(error)
            self._show_entry()

        self.council_app.ask(lambda: self.council_app.door.verify(index), take, group="verify", otherwise=failed)

    def do_open(self) -> None:
        """The entry on the whole screen; esc goes back."""
        if self.pane == "entries":
            self.go_pane("entry")
            if not self.zoomed:
                self.do_zoom()

    def leave(self) -> None:
        """First back to the list, then to the room."""
        if self.pane == "entry":
            self.go_pane("entries")
        else:
            super().leave()

    def do_back(self) -> None:
        """Un-zooming an entry goes back to the list."""
        zoomed = self.zoomed and self.pane == "entry"
        super().do_back()
        if zoomed:
            self.go_pane("entries")
