"""Secrets are found, and never repeated. The strings are put together here, so that no scanner finds them."""

import base64
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from council_tui.plans.audit.secret_patterns import entropy, find_secrets
from council_tui.plans.audit.secrets_ignored import holds
from plans.repository import Checkout

RANDOM = "q7Zt2Kx9Lm4Wp8Rs3Vn6Yb1Hc5Jd0Gf7Ta"
AWS = "AKIA" + "Q7ZT2KX4LM5WP3RS"
GITHUB = "ghp_" + RANDOM[:36].ljust(36, "z")
KEY = "-----BEGIN RSA PRIVATE " + "KEY-----\n" + "MIIEow" + RANDOM * 3 + "\n"


def _jwt(payload: dict[str, str]) -> str:
    parts = [{"alg": "HS256"}, payload]
    return ".".join(base64.urlsafe_b64encode(json.dumps(p).encode()).decode().rstrip("=") for p in parts) + "." + RANDOM


REAL = [
    ("AWS access key id", f"key = {AWS}"),
    ("GitHub token", f"TOKEN={GITHUB}"),
    ("GitLab token", "glpat-" + RANDOM[:20]),
    ("Slack token", "xoxb-" + "123456789-" + RANDOM),
    ("Slack webhook", "https://hooks.slack.com/services/T0" + "A1B2C3D4/B0A1B2C3D4/" + RANDOM[:24]),
    ("Stripe live key", "sk_" + "live_" + RANDOM[:24]),
    ("Google API key", "AIza" + RANDOM[:35].ljust(35, "Q")),
    ("OpenAI key", "sk-" + "proj-" + RANDOM * 2),
    ("Anthropic key", "sk-" + "ant-api03-" + RANDOM * 3),
    ("npm token", "npm_" + RANDOM[:36].ljust(36, "z")),
    ("JSON web token", _jwt({"sub": "42"})),
    ("password in a URL", "postgres://app:" + "Zt7-kq2Lm9" + "@db.acme.io/main"),
    ("private key", KEY),
    ("value named like a secret", f'client_secret = "{RANDOM}"'),
    ("value named like a secret", f"'api_key': '{RANDOM[:20]}'"),
]

HARMLESS = [
    "AKIA" + "IOSFODNN7EXAMPLE",
    "password = os.environ['DB_PASSWORD_PRODUCTION_1']",
    'token = "your-token-goes-here-123456"',
    'password: "correct horse battery staple"',
    'secret_name = "my-application/production/database-2"',
    "postgres://user:password@localhost:5432/db",
    "postgres://user:hunter2pass@localhost:5432/db",
    "https://user:${TOKEN}@github.com/a/b",
    "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
    '"integrity_token": "sha512-' + RANDOM + '"',
    'address_token = "0x' + "3690" * 10 + '"',
    _jwt({"name": "John Doe"}),
    'api_key = "xxxxxxxxxxxxxxxxxxxxxxxx1234"',
    f'token = "{RANDOM}"  # gitleaks:allow',
    "tokenizer = AutoTokenizer.from_pretrained('bert-base-uncased-2')",
]


@pytest.mark.parametrize(("kind", "text"), REAL, ids=[kind for kind, _ in REAL])
def test_a_real_looking_secret_is_found_on_its_line(kind: str, text: str):
    hits = list(find_secrets(f"first\n{text}\n".encode(), "app/config.py"))
    assert [(hit.kind, hit.line) for hit in hits] == [(kind, 2)]


@pytest.mark.parametrize("text", HARMLESS)
def test_placeholders_names_and_local_passwords_are_left_alone(text: str):
    assert list(find_secrets(text.encode(), "app/config.py")) == []


def test_an_unquoted_value_counts_in_configuration_files_only():
    line = f"API_KEY={RANDOM}\n".encode()
    assert [hit.generic for hit in find_secrets(line, ".env")] == [True]
    assert list(find_secrets(line, "notes.txt")) == []


@settings(max_examples=50)
@given(st.binary(max_size=3000))
def test_no_bytes_break_the_search(data: bytes):
    assert len(list(find_secrets(data + b" token= " + data, ".env"))) < 50


