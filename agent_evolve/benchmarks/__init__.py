"""On what: the adapter contract, local tasks and graders."""

from .base import BenchmarkAdapter

__all__ = ["BenchmarkAdapter"]
