"""The prompt of one step, built from values alone: same input, same prompt, never above budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from ...types import CycleRecord, Observation
from . import wording
from .budget import Piece, Section, allocate
from .fence import Fence
from .observed import Case, brief, choose, patterns, rank, tally
from .options import Settings
from .tree import PROMPT, Tree, draft_of, skill_names

OBSERVATION_CHARS = 4_000
"""Characters of one observation in the prompt when there is room for all."""


@dataclass(frozen=True, slots=True)
class Past:
    """What is known of earlier cycles; all of it may be empty.

    ``curve`` has (cycle, score); ``cycles`` what each tried and what became of it; ``failures``
    older observations that were not solved then.
    """

    curve: Sequence[tuple[int, float]] = ()
    cycles: Sequence[CycleRecord] = ()
    failures: Sequence[Observation] = ()


@dataclass(frozen=True, slots=True)
class Context:
    """A finished prompt. ``whole`` holds the paths of the files that it shows with nothing left
    out: only these can be replaced without having been read."""

    system: str
    prompt: str
    fence: Fence
    cases: Sequence[Case]
    whole: frozenset[str]


def build_context(
    tree: Tree,
    observations: Sequence[Observation],
    past: Past,
    *,
    layers: tuple[str, ...],
    locked: tuple[str, ...],
    settings: Settings,
) -> Context:
    """The prompt, system part included, in at most ``settings.context_chars`` characters.

    Args:
        tree: all files of the workspace's layers.
        observations: this cycle's; invalid ones are left out.
        layers: those that may be changed.
        locked: what may not be changed although its layer may.
    """
    cases = rank(observations)
    sections = [
        _observations(cases, settings),
        _earlier(past.failures, observations),
        _prompts(tree),
        _skills(tree),
        _drafts(tree),
        _memory(tree),
        _tools(tree),
        _history(past),
    ]
    sections = [section for section in sections if section.pieces or section.empty]
    if settings.edit_mode == "answer":
        sections = [section.without_places() for section in sections]
    fence = Fence.around(piece.text for section in sections for piece in section.pieces)
    system = wording.system_prompt(
        mode=settings.edit_mode,
        tag=fence.tag,
        layers=layers,
        max_skills=settings.options.max_skills,
        max_skill_chars=settings.options.max_skill_chars,
        has_skills=bool(skill_names(tree)),
        has_drafts=any(draft_of(path) for path in tree),
    )
    head = _head(cases, tree, locked)
    closing = "\n" + wording.CLOSING[settings.edit_mode]
    room = settings.context_chars - len(system) - len(head) - len(closing)
    shares = allocate(
        {i: section.need() for i, section in enumerate(sections)},
        room,
        {i: section.weight for i, section in enumerate(sections)},
    )
    rendered = [section.render(shares[i], fence) for i, section in enumerate(sections)]
    prompt = head + "".join(text for text, _ in rendered) + closing
    whole = frozenset(label for _, labels in rendered for label in labels if label in tree)
    return Context(system, prompt, fence, cases, whole)


def _head(cases: Sequence[Case], tree: Tree, locked: tuple[str, ...]) -> str:
    lines = [tally(cases)]
    found = patterns(cases)
    if len(found) > 1:
        lines.append(f"The failures are of {len(found)} kinds (by their feedback).")
    if locked:
        lines.append("Locked, don't change: " + ", ".join(locked)[:500])
    return "\n".join(lines) + "\n"


def _observations(cases: Sequence[Case], settings: Settings) -> Section:
    shown = choose(cases, settings.options.observations_shown)
    pieces = [
        Piece(
            case.label,
            brief(case.observation, OBSERVATION_CHARS),
            f"$OBSERVATIONS/{case.file_name}",
            # Each field is cut by its own share, so that a long task can't hide the feedback.
            partial(brief, case.observation),
        )
        for case in shown
    ]
    title = f"What the agent did on the last tasks ({len(shown)} of {len(cases)} shown)"
    return Section(title, pieces, 5.0, "There is no observation.")


def _earlier(failures: Sequence[Observation], now: Sequence[Observation]) -> Section:
    current = {observation.task.id for observation in now}
    newest: dict[str, Observation] = {}
    for observation in failures:
        if observation.task.id not in current:
            newest[observation.task.id] = observation
    pieces = [
        Piece(f"cycle {observation.cycle}", brief(observation, 500))
        for observation in list(newest.values())[-8:]
    ]
    return Section("Failures of earlier cycles, which may be mended already", pieces, 0.7)


def _prompts(tree: Tree) -> Section:
    paths = [p for p in tree if p.startswith("prompts/") and p != PROMPT]
    pieces = _files(tree, [p for p in (PROMPT, *paths) if p in tree])
    return Section("Prompts, as they are now", pieces, 2.0, f"{PROMPT} does not exist yet.")


def _skills(tree: Tree) -> Section:
    inside = [p for p in tree if p.startswith("skills/") and draft_of(p) is None]
    paths = [p for p in inside if p.endswith("/SKILL.md") and p.count("/") == 2]
    others = [p for p in inside if p not in paths]
    pieces = _files(tree, paths)
    if others:
        pieces.append(Piece("other files of skills", "\n".join(others)))
    return Section(f"Skills, as they are now ({len(paths)})", pieces, 3.0, "There is no skill yet.")


def _drafts(tree: Tree) -> Section:
    return Section(
        "Drafts waiting for a decision", _files(tree, [p for p in tree if draft_of(p)]), 1.0
    )


def _memory(tree: Tree) -> Section:
    pieces = []
    for path in tree:
        if path.startswith("memory/"):
            lines = _text(tree, path).splitlines()
            newest = "\n".join(lines[-40:])
            # A file with lines left out does not count as shown whole: its label is no path.
            label = path if len(lines) <= 40 else f"{path}, newest 40 of {len(lines)} lines"
            pieces.append(Piece(label, newest, path))
    return Section("Memory", pieces, 1.0, "There is no memory yet.")


def _tools(tree: Tree) -> Section:
    shown = ("prompts/", "skills/", "memory/")
    return Section(
        "Other files of the agent", _files(tree, [p for p in tree if not p.startswith(shown)]), 0.7
    )


def _history(past: Past) -> Section:
    lines = []
    if past.curve:
        curve = ", ".join(f"cycle {cycle}: {score:.2f}" for cycle, score in past.curve[-20:])
        lines.append(f"scores so far: {curve}")
    lines += [_told(record) for record in past.cycles[-8:]]
    pieces = [Piece("past cycles", "\n".join(lines))] if lines else []
    return Section("Past cycles: scores, what was tried, what became of it", pieces, 1.0)


def _told(record: CycleRecord) -> str:
    """A cycle in a line. The reason is told for failed steps and for a person's no: that of a
    verdict is about the measurement, which an engine must not see."""
    score = "" if record.score is None else f", batch score {record.score:.2f}"
    reason = f" ({record.reason[:200]})" if record.verdict == "failed" and record.reason else ""
    if record.because:
        reason = f" (a person said no: {record.because[:400]})"
    return f"cycle {record.cycle}: {record.verdict}{reason}{score}: {record.summary[:400]}"


def _files(tree: Tree, paths: Sequence[str]) -> list[Piece]:
    return [Piece(path, _text(tree, path), path) for path in paths]


def _text(tree: Tree, path: str) -> str:
    entry = tree[path]
    if not entry.is_file or b"\0" in entry.data:
        return f"({len(entry.data)} bytes, not text)" if entry.is_file else "(a link)"
    return entry.data.decode("utf-8", "replace").replace("\r\n", "\n")
