"""What the frontmatter of a Markdown file and the registry of tools grant.

Keys of Claude Code's skills and agents (https://code.claude.com/docs/en/skills) and of the Agent
Skills specification (https://agentskills.io/specification).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

from . import frontmatter, strict_yaml
from .power_text import Found, decode, lines

_TOOLS = frozenset({"allowedtools", "tools"})
_HOOKS = frozenset({"hooks", "mcpservers", "mcp"})
_RUNS_AS = frozenset({"agent", "shell", "permissionmode"})
_DISALLOWED = "disallowedtools"
_NO_MODEL = "disablemodelinvocation"
_DEPTH = 30
_OPERATORS = re.compile(r"[;&|$`<>\n]|\.\.")


def granted(data: bytes) -> Iterator[Found]:
    """Tools, hooks, and what the file is run as, wherever in the header the key stands; of a key
    that is given twice, both, because readers differ in which they take."""
    for line, key, value in _keys(data):
        if key in _TOOLS:
            for tool in _tools(value):
                yield Found(line, "allowed-tools", tool, tool)
        elif key in _HOOKS:
            for text in _leaves(value):
                yield Found(line, "hooks", f"{key} {text}", f"{key}: {text}")
        elif key in _RUNS_AS:
            for text in _leaves(value):
                yield Found(line, "runs-as", f"{key} {text}", f"{key}: {text}")


def restraints(data: bytes) -> Iterator[Found]:
    """What the header keeps the agent from: tools it may not use, and being picked by a model."""
    for line, key, value in _keys(data):
        if key == _DISALLOWED:
            for tool in _tools(value):
                yield Found(line, "restraint", f"not {tool}", f"disallowed-tools: {tool}")
        elif key == _NO_MODEL and [text.casefold() for text in _leaves(value)] == ["true"]:
            yield Found(line, "restraint", key, "disable-model-invocation: true")


def covers(old: str, new: str) -> bool:
    """Whether a tool pattern lets through all that another does: ``Bash`` covers
    ``Bash(git:*)``, which covers ``Bash(git log:*)`` but not ``Bash(gitk)``."""
    if old in (new, "*"):
        return True
    name, _, rule = old.partition("(")
    other, _, wanted = new.partition("(")
    if not rule:
        return name == other or (name.startswith("mcp__") and other.startswith(f"{name}__"))
    if name != other or not wanted or _OPERATORS.search(wanted):
        return False
    rule, wanted = rule.removesuffix(")"), wanted.removesuffix(")")
    if rule.endswith((":*", " *")):
        prefix = rule[:-2]
        return wanted == prefix or wanted.startswith((f"{prefix}:", f"{prefix} "))
    return rule.endswith("*") and wanted.startswith(rule.rstrip("*"))


def offered(data: bytes) -> Iterator[Found]:
    """The tools of a ``tools/registry.yaml``, compared by all but their description; one that
    can't be read is a single thing, compared by its text."""
    text = decode(data).removeprefix("\ufeff")
    try:
        node = strict_yaml.compose(text)
    except strict_yaml.YamlFault as fault:
        yield Found(fault.line, "tool", text, "a registry that is not valid YAML")
        return
    wrapped = {key.value: value for key, value in strict_yaml.pairs(node)}
    entries = wrapped.get("tools", node)
    for entry in entries.value if isinstance(entries, yaml.SequenceNode) else [entries]:
        if entry is None or strict_yaml.is_null(entry):
            continue
        told = {
            key.value: " ".join(_leaves(value))
            for key, value in strict_yaml.pairs(entry)
            if key.value != "description"
        }
        shown = told.get("name") or " ".join(_leaves(entry))
        yield Found(entry.start_mark.line + 1, "tool", repr(sorted(told.items())) or shown, shown)


def _keys(data: bytes) -> Iterator[tuple[int, str, yaml.Node | str]]:
    """Line, folded name and value of every key of the frontmatter, in any depth."""
    found = frontmatter.fences(data)
    if found is None:
        return
    text = decode(data[found.start : found.end])
    try:
        yield from _walk(strict_yaml.compose(text), 2)
    except strict_yaml.YamlFault:
        for chunk in frontmatter.chunks(text):
            part = text[chunk.start : chunk.end]
            line = text.count("\n", 0, chunk.start) + 2
            try:
                yield from _walk(strict_yaml.compose(part), line)
            except strict_yaml.YamlFault:
                yield line, _folded(chunk.key), text[chunk.colon + 1 : chunk.end]


def _walk(node: yaml.Node | None, first: int) -> Iterator[tuple[int, str, yaml.Node | str]]:
    todo, seen = [node], set()
    while todo:
        here = todo.pop()
        if here is None or id(here) in seen:
            continue
        seen.add(id(here))
        for key, value in strict_yaml.pairs(here):
            yield key.start_mark.line + first, _folded(key.value), value
            todo.append(value)
        if isinstance(here, yaml.SequenceNode):
            todo += here.value


def _folded(key: str) -> str:
    """``Allowed_Tools`` and ``allowed-tools`` are one key to a lenient reader."""
    return re.sub(r"[\W_]", "", " ".join(lines(key))).casefold()


def _tools(value: yaml.Node | str) -> list[str]:
    """Tool patterns, apart by commas or blanks that are not inside of brackets."""
    tools = []
    for text in _leaves(value):
        depth, word = 0, ""
        for char in f"{text} ":
            depth = max(0, depth + (char == "(") - (char == ")"))
            if depth == 0 and (char in ",[]" or char.isspace()):
                tools.append(word.strip("\"'"))
                word = ""
            else:
                word += char
        tools.append(word)
    return [tool for tool in dict.fromkeys(tools) if tool]


def _leaves(value: yaml.Node | str, depth: int = 0) -> list[str]:
    """Every scalar of a value, keys of mappings joined to what they hold."""
    if isinstance(value, str):
        return [" ".join(" ".join(lines(value)).split())]
    if depth > _DEPTH:
        return ["what is nested too deeply to be read"]
    if isinstance(value, yaml.MappingNode):
        pairs = ((_leaves(key, depth + 1), _leaves(held, depth + 1)) for key, held in value.value)
        return [f"{' '.join(key)} {text}" for key, held in pairs for text in held]
    if isinstance(value, yaml.SequenceNode):
        return [text for item in value.value for text in _leaves(item, depth + 1)]
    return [] if strict_yaml.is_null(value) else [" ".join(" ".join(lines(value.value)).split())]
