"""Changing keys of a ``manifest.yaml`` in place: other keys and all comments keep their bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from . import strict_yaml
from .line_merge import dominant_eol


def update(data: bytes, before: Mapping[str, Any], after: Mapping[str, Any]) -> bytes:
    """``data``, a manifest that reads as ``before``, changed so that it reads as ``after``.

    A changed key has its lines replaced, a new one is added at the end, a dropped one is removed.
    """
    text = data.decode("utf-8-sig")
    bom = data[: len(data) - len(text.encode())]
    eol = dominant_eol(data).decode()
    node = strict_yaml.compose(text)
    spans = _spans(text, node)
    if not spans or (isinstance(node, yaml.MappingNode) and node.flow_style):
        return bom + strict_yaml.dump(dict(after)).replace("\n", eol).encode()
    for key in reversed(list(spans)):
        if key in before and before[key] != after.get(key):
            start, end = spans[key]
            new = strict_yaml.dump({key: after[key]}).replace("\n", eol) if key in after else ""
            text = text[:start] + new + text[end:]
    added = {key: value for key, value in after.items() if key not in spans}
    added = {key: value for key, value in added.items() if before.get(key) != value}
    if added:
        text += "" if text.endswith("\n") else eol
        text += strict_yaml.dump(added).replace("\n", eol)
    return bom + text.encode()


def _spans(text: str, node: yaml.Node | None) -> dict[str, tuple[int, int]]:
    """Start and end, in characters, of the whole lines of each top-level key. Comments and blank
    lines between two keys belong to the one below."""
    keys = [key for key, _ in strict_yaml.pairs(node)]
    starts = [text.rfind("\n", 0, key.start_mark.index) + 1 for key in keys]
    spans = {}
    for key, start, after in zip(keys, starts, [*starts[1:], len(text)], strict=True):
        lines = text[start:after].splitlines(keepends=True)
        while len(lines) > 1 and (not lines[-1].strip() or lines[-1].startswith("#")):
            after -= len(lines.pop())
        spans[key.value] = (start, after)
    return spans
