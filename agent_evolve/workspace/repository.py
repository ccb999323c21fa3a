"""The versions of a workspace in git: snapshots, names, and plain copies of them.

The objects are those that ``git`` itself would make, so every version can be read with it. Nothing
here runs ``git add`` or ``git commit``: no index, hook, identity or signing key of the user's is
involved.
"""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ..errors import VersionError, nearest
from . import checkout
from .checkout import Applied
from .git_command import git
from .location import Kind, Location, locate, prepare
from .objects import EMPTY_TREE, ObjectStore, object_id, read_tree
from .references import References
from .scanner import Scanner
from .tree import DIRECTORY, Entry, Tree

__all__ = ["Applied", "Tree", "Version", "WorkspaceRepository"]

_AUTHOR = "agent-evolve <agent-evolve@localhost>"
_NUMBERED = re.compile(r"(evo|pre-evo|candidate)-(0|[1-9][0-9]*)")
_ORDER = {"pre-evo": 0, "candidate": 1, "evo": 2}
_HEX = re.compile(r"[0-9a-f]{4,40}")
_TREES = 16
"""Trees that are kept in memory: those of the cycle at hand."""


@dataclass(frozen=True, slots=True)
class Version:
    """A commit. ``name`` is the one it was asked by, ``message`` that of the tag where it has one,
    ``time`` seconds since the epoch."""

    name: str
    commit: str
    tree: str
    message: str
    time: int


