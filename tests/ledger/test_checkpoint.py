"""Heads: what a signed note must look like, and what is none."""

from __future__ import annotations

import base64
import itertools

import pytest

from council_tui.ledger.checkpoint import open_checkpoint, origin_of, pinned, sign_checkpoint, vkey
from council_tui.ledger.keys import Key
from council_tui.ledger.merkle import leaf_hash
from council_tui.ledger.verdicts import BadEntry, Verdict

KEY = Key.generate()
ORIGIN = origin_of(KEY.public)
ROOT = leaf_hash(b"root")


def test_a_head_reads_back_as_it_was_signed():
    head = open_checkpoint(sign_checkpoint(KEY, ORIGIN, 7, ROOT), ORIGIN, KEY.public)
    assert (head.origin, head.size, head.root) == (ORIGIN, 7, ROOT)


def test_the_key_hash_is_that_of_the_published_example_of_signed_notes():
    example = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
    public = base64.b64decode(example.split("+", 2)[2])[1:]
    assert vkey("PeterNeumann", public) == example


def test_a_witness_may_add_its_own_signature_line():
    note = sign_checkpoint(KEY, ORIGIN, 7, ROOT)
    witness = "— witness.example " + base64.b64encode(b"w" * 68).decode() + "\n"
    assert open_checkpoint(note + witness.encode(), ORIGIN, KEY.public).size == 7


def test_no_single_changed_byte_leaves_the_head_valid():
    note = sign_checkpoint(KEY, ORIGIN, 7, ROOT)
    for place, change in itertools.product(range(len(note)), range(1, 256)):
        changed = note[:place] + bytes([note[place] ^ change]) + note[place + 1 :]
        with pytest.raises(BadEntry) as refusal:
            open_checkpoint(changed, ORIGIN, KEY.public)
        assert refusal.value.verdict is Verdict.BAD_CHECKPOINT


@pytest.mark.parametrize(
    ("origin", "size", "root", "reason"),
    [(ORIGIN, "07", ROOT, "size"), (ORIGIN, "9" * 5000, ROOT, "size"), (ORIGIN, "7", b"x", "root")],
    ids=["leading zero", "too large", "short root"],
)
def test_a_signed_note_with_a_wrong_size_or_root_is_no_head(origin, size, root, reason):
    with pytest.raises(BadEntry, match=reason):
        open_checkpoint(sign_checkpoint(KEY, origin, size, root), ORIGIN, KEY.public)  # type: ignore[arg-type]


def test_a_signature_line_of_a_wrong_length_is_refused():
    text, _, line = sign_checkpoint(KEY, ORIGIN, 7, ROOT).partition(b"\n\n")
    blob = base64.b64decode(line.split(b" ")[2])[:-1]
    with pytest.raises(BadEntry, match="wrong length"):
        open_checkpoint(
            text + b"\n\n" + line.rpartition(b" ")[0] + b" " + base64.b64encode(blob) + b"\n",
            ORIGIN,
            KEY.public,
        )


@pytest.mark.parametrize("note", [b"", b"\n\n", b"\xff\n\nx\n", b"x" * 20_000, b"a\n1\nb\n\nno dash\n"])
def test_what_is_no_note_is_refused(note):
    with pytest.raises(BadEntry):
        open_checkpoint(note, ORIGIN, KEY.public)


def test_a_head_of_another_log_or_key_is_refused():
    other = Key.generate()
    with pytest.raises(BadEntry, match="no signature by this log's key"):
        open_checkpoint(sign_checkpoint(KEY, "elsewhere", 7, ROOT), ORIGIN, KEY.public)
    with pytest.raises(BadEntry, match="no signature by this log's key"):
        open_checkpoint(sign_checkpoint(other, ORIGIN, 7, ROOT), ORIGIN, KEY.public)


def test_the_key_of_a_log_is_pinned_by_its_name_or_by_the_caller():
    assert pinned(ORIGIN, KEY.public.hex(), None) == KEY.public
    assert pinned("my log", KEY.public.hex(), KEY.public) == KEY.public
    for origin, stored, known in [
        ("my log", KEY.public.hex(), None),
        (ORIGIN, "no hex", None),
        (ORIGIN, KEY.public.hex(), Key.generate().public),
    ]:
        with pytest.raises(BadEntry):
            pinned(origin, stored, known)
