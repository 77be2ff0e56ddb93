"""What a secret looks like, and how to speak of one without repeating it.

Patterns with a fixed prefix come first, because they are nearly always right; strings that are only
called a secret must also look random and must not look like a placeholder.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from council_tui.plans.audit.report import Severity


@dataclass(frozen=True)
class Rule:
    """A kind of secret. Group 1 of the pattern is the secret; it is tried where `needle` occurs."""

    kind: str
    severity: Severity
    needle: bytes
    pattern: re.Pattern[bytes]


def _rule(kind: str, severity: Severity, needle: str, pattern: str) -> Rule:
    return Rule(kind, severity, needle.encode(), re.compile(pattern.encode()))


_KEY_BODY = r"(?:[^\n-]{0,80}(?:\n|\\n|\r))?(?:Proc-Type[^\n]*\n|DEK-Info[^\n]*\n|Version:[^\n]*\n|[\s\"'+,\\nr])*"

RULES: tuple[Rule, ...] = (
    _rule(
        "private key",
        "HIGH",
        "PRIVATE KEY",
        rf"-----BEGIN (?:(?:RSA|EC|DSA|OPENSSH|PGP) )?PRIVATE KEY(?: BLOCK)?-----{_KEY_BODY}"
        r"([A-Za-z0-9+/=]{40,})",
    ),
    _rule(
        "private key, encrypted",
        "MEDIUM",
        "ENCRYPTED PRIVATE KEY",
        rf"-----BEGIN ENCRYPTED PRIVATE KEY-----{_KEY_BODY}([A-Za-z0-9+/=]{{40,}})",
    ),
    _rule("AWS access key id", "HIGH", "IA", r"(?<![A-Za-z0-9+/])((?:AKIA|ASIA)[A-Z2-7]{16})(?![A-Za-z0-9+/=])"),
    _rule("GitHub token", "HIGH", "gh", r"(?<![A-Za-z0-9_])(gh[pousr]_[A-Za-z0-9]{36,251})(?![A-Za-z0-9_])"),
    _rule("GitHub fine-grained token", "HIGH", "github_pat_", r"(github_pat_[A-Za-z0-9_]{82})(?![A-Za-z0-9_])"),
    _rule(
        "GitLab token",
        "HIGH",
        "gl",
        r"(?<![A-Za-z0-9_])(gl(?:pat|dt|rt|ptt|cbt|ft|soat)-[A-Za-z0-9_-]{20,64})",
    ),
    _rule("Slack token", "HIGH", "xox", r"(?<![A-Za-z0-9])(xox[abeoprs]-(?:\d+-)?[0-9A-Za-z-]{20,250})"),
    _rule(
        "Slack webhook",
        "HIGH",
        "hooks.slack.com",
        r"(https://hooks\.slack\.com/(?:services|workflows)/T[A-Z0-9]{7,}/[A-Z0-9]{7,}/[A-Za-z0-9]{20,})",
    ),
    _rule("Stripe live key", "HIGH", "_live_", r"(?<![A-Za-z0-9])((?:sk|rk)_live_[A-Za-z0-9]{16,200})"),
    _rule("Stripe test key", "LOW", "_test_", r"(?<![A-Za-z0-9])((?:sk|rk)_test_[A-Za-z0-9]{24,200})"),
    _rule("Google API key", "HIGH", "AIza", r"(?<![A-Za-z0-9])(AIza[0-9A-Za-z_-]{35})(?![0-9A-Za-z_-])"),
    _rule("Google OAuth client secret", "HIGH", "GOCSPX-", r"(GOCSPX-[A-Za-z0-9_-]{28})(?![A-Za-z0-9_-])"),
    _rule("Anthropic key", "HIGH", "sk-ant-", r"(sk-ant-[a-z]{3,6}\d\d-[A-Za-z0-9_-]{60,200})"),
    _rule("OpenAI key", "HIGH", "sk-", r"(?<![A-Za-z0-9_-])(sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{40,200})"),
    _rule("OpenAI key", "HIGH", "T3BlbkFJ", r"(?<![A-Za-z0-9_-])(sk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20})"),
    _rule("npm token", "HIGH", "npm_", r"(?<![A-Za-z0-9_])(npm_[A-Za-z0-9]{36})(?![A-Za-z0-9_])"),
    _rule("PyPI token", "HIGH", "pypi-", r"(pypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,500})"),
    _rule("Hugging Face token", "HIGH", "hf_", r"(?<![A-Za-z0-9_])(hf_[A-Za-z]{34})(?![A-Za-z0-9_])"),
    _rule("SendGrid key", "HIGH", "SG.", r"(?<![A-Za-z0-9])(SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43})"),
    _rule(
        "JSON web token",
        "MEDIUM",
        "eyJ",
        r"(?<![A-Za-z0-9_-])(eyJ[\w-]{10,500}\.eyJ[\w-]{10,2000}\.[\w-]{20,1000})",
    ),
    _rule(
        "password in a URL",
        "MEDIUM",
        "://",
        r"://[^\s/:@\"'`<>{}()\[\]$%*\\,]{1,64}:([^\s/:@\"'`<>{}()\[\]$*\\,]{4,100})@[\w.-]*\w",
    ),
)
"""Tried in this order; the first one to claim a string keeps it."""

_WORDS = (
    b"secret",
    b"passw",
    b"token",
    b"api_key",
    b"api-key",
    b"apikey",
    b"access_key",
    b"accesskey",
    b"private_key",
)
_NAMED = re.compile(
    rb"(?i)[\w.-]{0,40}(?:secret|passw(?:or)?d|token|api[_-]?key|access[_-]?key|private[_-]?key)[\w-]{0,24}[\"'\]]{0,2}"
    rb"\s{0,4}(?:=>|:=|=|:)\s{0,4}(?:[brfu]?[\"'`]([^\"'`\s\\]{12,200})[\"'`]|([^\s\"'`;,#(){}\[\]<>$]{16,200})\s*$)"
)
_PLACEHOLDER = re.compile(
    rb"(?i)example|sample|change.?me|change.?this|your|placeholder|dummy|fake|foo|bar\b|lorem|redacted|todo|insert"
    rb"|x{4,}|\*{3,}|\.{3}|(.)\1{5,}|01234567|12345678|abcdef|qwerty|secret|passw|token|api.?key|process\.env|environ|getenv"
    rb"|not.?set|undefined|sha(?:256|384|512)-|^[\$%<{]|[{}<>]|\b(?:true|false|null|none)\b|^0x[0-9a-f]{40}$"
)
_WEAK_PASSWORD = re.compile(
    rb"(?i)^(?:pass\w*|pwd|pw|user\w*|root|admin|guest|postgres|mysql|git|x-oauth-basic|\W+|(.)\1*)$"
)
_LOCAL = re.compile(
    rb"(?i)@(?:localhost|127\.|0\.0\.0\.0|\[?::1|[\w.-]*(?:example|test|local|invalid|internal)\b|\w+$)"
)
_ALLOWED = re.compile(rb"(?i)gitleaks:allow|pragma: ?allowlist secret|nosec\b|noqa: ?S10[5-7]")
_CONFIG = re.compile(r"(?i)(^|/)\.env[\w.-]*$|\.(env|ini|cfg|conf|properties|toml|ya?ml|tfvars|sh|bash|zsh)$")
MAX_LINE = 2000
"""Bytes; longer lines are machine-made, and only the patterns with a fixed prefix are tried there."""
MIN_ENTROPY = 3.5
"""Bits a character (Shannon); words and identifiers stay below, random strings of 16 and more above."""


@dataclass(frozen=True)
class Hit:
    """A string that looks like a secret. `line` counts from 1. The value never leaves the program."""

    kind: str
    severity: Severity
    line: int
    value: bytes
    generic: bool = False

    @property
    def digest(self) -> str:
        """SHA-256 of the value, hex."""
        return hashlib.sha256(self.value).hexdigest()

    def description(self) -> str:
        """The value's first characters, length and digest: enough to find it, too little to use it."""
        shown = self.value[: min(4, len(self.value) // 4)].decode("ascii", "replace")
        text = f"starts with {shown!r}, {len(self.value)} characters"
        # The digest of a short password would be an invitation to guess it.
        return f"{text}, sha256 {self.digest[:12]}" if len(self.value) >= 16 else text


def entropy(value: bytes) -> float:
    """Shannon entropy in bits a character."""
    total = len(value)
    return -sum(n / total * math.log2(n / total) for n in Counter(value).values()) if total else 0.0


def _looks_random(value: bytes) -> bool:
    if _PLACEHOLDER.search(value) or entropy(value) < MIN_ENTROPY:
        return False
    digits = sum(48 <= c <= 57 for c in value)
    letters = sum(65 <= c <= 90 or 97 <= c <= 122 for c in value)
    if digits < 2 or letters < 2 or b"://" in value or value.startswith((b"/", b"./", b"~")):
        return False
    # Words joined by dots, dashes or slashes are names, paths and versions, not keys.
    longest = max(len(part) for part in re.split(rb"[._/:\- ]", value))
    return longest >= 12 or entropy(value) >= 4.2


def _is_jwt(value: bytes) -> bool:
    try:
        header, payload = (base64.urlsafe_b64decode(p + b"==") for p in value.split(b".")[:2])
        if "alg" not in json.loads(header):
            return False
    except (binascii.Error, ValueError):
        return False
    return b"John Doe" not in payload and b"1234567890" not in payload


def _accept(rule: Rule, match: re.Match[bytes]) -> bool:
    value = match.group(1)
    if rule.kind == "JSON web token":
        return _is_jwt(value)
    if rule.kind == "password in a URL":
        at = match.group(0)[match.group(0).rindex(b"@") :]
        return not (_WEAK_PASSWORD.match(value) or _PLACEHOLDER.search(value) or _LOCAL.match(at))
    if rule.kind.startswith("private key"):
        return entropy(value) > 3
    return (
        not re.search(rb"(?i)example|x{6,}|(.)\1{7,}|0123456789|1234567890|abcdefghij|your", value)
        and entropy(value) > 3
    )


def find_secrets(data: bytes, path: str = "") -> Iterator[Hit]:
    """Every string in `data` that looks like a secret, by kind. `path` says which rules fit the file."""
    claimed: set[bytes] = set()
    for rule in RULES:
        if rule.needle not in data:
            continue
        for match in rule.pattern.finditer(data):
            value = match.group(1)
            if value not in claimed and _accept(rule, match) and not _ALLOWED.search(_line_of(data, match.start(1))):
                claimed.add(value)
                yield Hit(rule.kind, rule.severity, data.count(b"\n", 0, match.start()) + 1, value)
    yield from _named_secrets(data, path, claimed)


def _line_of(data: bytes, at: int) -> bytes:
    start = max(data.rfind(b"\n", 0, at) + 1, at - 500)
    end = data.find(b"\n", at, at + 500)
    return data[start : end if end >= 0 else at + 500]


def _named_secrets(data: bytes, path: str, claimed: set[bytes]) -> Iterator[Hit]:
    lower = data.lower()
    if not any(word in lower for word in _WORDS):
        return
    bare = bool(_CONFIG.search(path))
    for number, (line, low) in enumerate(zip(data.split(b"\n"), lower.split(b"\n"), strict=True), 1):
        if len(line) <= MAX_LINE and any(word in low for word in _WORDS):
            yield from _in_line(line, number, bare, claimed)


def _in_line(line: bytes, number: int, bare: bool, claimed: set[bytes]) -> Iterator[Hit]:
    for match in _NAMED.finditer(line):
        value = match.group(1) or (match.group(2) if bare else b"") or b""
        if value in claimed or any(value in known or known in value for known in claimed):
            continue
        if _looks_random(value) and not _ALLOWED.search(line):
            claimed.add(value)
            yield Hit("value named like a secret", "MEDIUM", number, value, generic=True)
