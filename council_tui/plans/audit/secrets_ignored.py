"""Files that hold secrets by their nature: .env, keys, tokens. Tracked, about to be, or merely lying here."""

from __future__ import annotations

import os
import re
import stat
import sys

from council_tui.plans.audit.generated import debris, is_test, third_party
from council_tui.plans.audit.repo import Repo, open_repo, shown
from council_tui.plans.audit.report import Report, Severity, count, progress, run_tool

LIST_SECONDS = 20.0
LISTED = 20
HEAD = 64 * 1024

_TEMPLATE = re.compile(
    r"(?i)(example|sample|template|dist|default|defaults|tmpl|tpl|schema|test|ci)$|\.(md|js|ts|py|sh|d)$"
)
_ENV = re.compile(r"(?i)^\.env(\.[\w.-]+)?$|^[\w-]+\.env$|^\.envrc$")
_KEY_NAME = re.compile(r"(?i)^id_(rsa|dsa|ecdsa|ed25519)(_sk)?$|\.(pem|key|p8|ppk)$")
_STORE = re.compile(r"(?i)\.(p12|pfx|jks|keystore|kdbx)$")
_LOGIN = re.compile(
    r"(?i)^(\.npmrc|\.pypirc|\.netrc|_netrc|\.git-credentials|\.dockercfg|\.pgpass|\.htpasswd|\.s3cfg)$"
)
_CLOUD = re.compile(
    r"(?i)^(credentials(\.json)?|service[-_]?account[\w-]*\.json|client_secrets?[\w-]*\.json|[\w.-]*\.tfstate)$"
)
_PRIVATE = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY|PuTTY-User-Key-File")
_VALUE = re.compile(
    rb"(?im)^[ \t]*(?:export[ \t]+)?(\w{0,60}(?:secret|passw|token|key|credential|dsn|database_url)\w{0,60})"
    rb"[ \t]*=[ \t]*[\"']?(?!\$|<)([^\s\"'#]{6,})"
)
_AUTH = re.compile(
    rb"(?i)_auth(token)?\s*=\s*(?!\$)\S{8}|\bpassword\s*[=:]?\s*(?!\$)\S{4}|://[^\s:/]+:[^\s@]+@|:\$?\w+\$|^[^#\s:]+:\S{8}"
)
_CLOUD_BODY = re.compile(
    rb"\"private_key\"|\"client_secret\"\s*:|\"refresh_token\"|aws_secret_access_key|\"terraform_version\""
)


def holds(name: str, data: bytes) -> str | None:
    """What kind of secret a file of this name and beginning holds, or None when it only looks like it."""
    if _ENV.search(name):
        match = None if _TEMPLATE.search(name) else _VALUE.search(data)
        return f"environment file with a value for {match.group(1).decode()}" if match else None
    if _KEY_NAME.search(name):
        return "private key" if _PRIVATE.search(data) else None
    if _STORE.search(name):
        return "key store" if data else None
    if _LOGIN.search(name):
        return "login file" if _AUTH.search(data) else None
    if _CLOUD.search(name):
        return "cloud credentials or state" if _CLOUD_BODY.search(data) else None
    return None


def _is_candidate(path: str) -> bool:
    name = path.rpartition("/")[2]
    return any(p.search(name) for p in (_ENV, _KEY_NAME, _STORE, _LOGIN, _CLOUD)) and not debris(path)


def _paths(repo: Repo, *flags: str) -> list[str]:
    records = repo.records("ls-files", "-z", *flags, seconds=LIST_SECONDS)
    return [os.fsdecode(r) for r in records if r and not r.endswith(b"/")]


def _open_to_all(repo: Repo, path: str) -> bool:
    return bool(os.lstat(os.path.join(repo.root, path)).st_mode & stat.S_IROTH)


def _judge(where: str, path: str, kind: str) -> tuple[Severity, str]:
    if where == "tracked":
        severity: Severity = "LOW" if is_test(path) else "HIGH"
        text = "It is in every clone. Replace what it holds, then `git rm --cached` it and ignore it."
        return severity, text
    if where == "untracked":
        severity = "LOW" if is_test(path) else "MEDIUM"
        return (
            severity,
            "It is neither tracked nor ignored: one `git add .` commits it. Add it to .gitignore.",
        )
    return "INFO", "Git ignores it, as it should; whoever may read this folder, an agent too, can read it."


def _look(repo: Repo, report: Report, where: str, paths: list[str]) -> int:
    seen = 0
    for path in filter(_is_candidate, paths):
        data = repo.read(path, HEAD)
        kind = holds(path.rpartition("/")[2], data) if data else None
        if not kind or (third_party(path) and where == "ignored"):
            continue
        seen += 1
        severity, text = _judge(where, path, kind)
        # World-readable matters on a shared machine only, so it never raises the severity by itself.
        mode = " Every user of this machine can read it (chmod 600)." if _open_to_all(repo, path) else ""
        report.add(
            severity,
            f"{kind.partition(' with ')[0].capitalize()}, {where}: {shown(path)}",
            f"{kind[0].upper()}{kind[1:]}. {text}{mode}",
            f"{shown(path)}: {kind}, {where} (git ls-files)",
            path=shown(path),
        )
    return seen


def _tracked_but_ignored(repo: Repo, report: Report) -> None:
    paths = _paths(repo, "-c", "-i", "--exclude-standard")
    if paths:
        report.add(
            "LOW",
            f"{count(len(paths), 'tracked file matches', 'tracked files match')} an ignore rule",
            "Git tracks them all the same; `git rm --cached` them, or drop the rule: "
            + ", ".join(shown(p) for p in paths[:LISTED]),
            [f"git ls-files -c -i --exclude-standard: {shown(p)}" for p in paths[:LISTED]],
            path=shown(paths[0]) if len(paths) == 1 else "",
        )


def work(report: Report) -> None:
    """Fill the report with files that are secrets by nature, by how near they are to being published."""
    repo = open_repo()
    progress("looking for key and environment files")
    tracked = [e.path for e in repo.tracked() if e.mode != "120000"]
    others = _paths(repo, "-o", "--exclude-standard")
    ignored = _paths(repo, "-o", "-i", "--exclude-standard")
    places = {"tracked": tracked, "untracked": others, "ignored": ignored}
    number = {where: _look(repo, report, where, paths) for where, paths in places.items()}
    _tracked_but_ignored(repo, report)
    repo.report_skipped(report)
    text = ", ".join(f"{n} {where}" for where, n in number.items())
    report.add(
        "INFO",
        f"Secret files by nature: {text}",
        "Names such as .env, id_rsa, *.pem, .npmrc or credentials.json whose contents hold a secret.",
        ", ".join(f"{len(paths)} {where} files" for where, paths in places.items()) + " looked through by name",
    )
    near = [f.path for f in report.findings if f.severity in ("HIGH", "MEDIUM")]
    report.recommendation = (
        f"Deal with {', '.join(near[:3])} before the next commit." if near else "Nothing is about to leak by file name."
    )


if __name__ == "__main__":
    sys.exit(run_tool(work))
