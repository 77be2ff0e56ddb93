"""Ed25519 keys: made here, kept in a file only their owner can read, and never shown.

A key file holds one line, the 32-byte seed in hex. A process of the same user can read it: the mode keeps
other users out, nothing more.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from typing import TYPE_CHECKING

from nacl.bindings import crypto_core_ed25519_is_valid_point
from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey, VerifyKey

from council_tui.domain.errors import HomeUnusable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

KEY_BYTES = 32
SIGNATURE_BYTES = 64


class KeyUnusable(HomeUnusable):
    """A key file that must not be used, and what to do about it."""


def key_id(public: bytes) -> str:
    """The name of a public key: its SHA-256 in hex."""
    return hashlib.sha256(public).hexdigest()


class Key:
    """A signing key. The secret half has no accessor and no representation."""

    __slots__ = ("__signing", "key_id", "public")

    def __init__(self, signing: SigningKey) -> None:
        self.__signing = signing
        self.public = bytes(signing.verify_key)
        self.key_id = key_id(self.public)

    @classmethod
    def generate(cls) -> Key:
        """A new key from the system's randomness."""
        return cls(SigningKey.generate())

    def sign(self, message: bytes) -> bytes:
        """The 64-byte signature of a message."""
        return self.__signing.sign(message).signature

    def __repr__(self) -> str:
        return f"Key({self.key_id[:16]})"

    def __reduce__(self) -> str:
        raise TypeError("a key does not leave its process")


def valid_public(public: bytes) -> bool:
    """Whether a public key is a point of the prime-order group.

    Libraries disagree on signatures under small-order keys, so such keys are refused when granted.
    """
    return len(public) == KEY_BYTES and bool(crypto_core_ed25519_is_valid_point(public))


def verify(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether the key's owner signed the message."""
    if len(public) != KEY_BYTES or len(signature) != SIGNATURE_BYTES:
        return False
    try:
        VerifyKey(public).verify(message, signature)
    except BadSignatureError:
        return False
    return True


def verify_all(items: Iterable[tuple[bytes, bytes, bytes]]) -> bool:
    """Whether every (public, message, signature) holds; the unit of work of a verifying process."""
    return all(verify(*item) for item in items)


def _create(path: Path) -> Key:
    signing = SigningKey.generate()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(bytes(signing).hex().encode() + b"\n")
            file.flush()
            os.fsync(fd)
    except OSError:
        # Half a key would be in the way of a whole one.
        path.unlink()
        raise
    parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(parent)
    finally:
        os.close(parent)
    return Key(signing)


def _load(path: Path) -> Key:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise KeyUnusable(f"{path} is no ordinary file; move it away to have a new key made")
        if found.st_uid != os.geteuid():
            raise KeyUnusable(f"{path} belongs to user {found.st_uid}; only its owner may use a key")
        if found.st_mode & 0o077:
            raise KeyUnusable(f"{path} can be read by others; run `chmod 600` on it if you still trust it")
        raw = file.read(2 * KEY_BYTES + 2)
    with contextlib.suppress(ValueError):
        seed = bytes.fromhex(raw.decode("ascii"))
        if len(seed) == KEY_BYTES:
            return Key(SigningKey(seed))
    raise KeyUnusable(f"{path} does not hold a key; restore it from a copy or move it away")


def load_or_create(path: Path) -> Key:
    """The key in this file, made on first use. Raises `KeyUnusable` with one sentence."""
    try:
        with contextlib.suppress(FileExistsError):
            return _create(path)
        if path.parent.stat().st_mode & 0o022:
            raise KeyUnusable(f"{path.parent} can be changed by others; run `chmod 700` on it")
        return _load(path)
    except OSError as error:
        if path.is_symlink():
            raise KeyUnusable(f"{path} is a link; put the key file itself there") from None
        raise KeyUnusable(f"{path} cannot be used: {error.strerror}") from None
