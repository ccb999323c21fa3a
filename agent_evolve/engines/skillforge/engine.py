"""The engine: from observations to changed files and an account of what changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...types import Observation, StepResult
from ..base import EvolutionEngine, History, Trial
from .answer import edit_by_answer
from .changes import Changes, compare
from .context import Context, Past, build_context
from .observed import group_of
from .options import Options, Settings
from .outcome import Outcome
from .rules import Rules
from .shell import edit_in_shell
from .tree import Tree, draft_of, scan

if TYPE_CHECKING:
    from ...workspace import AgentWorkspace


class SkillForge(EvolutionEngine):
    """The default engine: a model reads how the agent did and edits its files.

    It can edit prompts and fragments, create, change, merge and delete skills, write memory, and
    accept or reject the agent's drafts. See ``Options`` for the keyword arguments.

        engine: {name: skillforge, edit_mode: answer, max_turns: 10}

    Each step makes up to ``max_turns`` calls of the model (and up to 6 more to mend files that
    can't be used) in shell mode, one or two in answer mode, and none when every task of the batch
    was solved with full score and no draft waits.
    """

    needs_model = True

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = Options.of(options)
        # Which mode "auto" means depends on the model, which is not known yet.
        self.needs_sandbox = self.options.edit_mode != "answer"

    def step(
        self,
        workspace: AgentWorkspace,
        observations: Sequence[Observation],
        history: History,
        trial: Trial,
    ) -> StepResult:
        """Change the files of ``workspace``; see the base class.

        ``metadata`` of the result: ``edit_mode``, ``turns``, ``ended`` (why early, or empty),
        ``layers``, ``skills``, ``prompt_chars`` and ``drafts`` as counted from the files.

        Raises ``ModelError`` when the model fails or leaves nothing usable, ``BudgetExceeded`` and
        ``ConfigurationError`` as the model and the sandbox do.
        """
        manifest = workspace.manifest
        before = scan(workspace.root, manifest.layers)
        reason = _nothing_to_do(before, observations)
        if reason:
            return StepResult(False, f"no change: {reason}", compare(before, before).as_metadata())
        model = self.runtime.require_model("the engine skillforge")
        settings = self.options.for_model(model.name, self.runtime.max_tokens)
        rules = self._rules(manifest.evolvable_layers, manifest.locked)
        context = build_context(
            before,
            observations,
            past_of(history),
            layers=rules.layers,
            locked=rules.locked,
            settings=settings,
        )
        outcome = self._edit(workspace, before, context, rules, settings)
        return _result(compare(before, outcome.after), outcome, settings)

    def _edit(
        self,
        workspace: AgentWorkspace,
        before: Tree,
        context: Context,
        rules: Rules,
        settings: Settings,
    ) -> Outcome:
        model = self.runtime.require_model("the engine skillforge")
        if settings.edit_mode == "answer":
            return edit_by_answer(model, context, before, workspace.root, rules, settings)
        sandbox = self.runtime.require_sandbox("the engine skillforge with edit_mode: shell")
        layers = workspace.manifest.layers
        return edit_in_shell(
            model, sandbox, context, before, workspace.root, layers, rules, settings
        )

    def _rules(self, layers: tuple[str, ...], locked: tuple[str, ...]) -> Rules:
        return Rules(
            layers=layers,
            locked=locked,
            max_skills=self.options.max_skills,
            max_skill_chars=self.options.max_skill_chars,
            max_growth_bytes=self.options.max_growth_mb * 1024**2,
        )


def past_of(history: History) -> Past:
    """What a history offers; one that has no record of cycles is asked for the rest alone."""
    return Past(
        curve=tuple(history.get_score_curve()),
        cycles=tuple(getattr(history, "cycles", ())),
        failures=tuple(history.get_observations(last_n_cycles=3, only_failures=True)),
    )


def _nothing_to_do(before: Tree, observations: Sequence[Observation]) -> str:
    valid = [o for o in observations if o.status != "invalid"]
    if any(draft_of(path) for path in before):
        return ""
    if not valid:
        return "there is no valid observation to learn from"
    if all(group_of(o) == "solved" and o.feedback.score >= 1.0 for o in valid):
        return f"all {len(valid)} tasks of the batch were solved"
    return ""


def _result(changes: Changes, outcome: Outcome, settings: Settings) -> StepResult:
    words = outcome.words.strip()
    summary = words or changes.in_words()
    if not changes:
        summary = f"no change: {words or outcome.ended or 'the model gave no reason'}"
    if outcome.ended and outcome.ended not in summary:
        summary += f" [{outcome.ended}]"
    metadata = {
        "edit_mode": settings.edit_mode,
        "ended": outcome.ended,
        **outcome.counts,
        **changes.as_metadata(),
    }
    return StepResult(bool(changes), summary, metadata)
