"""YAML as people write it by hand: positions kept, duplicate keys refused, text left as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


MAX_NODES = 100_000
"""Values of one document, each alias counted as all that it stands for."""


class YamlFault(Exception):
    """Why a text is not YAML. ``line`` and ``column`` count from 1. Whoever read the text turns it
    into an error that names the file."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.message, self.line, self.column = message, line, column


def compose(text: str) -> yaml.Node | None:
    """The node tree of one document, ``None`` for an empty one. Raises ``YamlFault``, also where
    aliases lead in a circle or stand for more than ``MAX_NODES`` values."""
    try:
        node: yaml.Node | None = yaml.compose(text, Loader=Loader)
        if node is not None and "*" in text:
            _measure(node, {})
        return node
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or "not YAML"
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise YamlFault(problem, line, column) from error
    except yaml.reader.ReaderError as error:
        line, column = _place(text, _characters(text, error.position))
        raise YamlFault(
            f"character {_char(error.character)} is not allowed", line, column
        ) from error
    except UnicodeEncodeError as error:
        line, column = _place(text, error.start)
        raise YamlFault("not UTF-8", line, column) from error
    except RecursionError as error:
        raise YamlFault("nested too deeply", 1, 1) from error


def load(text: str) -> tuple[Any, yaml.Node | None]:
    """The value of a document and its node tree. Raises ``YamlFault``, also for duplicate keys."""
    node = compose(text)
    if node is None:
        return None, None
    for twice in duplicates(node):
        raise _fault(twice, f"key {twice.value!r} is given twice")
    try:
        return _construct(node), node
    except RecursionError as error:
        raise YamlFault("nested too deeply", 1, 1) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or node.start_mark
        raise YamlFault(error.problem or "bad value", mark.line + 1, mark.column + 1) from error
    except _UNFIT as error:
        raise _unfit(node) from error


_UNFIT = (ValueError, KeyError, AttributeError)
"""What the constructors raise, without a place, for ``2026-13-45`` and ``!!bool x``."""


def _construct(node: yaml.Node) -> Any:
    loader = Loader("")
    try:
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _unfit(node: yaml.Node) -> YamlFault:
    """The first scalar that is not a value of its type."""
    todo = [node]
    while todo:
        here = todo.pop()
        todo += _parts(here)[::-1]
        if isinstance(here, yaml.ScalarNode):
            try:
                _construct(here)
            except _UNFIT:
                return _fault(here, f"{here.value!r} is not a {here.tag.rpartition(':')[2]}")
    return _fault(node, "a value does not fit its type")


def duplicates(node: yaml.Node) -> Iterator[yaml.ScalarNode]:
    """Every scalar key that its mapping already has, in any depth."""
    todo, seen = [node], set()
    while todo:
        here = todo.pop()
        if id(here) in seen:  # through an alias
            continue
        seen.add(id(here))
        todo += _parts(here)
        if isinstance(here, yaml.MappingNode):
            keys: set[tuple[str, str]] = set()
            for key, _ in here.value:
                if isinstance(key, yaml.ScalarNode):
                    if (key.tag, key.value) in keys:
                        yield key
                    keys.add((key.tag, key.value))


def pairs(node: yaml.Node | None) -> list[tuple[yaml.ScalarNode, yaml.Node]]:
    """The entries of a mapping node whose keys are scalars."""
    if not isinstance(node, yaml.MappingNode):
        return []
    return [(key, value) for key, value in node.value if isinstance(key, yaml.ScalarNode)]


def kind(node: yaml.Node | None) -> str:
    """What a node is, in a person's words."""
    if node is None:
        return "empty"
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    names = {"null": "empty", "bool": "true or false", "int": "a number", "float": "a number"}
    return names.get(node.tag.rpartition(":")[2], "text")


def is_null(node: yaml.Node | None) -> bool:
    return node is None or node.tag == "tag:yaml.org,2002:null"


def dump(value: Any) -> str:
    """YAML of a plain value: keys in their order, Unicode as it is, no line folding."""
    text: str = yaml.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=2**20)
    return text


def _measure(node: yaml.Node, sizes: dict[int, int]) -> int:
    """How many values a node holds once every alias in it is written out."""
    if isinstance(node, yaml.ScalarNode):
        return 1
    if id(node) not in sizes:
        sizes[id(node)] = 0  # being measured: no finished node is that small
        size = 1 + sum(_measure(part, sizes) for part in _parts(node))
        if size > MAX_NODES:
            raise _fault(node, f"aliases make this more than {MAX_NODES:,} values")
        sizes[id(node)] = size
    elif sizes[id(node)] == 0:
        raise _fault(node, "an alias leads back to what it is part of")
    return sizes[id(node)]


def _parts(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _fault(node: yaml.Node, message: str) -> YamlFault:
    return YamlFault(message, node.start_mark.line + 1, node.start_mark.column + 1)


def _characters(text: str, position: int) -> int:
    """libyaml gives positions in bytes, the pure loader in characters."""
    if Loader is yaml.SafeLoader:
        return position
    return len(text.encode()[:position].decode(errors="replace"))


def _place(text: str, index: int) -> tuple[int, int]:
    before = text[: max(0, index)]
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


def _char(character: Any) -> str:
    return f"U+{character:04X}" if isinstance(character, int) else repr(character)
