"""DSSE v1 envelopes: how an entry is sealed, and the strict reader that accepts one spelling only.

Source: DSSE v1.0.2 (payloadType, PAE). A reader that tolerates two spellings of one entry lets two parties
see different entries under one signature.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from council_tui.ledger.canonical import NotCanonical, TooDeep, canonical
from council_tui.ledger.keys import SIGNATURE_BYTES, verify
from council_tui.ledger.merkle import leaf_hash
from council_tui.ledger.statement import Statement, read
from council_tui.ledger.verdicts import BadEntry, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from council_tui.ledger.keys import Key

__all__ = ["MAX_ENTRY", "PAYLOAD_TYPE", "BadEntry", "Opened", "open_strict", "pae", "seal"]

PAYLOAD_TYPE = "application/vnd.in-toto+json"
MAX_ENTRY = 64 * 1024
"""Bytes of an envelope."""


def pae(payload: bytes) -> bytes:
    """What is signed: DSSE's pre-authentication encoding of type and payload."""
    return b"DSSEv1 %d %s %d %s" % (len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode(), len(payload), payload)


def _form(payload: bytes, key_id: str, signature: bytes) -> bytes:
    """The one spelling of an envelope: its own canonical JSON, no newline."""
    return b'{"payload":"%s","payloadType":"application/vnd.in-toto+json","signatures":[{"keyid":"%s","sig":"%s"}]}' % (
        base64.b64encode(payload),
        key_id.encode(),
        base64.b64encode(signature),
    )


def seal(payload: dict[str, Any], key: Key) -> bytes:
    """The exact bytes of the signed entry. Raises `NotCanonical`, or `BadEntry` when it is too large."""
    body = canonical(payload)
    raw = _form(body, key.key_id, key.sign(pae(body)))
    if len(raw) > MAX_ENTRY:
        raise BadEntry(Verdict.TOO_LARGE, f"the entry would have {len(raw)} bytes, the cap is {MAX_ENTRY}")
    return raw


@dataclass(frozen=True, slots=True)
class Opened:
    """An envelope that was read strictly. Whether its signature holds is asked with `signed_by`."""

    payload: dict[str, Any]
    body: bytes
    """The payload's exact bytes."""
    statement: Statement
    key_id: str
    """What the envelope claims; the lineage says which key it must be."""
    signature: bytes
    leaf: bytes
    """RFC 6962 leaf hash of the envelope's bytes."""

    def signed_by(self, public: bytes) -> bool:
        """Whether this key's owner signed the payload."""
        return verify(public, pae(self.body), self.signature)


class _Twice(ValueError):
    pass


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Twice
    return found


def _parse(raw: bytes, what: str) -> Any:  # noqa: ANN401 - any JSON value
    try:
        return json.loads(raw.decode())
    except UnicodeDecodeError:
        raise BadEntry(Verdict.ENCODING, f"the {what} is not UTF-8") from None
    except (ValueError, RecursionError):
        raise BadEntry(Verdict.SCHEMA, f"the {what} is not JSON of a sane depth") from None


def _same(raw: bytes, again: bytes, what: str) -> None:
    """Refuse another spelling; a duplicate key cannot survive re-encoding and so is told apart only here."""
    if raw == again:
        return
    try:
        json.loads(raw, object_pairs_hook=_no_twins)
    except _Twice:
        raise BadEntry(Verdict.DUPLICATE_KEY, f"the {what} has a key twice") from None
    raise BadEntry(Verdict.NOT_CANONICAL, f"the {what} is not in its canonical form")


def _base64(text: str, what: str) -> bytes:
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise BadEntry(Verdict.ENCODING, f"{what} is not standard base64") from None
    if base64.b64encode(raw) != text.encode():
        raise BadEntry(Verdict.ENCODING, f"{what} is base64 with stray bits")
    return raw


def _parts(envelope: object) -> tuple[bytes, str, bytes]:
    match envelope:
        case {
            "payload": str(payload),
            "payloadType": "application/vnd.in-toto+json",
            "signatures": [{"keyid": str(key_id), "sig": str(sig)} as signature],
        } if len(envelope) == 3 and len(signature) == 2:  # type: ignore[arg-type]
            pass
        case _:
            raise BadEntry(
                Verdict.SCHEMA,
                f"the envelope must have payload, payloadType {PAYLOAD_TYPE} and one signature only",
            )
    if len(key_id) != 64 or not key_id.isascii():
        raise BadEntry(Verdict.SCHEMA, "keyid must be the SHA-256 of a public key in hex")
    raw = _base64(sig, "the signature")
    if len(raw) != SIGNATURE_BYTES:
        raise BadEntry(Verdict.SCHEMA, "an Ed25519 signature has 64 bytes")
    return _base64(payload, "the payload"), key_id, raw


def _canonical(body: bytes) -> dict[str, Any]:
    payload = _parse(body, "payload")
    if type(payload) is not dict:
        raise BadEntry(Verdict.SCHEMA, "the payload is not a JSON object")
    try:
        again = canonical(payload)
    except TooDeep as error:
        raise BadEntry(Verdict.SCHEMA, str(error)) from None
    except NotCanonical as error:
        raise BadEntry(Verdict.NOT_CANONICAL, str(error)) from None
    _same(body, again, "payload")
    return payload


def open_strict(raw: bytes) -> Opened:
    """Read an envelope. Raises `BadEntry` with the first rule that it breaks; checks no signature."""
    if len(raw) > MAX_ENTRY:
        raise BadEntry(Verdict.TOO_LARGE, f"the entry has {len(raw)} bytes, the cap is {MAX_ENTRY}")
    envelope: Mapping[str, Any] = _parse(raw, "envelope")
    body, key_id, signature = _parts(envelope)
    _same(raw, _form(body, key_id, signature), "envelope")
    payload = _canonical(body)
    return Opened(payload, body, read(payload), key_id, signature, leaf_hash(raw))
