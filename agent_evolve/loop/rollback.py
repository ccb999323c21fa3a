"""Takes the workspace back to an earlier version without forgetting anything."""

from __future__ import annotations

from pathlib import Path

from ..journal import Journal
from ..workspace.repository import Version, WorkspaceRepository


def rollback(root: Path, repository: WorkspaceRepository, journal: Journal, ref: str) -> Version:
    """Make the files of ``ref`` the head again, as a new version on top of the present one.

    Edits made by hand are committed first, so they can be got back. No tag moves, the journal and
    all observations stay, and numbering goes on. The caller holds the run lock.

    Raises ``VersionError`` for an unknown version.
    """
    target = repository.version(ref)
    tree = repository.load(target.commit)
    present = repository.scan(root)
    head = repository.head
    parents = [head.commit] if head else []
    if head is not None and present.id != head.tree:
        edited = repository.commit(present, "edited by hand", parents)
        repository.advance(edited, head.commit)
        journal.append("edited", commit=edited, previous=head.commit)
        parents, head = [edited], repository.head
    commit = repository.commit(tree, f"rollback to {ref}", parents)
    repository.apply(tree, present)
    repository.advance(commit, head.commit if head else None)
    journal.append("rolled_back", sync=True, to=ref, commit=commit, previous=parents)
    repository.settle()
    return repository.version(commit)
