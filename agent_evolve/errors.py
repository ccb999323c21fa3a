"""Every error a person can meet. Each names what was wrong, where, and what to do next.

The hierarchy says what the loop does about an error:

* ``ConfigurationError`` and ``WorkspaceError`` stop the run: a person has to change something.
* ``BudgetExceeded`` stops the run before the call that would pass a cap.
* ``InfrastructureError`` makes one task ``invalid``: it says nothing about the agent.
* anything else raised by an agent is the agent's failure (score 0.0); raised by an engine it fails
  the cycle.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping


class AgentEvolveError(Exception):
    """Base of all errors of this package. ``exit_code`` is what the command line returns.

    ``fix`` is the next thing to do or type; it becomes part of the message.
    """

    exit_code = 2

    def __init__(self, message: str, *, fix: str = "") -> None:
        self.message = message
        self.fix = fix
        super().__init__(f"{message}\n  -> {fix}" if fix else message)


class ConfigurationError(AgentEvolveError):
    """Something a person wrote is wrong: a manifest, an option, a model name, a missing key."""


class UnknownNameError(ConfigurationError):
    """A name that nothing is registered under; the message lists what is and the nearest one."""

    def __init__(self, kind: str, name: str, known: Iterable[str], *, fix: str = "") -> None:
        known = sorted(known)
        near = nearest(name, known)
        guess = f" Did you mean {near!r}?" if near else ""
        listing = ", ".join(known) or "none"
        super().__init__(f"unknown {kind} {name!r}.{guess} Known: {listing}", fix=fix)


class ManifestError(ConfigurationError):
    """``manifest.yaml`` is missing, is not YAML, or says something that can't be."""


class BenchmarkError(AgentEvolveError):
    """The benchmark is wrong: no tasks, duplicate ids, a score that is not in [0, 1]."""


class InvalidScoreError(BenchmarkError):
    """A grader returned NaN, an infinite value, or one outside [0, 1]."""


class WorkspaceError(AgentEvolveError):
    """A workspace can't be used as it is: wrong path, unreadable file, unsafe name."""


class UnsafePathError(WorkspaceError):
    """A name or link that would leave its place: ``../x``, absolute, NUL, a reserved name."""


class WorkspaceBusyError(WorkspaceError):
    """Another run holds the workspace; the message names the holder."""


class WorkspaceChangedError(WorkspaceError):
    """A file was edited by somebody else while a run wanted to replace it. Nothing was replaced."""


class LayerViolation(WorkspaceError):
    """A candidate changed something outside the evolvable layers, or something locked."""


class VersionError(WorkspaceError):
    """A version that does not exist, or a repository that can't be used."""


class SkillError(WorkspaceError):
    """A SKILL.md that can't be read or edited as asked."""


class JournalError(AgentEvolveError):
    """The journal can't be read or written; nothing half-written is left behind."""


class InfrastructureError(AgentEvolveError):
    """The outside failed (outage, rate limit, refusal, harness time-out). Makes a task invalid.

    ``metrics`` are those of the task that failed, so that what it cost all the same is counted.
    """

    exit_code = 5

    def __init__(
        self, message: str, *, fix: str = "", metrics: Mapping[str, float] | None = None
    ) -> None:
        super().__init__(message, fix=fix)
        self.metrics = dict(metrics or {})


class ModelError(InfrastructureError):
    """A model call failed for a reason that is not the caller's: outage, rate limit, bad answer."""


class BudgetExceeded(AgentEvolveError):
    """A cap on money, tokens or calls would have been passed; the call was not made."""

    exit_code = 4


class SandboxUnavailable(ConfigurationError):
    """No sandbox can be had here and running without one was not asked for."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name closest to ``name``, or ``None`` when nothing is close."""
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return found[0] if found else None
