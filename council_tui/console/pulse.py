"""Four times a second, pull a picture. The council never pushes and the screen never waits."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from council_tui.control.views import CouncilGone
from council_tui.domain.errors import CouncilError
from council_tui.domain.text import span

if TYPE_CHECKING:
    from collections.abc import Callable

    from council_tui.control.views import CouncilDoor, RoomView

SLOW_SECONDS = 2.0
"""A pull that takes longer is said to the person."""


@dataclass(frozen=True)
class Picture:
    """The last picture, and what went wrong since."""

    view: RoomView | None = None
    trouble: str = ""
    """`could not be read: ...`, how the council ended, or how long it has been silent; empty when all is well."""
    stale: bool = False
    """The last pull failed: what lives in `view` is unknown now."""
    gone: bool = False
    """The council has ended; no pull will ever succeed."""

    @property
    def badge(self) -> str:
        """The trouble in a few words."""
        return "ended" if self.gone else "could not be read" if self.stale else self.trouble

    @property
    def advice(self) -> str:
        """The trouble as a sentence that says what to do; empty unless the picture is stale."""
        if not self.stale:
            return ""
        return f"{self.trouble}{': press q; `council` starts a new one' if self.gone else '; it is asked again'}"


def unknown(view: RoomView | None) -> RoomView | None:
    """The same picture without a word on what lives: nobody can tell any more."""
    if view is None:
        return None
    agents = tuple(
        agent
        if agent.ended
        else replace(agent, health="unknown", age_seconds=None, ttl_seconds=None, deadline_seconds=None)
        for agent in view.agents
    )
    return replace(view, agents=agents)


class Pulse:
    """Pulls one picture at a time; a beat that finds a pull still running is skipped."""

    def __init__(self, door: CouncilDoor, clock: Callable[[], float] = time.monotonic) -> None:
        self.door = door
        self.clock = clock
        self.picture = Picture()
        self.began: float | None = None

    @property
    def busy(self) -> bool:
        """Whether a pull is running."""
        return self.began is not None

    def overdue(self) -> bool:
        """Mark the picture when the running pull is slow; True if that changed it."""
        if self.began is None or self.clock() - self.began < SLOW_SECONDS:
            return False
        trouble = f"no answer for {span(self.clock() - self.began)}"
        changed = trouble != self.picture.trouble
        self.picture = replace(self.picture, trouble=trouble)
        return changed

    async def pull(self) -> Picture:
        """One pull; what cannot be read leaves the last picture standing and says why."""
        self.began = self.clock()
        try:
            self.picture = Picture(await self.door.room())
        except CouncilGone as error:
            self.picture = Picture(unknown(self.picture.view), str(error), stale=True, gone=True)
        except (CouncilError, OSError) as error:
            self.picture = Picture(unknown(self.picture.view), f"could not be read: {error}", stale=True)
        finally:
            self.began = None
        return self.picture
