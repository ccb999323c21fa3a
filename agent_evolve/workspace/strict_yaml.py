"""YAML as people write it by hand: positions kept, duplicate keys refused, text left as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class YamlFault(Exception):
    """Why a text is not YAML. ``line`` and ``column`` count from 1. Whoever read the text turns it
    into an error that names the file."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.message, self.line, self.column = message, line, column


def compose(text: str) -> yaml.Node | None:
    """The node tree of one document, ``None`` for an empty one. Raises ``YamlFault``."""
    try:
        return yaml.compose(text, Loader=Loader)
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
        mark = twice.start_mark
        raise YamlFault(f"key {twice.value!r} is given twice", mark.line + 1, mark.column + 1)
    loader = Loader("")
    try:
        return loader.construct_document(node), node
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or node.start_mark
        raise YamlFault(error.problem or "bad value", mark.line + 1, mark.column + 1) from error
    except ValueError as error:  # such as the date 2026-13-45
        raise YamlFault(str(error), node.start_mark.line + 1, 1) from error
    finally:
        loader.dispose()


def duplicates(node: yaml.Node) -> Iterator[yaml.ScalarNode]:
    """Every scalar key that its mapping already has, in any depth."""
    todo, seen = [node], set()
    while todo:
        here = todo.pop()
        if id(here) in seen:  # an alias may even lead back to its own parent
            continue
        seen.add(id(here))
        if isinstance(here, yaml.SequenceNode):
            todo.extend(here.value)
        elif isinstance(here, yaml.MappingNode):
            keys: set[tuple[str, str]] = set()
            for key, value in here.value:
                todo.append(value)
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
