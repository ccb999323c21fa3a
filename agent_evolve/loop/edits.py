"""Takes what was edited by hand in the user's workspace into its versions."""

from __future__ import annotations

from pathlib import Path

from ..errors import UnsafePathError
from ..journal import Journal
from ..workspace.links import LINK, Leaves, follow
from ..workspace.repository import Tree, Version, WorkspaceRepository
from .progress import Progress


def snapshot(root: Path, repository: WorkspaceRepository, progress: Progress) -> Tree:
    """The user's files as they are. Raises ``UnsafePathError`` for a link that leaves the
    workspace: what it leads to would be in no version and in no copy that is measured."""
    tree = repository.scan(root)
    for path, (mode, _) in tree.entries.items():
        if mode != LINK:
            continue
        try:
            follow(path, tree.entries, repository.read_blob)
        except Leaves as leaves:
            raise UnsafePathError(
                f"{root / path} is a link that {leaves}",
                fix="replace the link by a copy of what it leads to",
            ) from leaves
    if tree.private:
        shown = ", ".join(tree.private[:5]) + (", ..." if len(tree.private) > 5 else "")
        progress.say(f"not in any version, as the name is that of a secret: {shown}")
    return tree


def adopt_edits(
    root: Path,
    repository: WorkspaceRepository,
    journal: Journal,
    head: Version,
    tree: Tree,
) -> Version:
    """Make the user's files, scanned as ``tree``, the head where they differ from ``head``."""
    if tree.id == head.tree:
        return head
    commit = repository.commit(tree, "edited by hand", [head.commit])
    repository.advance(commit, head.commit)
    journal.append("edited", sync=True, commit=commit, previous=head.commit)
    return repository.version(commit)
