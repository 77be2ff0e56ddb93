"""How a runner proves itself to a supervisor that took the home over, and that supervisor to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from council_tui.domain.errors import Refused
from council_tui.ledger.introduction import nonce, prove, proved

if TYPE_CHECKING:
    from council_tui.ledger.keys import Key
    from council_tui.ledger.signer import Signer
    from council_tui.runner.channel import Peer
    from council_tui.runner.spec import Grant, RunnerSpec


class Passport:
    """One agent's identity, shown once for each new supervisor."""

    def __init__(self, spec: RunnerSpec, grant: Grant, key: Key, signer: Signer) -> None:
        self._run = spec.run
        self._root = bytes.fromhex(grant.root)
        self._key = key
        self._signer = signer
        self._nonce = ""
        self._stamped = False

    async def show(self, peer: Peer, standing: dict[str, Any]) -> str:
        """Introduce ourselves and say how things stand; the new token for beats.

        Raises `CouncilError` when the other side refuses us, or could not prove that it is Hermes.
        """
        self._nonce, self._stamped = nonce(), False
        answer = await peer.call("resume", {"run": self._run, "nonce": self._nonce, **standing})
        if not self._stamped:
            raise Refused("peer", "it did not prove that it is Hermes")
        prev = answer["prev"]
        self._signer.take_place(int(answer["seq"]), None if prev is None else str(prev))
        return str(answer["beat_token"])

    def stamp(self, params: dict[str, Any]) -> str:
        """Check Hermes' proof over our nonce, and give ours over Hermes'. params: nonce, proof."""
        theirs, log = str(params["nonce"]), self._signer.log
        if not proved(self._root, str(params["proof"]), "supervisor", log, self._run, self._nonce, theirs):
            raise Refused("proof", "not signed by Hermes")
        self._stamped = True
        return prove(self._key, "runner", log, self._run, theirs, self._nonce)
