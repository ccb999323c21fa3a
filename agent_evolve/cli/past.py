"""Verbs about what has happened: ``status``, ``log``, ``show``, ``diff``, ``rollback``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from ..journal import Journal
from ..llm.totals import Axis, totals_of
from ..loop.lock import run_lock
from ..loop.observer import batch_path, read_batch
from ..loop.records import cycle_from, cycle_record
from ..loop.state import RunState, fold
from ..types import CycleRecord
from ..workspace.powers import Power
from .output import changes_line, emit_json, money, number, say, table
from .places import JsonOption, Past, WorkspaceOption, find_workspace, opened


def register(app: typer.Typer) -> None:
    """Add the verbs of this module."""
    for verb in (status, log, show, diff, rollback):
        app.command(verb.__name__)(verb)


PlaceArgument = Annotated[Path | None, typer.Argument(help="The workspace; by default this one.")]


def status(
    place: PlaceArgument = None, workspace: WorkspaceOption = None, json: JsonOption = False
) -> None:
    """Where the evolution of a workspace stands, and what it has cost."""
    with opened(place or workspace) as past:
        state = fold(past.journal.events())
        data = _status(past, state)
    if json:
        emit_json(data)
        return
    print(f"{past.manifest.name} in {past.root}")
    print(f"  head        {data['head']}  ({data['versions']})")
    print(f"  cycles      {data['cycles']} finished, {data['accepted']} kept a change")
    print(f"  score       {number(data['start_score'])} at the start, {number(data['score'])} now")
    print(f"  run         {data['run']}")
    if data["test_openings"]:
        print(f"  test split  opened {data['test_openings']} times")
    for role, spent in data["spent"].items():
        print(
            f"  {role:<10}  {spent['calls']} calls, {spent['input_tokens']} + "
            f"{spent['output_tokens']} tokens, {money(spent['usd'])}"
        )
    if data["edited_by_hand"]:
        print("  files       edited by hand since; the next run starts from that")


def log(
    place: PlaceArgument = None, workspace: WorkspaceOption = None, json: JsonOption = False
) -> None:
    """Every cycle and every change of the head, oldest first."""
    with opened(place or workspace) as past:
        events = list(past.journal.events("cycle_finished", "edited", "rolled_back"))
    if json:
        emit_json([{"type": e.type, "time": e.time, **e.data} for e in events])
        return
    rows = []
    for event in events:
        if event.type == "cycle_finished":
            rows.append(_log_row(cycle_from(event["record"])))
        elif event.type == "edited":
            rows.append((event["commit"][:10], "edited by hand", "", "", "", "", ""))
        else:
            rows.append((event["commit"][:10], f"rollback to {event['to']}", "", "", "", "", ""))
    table(("version", "verdict", "train", "holdout", "changes", "cost", "summary"), rows)


def show(
    version: Annotated[
        str, typer.Argument(help="evo-3, pre-evo-3, candidate-3, head or a commit.")
    ],
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """One version: what the cycle did, why it was kept or not, which files changed."""
    with opened(workspace) as past:
        found = past.repository.version(version)
        record = _record_of(past.journal, version)
        base = _before(past, version)
        stat = past.repository.diff(base, version, stat=True) if base else ""
        tasks = _tasks_of(past.root, record) if record else []
        report = _report_of(past.journal, record) if record else []
        powers = _powers_of(past.journal, record) if record else []
    data = {
        "version": version,
        "commit": found.commit,
        "tree": found.tree,
        "compared_with": base,
        "record": cycle_record(record) if record else None,
        "stat": stat,
        "tasks": tasks,
        "holdout": report,
        "powers": powers,
    }
    if json:
        emit_json(data)
        return
    print(f"{version}  commit {found.commit[:12]}  files {found.tree[:12]}")
    if record is not None:
        print(f"  {record.verdict}: {record.reason}")
        print(f"  train {number(record.score)}, holdout {number(record.holdout_score)}")
        print(f"  {changes_line(record.changes)}; {record.seconds:.1f}s, {money(record.usd)}")
        if record.summary:
            print("\n" + record.summary.strip())
    if stat:
        print(f"\nchanged since {base}:\n{stat.rstrip()}")
    for power in powers:
        print(f"  needs a yes: {power}")
    if report:
        print("\nholdout, task by task:")
        table(
            ("task", "head", "candidate", "runs", ""),
            [
                (t["task"], number(t["head"]), number(t["candidate"]), str(t["runs"]), _fate(t))
                for t in report
                if t["fate"] != "same"
            ],
        )
    if tasks:
        print()
        table(
            ("task", "score", "status", "feedback"),
            [(t["task_id"], number(t["score"]), t["status"], t["feedback"][:90]) for t in tasks],
        )


def diff(
    a: Annotated[str, typer.Argument(help="The older version, e.g. evo-1.")],
    b: Annotated[str, typer.Argument(help="The newer version.")] = "head",
    paths: Annotated[list[str] | None, typer.Argument(help="Only these files.")] = None,
    stat: Annotated[bool, typer.Option("--stat", help="Only which files, and how much.")] = False,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """What ``git diff`` says between two versions; the git command itself is told on stderr."""
    with opened(workspace) as past:
        text = past.repository.diff(a, b, tuple(paths or ()), stat=stat)
        command = past.repository.diff_command(a, b)
    if json:
        emit_json({"a": a, "b": b, "command": command, "diff": text})
        return
    say(f"{command}    (in {past.root})")
    sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
    if text and not text.endswith("\n"):
        print()


def rollback(
    version: Annotated[str, typer.Argument(help="The version whose files come back.")],
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Bring an earlier version's files back, as a new version. Nothing is forgotten."""
    from ..loop.rollback import rollback as roll_back

    root = find_workspace(workspace)
    with run_lock(root, f"rollback {version}"), opened(root) as past:
        before = past.repository.head
        made = roll_back(past.root, past.repository, past.journal, version)
    data = {"to": version, "commit": made.commit, "before": before.commit if before else None}
    if json:
        emit_json(data)
        return
    print(f"the files of {version} are back, as {made.commit[:12]}; nothing was forgotten")
    if before is not None:
        print(f"  undo:  agent-evolve rollback {before.commit[:12]} -w {root}")


