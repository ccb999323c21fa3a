"""What a GGUF file says about itself, read from its header.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (versions 2 and 3, little-endian).
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import ConfigurationError

_SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_STRING, _ARRAY = 8, 9
_LONGEST_TEXT = 1 << 24
_LONGEST_LIST = 1 << 16


def read_facts(path: Path) -> dict[str, Any]:
    """The header's values before the vocabulary: architecture, name, context length.

    Raises ``ConfigurationError`` for a file that can't be read or is not GGUF.
    """
    try:
        with path.open("rb") as file:
            return _facts(file)
    except OSError as error:
        raise ConfigurationError(f"can't read the model {path}: {error.strerror}") from error
    except (struct.error, ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"{path} is not a whole GGUF model: {error}",
            fix="fetch it again, or name another .gguf file",
        ) from error


def _facts(file: BinaryIO) -> dict[str, Any]:
    if file.read(4) != b"GGUF":
        raise ValueError("it does not begin with 'GGUF'")
    version, _, count = _unpack(file, "IQQ")
    if version not in (2, 3):
        raise ValueError(f"its format version is {version}, known are 2 and 3")
    facts: dict[str, Any] = {}
    for _ in range(count):
        key = _text(file)
        (kind,) = _unpack(file, "I")
        if key.startswith("tokenizer.") and kind == _ARRAY:
            break
        facts[key] = _value(file, kind)
    return facts


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == _STRING:
        return _text(file)
    if kind == _ARRAY:
        inner, length = _unpack(file, "IQ")
        if length > _LONGEST_LIST:
            raise ValueError(f"it announces a list of {length} values")
        return [_value(file, inner) for _ in range(length)]
    if kind not in _SCALARS:
        raise ValueError(f"it has a value of the unknown type {kind}")
    return _unpack(file, _SCALARS[kind])[0]


def _unpack(file: BinaryIO, form: str) -> tuple[Any, ...]:
    form = "<" + form
    return struct.unpack(form, file.read(struct.calcsize(form)))


def _text(file: BinaryIO) -> str:
    (length,) = _unpack(file, "Q")
    if length > _LONGEST_TEXT:
        raise ValueError(f"it announces a text of {length} bytes")
    data = file.read(length)
    if len(data) < length:
        raise ValueError("it ends in the middle of its header")
    return data.decode("utf-8")
