"""One agent, one task: solve it, score it, and say truly how that ended."""

from __future__ import annotations

from functools import partial

from ..agents.base import BaseAgent, solving
from ..benchmarks.base import BenchmarkAdapter
from ..benchmarks.scores import checked
from ..errors import (
    BudgetExceeded,
    ConfigurationError,
    InfrastructureError,
    InvalidScoreError,
    JournalError,
)
from ..types import Feedback, Status, Task, Trajectory
from .stopping import current_stop
from .time_limit import within

GRACE_SECONDS = 10.0
"""An agent that keeps ``task_timeout`` itself gets this much longer to end and say so."""

STOPS_THE_RUN = (ConfigurationError, BudgetExceeded, JournalError)
"""Errors that no further task could survive."""


def attempt(
    agent: BaseAgent, benchmark: BenchmarkAdapter, task: Task, turn: int
) -> tuple[Trajectory, Feedback, Status]:
    """Let the agent do one task and the benchmark score it.

    The agent's own failure scores 0.0; a failure of the outside or of the grader is ``invalid``,
    and so is a task that goes on ``GRACE_SECONDS`` after the agent's ``runtime.task_timeout``.
    Raises only what stops the run, and ``Cancelled`` where what came of it is not to be kept.
    """
    outcome = _attempt(agent, benchmark, task, turn)
    current_stop().check_cancelled()
    return outcome


def _attempt(
    agent: BaseAgent, benchmark: BenchmarkAdapter, task: Task, turn: int
) -> tuple[Trajectory, Feedback, Status]:
    trajectory, status = _solve(agent, task, turn)
    if status != "scored":
        return trajectory, Feedback(False, 0.0, trajectory.error or ""), status
    try:
        return (
            trajectory,
            checked(benchmark.evaluate(task, trajectory), _place(benchmark, task)),
            ("scored"),
        )
    except STOPS_THE_RUN:
        raise
    except InvalidScoreError as error:
        return trajectory, Feedback(False, 0.0, error.message), "invalid"
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a grader is the user's code; its failure is an outcome
        detail = f"the grader raised {describe(error)}"
        return trajectory, Feedback(False, 0.0, detail), "invalid"


def _solve(agent: BaseAgent, task: Task, turn: int) -> tuple[Trajectory, Status]:
    try:
        with solving(turn):
            limit = agent.runtime.task_timeout + GRACE_SECONDS
            trajectory = within(limit, f"task {task.id!r}", partial(agent.solve, task))
    except STOPS_THE_RUN:
        raise
    except InfrastructureError as error:
        return Trajectory(task.id, error=error.message, metrics=error.metrics), "invalid"
    except (Exception, SystemExit) as error:  # noqa: BLE001 - an agent is the user's code; its failure is a score
        return Trajectory(task.id, error=f"the agent raised {describe(error)}"), "agent_failed"
    if not isinstance(trajectory, Trajectory):
        kind = type(trajectory).__name__
        return (
            Trajectory(task.id, error=f"solve() returned a {kind}, not a Trajectory"),
            "agent_failed",
        )
    if trajectory.error is not None:
        return trajectory, "agent_failed"
    return trajectory, "scored"


def _place(benchmark: BenchmarkAdapter, task: Task) -> str:
    return f"{type(benchmark).__name__}.evaluate, task {task.id!r}"


def describe(error: BaseException) -> str:
    """An exception in one line: its type and what it said."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