@settings(max_examples=50)
@given(st.binary(max_size=200))
def test_entropy_stays_between_zero_and_eight_bits(data: bytes):
    assert 0 <= entropy(data) <= 8


def test_text_made_to_exhaust_a_pattern_is_read_in_no_time():
    for text in (b"eyJ" * 50_000, b"://" * 50_000, b"key" * 20_000, b"-----BEGIN PRIVATE KEY-----" + b" " * 100_000):
        assert list(find_secrets(text, ".env")) == []
        assert holds(".env", text) is None
    assert holds(".env", b"\n" * 65_536) is None


def test_a_description_shows_little_of_a_secret_and_less_of_a_short_one():
    hit = next(find_secrets(AWS.encode()))
    assert hit.description() == f"starts with 'AKIA', 20 characters, sha256 {hit.digest[:12]}"
    short = next(find_secrets(b"postgres://app:" + b"Zt7-kq2" + b"@db.acme.io/main"))
    assert short.description() == "starts with 'Z', 7 characters"


def test_the_file_scan_reports_place_and_kind_and_never_the_secret(checkout: Checkout):
    checkout.write("src/a.py", f"\nkey = '{AWS}'\n")
    checkout.write("src/b.py", f"key = '{AWS}'\n")
    checkout.write("tests/test_a.py", f"token = '{GITHUB}'\napi_key = '{RANDOM.swapcase()}'\n")
    checkout.write("package-lock.json", f'"token": "{GITHUB}x"\n')
    checkout.commit()
    checkout.write("new.env", f"SECRET_KEY={RANDOM[::-1]}\n")
    outcome = checkout.audit("secrets_files")
    finding = outcome.one("AWS access key id in src/a.py")
    assert (finding["severity"], finding["line"]) == ("HIGH", 2)
    assert "src/b.py:1" in finding["description"]
    assert outcome.one("GitHub token in tests/test_a.py")["severity"] == "LOW"
    assert outcome.one("1 made-up secret, probably")["severity"] == "INFO"
    assert "not tracked yet" in outcome.one("in new.env")["description"]
    for secret in (AWS, GITHUB, RANDOM.swapcase(), RANDOM[::-1]):
        assert secret not in "".join(outcome.lines)


def test_the_history_scan_finds_what_was_deleted_and_leaves_the_rest_to_the_file_scan(checkout: Checkout):
    checkout.write("conf/app.ini", f"a\nb\nkey = {AWS}\n")
    checkout.write("kept.ini", f"token = {GITHUB}\n")
    checkout.commit()
    checkout.write("conf/app.ini", "a\nb\n")
    checkout.commit()
    outcome = checkout.audit("secrets_history")
    finding = outcome.one("AWS access key id in the history of conf/app.ini")
    assert (finding["severity"], finding["line"], finding["path"]) == ("HIGH", 3, "conf/app.ini")
    assert "1 other is still in the files" in outcome.one("2 commits scanned")["description"]
    assert AWS not in "".join(outcome.lines)


def test_key_and_environment_files_are_judged_by_how_near_they_are_to_being_published(checkout: Checkout):
    checkout.write(".gitignore", ".env\n*.log\n")
    checkout.write("deploy/id_rsa", KEY)
    checkout.write("cert.pem", "-----BEGIN CERTIFICATE-----\nMIIB\n")
    checkout.write(".env.example", "API_KEY=put-your-key\n")
    checkout.write("kept.log", "x\n")
    checkout.git("add", "-f", "kept.log")
    checkout.commit()
    checkout.write(".env", "DATABASE_PASSWORD=Zt7kq2Lm9\n")
    checkout.write("server.key", KEY)
    outcome = checkout.audit("secrets_ignored")
    assert outcome.one("Private key, tracked: deploy/id_rsa")["severity"] == "HIGH"
    assert outcome.one("Private key, untracked: server.key")["severity"] == "MEDIUM"
    assert outcome.one("Environment file, ignored: .env")["severity"] == "INFO"
    assert outcome.one("1 tracked file matches an ignore rule")["path"] == "kept.log"
    assert outcome.one("Secret files by nature: 1 tracked, 1 untracked, 1 ignored")
    assert "Zt7kq2Lm9" not in "".join(outcome.lines)
