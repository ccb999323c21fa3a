"""Evolve agents and skills as files under version control.

    from agent_evolve import Evolver
    result = Evolver(agent="./my-agent").run(cycles=10)

Names load on first use, so that importing the package costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .agents.base import BaseAgent as BaseAgent
    from .benchmarks.base import BenchmarkAdapter as BenchmarkAdapter
    from .config import EvolveConfig as EvolveConfig
    from .engines.base import EvolutionEngine as EvolutionEngine
    from .engines.guided_synthesis import GuidedSynthesis as GuidedSynthesis
    from .engines.skillforge import AEvolveEngine as AEvolveEngine
    from .engines.skillforge import SkillForge as SkillForge
    from .evolver import Evolver as Evolver
    from .llm.scripted import ScriptedModel as ScriptedModel
    from .loop.history import EvolutionHistory as EvolutionHistory
    from .loop.loop import EvolutionLoop as EvolutionLoop
    from .loop.observer import Observer as Observer
    from .loop.trial import TrialRunner as TrialRunner
    from .types import CycleRecord as CycleRecord
    from .types import EvolutionResult as EvolutionResult
    from .types import Feedback as Feedback
    from .types import Observation as Observation
    from .types import SkillMeta as SkillMeta
    from .types import StepResult as StepResult
    from .types import Task as Task
    from .types import Trajectory as Trajectory
    from .workspace import AgentWorkspace as AgentWorkspace
    from .workspace import Manifest as Manifest

__version__ = "0.1.0"

_HOMES = {
    "Evolver": "evolver",
    "EvolveConfig": "config",
    "BaseAgent": "agents.base",
    "BenchmarkAdapter": "benchmarks.base",
    "EvolutionEngine": "engines.base",
    "SkillForge": "engines.skillforge",
    "AEvolveEngine": "engines.skillforge",
    "GuidedSynthesis": "engines.guided_synthesis",
    "AgentWorkspace": "workspace",
    "Manifest": "workspace",
    "EvolutionLoop": "loop.loop",
    "Observer": "loop.observer",
    "EvolutionHistory": "loop.history",
    "TrialRunner": "loop.trial",
    "ScriptedModel": "llm.scripted",
    "Task": "types",
    "Trajectory": "types",
    "Feedback": "types",
    "Observation": "types",
    "SkillMeta": "types",
    "StepResult": "types",
    "CycleRecord": "types",
    "EvolutionResult": "types",
}

__all__ = ["__version__", *sorted(_HOMES)]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
