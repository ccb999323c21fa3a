"""How a workspace changes: one module or package per engine."""

from .base import EvolutionEngine, History, Trial

__all__ = ["EvolutionEngine", "History", "Trial"]
