"""Hermes' own hand: the root key, the open ledger, and what only Hermes may sign."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Any

from council_tui.domain.errors import HomeUnusable
from council_tui.ledger.introduction import prove
from council_tui.ledger.keys import load_or_create
from council_tui.ledger.log import Appended, Ledger
from council_tui.ledger.remembered import Remembered, pin, remember
from council_tui.ledger.signer import Signer
from council_tui.ledger.verdicts import BadEntry

if TYPE_CHECKING:
    from council_tui.board.home import Home
    from council_tui.ledger.introduction import Role
    from council_tui.ledger.keys import Key


class Authority:
    """Open from `open` to `close`; before that every method raises RuntimeError."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._key: Key | None = None
        self._ledger: Ledger | None = None
        self._signer: Signer | None = None
        self.name = ""
        """Hermes' name on the ledger."""
        self.root_public = b""

    async def open(self) -> None:
        """Load or make the keys and open the ledger. Raises `HomeUnusable`."""
        home = self._home
        self._key, log_key = load_or_create(home.keys / "hermes.key"), load_or_create(home.keys / "log.key")
        self.root_public = self._key.public
        pin(home.keys, self._key.public, log_key.public)
        known = await asyncio.to_thread(Remembered.of, home.keys, home.board)
        self._ledger = await Ledger.open(home.ledger, log_key, self._key.public, remembered=known)
        self.name = f"hermes:{self._key.key_id[:8]}"
        self._signer = Signer(self.name, self._key, self._ledger.origin, *self._ledger.head_of(self.name))

    @property
    def ledger(self) -> Ledger:
        """The open ledger."""
        if self._ledger is None:
            raise RuntimeError("the ledger is not open")
        return self._ledger

    async def sign(self, kind: str, fields: dict[str, Any], subjects: list[tuple[str, str]] | None = None) -> Appended:
        """Hermes' own entry, appended."""
        if self._signer is None:
            raise RuntimeError("the ledger is not open")
        raw = self._signer.sign(kind, int(time.time()), subjects or (), fields)
        try:
            return await self.ledger.append(raw)
        except BadEntry:
            # A refused entry must not leave a hole in our own chain.
            self._signer.withdraw(raw)
            raise

    def vouch(self, role: Role, run: str, challenge: str, own: str) -> str:
        """Prove to a runner that we are Hermes; hex."""
        if self._key is None:
            raise RuntimeError("the ledger is not open")
        return prove(self._key, role, self.ledger.origin, run, challenge, own)

    async def revoke(self, agent: str, reason: str) -> int | None:
        """End an agent's authority; the entry, or None when the log never gave it any or took it back before."""
        known = self.ledger.lineage.agent(agent)
        if known is None or known.revoked_at >= 0:
            return None
        return (await self.sign("revocation", {"of": agent, "reason": reason})).index

    async def remember(self) -> None:
        """Keep the ledger's head for whoever opens or verifies it next."""
        # Where it cannot be written, the head kept before still holds: a log only grows.
        with contextlib.suppress(HomeUnusable):
            await asyncio.to_thread(remember, self._home.keys, self.ledger.head)

    async def close(self) -> None:
        """Close the ledger and remember its head; nothing when it was never opened."""
        if self._ledger is not None:
            await self._ledger.close()
            await self.remember()
