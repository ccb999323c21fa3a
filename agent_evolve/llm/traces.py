"""Every prompt and raw answer, kept whole in a file named by its call id."""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .types import Completion, Request

_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$", re.IGNORECASE)


def new_call_id() -> str:
    """A name that is unique, sorts by time, and is safe in a file name on any platform."""
    return f"{datetime.now(tz=UTC):%Y%m%d-%H%M%S-%f}-{secrets.token_hex(3)}"


def scrub(text: str, environ: Mapping[str, str] | None = None) -> str:
    """``text`` with the values of secret environment variables replaced by their names.

    Keys never enter a request; this catches the one that a server echoes in an error or that a
    tool printed. Values under 12 characters are left, since they would match by chance.
    """
    for name, value in (os.environ if environ is None else environ).items():
        if len(value) >= 12 and _SECRET_NAME.search(name) and value in text:
            text = text.replace(value, f"<{name}>")
    return text


def write_trace(
    folder: Path, record: Mapping[str, Any], request: Request, completion: Completion | None
) -> Path:
    """Write ``<folder>/<call_id>.json`` in one step; returns its path.

    ``record`` is the ledger's account of the call; the request and the answer are added to it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    whole = {
        **record,
        "request": _without_raw(request),
        "completion": completion,
    }
    text = scrub(json.dumps(whole, ensure_ascii=False, indent=1, default=_plain_value))
    path = folder / f"{record['call_id']}.json"
    partial = path.with_suffix(".partial")
    partial.write_text(text + "\n", encoding="utf-8", errors="backslashreplace")
    partial.replace(path)
    return path


def _without_raw(request: Request) -> Request:
    """The request without earlier raw answers: each is whole in its own call's trace already."""
    return replace(request, messages=[replace(turn, raw=None) for turn in request.messages])


def _plain_value(value: Any) -> Any:
    """For what JSON has no word for: our values, mappings, bytes of a redacted thinking block."""
    if is_dataclass(value):
        return {part.name: getattr(value, part.name) for part in fields(value)}
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return dict(value) if isinstance(value, Mapping) else str(value)
