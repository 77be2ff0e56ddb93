"""Two themes whose state colours stay apart for the common colour deficiencies; glyph and word carry the state."""

from __future__ import annotations

from textual.theme import Theme

DARK = "council-dark"
LIGHT = "council-light"

STATE_COLOURS: dict[str, str] = {
    "alive": "#5fb3f0",
    "late": "#e8a317",
    "bad": "#f4764a",
    "ended": "#7f8a99",
    "good": "#58c7ab",
    "quiet": "#8793a3",
    "frame": "#34404f",
    "frame-focus": "#5fb3f0",
    "cursor": "#22344a",
    "cursor-focus": "#1f4d78",
    "button-focus-text-style": "bold underline",
    "scrollbar": "#34404f",
    "scrollbar-hover": "#46566a",
    "scrollbar-active": "#5fb3f0",
    "scrollbar-background": "#151c25",
    "scrollbar-background-hover": "#151c25",
    "scrollbar-background-active": "#151c25",
    "scrollbar-corner-color": "#151c25",
}
"""Fallbacks for themes that are not ours."""

COUNCIL_DARK = Theme(
    name=DARK,
    primary="#5fb3f0",
    secondary="#8793a3",
    accent="#e8a317",
    warning="#e8a317",
    error="#f4764a",
    success="#58c7ab",
    foreground="#d8dee7",
    background="#0f141b",
    surface="#151c25",
    panel="#1b2430",
    dark=True,
    variables=STATE_COLOURS,
)

COUNCIL_LIGHT = Theme(
    name=LIGHT,
    primary="#0067a8",
    secondary="#5b6673",
    accent="#8f5b00",
    warning="#8f5b00",
    error="#b23a00",
    success="#00705a",
    foreground="#1c2630",
    background="#f6f7f9",
    surface="#ffffff",
    panel="#e8ecf1",
    dark=False,
    variables={
        "alive": "#0067a8",
        "late": "#8f5b00",
        "bad": "#b23a00",
        "ended": "#66707c",
        "good": "#00705a",
        "quiet": "#5b6673",
        "frame": "#b9c2cd",
        "frame-focus": "#0067a8",
        "cursor": "#dfe7f0",
        "cursor-focus": "#bcd9f2",
        "button-focus-text-style": "bold underline",
        "scrollbar": "#b9c2cd",
        "scrollbar-hover": "#98a4b3",
        "scrollbar-active": "#0067a8",
        "scrollbar-background": "#ffffff",
        "scrollbar-background-hover": "#ffffff",
        "scrollbar-background-active": "#ffffff",
        "scrollbar-corner-color": "#ffffff",
    },
)
