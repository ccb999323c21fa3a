"""Listing thousands of skills quickly: a SKILL.md is read once for as long as it is unchanged.

Two caches, shared by the whole process: by file (path and what ``stat`` says), so that listing
again costs one ``stat`` a skill; and by content, so that a fresh copy of a workspace costs one read
a skill.
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import time
from pathlib import Path

from ..errors import UnsafePathError
from ..types import SkillMeta
from . import names
from .skill_file import FILE, SkillFile

log = logging.getLogger(__name__)

_Signature = tuple[int, int, int, int, int]
_by_file: dict[str, tuple[_Signature, SkillMeta]] = {}
_by_content: dict[bytes, str] = {}
"""Descriptions by the digest of a SKILL.md."""
_MAX_FILES, _MAX_CONTENTS = 50_000, 10_000
_RACY_NS = 100_000_000
"""A file changed less than this long ago may change again without a new time stamp."""


def listing(root: Path) -> list[SkillMeta]:
    """The skills below ``root/skills``, sorted by directory name; see ``Skills.list_skills``."""
    folder = root / "skills"
    try:
        names.inside(root, folder)
        entries = sorted((entry.name, entry) for entry in os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    found: list[SkillMeta] = []
    linked: set[str] = set()
    recent = time.time_ns() - _RACY_NS
    for name, entry in entries:
        if name[0] in "_.":
            continue
        path = f"{folder}{os.sep}{name}{os.sep}{FILE}"
        try:
            info = os.lstat(path)
            if stat.S_ISLNK(info.st_mode) or entry.is_symlink():
                if not _usable_link(root, path):
                    continue
                info = os.stat(path)  # noqa: PTH116
                linked.add(name)
        except (FileNotFoundError, NotADirectoryError):
            continue
        meta = _meta(name, path, info, recent) if stat.S_ISREG(info.st_mode) else None
        if meta is not None:
            found.append(meta)
    return _once(found, linked) if linked else found


def _meta(name: str, path: str, info: os.stat_result, recent: int) -> SkillMeta | None:
    signature = (info.st_mtime_ns, info.st_ctime_ns, info.st_size, info.st_ino, info.st_dev)
    cached = _by_file.get(path)
    if cached is not None and cached[0] == signature:
        return cached[1]
    if broken := names.unsafe(name):
        log.warning("skill left out: %r can't be used as a name: %s", path, broken)
        return None
    meta = SkillMeta(name, _description(path), Path(path))
    if max(info.st_mtime_ns, info.st_ctime_ns) < recent:
        if len(_by_file) >= _MAX_FILES:
            _by_file.clear()
        _by_file[path] = (signature, meta)
    return meta


def _description(path: str) -> str:
    with open(path, "rb") as file:  # noqa: PTH123 - this is the hot path
        data = file.read()
    digest = hashlib.blake2b(data).digest()
    known = _by_content.get(digest)
    if known is None:
        skill = SkillFile.parse(data)
        known = (skill.description or "").strip()
        for problem in skill.problems:
            log.warning("%s", problem.at(path))
        if len(_by_content) >= _MAX_CONTENTS:
            _by_content.clear()
        _by_content[digest] = known
    return known


def _usable_link(root: Path, path: str) -> bool:
    try:
        real = names.inside(root, Path(path))
    except UnsafePathError as error:
        log.warning("skill left out: %s", error)
        return False
    if not real.exists():
        log.warning("skill left out: %s is a link to %s, which does not exist", path, real)
        return False
    return True


def _once(found: list[SkillMeta], linked: set[str]) -> list[SkillMeta]:
    """Leave out links to a SKILL.md that is listed already: one file is one skill."""
    taken = {os.path.realpath(meta.path) for meta in found if meta.name not in linked}
    kept = []
    for meta in found:
        real = os.path.realpath(meta.path) if meta.name in linked else ""
        if real not in taken:
            kept.append(meta)
        if real:
            taken.add(real)
    return kept
