"""Who may say what: the chain of trust from the pinned root key, read out of the log itself.

The state is what the entries so far grant. A capability list that is empty at depth 2 or above is an open
grant: everything that is not forbidden. Below that an empty list grants nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from council_tui.domain.hierarchy import HERMES, KINDS
from council_tui.domain.ids import agent_type
from council_tui.ledger.canonical import MAX_INT
from council_tui.ledger.keys import key_id, valid_public
from council_tui.ledger.statement import MAX_DEPTH
from council_tui.ledger.verdicts import BadEntry, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from council_tui.ledger.envelope import Opened
    from council_tui.ledger.statement import Statement

OPEN_GRANT_DEPTH = 2
"""From this depth up an empty capability list means everything."""

_EARLIER, _LATER = 7 * 86_400, 1000 * 86_400
"""Seconds by which a grant begins before and ends after its signing."""
_SHORT = 8
"""Bytes kept of each leaf hash: enough to tell a replayed entry from a second one for the same place."""


def validity(now: int, low: int = 0, high: int = MAX_INT - 1) -> tuple[int, int]:
    """(not_before, not_after) of a grant signed now, inside its granter's own; all unix seconds.

    Authority ends by a revocation, at a place in the log. This only bounds what a lost key is good for, and is
    so wide that a clock which was set, or a machine which slept, takes nobody's authority away.
    """
    return max(low, now - _EARLIER), min(high, now + _LATER)


@dataclass(slots=True)
class Agent:
    """What the log says about one agent so far."""

    name: str
    public: bytes
    parent: Agent | None
    depth: int
    capabilities: frozenset[str]
    forbidden: frozenset[str]
    not_before: int
    not_after: int
    contract: str
    granted_at: int
    """Index of its delegation; -1 for the root."""
    accepted_at: int = -1
    """Index of its acceptance, or -1."""
    revoked_at: int = -1
    last: bytes = b""
    """Leaf hash of its newest entry; empty before the first."""
    shorts: bytearray = field(default_factory=bytearray)
    """The first bytes of the leaf hash of each of its entries."""

    @property
    def seq(self) -> int:
        """The number that its next entry must have."""
        return len(self.shorts) // _SHORT

    @property
    def is_root(self) -> bool:
        """Whether it speaks with the pinned key."""
        return self.parent is None

    def up(self) -> Iterator[Agent]:
        """The agent, its parent, and so on to the root."""
        at: Agent | None = self
        while at is not None:
            yield at
            at = at.parent

    def path(self) -> tuple[str, ...]:
        """Names from the root down to this agent."""
        return tuple(agent.name for agent in self.up())[::-1]


class Lineage:
    """The chain of trust of one log, kept up entry by entry: `check` decides, `apply` remembers.

    Every name of type `hermes` speaks with the pinned key and needs no grant; nobody else can be given one.
    """

    def __init__(self, root_public: bytes, log: str) -> None:
        self.root_public = root_public
        self.root_key_id = key_id(root_public)
        self.log = log
        self._agents: dict[str, Agent] = {}
        self._keys = {root_public}
        self._sets: dict[tuple[str, ...], frozenset[str]] = {}

    def agent(self, name: str) -> Agent | None:
        """What the log says about this agent, or None when no entry granted its name."""
        return self._agents.get(name)

    def __len__(self) -> int:
        return len(self._agents)

    def public_of(self, opened: Opened) -> bytes:
        """The key that must have signed an entry. Raises `BadEntry` when nobody granted its agent's name."""
        return self._signer(opened.statement).public

    def check(self, opened: Opened, index: int, *, signature: bool = True) -> None:
        """Decide on the entry at this index. Raises `BadEntry`; changes nothing.

        `signature=False` leaves the Ed25519 check to the caller, who then must make it with `public_of`.
        """
        self.check_signer(opened, signature=signature)
        self.check_place(opened)
        self.check_authority(opened)
        self.check_kind(opened)

    def check_signer(self, opened: Opened, *, signature: bool = True) -> None:
        """The right log, a name that was granted, the key it was granted to, and that key's signature."""
        said = opened.statement
        if said.log != self.log:
            raise BadEntry(Verdict.WRONG_LOG, f"{said.agent} signed this for the log {said.log}")
        agent = self._signer(said)
        expected = self.root_key_id if agent.is_root else key_id(agent.public)
        if opened.key_id != expected:
            raise BadEntry(Verdict.WRONG_SIGNER, f"signed by key {opened.key_id[:16]}, not by {said.agent}'s")
        if signature and not opened.signed_by(agent.public):
            raise BadEntry(Verdict.BAD_SIGNATURE, f"the signature is not {said.agent}'s over these bytes")

    def apply(self, opened: Opened, index: int) -> None:
        """Remember an entry that `check` let pass."""
        said = opened.statement
        agent = self._signer(said)
        self._agents.setdefault(agent.name, agent)
        if said.kind == "delegation":
            self._grant(agent, said, index)
        elif said.kind == "acceptance":
            agent.accepted_at = index
        elif said.kind == "revocation":
            target = self._agents[said.fields["of"]]
            target.revoked_at = index if target.revoked_at < 0 else target.revoked_at
        agent.last = opened.leaf
        agent.shorts += opened.leaf[:_SHORT]

    def _signer(self, said: Statement) -> Agent:
        known = self._agents.get(said.agent)
        if known is not None:
            return known
        if agent_type(said.agent) == HERMES.kind:
            empty: frozenset[str] = frozenset()
            return Agent(said.agent, self.root_public, None, MAX_DEPTH, empty, empty, 0, MAX_INT, "", -1)
        raise BadEntry(Verdict.NO_DELEGATION, f"nobody granted the name {said.agent} before")

    def check_place(self, opened: Opened) -> None:
        """The next number of this agent, and the right entry before it."""
        said = opened.statement
        agent = self._signer(said)
        if said.seq > agent.seq:
            raise BadEntry(Verdict.SEQ_GAP, f"{agent.name} signed entry {said.seq}, entry {agent.seq} is due")
        if said.seq < agent.seq:
            known = agent.shorts[said.seq * _SHORT : (said.seq + 1) * _SHORT]
            if known == opened.leaf[:_SHORT]:
                raise BadEntry(Verdict.REPLAY, f"entry {said.seq} of {agent.name} is in the log already")
            raise BadEntry(Verdict.EQUIVOCATION, f"{agent.name} signed two different entries {said.seq}")
        if (said.prev or "") != agent.last.hex():
            raise BadEntry(Verdict.PREV_MISMATCH, f"{agent.name}'s entry {said.seq} does not follow its last")

    def check_authority(self, opened: Opened) -> None:
        """Nobody from the agent up was revoked, and the grant covers the entry's own time."""
        said = opened.statement
        agent = self._signer(said)
        for above in agent.up():
            if above.revoked_at >= 0:
                raise BadEntry(Verdict.REVOKED, f"{above.name} was revoked by entry {above.revoked_at}")
        if not agent.not_before <= said.at <= agent.not_after:
            raise BadEntry(
                Verdict.EXPIRED,
                f"signed at {said.at}; {agent.name}'s grant is from {agent.not_before} to {agent.not_after}",
            )

    def check_kind(self, opened: Opened) -> None:
        """The agent has accepted its contract, and may say what this kind of entry says."""
        said = opened.statement
        agent = self._signer(said)
        if said.kind == "acceptance":
            self._acceptance(agent, said)
            return
        if not agent.is_root and agent.accepted_at < 0:
            raise BadEntry(Verdict.NOT_ACKNOWLEDGED, f"{agent.name} has not accepted its contract yet")
        if said.kind == "delegation":
            self._delegation(agent, said)
        elif said.kind in ("revocation", "observation"):
            self._from_above(agent, said)
        elif said.kind == "ascension" and agent.depth < OPEN_GRANT_DEPTH and said.fields["contract"] != agent.contract:
            raise BadEntry(Verdict.NOT_ACKNOWLEDGED, f"{agent.name} reports on another contract")

    @staticmethod
    def _acceptance(agent: Agent, said: Statement) -> None:
        if agent.is_root or said.seq != 0:
            raise BadEntry(Verdict.SCHEMA, "an acceptance is the first entry of an agent that was delegated")
        if said.fields["contract"] != agent.contract:
            raise BadEntry(Verdict.NOT_ACKNOWLEDGED, f"{agent.name} accepted another contract")

    def _from_above(self, agent: Agent, said: Statement) -> None:
        target = self._agents.get(said.fields["of"])
        if target is None:
            raise BadEntry(Verdict.NO_DELEGATION, f"nobody granted the name {said.fields['of']} before")
        if target.is_root or (not agent.is_root and all(above is not agent for above in target.up())):
            raise BadEntry(Verdict.NOT_ANCESTOR, f"{agent.name} stands above nobody called {target.name}")
        if target is agent:
            raise BadEntry(Verdict.NOT_ANCESTOR, f"{agent.name} cannot sign a {said.kind} of itself")

    def _delegation(self, parent: Agent, said: Statement) -> None:
        fields = said.fields
        child, public, depth = fields["child"], bytes.fromhex(fields["public_key"]), fields["depth"]
        if child in self._agents or agent_type(child) == HERMES.kind:
            raise BadEntry(Verdict.DUPLICATE_AGENT, f"the name {child} was given before")
        kind = KINDS.get(agent_type(child))
        if depth >= parent.depth or (kind is not None and depth != MAX_DEPTH - kind.layer):
            raise BadEntry(Verdict.DEPTH, f"{parent.name} cannot grant {child} depth {depth}")
        if not valid_public(public):
            raise BadEntry(Verdict.BAD_KEY, f"the key of {child} is no valid curve point")
        if public in self._keys or self.log.endswith(key_id(public)):
            raise BadEntry(Verdict.KEY_REUSE, f"the key of {child} is in use already")
        self._narrower(parent, said)

    @staticmethod
    def _narrower(parent: Agent, said: Statement) -> None:
        fields = said.fields
        child, wanted, forbidden = fields["child"], set(fields["capabilities"]), set(fields["forbidden"])
        is_open = not parent.capabilities and parent.depth >= OPEN_GRANT_DEPTH
        wider = set() if is_open else wanted - parent.capabilities
        if wider or wanted & forbidden:
            named = ", ".join(sorted(wider or wanted & forbidden))
            raise BadEntry(Verdict.CAP_ESCALATION, f"{named} is not {parent.name}'s to give to {child}")
        if parent.forbidden - forbidden:
            named = ", ".join(sorted(parent.forbidden - forbidden))
            raise BadEntry(Verdict.CAP_ESCALATION, f"{named} stays forbidden below {parent.name}")
        if not parent.not_before <= fields["not_before"] <= fields["not_after"] <= parent.not_after:
            raise BadEntry(Verdict.VALIDITY_ESCALATION, f"{child}'s grant is not inside {parent.name}'s")

    def _names(self, names: list[str]) -> frozenset[str]:
        """One set for all agents with the same list: most siblings share theirs."""
        key = tuple(names)
        return self._sets.setdefault(key, frozenset(key))

    def _grant(self, parent: Agent, said: Statement, index: int) -> None:
        fields = said.fields
        public = bytes.fromhex(fields["public_key"])
        self._keys.add(public)
        self._agents[fields["child"]] = Agent(
            fields["child"],
            public,
            parent,
            fields["depth"],
            self._names(fields["capabilities"]),
            self._names(fields["forbidden"]),
            fields["not_before"],
            fields["not_after"],
            fields["contract"],
            index,
        )
