"""The spawn dialog: a draft is held against the rules while it is typed, and the contract is read before it is sent."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Button, Input, Static

from council_tui.console import keymap
from council_tui.console.screens.dialog import Dialog
from council_tui.console.widgets.office_choice import OfficeChoice
from council_tui.console.widgets.page import Page
from council_tui.control.views import DraftCheck, SpawnDraft
from council_tui.domain.hierarchy import KINDS
from council_tui.domain.text import counted

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.timer import Timer

    from council_tui.console.glyphs import Part


@dataclass(frozen=True)
class Field:
    """A line of the form."""

    name: str
    """A field of `SpawnDraft`."""
    words: str
    value: str
    hint: str
    also: tuple[str, ...] = ()
    """Names under which the rules speak of it."""
    number: bool = False


FIELDS: tuple[Field, ...] = (
    Field("label", "name", "", "lower case, digits and dashes", ("id", "task_name")),
    Field("run", "command", "", "a program and its arguments", ("argv", "command")),
    Field("description", "task", "", "what it is to do, in a sentence", ("task_description",)),
    Field("mbti_type", "mbti", "ISTJ", "like ISTJ or ENTP-T"),
    Field("core_capabilities", "may use", "terminal file", "words, spaces between", ("tools_scope",)),
    Field("forbidden_capabilities", "may never", "network", "words, spaces between"),
    Field("memory_limit_mb", "memory MiB", "64", "of its own slice", number=True),
    Field("heartbeat_seconds", "beat each s", "5", "", ("parent_heartbeat_interval_seconds",), number=True),
    Field("timeout_seconds", "accept in s", "60", "", ("child_timeout_seconds", "lifecycle_policy"), number=True),
    Field("time_budget_minutes", "budget min", "10", "", number=True),
    Field("rollback_plan", "rollback", "No changes - read-only", "how to undo its work"),
)


def field_of(dotted: str) -> str:
    """The form's field for a rule's dotted path; `label` and `run` also by their names in a plan."""
    last = dotted.rpartition(".")[2].partition("[")[0]
    for field in FIELDS:
        if last == field.name or last in field.also:
            return field.name
    return ""


class SpawnScreen(Dialog):
    """A form, its contract and what is wrong with it."""

    BINDINGS: ClassVar = keymap.bindings("spawn")
    DEBOUNCE_SECONDS: ClassVar[float] = 0.15

    def __init__(self, office: str) -> None:
        super().__init__()
        self.office = office
        self.checked: SpawnDraft | None = None
        self.problems: tuple[tuple[str, str], ...] = ()
        self.timer: Timer | None = None
        self.sent = False
        self.touched: set[str] = set()
        """Fields whose mistakes are shown: those that were typed in, and all once somebody tried to send."""

    def compose(self) -> ComposeResult:
        """The form beside the contract; below it where there is little room."""
        with Vertical(id="spawn", classes="dialog") as box:
            box.border_title = "Spawn a child"
            with VerticalScroll(id="spawn-body", can_focus=False):
                with Vertical(id="spawn-form"):
                    yield from self._rows()
                yield Page("Contract", empty="It appears here while you type.", id="spawn-contract")
            yield Static("", id="spawn-status", markup=False)
            with Horizontal(classes="buttons"):
                yield Button(
                    f"Spawn  {keymap.BY_ID['submit'].key}",
                    id="spawn-send",
                    compact=True,
                    variant="primary",
                    disabled=True,
                )
                yield Button("Cancel  esc", id="spawn-cancel", compact=True)

    def _rows(self) -> ComposeResult:
        with Horizontal(classes="field"):
            yield Static("parent", classes="field-name", markup=False)
            yield OfficeChoice(self.office)
        for field in FIELDS:
            with Horizontal(classes="field"):
                yield Static(field.words, classes="field-name", id=f"name-{field.name}", markup=False)
                yield Input(field.value, placeholder=field.hint, compact=True, id=f"field-{field.name}")
            yield Static("", classes="field-problem", id=f"problem-{field.name}", markup=False)

    def on_mount(self) -> None:
        """Check the empty draft at once, so that the dialog says what it wants; nothing is wrong yet."""
        self.query_one("#field-label").focus()
        self.check()

    def on_resize(self) -> None:
        """The contract goes beside the form or below it."""
        self.call_after_refresh(self._fit)

    # -- the draft

    def _value(self, name: str) -> str:
        return self.query_one(f"#field-{name}", Input).value.strip()

    def draft(self) -> tuple[SpawnDraft | None, list[tuple[str, str]]]:
        """What is filled in, or why it cannot even be read."""
        wrong: list[tuple[str, str]] = []
        values: dict[str, Any] = {}
        for field in FIELDS:
            text = self._value(field.name)
            if field.number:
                values[field.name] = self._number(field, text, wrong)
            elif field.name.endswith("capabilities"):
                values[field.name] = tuple(text.replace(",", " ").split())
            else:
                values[field.name] = text
        try:
            values["run"] = tuple(shlex.split(values["run"]))
        except ValueError as error:
            wrong.append(("run", f"the command cannot be split: {str(error).lower()}"))
        return (None if wrong else SpawnDraft(parent=self.office, **values)), wrong

    @staticmethod
    def _number(field: Field, text: str, wrong: list[tuple[str, str]]) -> float | int:
        try:
            return int(text) if field.name == "memory_limit_mb" else float(text)
        except ValueError:
            wrong.append((field.name, f"{text!r} is not a {'whole ' if field.name == 'memory_limit_mb' else ''}number"))
            return 0

    def on_input_changed(self, event: Input.Changed) -> None:
        """Check when the typing pauses."""
        name = (event.input.id or "").removeprefix("field-")
        if event.value != next((field.value for field in FIELDS if field.name == name), ""):
            self.touched.add(name)
        self._later()

    def on_office_choice_changed(self, event: OfficeChoice.Changed) -> None:
        """Another office has other rules."""
        self.office = event.office
        self._later()

    def _later(self) -> None:
        if self.timer is not None:
            self.timer.stop()
        self._status("checking", "")
        self.query_one("#spawn-send", Button).disabled = True
        if self.DEBOUNCE_SECONDS:
            self.timer = self.set_timer(self.DEBOUNCE_SECONDS, self.check)
        else:
            self.check()

    def check(self) -> None:
        """Hold the draft against the rules; nothing is started."""
        self.checked = None
        draft, wrong = self.draft()
        if draft is None:
            self._show(tuple(wrong))
            return

        def take(check: DraftCheck) -> None:
            self.checked = draft
            self._write(check.contract)
            self._show(check.problems)

        door = self.council_app.door
        self.council_app.ask(
            lambda: door.check_draft(draft), take, group="draft", exclusive=True, otherwise=self._trouble
        )

    def _write(self, contract: str) -> None:
        page = self.query_one("#spawn-contract", Page)
        page.write([self._yaml(line) for line in contract.splitlines()])
        self._fit()

    def _fit(self) -> None:
        # below the form it is as long as it is, and the two scroll as one
        page = self.query_one("#spawn-contract", Page)
        page.styles.height = len(page.items) + 2 if self.has_class("-narrow") else "100%"

    def _trouble(self, error: Exception) -> None:
        self._status(f"It could not be checked: {error}", "bad")

    @staticmethod
    def _yaml(line: str) -> list[Part]:
        name, colon, value = line.partition(":")
        return [(name + colon, "p-quiet"), (value, "")] if colon else [(line, "")]

    def _show(self, problems: tuple[tuple[str, str], ...]) -> None:
        self.problems = problems
        by_field: dict[str, list[str]] = {}
        for dotted, rule in problems:
            by_field.setdefault(field_of(dotted), []).append(rule if field_of(dotted) else f"{dotted}: {rule}")
        sign = self.council_app.glyphs.health["failed"]
        for field in FIELDS:
            found = by_field.get(field.name, []) if field.name in self.touched else []
            line = self.query_one(f"#problem-{field.name}", Static)
            line.update("\n".join(f"{sign} {rule}" for rule in found))
            line.display = bool(found)
            self.query_one(f"#name-{field.name}").set_class(bool(found), "wrong")
        elsewhere = "; ".join(by_field.get("", []))
        ready = not problems and self.checked is not None
        self.query_one("#spawn-send", Button).disabled = not ready
        if ready:
            office = KINDS[self.office].title
            self._status(f"Valid. {office} signs it, makes the card and starts the process.", "good")
        elif self.touched.isdisjoint(by_field) and not elsewhere:
            wanted = [field.words for field in FIELDS if field.name in by_field]
            self._status(f"Spawn wants: {', '.join(wanted)}.", "")
        else:
            wrong = f"Spawn waits: {counted(len(problems), 'thing')} to mend."
            self._status(f"{wrong} {elsewhere}".strip(), "bad")

    def _status(self, text: str, tone: str) -> None:
        line = self.query_one("#spawn-status", Static)
        line.update(Content(text))
        line.set_class(tone == "bad", "bad")
        line.set_class(tone == "good", "good")

    # -- sending

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Send or leave."""
        if event.button.id == "spawn-send":
            self.action_submit()
        else:
            self.dismiss()

    def action_scroll(self, where: str) -> None:
        """Scroll the contract; where it is below the form, both as one."""
        pane = self.query_one("#spawn-body" if self.has_class("-narrow") else "#spawn-contract")
        pane.scroll_relative(y=pane.size.height // 2 * (1 if where == "down" else -1), animate=False)

    def action_submit(self) -> None:
        """Send exactly the draft that was checked and shown."""
        draft, _ = self.draft()
        self.touched.update(field.name for field in FIELDS)
        self._show(self.problems)
        if draft is None or draft != self.checked or self.problems:
            self.council_app.notify(
                "Spawn is not possible yet: the line above the buttons says why.", severity="warning", markup=False
            )
            return
        if self.sent:
            return
        self.sent = True
        app = self.council_app

        def done(card: str) -> None:
            app.say(f"{draft.label}: card {card} is on the board")
            self.dismiss()

        def refused(error: Exception) -> None:
            self.sent = False
            self._status(f"It was refused: {error}", "bad")

        self._status("sending", "")
        app.ask(lambda: app.door.spawn(draft), done, group="spawn", otherwise=refused)