class WorkspaceRepository:
    """The versions of the workspace at ``root``. Open it with :meth:`open`.

    Snapshots hold the manifest and the layers, nothing else: no ``.env``, no key, no journal.
    Names are ``evo-N``, ``pre-evo-N`` and ``candidate-N``; a name is given once and never moved.
    """

    def __init__(self, root: Path, layers: Sequence[str], location: Location) -> None:
        self.root = root
        self._layers = tuple(layers)
        self._location = location
        self._objects = ObjectStore(location.git_dir)
        self._references = References(location.git_dir)
        self._scanners: dict[Path, Scanner] = {}
        self._trees: OrderedDict[str, Tree] = OrderedDict()
        self._versions: dict[str, Version] = {}

    @classmethod
    def open(cls, root: Path, layers: Sequence[str], *, create: bool = True) -> Self:
        """Open the versions of a workspace, making a repository where there is none.

        Without ``create``, raises ``VersionError`` when the workspace has no version yet.
        """
        root = Path(root).resolve()
        location = prepare(root) if create else locate(root)
        repository = cls(root, layers, location) if location else None
        if repository is None or (not create and repository.head is None):
            raise VersionError(f"{root} has no versions yet", fix=f"agent-evolve run {root}")
        return repository

    @property
    def kind(self) -> Kind:
        return self._location.kind

    @property
    def git_dir(self) -> Path:
        return self._location.git_dir

    # -- reading -----------------------------------------------------------------------------

    @property
    def head(self) -> Version | None:
        """The accepted version, ``None`` before the first snapshot."""
        commit = self._references.get(self._location.head_ref)
        return None if commit is None else self._version("head", commit)

    def has(self, name: str) -> bool:
        """Whether a version of this name exists."""
        return self._references.get(self._location.namespace + name) is not None

    def names(self) -> list[str]:
        """All numbered names, in the order in which a run gives them."""
        found = []
        for name in self._references.names(self._location.namespace):
            match = _NUMBERED.fullmatch(name)
            if match:
                found.append((int(match[2]), _ORDER[match[1]], name))
        return [name for _, _, name in sorted(found)]

    def name_of(self, commit: str) -> str | None:
        """The newest ``evo-N`` that leads to a commit."""
        evolved = [name for name in self.names() if name.startswith("evo-")]
        return next((n for n in reversed(evolved) if self.version(n).commit == commit), None)

    def version(self, ref: str) -> Version:
        """The version that ``evo-3``, ``head`` or a commit id (also abbreviated) stands for.

        Raises ``VersionError`` for what stands for none, naming those that exist.
        """
        if ref == "head":
            head = self.head
            if head is not None:
                return head
        elif ref and "/" not in ref and ".." not in ref:
            oid = self._references.get(self._location.namespace + ref)
            if oid is not None:
                return self._version(ref, oid)
        if _HEX.fullmatch(ref):
            oid = ref if len(ref) == 40 else self._objects.complete(ref)
            if oid is not None and self._objects.get(oid)[0] in ("commit", "tag"):
                return self._version(oid[:12], oid)
        names = [name for name in self.names() if not name.startswith("pre-")]
        near = nearest(ref, names)
        guess = f" Did you mean {near!r}?" if near else ""
        shown = ", ".join(names if len(names) <= 12 else [*names[:3], "...", *names[-6:]])
        raise VersionError(f"unknown version {ref!r}.{guess} Known: {shown or 'none'}, head")

    def load(self, ref: str) -> Tree:
        """The tree of a version."""
        tree_id = self.version(ref).tree
        known = self._trees.get(tree_id)
        if known is None:
            entries: dict[str, Entry] = {}
            self._read_into(entries, tree_id, "")
            known = self._remember(Tree(tree_id, entries))
        return known

    def read_blob(self, oid: str) -> bytes:
        """The content of a file by its id."""
        return self._objects.get(oid)[1]

    def read_file_at(self, ref: str, path: str) -> bytes:
        """A file's content at a version. Raises ``VersionError`` when it has none."""
        entries = self.load(ref).entries
        if path not in entries:
            near = nearest(path, entries)
            guess = f"; did you mean {near!r}?" if near else ""
            raise VersionError(f"{ref} has no file {path!r}{guess}")
        return self.read_blob(entries[path][1])

    def diff(self, a: str, b: str, paths: Sequence[str] = (), *, stat: bool = False) -> str:
        """What ``git diff`` prints between two versions, bytes that are not UTF-8 escaped."""
        options = ["--no-color", "--no-ext-diff", "--no-textconv", *(["--stat"] if stat else [])]
        commits = [self.version(a).commit, self.version(b).commit]
        done = git("diff", *options, *commits, "--", *paths, git_dir=self.git_dir)
        return done.stdout.decode("utf-8", "surrogateescape")

    def diff_command(self, a: str, b: str) -> str:
        """The command that shows the same when typed in the workspace."""
        beside = "--git-dir=evolution/versions.git " if self.kind == "beside" else ""
        return f"git {beside}diff {self._spelt(a)} {self._spelt(b)}"

    # -- snapshots ---------------------------------------------------------------------------

    def scan(self, directory: Path, *, store: bool = True) -> Tree:
        """The tree of a directory as it is now, its content stored in git but not yet named.

        Without ``store`` nothing is written, and the tree can't be committed. Raises
        ``WorkspaceError`` for a file that can't be kept.
        """
        if not store:
            return Scanner(directory, self._layers, object_id).scan()
        return self._remember(self._scanner(directory).scan())

    def commit(self, tree: Tree, message: str, parents: Sequence[str]) -> str:
        """Make a commit that no name leads to yet, and return its id."""
        stamp = f"{_AUTHOR} {int(time.time())} +0000"
        lines = [f"tree {tree.id}", *(f"parent {parent}" for parent in parents)]
        lines += [f"author {stamp}", f"committer {stamp}", "", _clean(message), ""]
        return self._objects.put("commit", _encode("\n".join(lines)))

    def tag(self, name: str, commit: str, message: str) -> None:
        """Give a commit a name, by an annotated tag, for ever.

        Giving it again is allowed and changes nothing. Raises ``VersionError`` when the name
        belongs to another commit.
        """
        full = self._location.namespace + name
        if self._references.get(full) is not None:
            if self.version(name).commit != commit:
                raise VersionError(
                    f"{name} exists already and is another version; names are never moved"
                )
            return
        stamp = f"{_AUTHOR} {int(time.time())} +0000"
        lines = [f"object {commit}", "type commit", f"tag {name}", f"tagger {stamp}"]
        oid = self._objects.put("tag", _encode("\n".join([*lines, "", _clean(message), ""])))
        self._objects.sync()
        self._references.set(full, oid, None)

    def advance(self, commit: str, expected: str | None) -> None:
        """Make a commit the head, if the head is ``expected``; raises ``VersionError`` if not."""
        self._objects.sync()
        self._references.set(self._location.head_ref, commit, expected)

    # -- files -------------------------------------------------------------------------------

    def materialise(self, tree: Tree | str, to: Path, *, untouched: bool = False) -> None:
        """Make a throwaway directory hold exactly a version: plain files, no git.

        ``untouched`` saves looking at it, where nothing was written there since the last ``scan``.
        """
        tree = self.load(tree) if isinstance(tree, str) else tree
        copy = checkout.Copy(to, self._layers, self._scanner(to))
        copy.become(tree, self.read_blob, untouched=untouched)

    def apply(self, tree: Tree, base: Tree, *, keep_edits: bool = False) -> Applied:
        """Bring the user's files from ``base`` to ``tree``; see :func:`checkout.apply`."""
        return checkout.apply(self.root, tree, base, self.read_blob, keep_edits=keep_edits)

    def settle(self) -> str:
        """Leave the repository as git likes it; a sentence when something stood in the way.

        In a repository of our own the index follows the head, so that ``git status`` tells of true
        changes only, and many loose objects are packed. The user's own repository is left alone.
        """
        if self.kind == "user" or self.head is None:
            return ""
        try:
            if self.kind == "own":
                self._follow_head()
            git("-c", "gc.autoDetach=false", "gc", "--auto", "-q", git_dir=self.git_dir)
        except VersionError as error:
            return f"git's index was not brought up to date: {error.message}"
        return ""

    def close(self) -> None:
        """Let go of open files."""
        self._objects.close()

    # -- inside ------------------------------------------------------------------------------

    def _follow_head(self) -> None:
        attached = (self.git_dir / "HEAD").read_text("utf-8").strip()
        if not attached.startswith("ref: "):
            git("symbolic-ref", "HEAD", self._location.head_ref, git_dir=self.git_dir)
        elif attached[5:] != self._location.head_ref:
            return  # a branch that the user made
        git(f"--work-tree={self.root}", "read-tree", "HEAD", at=self.root, git_dir=self.git_dir)
        git(f"--work-tree={self.root}", "update-index", "-q", "--refresh",
            at=self.root, git_dir=self.git_dir, check=False)  # fmt: skip

    def _spelt(self, ref: str) -> str:
        if ref == "head":
            return self.version(ref).commit[:12] if self.kind == "user" else "main"
        if self.kind == "user" and self.has(ref):
            return self._location.namespace + ref
        return ref

    def _scanner(self, directory: Path) -> Scanner:
        directory = Path(directory)
        if directory not in self._scanners:
            self._scanners[directory] = Scanner(directory, self._layers, self._objects.put)
        return self._scanners[directory]

    def _remember(self, tree: Tree) -> Tree:
        self._trees[tree.id] = tree
        self._trees.move_to_end(tree.id)
        if len(self._trees) > _TREES:
            self._trees.popitem(last=False)
        return tree

    def _read_into(self, entries: dict[str, Entry], tree_id: str, prefix: str) -> None:
        if tree_id == EMPTY_TREE:
            return
        for name, mode, oid in read_tree(self._objects.get(tree_id)[1]):
            if mode == DIRECTORY:
                self._read_into(entries, oid, f"{prefix}{name}/")
            else:
                entries[prefix + name] = (mode, oid)

    def _version(self, name: str, oid: str) -> Version:
        """The commit that an object is or leads to. Names never move, so each is read once."""
        key = f"{name}\0{oid}"
        known = self._versions.get(key)
        if known is None:
            if len(self._versions) > 4 * _TREES:
                self._versions.clear()
            known = self._versions[key] = self._read_version(name, oid)
        return known

    def _read_version(self, name: str, oid: str) -> Version:
        said, words = "", ""
        for _ in range(5):
            kind, data = self._objects.get(oid)
            head, _, words = data.decode("utf-8", "surrogateescape").partition("\n\n")
            fields = dict(line.split(" ", 1) for line in reversed(head.split("\n")) if " " in line)
            if kind == "commit":
                stamp = int(fields["committer"].rsplit(" ", 2)[1])
                return Version(name, oid, fields["tree"], (said or words).rstrip("\n"), stamp)
            if kind != "tag":
                break
            said, oid = words, fields["object"]
        raise VersionError(f"{name!r} is no version: it leads to a {kind}")


def _clean(message: str) -> str:
    """A message that git accepts: no NUL, not empty."""
    return message.replace("\0", "").strip() or "(no message)"


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "replace")
