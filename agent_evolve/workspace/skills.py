"""``skills/<name>/SKILL.md``, and the drafts in ``skills/_drafts`` that agents leave."""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path

from ..errors import SkillError, UnsafePathError, WorkspaceError
from ..types import SkillMeta
from . import line_merge, names, skill_index
from .files import WorkspaceFiles, unknown, unreadable
from .skill_file import FILE, SkillFile

log = logging.getLogger(__name__)

DRAFTS = "_drafts"


class Skills(WorkspaceFiles):
    """Skills are known by their directory, whatever the ``name`` in their frontmatter."""

    def list_skills(self) -> list[SkillMeta]:
        """All skills, sorted by name. ``path`` is the SKILL.md.

        Directories starting with ``_`` or ``.`` and those without a SKILL.md are not skills; a
        SKILL.md further down belongs to the skill around it. One without a readable description is
        listed with ``""``. One that is a link out of the workspace is left out, and logged. Two
        that lead to one file are listed once.
        """
        try:
            return skill_index.listing(self.root)
        except OSError as error:
            raise unreadable(error) from error

    def read_skill(self, name: str) -> str:
        """The whole SKILL.md, frontmatter included; bytes that are not UTF-8 become surrogate
        escapes.

        Raises ``SkillError`` for an unknown name, naming the nearest, and ``UnsafePathError`` for
        an unsafe one.
        """
        return line_merge.decode(self.read_skill_file(name).data)

    def read_skill_file(self, name: str) -> SkillFile:
        """The same, parsed, for edits that keep every other byte."""
        data = self._read(self._skill(name) / FILE)
        if data is None:
            raise SkillError(unknown("skill", name, [skill.name for skill in self.list_skills()]))
        return SkillFile.parse(data)

    def write_skill(self, name: str, text: str | SkillFile) -> None:
        """Make a skill, or give an existing one another text.

        The text is the whole SKILL.md. In an existing file every line that stays the same keeps
        its bytes (line ends, byte order mark, final newline). A ``SkillFile`` is written as it is.
        Other files of the skill are left alone. Raises ``SkillError`` for a text that is no skill,
        such as a model's talk about one: nothing is written then.
        """
        folder = self._skill(name)
        path = folder / FILE
        old = self._read(path)
        if old is None:
            self._check_new(name)
        if isinstance(text, SkillFile):
            new = text
        else:
            new = SkillFile.parse(line_merge.merge(old or b"", text))
        if new.frontmatter is None and not (old and SkillFile.parse(old).frontmatter is None):
            raise SkillError(
                f"this text is not a skill ({new.problems[0].message}); skills/{name} is unchanged",
                fix="start it with '---', 'name:', 'description:', '---', then the instructions",
            )
        if new.data != old:
            self._write(path, new.data)

    def delete_skill(self, name: str) -> None:
        """Remove a skill's directory with all its files; of a link, only the link."""
        folder = self._skill(name, follow=False)
        names.inside(self.root, folder.parent)
        if not os.path.lexists(folder):
            raise SkillError(unknown("skill", name, [skill.name for skill in self.list_skills()]))
        try:
            if folder.is_symlink() or not folder.is_dir():
                folder.unlink()
            else:
                shutil.rmtree(folder)
        except OSError as error:
            raise WorkspaceError(f"{folder} can't be deleted: {error.strerror}") from error

    def list_drafts(self) -> list[str]:
        """Names of the drafts, sorted, without their ``.md``."""
        files = self._list_files("skills", DRAFTS)
        return [name.removesuffix(".md") for name in files if name.endswith(".md")]

    def read_draft(self, name: str) -> str:
        text = self._read_text(self._draft(name))
        if text is None:
            raise SkillError(unknown("draft", name, self.list_drafts()))
        return text

    def write_draft(self, name: str, text: str) -> None:
        """Write ``skills/_drafts/<name>.md``; any text will do, it is only a proposal."""
        path = self._draft(name)
        if not path.exists():
            names.check("draft", path.name.removesuffix(".md"), new=True)
        self._write_text(path, text)

    def delete_draft(self, name: str) -> None:
        self._delete(self._draft(name), "draft", name, self.list_drafts())

    def clear_drafts(self) -> None:
        """Delete every draft; other files in the directory stay."""
        for name in self.list_drafts():
            self.delete_draft(name)

    def _skill(self, name: str, *, follow: bool = True) -> Path:
        names.check("skill", name)
        if name.startswith(("_", ".")):
            raise UnsafePathError(
                f"skill name {name!r} can't be used: names starting with {name[0]!r} are kept for "
                "drafts and private files"
            )
        folder = self._place("skills")
        path = folder / self._existing(name, folder)
        if follow:
            names.inside(self.root, path)
        return path

    def _check_new(self, name: str) -> None:
        names.check("skill", name, new=True)
        folder = self._place("skills")
        if not folder.is_dir():
            return
        for other in os.listdir(folder):
            if other != name and other.casefold() == name.casefold():
                raise UnsafePathError(
                    f"skill name {name!r} differs from {other!r} only in case; on some systems "
                    "they are one directory"
                )

    def _draft(self, name: str) -> Path:
        name = names.check("draft", name).removesuffix(".md")
        names.check("draft", name)
        folder = self._place("skills", DRAFTS)
        return folder / self._existing(f"{name}.md", folder)