def _status(past: Past, state: RunState) -> dict[str, Any]:
    head = past.repository.head
    records = state.records
    measured = [r.plateau_score for r in records if r.plateau_score is not None]
    started = next((r.head_score for r in records if r.head_score is not None), None)
    tree = past.repository.scan(past.root, store=False)
    name = past.repository.name_of(head.commit) if head else None
    return {
        "workspace": str(past.root),
        "head": (name or head.commit[:12]) if head else None,
        "commit": head.commit if head else None,
        "versions": f"git, {past.repository.kind}: {past.repository.git_dir}",
        "cycles": len(records),
        "accepted": sum(record.accepted for record in records),
        "start_score": started if started is not None else (measured[0] if measured else None),
        "score": measured[-1] if measured else None,
        "run": _run_line(past.journal, state),
        "test_openings": state.openings,
        "looks": state.looks,
        "spent": _spent(past.journal, "role"),
        "spent_by_cycle": _spent(past.journal, "cycle"),
        "spent_by_candidate": _spent(past.journal, "candidate"),
        "edited_by_hand": head is not None and tree.id != head.tree,
    }


def _run_line(journal: Journal, state: RunState) -> str:
    stopped = journal.last("run_stopped", "run_started")
    if stopped is None:
        return "none yet"
    if state.waiting is not None and state.reviewed is None:
        n = state.waiting["record"]["cycle"]
        return f"candidate-{n} waits for you: approve {n}, or reject {n}"
    if stopped.type == "run_started":
        return f"running, or killed in cycle {state.next_cycle}; 'run' goes on with it"
    reason = str(stopped["reason"])
    return f"stopped: {reason}" + ("" if state.run_over else "; 'run' goes on with it")


def _spent(journal: Journal, by: Axis) -> dict[str, dict[str, Any]]:
    """Calls, tokens, dollars and seconds over all runs, from the journal."""
    return {key: asdict(totals) for key, totals in totals_of(journal.events("call"), by).items()}


def _log_row(record: CycleRecord) -> tuple[str, ...]:
    if record.candidate_score is not None:
        holdout = f"{number(record.head_score)} -> {number(record.candidate_score)}"
    else:
        holdout = number(record.holdout_score)
    return (
        f"evo-{record.cycle}",
        record.verdict,
        number(record.score),
        holdout,
        changes_line(record.changes),
        money(record.usd),
        (record.summary or record.reason).strip().split("\n", 1)[0][:80],
    )


def _record_of(journal: Journal, version: str) -> CycleRecord | None:
    prefix, _, cycle = version.rpartition("-")
    if prefix not in ("evo", "candidate", "pre-evo") or not cycle.isdigit():
        return None
    for event in journal.events("cycle_finished"):
        if event["record"]["cycle"] == int(cycle):
            return cycle_from(event["record"])
    waiting = fold(journal.events()).waiting
    if waiting is not None and waiting["record"]["cycle"] == int(cycle):
        return cycle_from(waiting["record"])
    return None


def _report_of(journal: Journal, record: CycleRecord) -> list[dict[str, Any]]:
    """What became of each holdout task, as the gate saw it."""
    judged = [event for event in journal.events("judged") if event["cycle"] == record.cycle]
    return list(judged[-1]["tasks"]) if judged else []


def _powers_of(journal: Journal, record: CycleRecord) -> list[str]:
    waits = [e for e in journal.events("review") if e["record"]["cycle"] == record.cycle]
    return [Power(**power).describe() for event in waits[-1:] for power in event["powers"]]


def _fate(task: Mapping[str, Any]) -> str:
    seen = {None: "", True: ", in fresh runs too", False: ", but not in fresh runs"}
    return f"{task['fate']}{seen[task['confirmed']]}"


def _before(past: Past, version: str) -> str | None:
    """The version to compare with: what came right before."""
    prefix, _, cycle = version.rpartition("-")
    if not cycle.isdigit():
        return None
    if prefix == "candidate":
        return f"pre-evo-{cycle}"
    if prefix in ("evo", "pre-evo"):
        before = f"evo-{int(cycle) - 1}"
        return before if past.repository.has(before) else None
    return None


def _tasks_of(root: Path, record: CycleRecord) -> list[dict[str, Any]]:
    lines = read_batch(batch_path(root / "evolution" / "observations", record.cycle))
    return [
        {
            "task_id": line["task_id"],
            "score": line["score"],
            "status": line.get("status", "scored"),
            "feedback": (line.get("feedback_detail") or "").split("\n", 1)[0],
        }
        for line in lines
    ]
