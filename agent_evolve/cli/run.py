"""Verbs that run the agent: ``run`` and ``eval``."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from ..loop.baseline import Baseline
from ..types import CycleRecord, EvolutionResult
from .output import Watcher, emit_json, money, number, say, table
from .places import JsonOption, WorkspaceOption, find_workspace

NOTHING_ACCEPTED = 1
WAITS = 3
BUDGET_REACHED = 4
NOT_TRUSTWORTHY = 5

ModelOption = Annotated[
    str | None, typer.Option(help="The agent's model, e.g. anthropic:claude-sonnet-5-5.")
]
BenchmarkOption = Annotated[str | None, typer.Option(help="A registered benchmark.")]
WorkersOption = Annotated[int | None, typer.Option(help="Tasks solved at once.")]
UsdOption = Annotated[float | None, typer.Option(help="Spend at most this many US dollars.")]
TokensOption = Annotated[int | None, typer.Option(help="Use at most this many tokens.")]
MinutesOption = Annotated[float | None, typer.Option(help="Start no call after this many minutes.")]
CallsOption = Annotated[int | None, typer.Option(help="Make at most this many model calls.")]
ConfigOption = Annotated[Path | None, typer.Option("--config", help="A YAML file of settings.")]
UnsafeOption = Annotated[
    bool,
    typer.Option(
        "--unsafe-no-sandbox", help="Run model-written commands unconfined where no sandbox works."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the verbs of this module."""
    app.command("run")(run)
    app.command("eval")(evaluate)
    app.command("baseline")(baseline)


def run(
    agent: Annotated[str, typer.Argument(help="A workspace directory or a seed's name.")] = ".",
    cycles: Annotated[int | None, typer.Option(help="How many cycles.")] = None,
    model: ModelOption = None,
    evolver_model: Annotated[str | None, typer.Option(help="The engine's model.")] = None,
    engine: Annotated[str | None, typer.Option(help="A registered engine.")] = None,
    benchmark: BenchmarkOption = None,
    max_usd: UsdOption = None,
    max_tokens: TokensOption = None,
    max_calls: CallsOption = None,
    max_minutes: MinutesOption = None,
    batch_size: Annotated[int | None, typer.Option(help="Train tasks per cycle.")] = None,
    workers: WorkersOption = None,
    seed: Annotated[int | None, typer.Option(help="Seed of batches and split.")] = None,
    new: Annotated[
        bool, typer.Option("--new", help="A new series: the splits may be others than before.")
    ] = False,
    review: Annotated[
        bool, typer.Option("--review", help="Stop at each change until you approve or reject it.")
    ] = False,
    config: ConfigOption = None,
    unsafe_no_sandbox: UnsafeOption = False,
    json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Evolve an agent: solve, measure, change, keep what is better on held-out tasks.

    Typing it again goes on: an interrupted run is finished, a finished one gets more cycles.
    """
    from ..evolver import Evolver

    settings = _settings(
        config,
        max_usd=max_usd,
        max_tokens=max_tokens,
        max_calls=max_calls,
        max_minutes=max_minutes,
        batch_size=batch_size,
        solve_workers=workers,
        seed=seed,
        review=review or None,
        unsafe_no_sandbox=unsafe_no_sandbox or None,
    )
    with Watcher(quiet=quiet or json) as watcher:
        evolver = Evolver(
            agent,
            benchmark,
            settings,
            engine,
            model=model,
            evolver_model=evolver_model,
            progress=watcher,
        )
        for warning in evolver.manifest.warnings:
            say(f"warning: {warning}")
        if evolver.created:
            watcher.say(f"made the workspace {evolver.root} from the seed {agent!r}")
        result = evolver.run(cycles, new=new)
    if json:
        emit_json(_result_json(result, evolver.root))
    else:
        _tell(result, evolver.root)
    raise typer.Exit(_exit_code(result))


def evaluate(
    version: Annotated[str, typer.Argument(help="evo-3, candidate-4, head, or a commit.")] = "head",
    split: Annotated[str, typer.Option(help="train, holdout or test.")] = "holdout",
    workspace: WorkspaceOption = None,
    model: ModelOption = None,
    benchmark: BenchmarkOption = None,
    max_usd: UsdOption = None,
    workers: WorkersOption = None,
    config: ConfigOption = None,
    unsafe_no_sandbox: UnsafeOption = False,
    json: JsonOption = False,
) -> None:
    """Measure one version on one split. Known scores are not bought again."""
    from ..evolver import Evolver

    settings = _settings(
        config,
        max_usd=max_usd,
        solve_workers=workers,
        unsafe_no_sandbox=unsafe_no_sandbox or None,
    )
    root = find_workspace(workspace)
    with Watcher(quiet=json) as watcher:
        evolver = Evolver(root, benchmark, settings, model=model, progress=watcher)
        result = evolver.evaluate(version, split)
    if json:
        emit_json(
            {
                "version": version,
                "commit": result.commit,
                "split": split,
                "mean": result.mean,
                "valid": result.valid,
                "total": len(result.observations),
                "usd": result.usd,
                "tasks": [
                    {"id": o.task.id, "status": o.status, "score": o.score}
                    for o in result.observations
                ],
            }
        )
    else:
        rows = [
            (o.task.id, number(o.score), o.status, o.feedback.detail.split("\n", 1)[0][:100])
            for o in result.observations
        ]
        table(("task", "score", "status", "feedback"), rows)
        print(
            f"{version} on {split}: mean {number(result.mean)} over {result.valid} of "
            f"{len(result.observations)} tasks, {money(result.usd)}"
        )
    raise typer.Exit(0 if result.mean is not None else NOT_TRUSTWORTHY)


def baseline(
    workspace_argument: Annotated[
        Path | None, typer.Argument(metavar="[WORKSPACE]", help="By default the one you are in.")
    ] = None,
    aa: Annotated[
        bool, typer.Option("--aa", help="Measure the same files twice: what differs is noise.")
    ] = False,
    repeats: Annotated[int | None, typer.Option(help="Runs of each task.")] = None,
    workspace: WorkspaceOption = None,
    model: ModelOption = None,
    benchmark: BenchmarkOption = None,
    max_usd: UsdOption = None,
    workers: WorkersOption = None,
    config: ConfigOption = None,
    unsafe_no_sandbox: UnsafeOption = False,
    json: JsonOption = False,
) -> None:
    """How good the agent is, how much its scores move by themselves, and what could be shown."""
    from ..evolver import Evolver

    settings = _settings(
        config,
        max_usd=max_usd,
        solve_workers=workers,
        unsafe_no_sandbox=unsafe_no_sandbox or None,
    )
    root = find_workspace(workspace_argument or workspace)
    with Watcher(quiet=json) as watcher:
        evolver = Evolver(root, benchmark, settings, model=model, progress=watcher)
        result = evolver.baseline(repeats, aa=aa)
    if json:
        emit_json(dataclasses.asdict(result))
    else:
        _tell_baseline(result)
    trusted = result.mean is not None and not result.suspicious
    raise typer.Exit(0 if trusted else NOT_TRUSTWORTHY)


def _tell_baseline(result: Baseline) -> None:
    print(
        f"mean {number(result.mean)} over {result.tasks} holdout tasks x {result.repeats}, "
        f"{result.invalid} of {result.runs} runs invalid, {money(result.usd)}, {result.calls} calls"
    )
    if result.again is not None and result.mean is not None:
        print(
            f"the same files again: {number(result.again)}, a difference of "
            f"{result.again - result.mean:+.3f} (between {number(result.lower)} and "
            f"{number(result.upper)})"
        )
    if result.suspicious:
        print("they differ beyond chance: something drifts, and no verdict here can be trusted")
    if result.noise is None:
        print("noise: not known from one run of each task; --repeats 3 or --aa tells")
    else:
        print(f"noise: a task's score moves by {result.noise:.3f} (standard deviation) by itself")
    if result.smallest is not None:
        print(
            f"smallest gain that shows with chance 0.8: {result.smallest:.3f}, if all tasks gain "
            "alike; more tasks or --repeats make it smaller"
        )
    print(
        f"where tasks are either right or wrong, a change must fix at least {result.fewest} of "
        f"{result.tasks} and break none"
    )


def _settings(config: Path | None, **given: Any) -> dict[str, Any]:
    from ..config import read_settings

    settings = read_settings(config) if config is not None else {}
    return settings | {key: value for key, value in given.items() if value is not None}


def _exit_code(result: EvolutionResult) -> int:
    if result.stopped == "budget":
        return BUDGET_REACHED
    if result.stopped == "review":
        return WAITS
    if any(record.accepted for record in result.cycles):
        return 0
    if result.stopped == "failing":
        return NOT_TRUSTWORTHY
    return NOTHING_ACCEPTED


def _result_json(result: EvolutionResult, root: Path) -> dict[str, Any]:
    return {"workspace": str(root), **dataclasses.asdict(result)}


def _tell(result: EvolutionResult, root: Path) -> None:
    name = os.path.relpath(root)
    if result.stopped == "review":
        _tell_waiting(result.cycles[-1], name)
        return
    first = result.cycles[0].cycle - 1 if result.cycles else 0
    last = result.cycles[-1].cycle if result.cycles else 0
    kept = sum(record.accepted for record in result.cycles)
    what = "holdout" if result.gated else "train (no holdout, so nothing was gated)"
    print(
        f"{root.name}: {result.cycles_completed} cycles, {kept} kept, "
        f"{what} {number(result.start_score)} -> {number(result.final_score)}, "
        f"{money(result.usd)}, stopped: {_reason(result.stopped)}"
    )
    if kept:
        print(f"  see what changed:  agent-evolve diff evo-{first} evo-{last} -w {name}")
        print(f"  undo it:           agent-evolve rollback evo-{first} -w {name}")
    elif result.cycles:
        print(f"  see why:           agent-evolve log -w {name}")


def _tell_waiting(record: CycleRecord, name: str) -> None:
    n = record.cycle
    print(f"cycle {n} {record.reason}")
    print(f"  look at it:  agent-evolve diff pre-evo-{n} candidate-{n} -w {name}")
    print(f"  yes:         agent-evolve approve {n} -w {name}")
    print(f'  no:          agent-evolve reject {n} --because "..." -w {name}')


def _reason(stopped: str) -> str:
    return {
        "cycles": "all cycles are done",
        "plateau": "a plateau, the last scores hardly differ",
        "engine": "the engine asked to",
        "budget": "the budget is reached; raise it and type the same command to go on",
        "failing": "too many cycles in a row failed or could not be measured",
    }.get(stopped, stopped)
