"""``manifest.yaml``: what the agent is, what may change, and how it is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from ..errors import ManifestError

FILE = "manifest.yaml"
STANDARD_LAYERS = ("prompts", "skills", "memory", "tools")
DEFAULT_EVOLVABLE = ("prompts", "skills", "memory")
CONTRACT_VERSION = "1.0"

ReloadStrategy = Literal["hot", "cold"]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What ``manifest.yaml`` says. Read it with :meth:`load`.

    Attributes:
        name: of the workspace; the directory's when the file gives none.
        version: the author's own version of this agent, as text.
        contract_version: of the workspace layout; ``"1.0"``.
        agent_type: a registered agent such as ``"chat"``; ``"reference"`` where only an entrypoint
            is given; ``""`` when the manifest names no agent.
        entrypoint: dotted ``module.Class`` of the user's own agent, relative to the workspace
            directory or installed.
        agent_options: the other keys of ``agent:``.
        evolvable_layers: directories that an engine may change.
        layers: all directories that are kept in versions, evolvable or not.
        reload_strategy: ``"hot"``: the agent reads its files again; ``"cold"``: it is built anew.
        benchmark: ``{"name": ..., **options}``, or ``None``.
        engine: ``{"name": ..., **options}``, or ``None``.
        model: ``provider:name``, or ``None``.
        locked: paths (``skills/x``, ``prompts/system.md``) and headings (``skills/x#Heading``) that
            no engine may change.
        allowed_powers: kinds of new power (``"url"``, ``"script"``; see ``powers.KINDS``) that a
            candidate may gain without a person's yes.
        config: settings of a run, named as in ``EvolveConfig``.
        extra: top-level keys that this version does not know; kept, never used.
        warnings: what is odd but not wrong, in sentences for a person.
        path: the file this was read from.
    """

    name: str
    version: str = "0.1.0"
    contract_version: str = CONTRACT_VERSION
    agent_type: str = ""
    entrypoint: str | None = None
    agent_options: Mapping[str, Any] = field(default_factory=dict)
    evolvable_layers: tuple[str, ...] = DEFAULT_EVOLVABLE
    layers: tuple[str, ...] = STANDARD_LAYERS
    reload_strategy: ReloadStrategy = "hot"
    benchmark: Mapping[str, Any] | None = None
    engine: Mapping[str, Any] | None = None
    model: str | None = None
    locked: tuple[str, ...] = ()
    allowed_powers: tuple[str, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    path: Path | None = None

    @classmethod
    def load(cls, root: str | Path) -> Self:
        """The manifest of the workspace at ``root``. Raises ``ManifestError``."""
        root = Path(root)
        path = root / FILE
        if not root.exists():
            raise ManifestError(f"no workspace at {root}", fix=f"agent-evolve init {root}")
        if not root.is_dir():
            raise ManifestError(f"{root} is a file; a workspace is a directory")
        if not path.is_file():
            raise ManifestError(f"{path}: no such file", fix=f"agent-evolve init {root}")
        return cls.from_yaml(path)

    @classmethod
    def from_yaml(cls, path: str | Path) -> Self:
        """Read one file. Raises ``ManifestError`` naming file, line and key."""
        from .manifest_reader import read

        path = Path(path)
        try:
            text = path.read_bytes().decode("utf-8-sig")
        except FileNotFoundError as error:
            raise ManifestError(f"{path}: no such file", fix="agent-evolve init") from error
        except OSError as error:
            raise ManifestError(f"{path}: can't be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            line = error.object[: error.start].count(b"\n") + 1
            raise ManifestError(
                f"{path}:{line}: not UTF-8 (byte 0x{error.object[error.start]:02x})",
                fix="save the file as UTF-8",
            ) from error
        return cls(path=path, **read(text, path))
