"""Guided synthesis, the half that needs no model: failures become memory before anything else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from ...errors import ConfigurationError, UnknownNameError
from ...types import Observation, StepResult
from ..base import EvolutionEngine, History, Trial
from .cases import labelled
from .evidence import Evidence
from .examples import diverse, merge, written_as
from .lessons import learn
from .memory import Memory
from .rules import revise, rule_from

if TYPE_CHECKING:
    from ...workspace import AgentWorkspace


@dataclass(frozen=True, slots=True)
class Options:
    """Bounds of what is written: whole numbers, at least 0.

    Attributes:
        max_examples: corrected failures in ``memory/examples.jsonl``.
        max_rules: rules in ``memory/rules.jsonl``.
        max_lessons: lessons in ``memory/episodic.jsonl``.
        history_cycles: past cycles whose observations count as evidence, at least 1; what was
            learned for a refused candidate is learned again from them.
        write_rules: whether rules are written at all; existing ones are left as they are if not.
    """

    max_examples: int = 200
    max_rules: int = 60
    max_lessons: int = 40
    history_cycles: int = 20
    write_rules: bool = True

    @classmethod
    def checked(cls, options: Mapping[str, Any]) -> Options:
        """Options as written in a manifest. Raises ``UnknownNameError`` for a name that is none of
        them, and ``ConfigurationError`` for a value out of range."""
        known = {field.name for field in fields(cls)}
        for name, value in options.items():
            if name not in known:
                raise UnknownNameError("option of engine guided-synthesis", name, known)
            low = 1 if name == "history_cycles" else 0
            right = type(value) is bool if name == "write_rules" else type(value) is int
            if not right or value < low:
                wanted = "true or false" if name == "write_rules" else f"a whole number from {low}"
                raise ConfigurationError(
                    f"engine option {name} is {value!r}; it must be {wanted}",
                    fix=f"change or remove '{name}:' under 'engine:' in manifest.yaml",
                )
        return cls(**options)


class GuidedSynthesis(EvolutionEngine):
    """Turns failures of train tasks into examples, rules and lessons in ``memory/``.

    * ``examples.jsonl``: failed tasks with their right answers, near-duplicates merged;
    * ``rules.jsonl``: patterns that failures with the same label share, dropped when what is known
      contradicts them or another rule makes them superfluous;
    * ``episodic.jsonl``: one short sentence per kind of failure, with how often it happened.

    Calls no model, reads no clock and draws no random number: the same past gives the same files.
    Entries of other origin in these files and drafts that the agent left are not touched.
    Options: see ``Options``.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = Options.checked(options)

    def step(
        self,
        workspace: AgentWorkspace,
        observations: Sequence[Observation],
        history: History,
        trial: Trial,
    ) -> StepResult:
        memory = Memory.read(workspace)
        past = history.get_observations(last_n_cycles=self.options.history_cycles)
        evidence = Evidence.gather(memory.cases, past, observations)
        revised = self._revised(memory, evidence)
        mutated = revised.write(workspace, memory)
        return StepResult(
            mutated,
            _summary(memory, revised, evidence) if mutated else f"no change: {evidence.in_words}",
            {
                "failures": len(evidence.failed_now),
                "failures_without_answer": sum(c.expected is None for c in evidence.failed_now),
                "kept": revised.sizes,
                "drafts_left_alone": len(workspace.list_drafts()),
            },
        )

    def _revised(self, memory: Memory, evidence: Evidence) -> Memory:
        options = self.options
        learnable = labelled(evidence.known)
        labels = frozenset(case.category for case in learnable)
        cases = diverse(merge(memory.cases, evidence.to_correct), options.max_examples, labels)
        written = dict(zip(memory.cases, memory.examples, strict=True))
        rules = memory.rules
        if options.write_rules:
            lines = {(r.when, r.answer): entry for entry in rules if (r := rule_from(entry))}
            standing = [rule for entry in lines.values() if (rule := rule_from(entry))]
            kept = revise(standing, learnable, options.max_rules)
            rules = [rule.entry(lines.get((rule.when, rule.answer))) for rule in kept]
        return Memory(
            examples=[written_as(case, written.get(case)) for case in cases],
            rules=rules,
            lessons=learn(memory.lessons, evidence, labels, options.max_lessons),
        )


def _summary(before: Memory, after: Memory, evidence: Evidence) -> str:
    """``20 tasks, 14 failed: 14 examples (+14), 3 rules (+3), 6 lessons (+6)``."""
    sizes = [
        f"{size} {name} ({size - before.sizes[name]:+d})" for name, size in after.sizes.items()
    ]
    return f"{evidence.in_words}: {', '.join(sizes)}"
