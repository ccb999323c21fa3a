"""Calls of the ``git`` program, for what is asked once a run or by a person."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from ..errors import VersionError

_REDIRECTS = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_CEILING_DIRECTORIES",
    "GIT_EXTERNAL_DIFF",
)
"""Variables that lead git to another repository; set, for instance, while a hook runs."""


def git(
    *arguments: str, at: Path | None = None, git_dir: Path | None = None, check: bool = True
) -> subprocess.CompletedProcess[bytes]:
    """Run ``git`` in a directory or on a git directory, whatever the environment says.

    No hook runs, no pager, no prompt, no lock that is not needed. With ``check``, raises
    ``VersionError`` holding git's own words when it fails; always when there is no ``git``.
    """
    environment = {key: value for key, value in os.environ.items() if key not in _REDIRECTS}
    environment |= {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
    command = ["git", "--no-pager", "-c", "safe.directory=*", "-c", f"core.hooksPath={os.devnull}"]
    if git_dir is not None:
        command.append(f"--git-dir={git_dir}")
    try:
        done = subprocess.run(
            [*command, *arguments],
            cwd=at,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            start_new_session=True,  # the terminal's Ctrl-C is for the run, which lets git finish
        )
    except FileNotFoundError as error:
        raise VersionError(
            "the program 'git' was not found", fix="install it, e.g. apt-get install git"
        ) from error
    if check and done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise VersionError(f"git {' '.join(arguments[:3])} failed: {said}")
    return done
