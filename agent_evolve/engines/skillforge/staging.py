"""A reply's operations applied to the files in memory: all of them, or none.

One refused operation refuses the reply, because the blocks of a reply belong together: a merged
skill whose source was not deleted, or the other way round, is worse than no change.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import nearest
from ...workspace import names
from ...workspace.links import LINK
from .changes import compare
from .mending import keep_form, mend_skill
from .operations import Decide, Delete, EditFile, Operation, Remember, WriteFile
from .passages import replace_passage
from .rules import Rules, problems
from .tree import DRAFTS, PROMPT, Entry, Tree, draft_of, skill_names


@dataclass(frozen=True, slots=True)
class Staged:
    """The files as they would be, or why they can't be."""

    after: Tree
    problems: tuple[str, ...] = ()


def stage(
    operations: Sequence[Operation], tree: Tree, rules: Rules, *, whole: frozenset[str]
) -> Staged:
    """Apply a reply to ``tree``. ``whole``: files that the model saw with nothing left out; only
    these may be replaced as a whole."""
    files = _Files(dict(tree), tree, rules.layers, whole)
    refused: list[str] = []
    for operation in operations:
        try:
            files.apply(operation)
        except _Refused as reason:
            refused.append(str(reason))
    found = tuple(dict.fromkeys(refused)) or problems(compare(tree, files.after), rules)
    return Staged(tree if found else files.after, found)


class _Refused(Exception):
    pass


@dataclass(slots=True)
class _Files:
    after: dict[str, Entry]
    before: Tree
    layers: tuple[str, ...]
    whole: frozenset[str]

    def apply(self, operation: Operation) -> None:
        match operation:
            case WriteFile(path, text):
                self._write(self._place(path, "FILE"), text)
            case EditFile(path, passages):
                self._edit(self._place(path, "EDIT"), passages)
            case Delete(path):
                self._delete(path)
            case Remember(category, entry):
                self._remember(category, dict(entry))
            case Decide(draft, accept):
                self._decide(draft, accept)

    def _write(self, path: str, text: str) -> None:
        old = self.before.get(path)
        if old and path in self.after and path not in self.whole:
            raise _Refused(
                f"FILE {path}: you were shown only a part of it, so replacing it would lose the "
                "rest; use EDIT"
            )
        self._put(path, text, old)

    def _put(self, path: str, text: str, old: Entry | None) -> None:
        if path.endswith("/SKILL.md"):
            text = mend_skill(path.split("/")[1], text, old.text() if old else None)
        data = keep_form(text, old.data if old else None)
        self.after[path] = Entry.of(data, like=old)

    def _edit(self, path: str, passages: Sequence[tuple[str, str]]) -> None:
        entry = self.after.get(path)
        if entry is None:
            if all(not old.strip() for old, _ in passages):
                self._put(path, "".join(new for _, new in passages), None)
                return
            raise _Refused(f"EDIT {path}: there is no such file{self._guess(path)}")
        text = entry.text()
        if text is None:
            raise _Refused(f"EDIT {path}: it is not text")
        for number, (old, new) in enumerate(passages, 1):
            result = replace_passage(text, old, new)
            if result.problem:
                of = f" (block {number})" if len(passages) > 1 else ""
                raise _Refused(f"EDIT {path}{of}: {result.problem}")
            text = result.text
        self.after[path] = Entry.of(text.encode("utf-8", "replace"), like=entry)

    def _delete(self, path: str) -> None:
        path = self._place(path, "DELETE")
        if path == PROMPT:
            raise _Refused(f"DELETE {path}: the system prompt can't be deleted; edit it")
        doomed = [path]
        if path.endswith("/SKILL.md"):
            skill = path.removesuffix("SKILL.md")
            doomed = [name for name in self.after if name.startswith(skill)]
        for name in doomed:
            if name not in self.after:
                raise _Refused(f"DELETE {path}: there is no such file{self._guess(path)}")
            del self.after[name]
        if not doomed:
            raise _Refused(f"DELETE {path}: there is no such skill{self._guess(path)}")

    def _remember(self, category: str, entry: dict[str, Any]) -> None:
        path = self._place(f"memory/{category}.jsonl", "MEMORY")
        old = self.after.get(path)
        text = old.text() if old else ""
        if text is None:
            raise _Refused(f"MEMORY: {path} is not text")
        if any(entry == known for known in _objects(text)):
            return
        end = "\r\n" if "\r\n" in text else "\n"
        gap = end if text and not text.endswith("\n") else ""
        line = json.dumps(entry, ensure_ascii=False)
        # Lone surrogates, which JSON can hold and UTF-8 can't, are written as escapes.
        if any("\ud800" <= char <= "\udfff" for char in line):
            line = json.dumps(entry)
        self.after[path] = Entry.of((text + gap + line + end).encode("utf-8"))

    def _decide(self, draft: str, accept: bool) -> None:
        word = "ACCEPT" if accept else "REJECT"
        path = f"{DRAFTS}{draft}.md"
        entry = self.after.get(path)
        if entry is None:
            known = ", ".join(n for p in self.after if (n := draft_of(p))) or "none"
            raise _Refused(f"{word} {draft[:80]}: there is no such draft; drafts: {known}")
        self._place(path, word)
        if accept:
            target = self._place(f"skills/{draft}", word)
            if draft in skill_names(self.after):
                raise _Refused(
                    f"ACCEPT {draft}: a skill of this name exists; merge with EDIT, then REJECT"
                )
            self._put(target, entry.text() or "", None)
        del self.after[path]

    def _place(self, path: str, word: str) -> str:
        """The checked path that is meant: relative, and inside an evolvable layer."""
        parts = path.rstrip("/").split("/")
        for part in parts:
            broken = names.unportable(part, 128)
            if broken:
                raise _Refused(f"{word} {path[:120]!r}: {part[:60]!r} can't be used: {broken}")
        if parts[0] not in self.layers or len(parts) < 2:
            places = ", ".join(f"{layer}/" for layer in self.layers)
            raise _Refused(
                f"{word} {path[:120]}: the path must start with one of {places}{self._guess(path)}"
            )
        if parts[0] == "skills" and len(parts) == 2:
            parts = [parts[0], parts[1].removesuffix(".md"), "SKILL.md"]
        path = "/".join(parts)
        for end in range(1, len(parts) + 1):
            entry = self.after.get("/".join(parts[:end]))
            if entry and not (entry.is_file and end == len(parts)):
                kind = "file" if entry.is_file else "link" if entry.mode == LINK else "pipe"
                raise _Refused(f"{word} {path}: a {kind} is in the way")
        return path

    def _guess(self, path: str) -> str:
        ends = [known for known in self.after if known.endswith(f"/{path}")]
        near = ends[0] if ends else nearest(path, self.after)
        return f"; did you mean {near}?" if near else ""


def _objects(text: str) -> list[Any]:
    found = []
    for line in re.split(r"\r?\n", text):
        try:
            found.append(json.loads(line))
        except (ValueError, RecursionError):
            continue
    return found
