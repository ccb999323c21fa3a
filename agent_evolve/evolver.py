"""Evolver: from names and paths to a run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from . import registry
from .agents.base import BaseAgent
from .agents.loading import agent_class
from .benchmarks.base import BenchmarkAdapter
from .config import EvolveConfig
from .engines.base import EvolutionEngine
from .entrypoint import load_object
from .errors import AgentEvolveError, ConfigurationError
from .execution import Sandbox, find_sandbox
from .journal import Journal
from .llm import Budget, Ledger, Model, Replay, Role, resolve_model
from .loop.baseline import Baseline, baseline
from .loop.evaluation import Evaluation, check_split, evaluate
from .loop.lock import run_lock
from .loop.loop import EvolutionLoop
from .loop.opened import Opened
from .loop.progress import Progress, Silent
from .loop.state import FINISHED
from .loop.stopping import stopping
from .runtime import Runtime
from .seeds import workspace_for
from .types import EvolutionResult
from .workspace import Manifest
from .workspace.location import evolution_directory
from .workspace.repository import WorkspaceRepository

DEFAULT_ENGINE = "skillforge"


class Evolver:
    """Evolves one agent.

    Everything is resolved and checked here, so that a wrong name, a missing key or a bad task file
    costs nothing: the constructor raises ``ConfigurationError`` (or one of its kinds) before any
    model is called or file changed.

    Args:
        agent: a workspace directory, the name of a seed workspace (copied to ``work_dir/NAME``), or
            a ``BaseAgent``.
        benchmark: a ``BenchmarkAdapter`` (or any object with its methods), or a registered name;
            by default what the manifest's ``benchmark:`` says.
        config: an ``EvolveConfig``, a mapping of its settings, or the path of a YAML file.
        engine: an ``EvolutionEngine`` or a registered name; by default the manifest's ``engine:``,
            else SkillForge.
        model: the agent's model as ``provider:model``, or a ``Model``; by default the manifest's
            ``model:``.
        evolver_model: the engine's model; by default ``config.evolver_model`` when set, else
            ``model``, else ``EvolveConfig``'s default.
        work_dir: where a seed workspace is copied to.
        progress: told what happens.
    """

    def __init__(
        self,
        agent: str | Path | BaseAgent,
        benchmark: str | BenchmarkAdapter | None = None,
        config: EvolveConfig | Mapping[str, Any] | str | Path | None = None,
        engine: str | EvolutionEngine | None = None,
        *,
        model: str | Model | None = None,
        evolver_model: str | Model | None = None,
        work_dir: str | Path = ".",
        progress: Progress | None = None,
    ) -> None:
        self.progress = progress or Silent()
        if isinstance(agent, BaseAgent):
            self.root, self.created = Path(agent.workspace.root), False
        else:
            self.root, self.created = workspace_for(agent, work_dir)
        self.manifest = Manifest.load(self.root)
        self.config = _config(config, self.manifest)
        self._make_agent = _agent_maker(agent, self.manifest, self.root)
        self._needs_of_agent = self._make_agent.loaded(self.root)
        self.benchmark = make_benchmark(benchmark, self.manifest, self.root)
        self.engine = make_engine(engine, self.manifest, self.root)
        self.config.evolvable(self.manifest.evolvable_layers)
        self._models = _Models.choose(self, agent, model, evolver_model)
        if model is not None and not self._needs_of_agent.needs_model:
            kind = self.manifest.agent_type or type(self._needs_of_agent).__name__
            self.progress.say(f"the agent {kind!r} takes no --model; it is the engine's")

    def run(self, cycles: int | None = None, *, new: bool = False) -> EvolutionResult:
        """Run ``cycles`` cycles (default ``config.max_cycles``), or finish those that an
        interrupted run still owes.

        ``new`` begins a new series: other splits are allowed, and looks at the holdout are counted
        from the start.

        Returns the result, whatever ended the run; ``result.stopped`` says what. Raises
        ``WorkspaceBusyError`` when another run holds the workspace, and ``KeyboardInterrupt``
        after recording where it stopped: in the main thread ``Drained`` when Ctrl-C (or SIGTERM)
        came once and what was in flight has finished, ``Cancelled`` when it came twice.
        """
        cycles = self.config.max_cycles if cycles is None else cycles
        if isinstance(cycles, bool) or not isinstance(cycles, int) or cycles < 1:
            raise ConfigurationError(
                f"cycles must be a whole number of at least 1, not {cycles!r}",
                fix="for example: run(cycles=5), or --cycles 5",
            )
        with self._open(f"run {self.root.name}", _replay_of_run) as opened, stopping():
            loop = EvolutionLoop(
                make_agent=opened.make_agent,
                benchmark=self.benchmark,
                engine=self.engine,
                config=self.config,
                root=self.root,
                manifest=self.manifest,
                repository=opened.repository,
                journal=opened.journal,
                ledger=opened.ledger,
                progress=self.progress,
            )
            return loop.run(cycles, new=new)

    def evaluate(self, version: str = "head", split: str = "holdout") -> Evaluation:
        """Measure a version on a split. Scores that are known are not bought again."""
        check_split(split)
        replay = partial(_replay_of_evaluation, version)
        with self._open(f"eval {version}", replay) as opened, stopping():
            return evaluate(version, split, opened)

    def baseline(self, repeats: int | None = None, *, aa: bool = False) -> Baseline:
        """Measure the workspace as it is, on its holdout, ``repeats`` times (default
        ``config.repeats``); with ``aa`` the same files a second time, in fresh runs.

        Says how much scores move by themselves and the smallest gain that this holdout can show.
        Changes no file and no version.
        """
        repeats = self.config.repeats if repeats is None else repeats
        if isinstance(repeats, bool) or not isinstance(repeats, int) or repeats < 1:
            raise ConfigurationError(
                f"repeats must be a whole number of at least 1, not {repeats!r}",
                fix="for example: baseline(repeats=3), or --repeats 3",
            )
        with self._open(f"baseline {self.root.name}", _no_replay) as opened, stopping():
            return baseline(opened.repository.scan(self.root), opened, repeats=repeats, aa=aa)

    @contextmanager
    def _open(self, what: str, replay_of: _ReplayOf) -> Iterator[Opened]:
        with run_lock(self.root, what):
            directory = evolution_directory(self.root)
            repository = WorkspaceRepository.open(self.root, self.manifest.layers)
            journal = Journal(directory / "journal.jsonl")
            config = self.config
            traces = directory / "traces"
            ledger = Ledger(
                Budget(config.max_usd, config.max_tokens, config.max_calls, config.max_minutes),
                sink=lambda call: _record_call(journal, call),
                traces=traces,
                replay=replay_of(journal, repository, traces),
            )
            sandbox = self._sandbox()
            timeout = config.task_timeout
            agent_model, engine_model = self._models.agent, self._models.engine
            runtime = Runtime(_meter(ledger, agent_model, "agent"), sandbox, timeout)
            told = "evolver_max_tokens" in config.model_fields_set
            self.engine.runtime = Runtime(
                _meter(ledger, engine_model, "engine"),
                sandbox,
                timeout,
                max_tokens=config.evolver_max_tokens if told else None,
            )
            if hasattr(self.benchmark, "runtime"):
                judge = _meter(ledger, self._models.judge, "judge")
                self.benchmark.runtime = Runtime(judge, sandbox, timeout)

            def make_agent(place: Path) -> BaseAgent:
                agent = self._make_agent(place)
                agent.runtime = runtime
                return agent

            try:
                yield Opened(
                    make_agent,
                    self.benchmark,
                    config,
                    self.root,
                    repository,
                    journal,
                    ledger,
                    self.progress,
                )
            finally:
                journal.close()
                repository.close()

    def _sandbox(self) -> Sandbox | None:
        parts = (self._needs_of_agent, self.engine, self.benchmark)
        if any(getattr(part, "needs_sandbox", False) for part in parts):
            return find_sandbox(unsafe=self.config.unsafe_no_sandbox)
        return None


@dataclass(frozen=True, slots=True)
class _AgentMaker:
    """Loads the agent from a directory: a new one of its class, or a twin of a given one."""

    cls: type[BaseAgent]
    given: BaseAgent | None = None

    def __call__(self, place: Path) -> BaseAgent:
        return self.given.at(place) if self.given is not None else self.cls(place)

    def loaded(self, root: Path) -> BaseAgent:
        """The agent as it is in the user's workspace, to ask what it needs. Whatever its class
        raises there is told before anything is spent."""
        if self.given is not None:
            return self.given
        try:
            return self.cls(root)
        except AgentEvolveError:
            raise
        except (Exception, SystemExit) as error:
            raise ConfigurationError(
                f"the agent {self.cls.__name__} can't be loaded from {root}: "
                f"{type(error).__name__}: {error}",
                fix=f"correct {self.cls.__module__}",
            ) from error


@dataclass(frozen=True, slots=True)
class _Models:
    agent: Model | None
    engine: Model | None
    judge: Model | None

    @classmethod
    def choose(
        cls,
        evolver: Evolver,
        agent: str | Path | BaseAgent,
        model: str | Model | None,
        evolver_model: str | Model | None,
    ) -> _Models:
        """Resolve the model of each role, building none that no part needs."""
        config, needs_model = evolver.config, evolver._needs_of_agent.needs_model
        named = model or evolver.manifest.model
        if named is None and isinstance(agent, BaseAgent):
            named = agent.runtime.model
        engine_named = evolver_model or (
            config.evolver_model if "evolver_model" in config.model_fields_set else named
        )
        agent_model = _resolved(named) if named and (needs_model or model) else None
        if needs_model and agent_model is None:
            Runtime().require_model(f"agent type {evolver.manifest.agent_type!r}")
        engine_model = None
        if evolver.engine.needs_model:
            engine_model = _resolved(engine_named or config.evolver_model)
        elif evolver_model is not None:
            engine_model = _resolved(evolver_model)
        judge = None
        if getattr(evolver.benchmark, "needs_model", False):
            judge = _resolved(getattr(evolver.benchmark, "judge_model", None) or named or "")
        return cls(agent_model, engine_model, judge)


def _resolved(model: str | Model) -> Model:
    return resolve_model(model) if isinstance(model, str) else model


def _meter(ledger: Ledger, model: Model | None, role: Role) -> Model | None:
    return None if model is None else ledger.meter(model, role)


_ReplayOf = Callable[[Journal, WorkspaceRepository, Path], Replay]


def _replay_of_run(journal: Journal, repository: WorkspaceRepository, traces: Path) -> Replay:
    return Replay.of_run(journal.events(), traces, finished=FINISHED)


def _no_replay(journal: Journal, repository: WorkspaceRepository, traces: Path) -> Replay:
    return Replay((), (), traces)


def _replay_of_evaluation(
    version: str, journal: Journal, repository: WorkspaceRepository, traces: Path
) -> Replay:
    tree = repository.version(version).tree
    return Replay.of_evaluation(journal.events(), traces, tree)


def _record_call(journal: Journal, call: Mapping[str, Any]) -> None:
    journal.append("call", **call)


def _config(
    config: EvolveConfig | Mapping[str, Any] | str | Path | None, manifest: Manifest
) -> EvolveConfig:
    if isinstance(config, EvolveConfig):
        return config
    if isinstance(config, (str, Path)):
        return EvolveConfig.combine(manifest=manifest.config, file=config)
    return EvolveConfig.combine(manifest=manifest.config, arguments=config)


def _agent_maker(agent: str | Path | BaseAgent, manifest: Manifest, root: Path) -> _AgentMaker:
    if isinstance(agent, BaseAgent):
        return _AgentMaker(type(agent), agent)
    return _AgentMaker(agent_class(manifest, root))


def make_benchmark(
    benchmark: str | BenchmarkAdapter | None, manifest: Manifest, root: Path
) -> BenchmarkAdapter:
    """The benchmark given, named, or told by the manifest."""
    if benchmark is not None and not isinstance(benchmark, str):
        return benchmark
    told = manifest.benchmark or {}
    name = benchmark or told.get("name")
    if name is None:
        raise ConfigurationError(
            f"{root / 'manifest.yaml'} names no benchmark and none was given",
            fix="add 'benchmark: local' and a tasks.jsonl, or pass benchmark=...",
        )
    cls = _named("benchmark", name, root)
    options = _options(told, name)
    if "root" in inspect.signature(cls).parameters:
        options["root"] = root
    made: BenchmarkAdapter = _made(cls, options, name)
    return made


def make_engine(
    engine: str | EvolutionEngine | None, manifest: Manifest, root: Path
) -> EvolutionEngine:
    """The engine given, named, or told by the manifest; SkillForge where nothing is said."""
    if engine is not None and not isinstance(engine, str):
        return engine
    told = manifest.engine or {"name": DEFAULT_ENGINE}
    name = engine or told["name"]
    made: EvolutionEngine = _made(_named("engine", name, root), _options(told, name), name)
    return made


def _named(kind: Literal["benchmark", "engine"], name: str, root: Path) -> Any:
    """A registered part or, where the name has a dot, a class in the workspace or installed."""
    if "." in name:
        return load_object(name, root, f"{root / 'manifest.yaml'}, key {kind}")
    return registry.load(kind, name)


def _options(told: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The manifest's options, when it is the manifest's own choice that is made."""
    if told.get("name") != name:
        return {}
    return {key: value for key, value in told.items() if key != "name"}


def _made(cls: Any, options: dict[str, Any], name: str) -> Any:
    try:
        return cls(**options)
    except TypeError as error:
        raise ConfigurationError(
            f"{name!r} does not take these options: {error}",
            fix=f"see help({cls.__module__}.{cls.__qualname__})",
        ) from error
