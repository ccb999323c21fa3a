"""What lies in a layer and yet never enters a version."""

from __future__ import annotations

from fnmatch import fnmatchcase

from .atomic import is_leftover

_REBUILT = frozenset(
    {
        ".git",
        "__pycache__",
        ".pytest_cache",
        ".mypy_cache",
        ".ruff_cache",
        ".ds_store",
        "thumbs.db",
    }
)
_SECRETS = (
    ".env",
    ".env.*",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".aws",
    ".ssh",
    "credentials.json",
)
_NO_SECRET = ("*.example", "*.sample", "*.template")


def is_rebuilt(name: str) -> bool:
    """Whether a file or directory of this name is a cache, another repository's inside, or the
    leftover of a killed writer: worth nothing, kept nowhere."""
    folded = name.casefold()
    return folded in _REBUILT or folded.endswith(".pyc") or is_leftover(name)


def is_secret(name: str) -> bool:
    """Whether a name is one under which keys and passwords are commonly kept."""
    folded = name.casefold()
    if any(fnmatchcase(folded, pattern) for pattern in _NO_SECRET):
        return False
    return any(fnmatchcase(folded, pattern) for pattern in _SECRETS)
