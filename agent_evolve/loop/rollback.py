"""Takes the workspace back to an earlier version without forgetting anything."""

from __future__ import annotations

from pathlib import Path

from ..errors import VersionError
from ..journal import Journal
from ..workspace.repository import Version, WorkspaceRepository
from .edits import adopt_edits


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
    if head is None:
        raise VersionError(f"{root} has no versions yet", fix=f"agent-evolve run {root}")
    head = adopt_edits(root, repository, journal, head, present)
    commit = repository.commit(tree, f"rollback to {ref}", [head.commit])
    repository.apply(tree, present)
    repository.advance(commit, head.commit)
    journal.append("rolled_back", sync=True, to=ref, commit=commit, previous=head.commit)
    repository.settle()
    return repository.version(commit)
