"""Keys: at rest for their owner only, in memory without a way out."""

from __future__ import annotations

import errno
import os
import pickle

import pytest

from council_tui.ledger.keys import Key, KeyUnusable, load_or_create, valid_public, verify, verify_all

SMALL_ORDER = [
    bytes(32),
    b"\x01" + bytes(31),
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
    bytes.fromhex("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
]


def test_a_key_file_is_made_once_and_read_by_its_owner_alone(tmp_path):
    path = tmp_path / "keys" / "hermes"
    key = load_or_create(path)
    assert load_or_create(path).public == key.public
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_signature_holds_for_its_message_and_key_only():
    key, other = Key.generate(), Key.generate()
    signature = key.sign(b"truth")
    assert verify(key.public, b"truth", signature)
    assert not verify(key.public, b"Truth", signature)
    assert not verify(other.public, b"truth", signature)
    assert not verify(key.public, b"truth", signature[:-1])
    assert not verify(key.public[:-1], b"truth", signature)


def test_one_bad_signature_spoils_a_whole_bundle():
    key = Key.generate()
    good, bad = (key.public, b"a", key.sign(b"a")), (key.public, b"b", key.sign(b"a"))
    assert verify_all([good, good])
    assert not verify_all([good, bad, good])


def test_the_secret_half_shows_nowhere_and_cannot_be_pickled(tmp_path):
    key = load_or_create(tmp_path / "key")
    secret = (tmp_path / "key").read_text().strip()
    assert secret not in repr(key)
    assert secret not in str(key)
    with pytest.raises(TypeError, match="does not leave"):
        pickle.dumps(key)


def test_a_link_is_refused(tmp_path):
    load_or_create(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(KeyUnusable, match="is a link"):
        load_or_create(tmp_path / "link")


def test_a_dangling_link_is_not_followed_to_make_a_key(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(KeyUnusable, match="is a link"):
        load_or_create(tmp_path / "link")
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_key_that_others_can_reach_is_refused(tmp_path, mode):
    load_or_create(tmp_path / "key")
    (tmp_path / "key").chmod(mode)
    with pytest.raises(KeyUnusable, match="chmod 600"):
        load_or_create(tmp_path / "key")


def test_a_directory_that_others_can_change_is_refused(tmp_path):
    load_or_create(tmp_path / "keys" / "key")
    (tmp_path / "keys").chmod(0o777)
    with pytest.raises(KeyUnusable, match="chmod 700"):
        load_or_create(tmp_path / "keys" / "key")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_key_of_another_user_is_refused(tmp_path):
    load_or_create(tmp_path / "key")
    os.chown(tmp_path / "key", 12345, -1)
    with pytest.raises(KeyUnusable, match="belongs to user 12345"):
        load_or_create(tmp_path / "key")


@pytest.mark.parametrize("content", ["", "abc", "zz" * 32, "00" * 31, "é" * 32])
def test_a_file_without_a_key_is_refused_and_kept(tmp_path, content):
    path = tmp_path / "key"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(KeyUnusable, match="does not hold a key"):
        load_or_create(path)
    assert path.read_text() == content


def test_what_is_no_ordinary_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(KeyUnusable, match="no ordinary file"):
        load_or_create(tmp_path / "pipe")


def test_a_key_that_cannot_be_made_says_why(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(KeyUnusable, match="cannot be used"):
        load_or_create(tmp_path / "file" / "key")


@pytest.mark.parametrize("public", [*SMALL_ORDER, b"", b"\xff" * 32, bytes(31)])
def test_keys_on_which_libraries_disagree_are_no_valid_keys(public):
    assert not valid_public(public)


def test_a_generated_key_is_valid():
    assert valid_public(Key.generate().public)


def test_a_disk_that_is_full_leaves_no_half_of_a_key(tmp_path, monkeypatch):
    def full(fd):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(KeyUnusable, match="cannot be used: No space left on device"):
            load_or_create(tmp_path / "k")
    assert list(tmp_path.iterdir()) == []
    load_or_create(tmp_path / "k")
