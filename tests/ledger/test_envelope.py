"""Envelopes: one spelling only, and others read the same signature."""

from __future__ import annotations

import base64
import json
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from securesystemslib.dsse import Envelope as TheirEnvelope
from securesystemslib.signer import SSlibKey

from council_tui.ledger.canonical import NotCanonical
from council_tui.ledger.envelope import MAX_ENTRY, open_strict, pae, seal
from council_tui.ledger.keys import Key
from council_tui.ledger.merkle import leaf_hash
from council_tui.ledger.statement import FIELDS, read, statement
from council_tui.ledger.verdicts import BadEntry, Verdict
from tests.ledger.builders import CHILD, CONTRACT, HERMES, NOW, grant, seen, work

KEY = Key.generate()
PEM = (
    "-----BEGIN PUBLIC KEY-----\n"
    + base64.b64encode(bytes.fromhex("302a300506032b6570032100") + KEY.public).decode()
    + "\n-----END PUBLIC KEY-----\n"
)


def payload(**changes):
    """The payload of a work report; `changes` overrides fields of it."""
    return statement("ascension", log="log", agent=CHILD, seq=0, prev=None, at=NOW, fields=work(**changes))


RAW = seal(payload(), KEY)
BODY = open_strict(RAW).body


def enveloped(body: bytes, **changes) -> bytes:
    """An envelope with any body, signed, in the accepted spelling."""
    fields = {
        "payload": base64.b64encode(body).decode(),
        "payloadType": "application/vnd.in-toto+json",
        "signatures": [{"keyid": KEY.key_id, "sig": base64.b64encode(KEY.sign(pae(body))).decode()}],
    }
    return json.dumps(fields | changes, sort_keys=True, separators=(",", ":")).encode()


def verdict_of(raw: bytes) -> Verdict:
    """The verdict of the strict reader."""
    with pytest.raises(BadEntry) as refusal:
        open_strict(raw)
    return refusal.value.verdict


def test_a_sealed_entry_opens_as_what_was_said():
    opened = open_strict(RAW)
    assert opened.payload == payload()
    assert opened.statement.agent == CHILD
    assert opened.key_id == KEY.key_id
    assert opened.leaf == leaf_hash(RAW)
    assert opened.signed_by(KEY.public)
    assert not opened.signed_by(Key.generate().public)
    assert b"\n" not in RAW


def test_the_envelope_is_its_own_canonical_form():
    assert enveloped(BODY) == RAW


def test_securesystemslib_accepts_the_signature():
    theirs = TheirEnvelope.from_dict(json.loads(RAW) | {})
    key = SSlibKey(KEY.key_id, "ed25519", "ed25519", {"public": KEY.public.hex()})
    assert theirs.pae() == pae(BODY)
    assert list(theirs.verify([key], 1)) == [KEY.key_id]


