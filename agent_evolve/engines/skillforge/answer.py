"""Editing by one structured reply, for models that can't drive a shell."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ...errors import ModelError
from ...llm import Message, Model, Request
from ...workspace import names
from ...workspace.atomic import write_bytes
from . import wording
from .changes import compare
from .context import Context
from .operations import Operation
from .options import Settings
from .outcome import Outcome, asked_again
from .reply import Reply, parse_reply
from .rules import Rules
from .staging import Staged, stage
from .tree import Tree

ATTEMPTS = 2
"""Calls of the model: the reply, and one correction of a reply that can't be used."""


def edit_by_answer(
    model: Model, context: Context, tree: Tree, root: Path, rules: Rules, settings: Settings
) -> Outcome:
    """Ask for all changes at once and write them; nothing is written unless all can be.

    Raises ``ModelError`` when neither the reply nor its correction can be used, and what the model
    raises.
    """
    messages: tuple[Message, ...] = (Message("user", context.prompt),)
    told: tuple[str, ...] = ()
    for attempt in range(1, ATTEMPTS + 1):
        completion = model.complete(
            Request(
                messages=messages,
                system=context.system,
                temperature=settings.temperature,
                max_tokens=settings.max_tokens,
            )
        )
        if completion.stop_reason == "refusal":
            return Outcome(tree, completion.text, "the model refused", {"turns": attempt})
        reply = parse_reply(completion.text, cut=completion.stop_reason == "max_tokens")
        staged = _staged(reply, tree, rules, context)
        if not staged.problems:
            write_tree(root, tree, staged.after)
            counts = {"turns": attempt, "operations": len(reply.operations), "repaired": told}
            return Outcome(staged.after, reply.summary, counts=counts)
        told = staged.problems
        messages = asked_again((*messages, completion.as_message()), wording.repair_answer(told))
    raise ModelError(
        f"{model.name} gave no usable changes in {ATTEMPTS} replies: "
        + "; ".join(problem.partition("\n")[0].rstrip(":") for problem in told[:5]),
        fix="use a stronger model for the engine (--evolver-model), a smaller context_chars, "
        "or the engine guided-synthesis",
    )


def _staged(reply: Reply, tree: Tree, rules: Rules, context: Context) -> Staged:
    if reply.problems:
        return Staged(tree, reply.problems)
    copied = [operation for operation in reply.operations if operation in _example()]
    if copied:
        return Staged(tree, (wording.copied_example(len(copied), _a_failure(context)),))
    return stage(reply.operations, tree, rules, whole=context.whole)


@cache
def _example() -> tuple[Operation, ...]:
    """The blocks of the instructions' own example, which small models like to give back."""
    return parse_reply(wording.EXAMPLE).operations


def _a_failure(context: Context) -> str:
    """The input of a task that failed, fenced; of any task where none did."""
    worst = min((case.observation for case in context.cases), key=lambda o: o.score or 0.0)
    return context.fence.wrap(worst.task.input[:300], "a task")


def write_tree(root: Path, before: Tree, after: Tree) -> None:
    """Make the files under ``root``, which are as ``before`` says, as ``after`` says."""
    changes = compare(before, after)
    for path in changes.deleted:
        target = names.inside(root, root / path)
        target.unlink()
        _remove_empty(target.parent, root)
    for path in (*changes.added, *changes.modified):
        write_bytes(names.inside(root, root / path), after[path].data)


def _remove_empty(folder: Path, root: Path) -> None:
    """Remove a folder that holds nothing any more, and those above it, but not a layer."""
    while folder.parent not in (root, root.resolve()) and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent
