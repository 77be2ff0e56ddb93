"""Events in plain words: one line each, safe to show, with the tone that a screen colours it by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from council_tui.control.views import EventView
from council_tui.domain.events import Event, EventKind
from council_tui.domain.ids import agent_label, agent_type
from council_tui.domain.text import safe

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

Tone = Literal["plain", "good", "warn", "bad"]
K = EventKind

_WORDS: Mapping[EventKind, tuple[Tone, str]] = {
    K.FLEET_STARTED: ("plain", "fleet {name} started"),
    K.FLEET_ENDED: ("plain", "fleet ended with exit code {exit}"),
    K.DISPATCH_PAUSED: ("warn", "dispatch paused"),
    K.DISPATCH_RESUMED: ("plain", "dispatch resumed"),
    K.BUDGET_WARNING: ("warn", "80 % of the fleet's time budget is used"),
    K.BIRTHS_HELD: ("warn", "no agent is born: {reason}"),
    K.BIRTHS_GO_ON: ("plain", "agents are born again, after {seconds} s"),
    K.FLEET_RESUMED: ("warn", "process {pid} goes on with the fleet"),
    K.HANDED_OVER: ("warn", "process {pid} leaves the fleet to the next supervisor"),
    K.RECOVERED: ("warn", "{who}: {found}"),
    K.QUARANTINED: ("bad", "{who} is quarantined: {reason}"),
    K.CARD_CREATED: ("plain", "card {card} created by {who}: {title}"),
    K.CARD_ADOPTED: ("plain", "card {card} goes over to the office that was opened anew"),
    K.CARD_READY: ("plain", "card {card} is ready"),
    K.CARD_BLOCKED: ("warn", "card {card} blocked ({block}): {reason}"),
    K.CARD_FAILED: ("bad", "card {card} failed ({fail}): {reason}"),
    K.CARD_DONE: ("good", "card {card} done"),
    K.CARD_RETRY: ("warn", "card {card} is tried again in {delay_seconds} s"),
    K.RATE_LIMITED: ("warn", "card {card} was turned away by a rate limit; tried again at {until}"),
    K.CRASH_LOOP: ("bad", "{reason} of {of}"),
    K.SWARM_GRANTED: ("plain", "{who} was granted {granted} of {asked} microsharks for {swarm}{because}"),
    K.CARD_ARCHIVED: ("plain", "card {card} archived"),
    K.COMMENT: ("plain", "card {card}: {text}"),
    K.AGENT_STARTED: ("plain", "{who} started, pid {pid}"),
    K.HELLO: ("plain", "{who} said hello with its key"),
    K.DELEGATED: ("plain", "{who} has its parent's delegation, entry {entry}"),
    K.CLAIMED: ("plain", "{who} claimed card {card}"),
    K.INHERITANCE_VERIFIED: ("plain", "{who} found its inheritance sound"),
    K.INHERITANCE_REJECTED: ("bad", "{who} rejects its inheritance: {reason}"),
    K.ACCEPTED: ("plain", "{who} accepted its contract, entry {entry}"),
    K.ACKNOWLEDGED: ("good", "{who} acknowledged"),
    K.BODY_STARTED: ("plain", "{who} runs its program, pid {pid}"),
    K.STATUS: ("plain", "{who}: {text}"),
    K.BEAT_LATE: ("warn", "{who} is late: no beat for {seconds} s"),
    K.BEAT_BACK: ("good", "{who} beats again"),
    K.STALLED: ("warn", "{who} is stalled: it beats, and nothing of it moved for {seconds} s"),
    K.GOING_ON: ("good", "{who} goes on"),
    K.RETURNED: ("plain", "{who} returned {status}"),
    K.REPORTED: ("good", "{who} signed its report, entry {entry}"),
    K.VERIFIED: ("good", "{who}: report verified, {verdict}"),
    K.ORPHANED: ("bad", "{who} orphaned: {reason}"),
    K.HELD: ("warn", "{who} is held for you, at most {until_seconds} s"),
    K.FROZEN: ("warn", "{who} is frozen; its clocks stand still"),
    K.THAWED: ("good", "{who} goes on after {seconds} s"),
    K.EXPIRED: ("bad", "{who} expired: {reason}"),
    K.CANCELLED: ("warn", "{who} cancelled: {reason}"),
    K.SLICE_BREACHED: ("bad", "{who} overfilled its slice: {used} of {limit} bytes"),
    K.LIMIT_BREACHED: ("bad", "{who} passed a limit: {reason}"),
    K.PROTOCOL_VIOLATION: ("bad", "{who} broke its contract: {reason}"),
    K.REAP_STARTED: ("warn", "reaping {who}"),
    K.SIGNALLED: ("warn", "{signal} to {who}"),
    K.UNKILLABLE: ("bad", "{who}: {reason}"),
    K.REAPED: ("warn", "{who} is dead, {how}"),
    K.SLICE_CLEARED: ("plain", "slice of {who} {whether}"),
    K.REVOKED: ("plain", "{who}: authority ended, entry {entry}"),
    K.AGENT_ENDED: ("plain", "runner of {who} ended, {how}"),
    K.OUT_OF_ORDER: ("warn", "{who}: {method} out of order in phase {phase}, ignored"),
    K.MESSAGE_REFUSED: ("warn", "{who}: {count} messages refused: {reason}"),
    K.CALLERS_WAIT: ("warn", "nobody can connect for a while: {reason}"),
    K.REPORT_WRITTEN: ("good", "report written to {path}, entry {entry}"),
}


def short(agent: str | None) -> str:
    """What a line of the log calls an agent."""
    if not agent:
        return "Hermes"
    kind = agent_type(agent)
    return {"hermes": "Hermes", "openfang": "OpenFang", "openclaw": "OpenClaw", "zeroclaw": "ZeroClaw"}.get(
        kind, agent_label(agent)
    )


def _how(data: Mapping[str, Any]) -> str:
    if data.get("signal") is not None:
        return f"signal {data['signal']}"
    return f"exit status {data['exit_status']}" if data.get("exit_status") is not None else "exit unknown"


_FOUND: Mapping[object, str] = {
    "taken_back": "taken back from the supervisor before this one",
    "ended": "found dead after its supervisor was gone",
    "again": "had not begun when its supervisor was gone; it begins again",
    "closed": "had reported when its supervisor went; its card is closed",
    "reaped": "was being reaped when its supervisor went; that goes on",
    "quarantined": "was alive at another crash of its supervisor",
}


class _Facts(dict[str, object]):
    def __missing__(self, key: str) -> str:
        return "?"


def words(event: Event, title: Callable[[str], str] = str) -> tuple[Tone, str]:
    """(tone, text) of an event; `title` turns a card's id into what a person calls it."""
    tone, pattern = _WORDS[event.kind]
    facts = _Facts(event.data)
    facts |= {"who": short(event.agent), "card": title(event.card or ""), "how": _how(event.data)}
    facts["because"] = f": {event.data['reason']}" if event.data.get("reason") else ""
    facts["whether"] = "cleared" if event.data.get("cleared", True) else "could not be cleared yet"
    facts["found"] = _FOUND.get(event.data.get("what"), "found after its supervisor was gone")
    return tone, safe(pattern.format_map(facts), 300)


def event_view(event: Event, title: Callable[[str], str] = str) -> EventView:
    """The line a screen shows."""
    tone, text = words(event, title)
    return EventView(event.seq, event.at, str(event.kind), tone, text, event.agent, event.card)
