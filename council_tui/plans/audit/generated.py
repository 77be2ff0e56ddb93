"""Which paths are not somebody's own source: debris of tools, third-party copies, build results, media.

Also which files are tests and fixtures, where strange content is on purpose.
"""

from __future__ import annotations

import re

DEBRIS = {
    "node_modules": "Installed packages",
    "site-packages": "Installed packages",
    ".venv": "A virtual environment",
    "__pycache__": "Python bytecode",
    ".pytest_cache": "A tool's cache",
    ".mypy_cache": "A tool's cache",
    ".ruff_cache": "A tool's cache",
    ".tox": "A tool's environments",
    ".DS_Store": "A file manager's note",
    "Thumbs.db": "A file manager's note",
}
"""Path parts that no repository wants, and what to call them."""

THIRD_PARTY = {
    "vendor": "Vendored code",
    "third_party": "Vendored code",
    "thirdparty": "Vendored code",
    "bower_components": "Vendored code",
    "dist": "Build results, probably",
}

_BUILT = {
    "compiled programs": "exe dll so dylib a o obj class pyc pyd jar war ear wasm node",
    "archives": "zip tar gz tgz bz2 xz 7z rar whl egg gem nupkg deb rpm dmg iso apk",
    "media": "png jpg jpeg gif webp ico bmp tiff psd mp3 mp4 mov avi wav ogg webm pdf ttf otf woff woff2 eot",
    "databases and dumps": "sqlite sqlite3 db mdb parquet pkl pickle npy npz h5 onnx pt safetensors dump",
}
_KIND = {ending: kind for kind, endings in _BUILT.items() for ending in endings.split()}

_TEST = re.compile(
    r"(?i)(^|[/_.\-])(tests?|testing|testdata|specs?|fixtures?|mocks?|__tests__|examples?|samples?|demo|docs?"
    r"|snapshots?|__snapshots__|cassettes?|stubs?|fakes?|dummy|doctests?)([/_.\-]|$)|Tests?\.\w+$"
)
_LOCK = re.compile(
    r"(?i)(^|/)(package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|bun\.lockb?|poetry\.lock|uv\.lock"
    r"|pipfile\.lock|pdm\.lock|cargo\.lock|go\.sum|composer\.lock|gemfile\.lock|flake\.lock|mix\.lock)$"
)


def _part(path: str, names: dict[str, str]) -> tuple[str, str] | None:
    parts = path.split("/")
    for index, part in enumerate(parts):
        if part in names and (index + 1 < len(parts) or "." in part):
            return "/".join(parts[: index + 1]), part
    return None


def debris(path: str) -> tuple[str, str] | None:
    """The folder or file that should not be tracked, and its kind, or None."""
    return _part(path, DEBRIS)


def third_party(path: str) -> tuple[str, str] | None:
    """The folder of foreign or built code that the path lies in, and its kind, or None."""
    return _part(path, THIRD_PARTY)


def built(path: str) -> str | None:
    """The group of binary file types that the path's ending belongs to, or None."""
    return _KIND.get(path.rpartition(".")[2].lower()) if "." in path else None


def is_test(path: str) -> bool:
    """Whether odd content is likely on purpose: tests, fixtures, examples, documentation."""
    return bool(_TEST.search(path))


def is_lock(path: str) -> bool:
    """Whether a package manager wrote the file."""
    return bool(_LOCK.search(path))
