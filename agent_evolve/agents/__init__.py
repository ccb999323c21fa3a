"""Who solves: the base class and the built-in agents."""

from .base import BaseAgent

__all__ = ["BaseAgent"]
