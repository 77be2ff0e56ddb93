"""Every key in one registry: bindings, footer, help, palette and the README's table are made from it."""

from __future__ import annotations

from dataclasses import dataclass

from textual.binding import Binding, BindingType


@dataclass(frozen=True)
class Action:
    """What a key does, where, and in which words."""

    id: str
    """For the user's keymap; stable."""
    keys: tuple[str, ...]
    where: str
    words: str
    short: str = ""
    """In the footer; empty keeps it out."""
    rank: int = 9
    """Footer entries of a higher rank go first when there is no room."""
    group: int = 2
    """Footer: 1 help and finding, 2 what is done here, 3 where one goes."""
    each: bool = False
    """One binding per key, with the key as argument."""
    call: str = ""
    """A Textual action where the registry's own dispatch is not meant."""
    priority: tuple[str, ...] = ()
    """Keys that also work inside fields and dialogs."""

    def bindings(self) -> list[Binding]:
        """The bindings of this row."""
        call = self.call or f"app.act('{self.id}')"
        if self.each:
            return [
                Binding(key, f"app.act('{self.id}', '{key}')", self.words, show=False, id=f"{self.id}-{key}")
                for key in self.keys
            ]
        return [
            Binding(key, call, self.words, show=False, id=self.id, priority=key in self.priority) for key in self.keys
        ]

    @property
    def label(self) -> str:
        """The keys as people write them."""
        if self.keys and self.keys[0] == "1":
            return f"{self.keys[0]}–{self.keys[-1]}"
        return " ".join(_SHOWN.get(key, key) for key in self.keys)

    @property
    def key(self) -> str:
        """The first key, as people write it."""
        return _SHOWN.get(self.keys[0], self.keys[0]) if self.keys else ""


_SHOWN = {
    "escape": "esc",
    "f1": "F1",
    "pagedown": "pgdn",
    "pageup": "pgup",
    "question_mark": "?",
}

ACTIONS: tuple[Action, ...] = (
    Action("help", ("?", "f1"), "everywhere", "help for where you are; the same key closes it", "help", 1, 1),
    Action("palette", (":", "ctrl+p"), "everywhere", "command palette", "commands", 6, 1),
    Action("filter", ("/",), "everywhere", "filter the list; enter keeps it, esc clears it", "filter", 4, 1),
    Action("back", ("escape",), "everywhere", "close, clear, back; never destroys", "back", 2, 3),
    Action("next-pane", ("tab",), "everywhere", "next pane"),
    Action("previous-pane", ("shift+tab",), "everywhere", "previous pane"),
    Action("pane", ("1", "2", "3", "4"), "everywhere", "that pane", each=True),
    Action("zoom", ("z",), "everywhere", "zoom this pane, and back", "zoom", 8, 3),
    Action("go", ("g",), "everywhere", "go to: r room, l ledger", "go to", 5, 3),
    Action("hold", ("p",), "everywhere", "hold the picture still; the fleet goes on", "hold", 7, 3),
    Action("copy", ("y",), "everywhere", "copy the id of what is selected"),
    Action("theme", (), "everywhere", "switch between the dark and the light theme"),
    Action("quit", ("q", "ctrl+c"), "everywhere", "quit; asks if anything lives", "quit", 2, 3, priority=("ctrl+c",)),
    Action("move", ("up", "down", "k", "j"), "lists", "one row up or down", each=True),
    Action("page", ("pageup", "pagedown"), "lists", "one page up or down", each=True),
    Action("end", ("home", "end", "G"), "lists", "first or last row", each=True),
    Action("open", ("enter",), "rows", "open the agent or the card in full", "open", 3),
    Action("only-bad", ("!",), "rows", "only what is bad or waiting, and back", "only bad", 8),
    Action("fold", ("left", "h"), "tree", "close this branch, or go to its parent"),
    Action("unfold", ("right", "l"), "tree", "open this branch"),
    Action("lane-left", ("left", "h"), "board", "the lane to the left"),
    Action("lane-right", ("right", "l"), "board", "the lane to the right"),
    Action("spawn", ("s",), "room", "spawn a child; shows the contract before it is sent", "spawn", 3),
    Action("reap", ("x",), "room", "reap the selected agent and all below it; asks first", "reap", 3),
    Action("freeze", ("F",), "room", "freeze or thaw the selected agent and all below it", "", 7),
    Action("pause", ("P",), "room", "pause or resume dispatch; running agents go on", "pause", 7),
    Action("drain", ("D",), "room", "end all agents in order and start none; the room stays open"),
    Action("stop", ("Z",), "room", "emergency stop: SIGKILL to every agent; wants the word stop"),
    Action("narrower", ("<",), "room", "narrower left pane"),
    Action("wider", (">",), "room", "wider left pane"),
    Action("verify", ("v",), "ledger", "verify the selected entry", "verify", 3),
    Action("verify-all", ("V",), "ledger", "verify the whole ledger", "verify all", 3),
    Action("go-room", ("r",), "go to", "the control room", call="go('room')"),
    Action("go-ledger", ("l",), "go to", "the ledger", call="go('ledger')"),
    Action("submit", ("ctrl+j",), "spawn", "send the contract", call="submit"),
    Action("form-down", ("pagedown",), "spawn", "scroll the contract down", call="scroll('down')"),
    Action("form-up", ("pageup",), "spawn", "scroll the contract up", call="scroll('up')"),
    Action("confirm", ("y",), "reap", "reap what no longer answers; a living agent wants the word", call="confirm"),
    Action("end-them", ("e",), "quit", "end all agents, in order, and leave", call="end_them"),
    Action("leave-running", ("l",), "quit", "leave the fleet running in the background", call="leave_running"),
)

PLACES: dict[str, str] = {
    "everywhere": "Everywhere",
    "lists": "In every list",
    "rows": "On a row",
    "tree": "Hierarchy",
    "board": "Board",
    "room": "Control room",
    "ledger": "Ledger",
    "go to": "After g",
    "spawn": "Spawn dialog",
    "reap": "Reap dialog",
    "quit": "Quit dialog",
}
"""Where keys apply, and what a person calls it."""

BY_ID: dict[str, Action] = {action.id: action for action in ACTIONS}


def bindings(where: str) -> list[BindingType]:
    """The bindings of one place."""
    return [binding for action in ACTIONS if action.where == where for binding in action.bindings()]


def actions(*places: str) -> list[Action]:
    """Rows of these places, in the registry's order."""
    return [action for action in ACTIONS if action.where in places]


def markdown_table() -> str:
    """The keys as a Markdown table, for the README."""
    rows = ["| where | keys | action | id |", "|---|---|---|---|"]
    shown = ""
    for action in ACTIONS:
        where = PLACES[action.where] if action.where != shown else ""
        shown = action.where
        keys = f"`{action.label}`" if action.keys else "palette only"
        rows.append(f"| {where} | {keys} | {action.words} | `{action.id}` |")
    return "\n".join(rows) + "\n"