def test_openssl_accepts_the_signature(tmp_path):
    (tmp_path / "key.pem").write_text(PEM)
    (tmp_path / "message").write_bytes(pae(BODY))
    (tmp_path / "signature").write_bytes(open_strict(RAW).signature)
    command = "openssl pkeyutl -verify -rawin -pubin -inkey key.pem -in message -sigfile signature"
    done = subprocess.run(command.split(), cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


SIGNATURE = json.loads(RAW)["signatures"][0]
TEXT = RAW.decode()


@pytest.mark.parametrize(
    ("raw", "verdict"),
    [
        pytest.param(b"", Verdict.SCHEMA, id="empty"),
        pytest.param(b"[]", Verdict.SCHEMA, id="no object"),
        pytest.param(b"\xff\xfe", Verdict.ENCODING, id="no UTF-8"),
        pytest.param(b"\xef\xbb\xbf" + RAW, Verdict.SCHEMA, id="byte order mark"),
        pytest.param(b"[" * 10_000 + b"]" * 10_000, Verdict.SCHEMA, id="10,000 levels"),
        pytest.param(b"1" * 60_000, Verdict.SCHEMA, id="a huge number"),
        pytest.param(b" " * (MAX_ENTRY + 1), Verdict.TOO_LARGE, id="over the cap"),
        pytest.param(RAW + b"\n", Verdict.NOT_CANONICAL, id="a newline at the end"),
        pytest.param(RAW.replace(b",", b", ", 1), Verdict.NOT_CANONICAL, id="a space"),
        pytest.param(TEXT.replace("{", '{"payload":"",', 1).encode(), Verdict.DUPLICATE_KEY, id="key twice"),
        pytest.param(enveloped(BODY, extra=1), Verdict.SCHEMA, id="extra key"),
        pytest.param(enveloped(BODY, signatures=[]), Verdict.SCHEMA, id="no signature"),
        pytest.param(enveloped(BODY, signatures=[SIGNATURE] * 2), Verdict.SCHEMA, id="two signatures"),
        pytest.param(enveloped(BODY, signatures=[SIGNATURE | {"x": 1}]), Verdict.SCHEMA, id="extra in it"),
        pytest.param(enveloped(BODY, payloadType="text/plain"), Verdict.SCHEMA, id="other payload type"),
        pytest.param(enveloped(BODY, payload=7), Verdict.SCHEMA, id="payload no text"),
        pytest.param(enveloped(BODY, signatures=[SIGNATURE | {"keyid": "x"}]), Verdict.SCHEMA, id="key id"),
        pytest.param(enveloped(BODY, signatures=[SIGNATURE | {"sig": "AAAA"}]), Verdict.SCHEMA, id="sig"),
        pytest.param(enveloped(BODY, payload="e30"), Verdict.ENCODING, id="base64 without padding"),
        pytest.param(enveloped(BODY, payload="e31="), Verdict.ENCODING, id="base64 with stray bits"),
        pytest.param(enveloped(BODY, payload="e30=\n"), Verdict.ENCODING, id="base64 with a newline"),
        pytest.param(enveloped(BODY, payload="_-8="), Verdict.ENCODING, id="base64 for addresses"),
        pytest.param(enveloped(BODY, payload="ü" * 4), Verdict.ENCODING, id="base64 beyond ASCII"),
        pytest.param(enveloped(b"\xff"), Verdict.ENCODING, id="payload no UTF-8"),
        pytest.param(enveloped(b"[]"), Verdict.SCHEMA, id="payload no object"),
        pytest.param(enveloped(b'{"a":' * 5000 + b"1" + b"}" * 5000), Verdict.SCHEMA, id="payload deep"),
        pytest.param(enveloped(b'{"a":' * 40 + b"1" + b"}" * 40), Verdict.SCHEMA, id="40 levels"),
        pytest.param(enveloped(BODY.replace(b":", b": ", 1)), Verdict.NOT_CANONICAL, id="inner space"),
        pytest.param(enveloped(b'{"a":1,"a":1}'), Verdict.DUPLICATE_KEY, id="payload key twice"),
        pytest.param(enveloped(b'{"a":1.5}'), Verdict.NOT_CANONICAL, id="payload with a float"),
        pytest.param(enveloped(b'{"a":NaN}'), Verdict.NOT_CANONICAL, id="payload not a number"),
        pytest.param(enveloped(b'{"a":9007199254740992}'), Verdict.NOT_CANONICAL, id="integer"),
        pytest.param(enveloped(b'{"a":"\\ud800"}'), Verdict.NOT_CANONICAL, id="half a surrogate pair"),
        pytest.param(enveloped('{"ü":1}'.encode()), Verdict.NOT_CANONICAL, id="payload key beyond ASCII"),
        pytest.param(enveloped(b"{}"), Verdict.SCHEMA, id="payload no statement"),
    ],
)
def test_every_other_spelling_or_shape_is_refused_with_its_verdict(raw, verdict):
    assert verdict_of(raw) is verdict


@given(st.integers(0, len(RAW) - 1), st.integers(1, 255))
def test_no_changed_byte_leaves_an_entry_that_opens_and_is_signed(place, change):
    changed = RAW[:place] + bytes([RAW[place] ^ change]) + RAW[place + 1 :]
    try:
        opened = open_strict(changed)
    except BadEntry:
        return
    assert not opened.signed_by(KEY.public) or opened.key_id != KEY.key_id


@given(st.binary(max_size=300))
def test_noise_is_an_error_and_never_a_crash(noise):
    for raw in (noise, enveloped(noise)):
        assert verdict_of(raw) is not Verdict.VALID


def test_an_entry_over_the_cap_is_not_sealed():
    names = [f"{index:0199d}" for index in range(256)]
    with pytest.raises(BadEntry) as refusal:
        seal(payload(artifacts=names), KEY)
    assert refusal.value.verdict is Verdict.TOO_LARGE


def test_a_text_that_is_no_text_is_not_sealed():
    with pytest.raises(NotCanonical):
        seal(payload(summary="\udcff"), KEY)


FIELDS_OF = {
    "delegation": grant(CHILD, KEY.public, 1),
    "acceptance": {"contract": CONTRACT},
    "ascension": work(),
    "observation": seen(CHILD),
    "revocation": {"of": CHILD, "reason": "run ended"},
    "report": {"title": "What was done", "sha256": CONTRACT},
}


@pytest.mark.parametrize("kind", FIELDS)
def test_each_kind_has_exactly_its_fields(kind):
    place = {"log": "log", "agent": HERMES, "seq": 0, "prev": None, "at": NOW}
    good = statement(kind, **place, fields=FIELDS_OF[kind])
    assert dict(read(good).fields) == FIELDS_OF[kind]
    for name in FIELDS_OF[kind]:
        missing = {key: value for key, value in FIELDS_OF[kind].items() if key != name}
        wrong = FIELDS_OF[kind] | {name: [1.5]}
        for fields in (missing, wrong, FIELDS_OF[kind] | {"more": 1}):
            changed = good | {"predicate": place | fields}
            with pytest.raises(BadEntry, match=kind):
                read(changed)


@pytest.mark.parametrize(
    "changes",
    [
        {"_type": "https://in-toto.io/Statement/v0.1"},
        {"predicateType": "https://council-tui/wish/v1"},
        {"predicateType": ["list"]},
        {"subject": []},
        {"subject": "x"},
        {"subject": [{"name": "x", "digest": {"sha256": "00"}}]},
        {"subject": [{"name": "x", "digest": {"sha256": CONTRACT, "sha1": ""}}]},
        {"subject": [{"name": "", "digest": {"sha256": CONTRACT}}]},
        {"predicate": []},
    ],
)
def test_what_is_no_statement_of_this_version_is_refused(changes):
    with pytest.raises(BadEntry) as refusal:
        read(payload() | changes)
    assert refusal.value.verdict is Verdict.SCHEMA


def test_a_grant_is_written_sorted_and_read_only_so():
    fields = grant(CHILD, KEY.public, 1, capabilities=("read", "exec", "read"))
    made = statement("delegation", log="log", agent=HERMES, seq=0, prev=None, at=NOW, fields=fields)
    assert made["predicate"]["capabilities"] == ["exec", "read"]
    made["predicate"]["capabilities"] = ["read", "exec"]
    with pytest.raises(BadEntry, match="capabilities"):
        read(made)


def test_every_verdict_says_what_to_do():
    assert all(verdict.next_step.endswith(".") for verdict in Verdict)
