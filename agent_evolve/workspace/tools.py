"""``tools/*`` and ``tools/registry.yaml``, which says what each is for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..errors import WorkspaceError
from . import line_merge, names, strict_yaml
from .files import WorkspaceFiles

REGISTRY = "registry.yaml"


class Tools(WorkspaceFiles):
    """Programs that an agent may run, and their registry."""

    def read_tool_registry(self) -> list[dict[str, Any]]:
        """The entries of ``tools/registry.yaml`` (a list, or a mapping with a list ``tools:``);
        ``[]`` when there is none. Raises ``WorkspaceError`` naming the line of what is wrong."""
        return self._registry()[0]

    def write_tool_registry(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """Replace the registry; a file that says the same already is left as it is."""
        wanted = [dict(entry) for entry in entries]
        path = self._place("tools", REGISTRY)
        current, wrapped = self._registry()
        if wanted == current and path.exists():
            return
        text = strict_yaml.dump(wanted if wrapped is None else {**wrapped, "tools": wanted})
        self._write_text(path, text)

    def list_tools(self) -> list[str]:
        """File names of the tools, sorted; the registry is not one of them."""
        return [name for name in self._list_files("tools") if name != REGISTRY]

    def read_tool(self, name: str) -> str:
        text = self._read_text(self._tool(name))
        if text is None:
            raise self._unknown("tool", name, self.list_tools())
        return text

    def write_tool(self, name: str, code: str) -> None:
        """Write or replace ``tools/<name>``. A new one that starts with ``#!`` is made executable;
        an existing one keeps its mode."""
        path = self._tool(name)
        if not path.exists():
            names.check("tool", path.name, new=True)
        self._write_text(path, code, mode=0o755 if code.startswith("#!") else None)

    def delete_tool(self, name: str) -> None:
        self._delete(self._tool(name), "tool", name, self.list_tools())

    def _tool(self, name: str) -> Path:
        names.check("tool", name)
        if name.casefold() == REGISTRY:
            raise WorkspaceError(
                f"tools/{REGISTRY} is the registry, not a tool", fix="use write_tool_registry"
            )
        folder = self._place("tools")
        return folder / self._existing(name, folder)

    def _registry(self) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
        """The entries, and the mapping around them where there is one."""
        path = self._place("tools", REGISTRY)
        data = self._read(path)
        if data is None:
            return [], None
        try:
            value, _ = strict_yaml.load(line_merge.decode(data).removeprefix("\ufeff"))
        except strict_yaml.YamlFault as fault:
            raise WorkspaceError(
                f"{path}:{fault.line}:{fault.column}: not valid YAML: {fault.message}",
                fix=f"correct line {fault.line}",
            ) from fault
        wrapped = value if isinstance(value, dict) and "tools" in value else None
        entries = value if wrapped is None else wrapped["tools"]
        entries = [] if entries is None else entries
        if not isinstance(entries, list) or not all(isinstance(item, dict) for item in entries):
            raise WorkspaceError(
                f"{path}: must be a list of mappings",
                fix="- name: my_tool\n     file: my_tool.py\n     description: what it does",
            )
        return entries, wrapped
