"""EvolveConfig: the settings of a run, from YAML, environment and arguments."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .errors import ConfigurationError, nearest

ENV_PREFIX = "AGENT_EVOLVE_"


class EvolveConfig(BaseModel):
    """Settings of a run. Where a setting is given twice, the later of these wins: the
    manifest's ``config:``, a YAML file, ``AGENT_EVOLVE_<NAME>`` in the environment, an argument.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    batch_size: int = Field(10, ge=1)
    """Train tasks solved in one cycle; the batches rotate through all of them."""
    max_cycles: int = Field(20, ge=1)
    """Cycles of a run that does not say how many."""
    holdout_ratio: float = Field(0.2, ge=0.0, lt=1.0)
    """Share of the train tasks kept for the gate when the benchmark has no holdout split of its
    own. 0 runs without a gate."""
    holdout_limit: int | None = Field(None, ge=1)
    """At most this many holdout tasks are used, the first by hashed id. ``None``: all."""
    min_valid: float = Field(0.6, ge=0.0, le=1.0)
    """Share of tasks that must end valid for a measurement to count."""

    gate: Literal["paired", "no_regression", "none"] = "paired"
    """How a candidate is judged. ``paired``: its gain over the head on the same holdout tasks must
    be beyond chance. ``no_regression``: its mean must not be lower, in one run of each task; enough
    where agent and grader always give the same score. ``none``: everything is kept."""
    repeats: int = Field(3, ge=1, le=100)
    """Runs of each holdout task that ``paired`` compares; 1 where answers never vary."""
    alpha: float = Field(0.05, gt=0.0, lt=0.5)
    """Chance that ``paired`` accepts a change without any gain, over all candidates between two
    accepted ones."""
    min_effect: float = Field(0.02, ge=0.0, le=1.0)
    """The smallest mean gain for which ``paired`` accepts a change, in score units."""
    max_broken: int | None = Field(None, ge=0)
    """More holdout tasks than this that a candidate breaks, confirmed in fresh runs, refuse it
    whatever its mean. ``None``: the mean decides."""

    review: bool = False
    """Stop at every candidate that would be accepted until a person has approved or rejected it.
    One that gains powers (runs, fetches, hooks, widens ``allowed-tools``, adds a script or a URL)
    waits in any case."""

    evolve_prompts: bool | None = None
    evolve_skills: bool | None = None
    evolve_memory: bool | None = None
    evolve_tools: bool | None = None
    """``False`` takes the layer out of the manifest's ``evolvable_layers`` for this run; ``None``
    leaves it as the manifest says."""

    evolver_model: str = "us.anthropic.claude-opus-4-6-v1"
    """The engine's model. When not set, a model named by --model or the manifest is used, and this
    default only where neither names one."""
    evolver_max_tokens: int = Field(16384, ge=1)
    """Tokens of one answer of the engine's model."""

    egl_threshold: float = Field(0.05, ge=0.0)
    egl_window: int = Field(3, ge=2)
    """A run has reached a plateau when max - min over the last ``egl_window`` scores is below
    ``egl_threshold``."""
    max_failed_cycles: int = Field(3, ge=1)
    """This many failed or unmeasured cycles in a row stop the run."""

    solve_workers: int = Field(1, ge=1, le=1024)
    """Tasks solved at once."""
    task_timeout: float = Field(600.0, gt=0.0)
    """Seconds a task may take. One that goes on for 10 s more ends as invalid, and the thread of an
    agent that can't be stopped is left behind."""
    seed: int = 0
    """Seed of the batches and of the split."""

    max_usd: float | None = Field(None, ge=0.0)
    max_tokens: int | None = Field(None, ge=0)
    max_calls: int | None = Field(None, ge=0)
    max_minutes: float | None = Field(None, ge=0.0)
    """Caps on what this run may spend, all roles together; a call that would pass one is not
    made. ``max_minutes`` is wall time, summed over the processes of an interrupted run."""
    unsafe_no_sandbox: bool = False
    """Run model-written commands without a sandbox where none can be had."""

    @classmethod
    def of(cls, where: str, **values: Any) -> Self:
        """Like the constructor, but with errors that name the place and the nearest key."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise ConfigurationError(_explain(error, where, cls)) from error

    @classmethod
    def from_yaml(cls, path: str | Path) -> Self:
        """Read a YAML mapping of settings."""
        return cls.of(str(path), **read_settings(Path(path)))

    @classmethod
    def combine(
        cls,
        *,
        manifest: Mapping[str, Any] | None = None,
        file: str | Path | None = None,
        environ: Mapping[str, str] | None = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> Self:
        """Merge all sources in order of precedence; arguments that are ``None`` are not given."""
        merged: dict[str, Any] = {}
        cls.of("manifest.yaml, key config", **dict(manifest or {}))
        merged.update(manifest or {})
        if file is not None:
            merged.update(read_settings(Path(file)))
        merged.update(_from_environment(cls, os.environ if environ is None else environ))
        merged.update({k: v for k, v in (arguments or {}).items() if v is not None})
        return cls.of("the settings of this run", **merged)

    def evolvable(self, layers: tuple[str, ...]) -> tuple[str, ...]:
        """The manifest's evolvable layers less those that this config switches off.

        Raises ``ConfigurationError`` when a layer is switched on that the manifest does not list,
        or when none is left.
        """
        switches = {
            "prompts": self.evolve_prompts,
            "skills": self.evolve_skills,
            "memory": self.evolve_memory,
            "tools": self.evolve_tools,
        }
        for layer, switch in switches.items():
            if switch and layer not in layers:
                raise ConfigurationError(
                    f"evolve_{layer} is set but manifest.yaml does not list {layer!r}",
                    fix=f"add {layer!r} to evolvable_layers in manifest.yaml",
                )
        left = tuple(layer for layer in layers if switches.get(layer) is not False)
        if not left:
            raise ConfigurationError(
                "every evolvable layer is switched off, so nothing could change",
                fix="leave at least one of " + ", ".join(f"evolve_{x}" for x in layers) + " on",
            )
        return left


def read_settings(path: Path) -> dict[str, Any]:
    """A YAML file that holds a mapping; anything else is a ``ConfigurationError``."""
    import yaml

    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigurationError(f"can't read the settings in {path}: {error}") from error
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigurationError(
            f"{path} holds a {type(data).__name__}, not a mapping of settings",
            fix="write it as lines like 'batch_size: 10'",
        )
    return data


def _from_environment(cls: type[EvolveConfig], environ: Mapping[str, str]) -> dict[str, str]:
    names = {f"{ENV_PREFIX}{name.upper()}": name for name in cls.model_fields}
    return {names[key]: value for key, value in environ.items() if key in names}


def _explain(error: ValidationError, where: str, cls: type[EvolveConfig]) -> str:
    lines = []
    for item in error.errors():
        key = ".".join(str(part) for part in item["loc"])
        if item["type"] == "extra_forbidden":
            near = nearest(key, cls.model_fields)
            lines.append(f"unknown setting {key!r}" + (f", did you mean {near!r}?" if near else ""))
        else:
            lines.append(f"{key}: {item['msg']} (got {item['input']!r})")
    return f"{where}: " + "; ".join(lines)
