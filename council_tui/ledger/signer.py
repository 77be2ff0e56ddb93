"""An agent's hand: it signs structs and never bytes, and keeps the agent's place in the log by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from council_tui.ledger.envelope import open_strict, seal
from council_tui.ledger.merkle import leaf_hash
from council_tui.ledger.statement import statement

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from council_tui.ledger.keys import Key


class Signer:
    """Signs one agent's entries in order. `seq` and `prev` are the next entry's, see `Ledger.head_of`.

    A clock that is set back does not make an entry earlier than the one before it, nor than `since` (unix
    seconds), the beginning of the agent's grant.
    """

    def __init__(self, agent: str, key: Key, log: str, seq: int = 0, prev: str | None = None, since: int = 0) -> None:
        self.agent = agent
        self.log = log
        self.seq = seq
        self.prev = prev
        self._key = key
        self._latest = since

    def time(self, at: int) -> int:
        """The time that an entry signed at this moment (unix seconds) carries."""
        return max(at, self._latest)

    def sign(
        self,
        kind: str,
        at: int,
        subjects: Sequence[tuple[str, str]] = (),
        fields: Mapping[str, Any] | None = None,
    ) -> bytes:
        """The agent's next entry, ready to append. `at` is unix seconds, a subject (name, hex SHA-256).

        The place advances at once: an entry must be appended before the next one is. Raises `BadEntry`
        or `NotCanonical` and does not advance when the struct breaks the rules of its kind.
        """
        payload = statement(
            kind,
            log=self.log,
            agent=self.agent,
            seq=self.seq,
            prev=self.prev,
            at=self.time(at),
            subjects=subjects,
            fields=fields or {},
        )
        raw = seal(payload, self._key)
        self._latest = self.time(at)
        self.prev = leaf_hash(raw).hex()
        self.seq += 1
        return raw

    def take_place(self, seq: int, prev: str | None) -> None:
        """Go on where the log says that this agent stands; what was signed since then never reached it."""
        self.seq, self.prev = seq, prev

    def withdraw(self, raw: bytes) -> None:
        """Go back to the place of an entry that the log refused; later ones that lean on it are void too.

        Only for refused entries: going behind an entry that stands makes the next one an equivocation.
        """
        said = open_strict(raw).statement
        if said.agent == self.agent and said.seq < self.seq:
            self.seq, self.prev = said.seq, said.prev
