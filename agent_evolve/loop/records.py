"""Observations and cycle records as JSON, and back."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from ..types import CycleRecord, Feedback, Observation, Task, Trajectory


def observation_record(observation: Observation) -> dict[str, Any]:
    """The line of an observation in ``observations/batch_NNNN.jsonl``.

    The seven fields of the format come first; ``score`` is null when the observation is invalid.
    """
    task, trajectory, feedback = observation.task, observation.trajectory, observation.feedback
    return {
        "task_id": task.id,
        "task_input": task.input,
        "agent_output": trajectory.output,
        "steps": trajectory.steps,
        "success": observation.success,
        "score": observation.score,
        "feedback_detail": feedback.detail,
        "status": observation.status,
        "cycle": observation.cycle,
        "error": trajectory.error,
        "conversation": trajectory.conversation,
        "metrics": finite(trajectory.metrics),
        "task_metadata": dict(task.metadata),
        "feedback_raw": dict(feedback.raw),
    }


def observation_from(record: Mapping[str, Any]) -> Observation:
    """Back from a line; fields that are missing take their defaults."""
    task = Task(
        str(record["task_id"]), record.get("task_input", ""), record.get("task_metadata") or {}
    )
    trajectory = Trajectory(
        task.id,
        record.get("agent_output") or "",
        record.get("steps") or [],
        record.get("conversation") or [],
        record.get("error"),
        record.get("metrics") or {},
    )
    feedback = Feedback(
        bool(record.get("success")),
        record.get("score") or 0.0,
        record.get("feedback_detail") or "",
        record.get("feedback_raw") or {},
    )
    return Observation(
        task, trajectory, feedback, record.get("status", "scored"), record.get("cycle", 0)
    )


def cycle_record(record: CycleRecord) -> dict[str, Any]:
    """A cycle record as it stands in the journal and in the message of its tag."""
    return dataclasses.asdict(record)


def cycle_from(data: Mapping[str, Any]) -> CycleRecord:
    """Back from JSON; fields that this version does not know are ignored."""
    known = {field.name for field in dataclasses.fields(CycleRecord)}
    return CycleRecord(**{key: value for key, value in data.items() if key in known})


def finite(metrics: Mapping[str, float]) -> dict[str, float]:
    """The metrics that are numbers; JSON has no NaN."""
    return {
        key: value
        for key, value in metrics.items()
        if isinstance(value, (int, float)) and math.isfinite(value)
    }
