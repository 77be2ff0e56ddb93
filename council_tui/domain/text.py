"""Everything an agent says is data: how it is shown without being obeyed."""

from __future__ import annotations

import unicodedata

_BIDI = {chr(c) for c in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C)}


def _visible(char: str) -> str:
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    if char in _BIDI or unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
        return f"⟨{code:04X}⟩"
    return char


def safe(text: str, limit: int = 4096) -> str:
    """One line in which every control, bidi and format character can be seen and none acts.

    Longer text is cut at `limit` characters and says so with an ellipsis.
    """
    cut = text[:limit]
    shown = "".join(char if " " <= char < "\x7f" else _visible(char) for char in cut.replace("\t", "    "))
    return shown + ("…" if len(text) > limit else "")


def safe_bytes(raw: bytes, limit: int = 4096) -> str:
    """Like `safe` for bytes; what is no UTF-8 shows as the replacement character."""
    return safe(raw[: (limit + 1) * 4].decode("utf-8", "replace"), limit)


def span(seconds: float | None) -> str:
    """A duration in at most four or five cells: `4s`, `12m`, `3h`, `2d`; nothing for None."""
    if seconds is None:
        return ""
    whole = max(0, int(seconds))
    for limit, size, unit in ((100, 1, "s"), (6000, 60, "m"), (172800, 3600, "h")):
        if whole < limit:
            return f"{whole // size}{unit}"
    return f"{whole // 86400}d"


def counted(count: int, word: str, many: str = "") -> str:
    """`1 card`, `2 cards`, `2 children`."""
    return f"{count:,} {word if count == 1 else many or word + 's'}"
