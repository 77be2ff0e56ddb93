"""What a check of the ledger can answer, and what a person does next."""

from __future__ import annotations

from enum import StrEnum

from council_tui.domain.errors import CouncilError


class Verdict(StrEnum):
    """The answer of every check; all but VALID are reasons not to trust what was checked."""

    VALID = "VALID"
    BAD_SIGNATURE = "BAD_SIGNATURE"
    SCHEMA = "SCHEMA"
    DUPLICATE_KEY = "DUPLICATE_KEY"
    NOT_CANONICAL = "NOT_CANONICAL"
    ENCODING = "ENCODING"
    TOO_LARGE = "TOO_LARGE"
    WRONG_SIGNER = "WRONG_SIGNER"
    NO_DELEGATION = "NO_DELEGATION"
    NOT_ACKNOWLEDGED = "NOT_ACKNOWLEDGED"
    SIZE_MISMATCH = "SIZE_MISMATCH"
    ROOT_MISMATCH = "ROOT_MISMATCH"
    ROLLBACK = "ROLLBACK"
    FORK = "FORK"
    SEQ_GAP = "SEQ_GAP"
    PREV_MISMATCH = "PREV_MISMATCH"
    EQUIVOCATION = "EQUIVOCATION"
    REPLAY = "REPLAY"
    WRONG_LOG = "WRONG_LOG"
    BAD_CHECKPOINT = "BAD_CHECKPOINT"
    BAD_PROOF = "BAD_PROOF"
    EXPIRED = "EXPIRED"
    REVOKED = "REVOKED"
    NOT_ANCESTOR = "NOT_ANCESTOR"
    CAP_ESCALATION = "CAP_ESCALATION"
    VALIDITY_ESCALATION = "VALIDITY_ESCALATION"
    DEPTH = "DEPTH"
    BAD_KEY = "BAD_KEY"
    KEY_REUSE = "KEY_REUSE"
    DUPLICATE_AGENT = "DUPLICATE_AGENT"
    STORE_MISMATCH = "STORE_MISMATCH"
    CACHE_MISMATCH = "CACHE_MISMATCH"
    PAGE_MISMATCH = "PAGE_MISMATCH"
    UNPUBLISHED = "UNPUBLISHED"

    @property
    def next_step(self) -> str:
        """One sentence: what a person does about it."""
        return _NEXT[self]


_RESTORE = "Restore the ledger file from a copy that verifies, and find out who could write to it."
_REWRITE = "Have the writer form the entry by the published rules and sign it again."
_DISTRUST = "Do not use this entry; ask its agent's parent to have the work done again under a new name."
_REGRANT = "Have the parent sign a grant that lies inside its own, under a new name and key."
_NEXT: dict[Verdict, str] = {
    Verdict.VALID: "Nothing to do.",
    Verdict.BAD_SIGNATURE: f"The bytes are not what the agent signed. {_RESTORE}",
    Verdict.SCHEMA: _REWRITE,
    Verdict.DUPLICATE_KEY: _REWRITE,
    Verdict.NOT_CANONICAL: _REWRITE,
    Verdict.ENCODING: _REWRITE,
    Verdict.TOO_LARGE: "Put the bulk into an artefact and sign its digest.",
    Verdict.WRONG_SIGNER: f"Another key than the agent's own signed this. {_DISTRUST}",
    Verdict.NO_DELEGATION: "Check the pinned root key; if it is right, nobody granted this agent's name.",
    Verdict.NOT_ACKNOWLEDGED: "Ignore this agent's reports; it must accept its contract in its first entry.",
    Verdict.SIZE_MISMATCH: f"Entries are missing or were added without the log. {_RESTORE}",
    Verdict.ROOT_MISMATCH: f"The entries are not those of the signed head. {_RESTORE}",
    Verdict.ROLLBACK: f"The log is shorter than it was known to be. {_RESTORE}",
    Verdict.FORK: "This log and one seen before contradict each other; keep both as proof, distrust the log's key.",
    Verdict.SEQ_GAP: f"An earlier entry of this agent is missing. {_RESTORE}",
    Verdict.PREV_MISMATCH: f"This entry does not follow the agent's previous one. {_RESTORE}",
    Verdict.EQUIVOCATION: "The agent signed two entries for one place; revoke it, have its work done again.",
    Verdict.REPLAY: "Ignore the repeated entry; the first one stands.",
    Verdict.WRONG_LOG: "This entry was signed for another log; look for it there.",
    Verdict.BAD_CHECKPOINT: "The head is not signed by this log's key; check the keys, restore the file.",
    Verdict.BAD_PROOF: f"The entry cannot be shown to lie under the signed head. {_RESTORE}",
    Verdict.EXPIRED: "The grant did not cover this moment; have the parent spawn a new agent.",
    Verdict.REVOKED: "An ancestor ended this agent's authority before this entry; have the work done again.",
    Verdict.NOT_ANCESTOR: "Have an ancestor of the agent sign this, or its root.",
    Verdict.CAP_ESCALATION: _REGRANT,
    Verdict.VALIDITY_ESCALATION: _REGRANT,
    Verdict.DEPTH: _REGRANT,
    Verdict.BAD_KEY: "The key is not safe to use; have the agent make a new one.",
    Verdict.KEY_REUSE: "Have the agent make a key of its own; a key belongs to one name for ever.",
    Verdict.DUPLICATE_AGENT: "Give the new agent a name that this log has never seen.",
    Verdict.STORE_MISMATCH: "The file is not as this program makes it; restore a ledger, rebuild a search store.",
    Verdict.CACHE_MISMATCH: "The entries are whole but a derived row is not; restore the file from a copy.",
    Verdict.PAGE_MISMATCH: "The page is not what the ledger holds; trust the ledger and publish again.",
    Verdict.UNPUBLISHED: "Publish the entry, or accept that only the ledger holds it.",
}


class BadEntry(CouncilError):
    """Something that must not be trusted: the verdict and the finding in one sentence."""

    def __init__(self, verdict: Verdict, detail: str) -> None:
        super().__init__(f"{verdict}: {detail}")
        self.verdict = verdict
        self.detail = detail
