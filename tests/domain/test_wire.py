"""The child protocol's framing: hostile lines are refused and never raise anything else."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council_tui.domain.wire import (
    MAX_DATAGRAM,
    MAX_MESSAGE,
    MAX_NESTING,
    REFUSED,
    BadMessage,
    Call,
    Reply,
    decode,
    encode,
    notify,
    parse_notify,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=15,
)


@given(TEXT, st.dictionaries(TEXT, JSON, max_size=4), st.none() | st.integers())
def test_a_call_comes_back_as_it_went(method, params, ident):
    line = encode(Call(method, params, ident))
    assert line.count(b"\n") == 1
    assert decode(line) == Call(method, params, ident)


@given(st.integers(), JSON)
def test_a_result_comes_back_as_it_went(ident, result):
    assert decode(encode(Reply(ident, result))) == Reply(ident, result)


@given(st.integers(), TEXT, st.integers().filter(bool))
def test_an_error_comes_back_as_it_went(ident, text, code):
    assert decode(encode(Reply(ident, error=text, code=code))) == Reply(ident, None, text, code)


def test_an_error_without_a_code_is_a_refusal():
    assert decode(encode(Reply(1, error="no"))) == Reply(1, None, "no", REFUSED)


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_but_a_bad_message(raw):
    with suppress(BadMessage):
        assert isinstance(decode(raw), (Call, Reply))


@given(
    st.fixed_dictionaries(
        {"jsonrpc": st.just("2.0")},
        optional={"id": JSON, "method": JSON, "params": JSON, "error": JSON, "result": JSON},
    )
)
def test_nearly_right_messages_are_taken_or_refused(body):
    try:
        message = decode(json.dumps(body).encode())
    except BadMessage:
        return
    assert decode(encode(message)) == message or isinstance(message, Reply)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\xff\xfe",
        b"null",
        b"[]",
        b'{"jsonrpc":"1.0","method":"x"}',
        b'{"jsonrpc":"2.0"}',
        b'{"jsonrpc":"2.0","method":"x","id":true}',
        b'{"jsonrpc":"2.0","method":"x","id":"1"}',
        b'{"jsonrpc":"2.0","method":"x","params":[]}',
        b'{"jsonrpc":"2.0","method":"' + b"x" * 65 + b'"}',
        b'{"jsonrpc":"2.0","id":1,"error":"text"}',
        b'{"jsonrpc":"2.0","method":"x","params":{"a":NaN}}',
        b'{"jsonrpc":"2.0","method":"x","params":{"a":1e999}}',
        b'{"jsonrpc":"2.0","method":"x","params":{"a":"\\ud800"}}',
        b'{"jsonrpc":"2.0","method":"x","params":{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
        b'{"jsonrpc":"2.0","method":"x","params":{"a":' + b"[" * 200 + b"]" * 200 + b"}}",
        b'{"jsonrpc":"2.0","method":"x","id":' + b"9" * 5000 + b"}",
        b" " * (MAX_MESSAGE + 1),
    ],
)
def test_a_line_that_is_no_message_is_refused(line):
    with pytest.raises(BadMessage):
        decode(line)


def test_nesting_is_allowed_up_to_its_bound():
    inside = MAX_NESTING - 2
    line = b'{"jsonrpc":"2.0","method":"x","params":{"a":' + b"[" * inside + b"]" * inside + b"}}"
    assert isinstance(decode(line), Call)
    with pytest.raises(BadMessage, match="nested"):
        decode(line.replace(b"[", b"[[", 1).replace(b"]", b"]]", 1))


@given(
    st.dictionaries(
        st.text(st.characters(codec="ascii", exclude_characters="=\n", categories=["L", "N"]), min_size=1),
        st.text(st.characters(codec="utf-8", exclude_characters="\n")),
        max_size=5,
    )
)
def test_a_beat_comes_back_as_it_went(fields):
    datagram = notify(dict(fields))
    if len(datagram) <= MAX_DATAGRAM:
        assert parse_notify(datagram) == fields


@given(st.binary(max_size=300))
def test_any_datagram_yields_texts(raw):
    assert all(isinstance(value, str) and key for key, value in parse_notify(raw).items())


def test_a_datagram_is_read_up_to_its_cap():
    assert len(parse_notify(b"STATUS=" + b"x" * 10_000)["STATUS"]) == MAX_DATAGRAM - len("STATUS=")
    assert parse_notify(b"WATCHDOG=1\nnonsense\n=1\nSTATUS=a=b") == {"WATCHDOG": "1", "STATUS": "a=b"}
