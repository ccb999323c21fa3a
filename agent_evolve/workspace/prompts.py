"""``prompts/system.md`` and ``prompts/fragments/*``."""

from __future__ import annotations

from pathlib import Path

from . import names
from .files import WorkspaceFiles


class Prompts(WorkspaceFiles):
    """The text an agent always has before it."""

    def read_prompt(self) -> str:
        """``prompts/system.md``; ``""`` when there is none."""
        return self._read_text(self._place("prompts", "system.md")) or ""

    def write_prompt(self, text: str) -> None:
        self._write_text(self._place("prompts", "system.md"), text)

    def list_fragments(self) -> list[str]:
        """File names below ``prompts/fragments``, sorted, such as ``reasoning.md``."""
        return list(self._list_files("prompts", "fragments"))

    def read_fragment(self, name: str) -> str:
        """A fragment's text; ``reasoning`` finds ``reasoning.md``. Raises ``WorkspaceError`` for
        an unknown one, naming the nearest."""
        text = self._read_text(self._fragment(name))
        if text is None:
            raise self._unknown("fragment", name, self.list_fragments())
        return text

    def write_fragment(self, name: str, text: str) -> None:
        """Write or replace one; a name without an ending becomes ``<name>.md``."""
        path = self._fragment(name)
        names.check("fragment", name, new=not path.exists())
        self._write_text(path, text)

    def delete_fragment(self, name: str) -> None:
        self._delete(self._fragment(name), "fragment", name, self.list_fragments())

    def _fragment(self, name: str) -> Path:
        names.check("fragment", name)
        folder = self._place("prompts", "fragments")
        name = self._existing(name, folder)
        if "." not in name and not (folder / name).exists():
            name = self._existing(f"{name}.md", folder)
        return folder / name
