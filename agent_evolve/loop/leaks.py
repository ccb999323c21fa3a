"""Finds text of held-out tasks, their answers and judge wording in a changed workspace.

What counts is a run of words that the changed lines share with what is secret, and that neither
the head nor the train tasks have. Encoded copies (base64, hex, rot13), paraphrases and letters of
another alphabet that look alike are not found.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from ..benchmarks.records import texts_in
from ..types import Task
from .shared_words import WORD, Phrases, Words, lines_of, read_words, runs, strange, units, words_of

Kind = Literal["task", "answer", "judge"]

RUN = 8 * WORD
"""Units of a run of task text or judge wording that counts: 8 words, 16 characters of Chinese.

Among 230,000 words of manuals, the runs of 8 words that 1.3 million words of other projects'
manuals have too were none; of 7 there were 9, of 6 there were 61.
"""

ANSWER_RUN = 12 * WORD
"""The same for a part of a long answer. Answers up to this length count whole."""

KNOWN_RUN = 4 * WORD
"""Runs of 4 words that the head or train has make their words known; at least half of a run that
counts is not known, so a shared instruction and one more word is no leak."""

WHOLE = 4 * WORD
"""Task texts and judge wording from this length on count whole, where they are too short, or too
like train tasks, to be found by runs."""

TOLD_WHOLE = 5 * WORD
"""Answers from this length on count wherever they stand."""

NEAR_SHARE = 0.6
"""A shorter answer counts only near this share of its task's words, rare ones weighing more."""

LABEL_SHARE = 0.02
"""An answer of at least two train tasks, and this share of them, is a label: a rule that gives it
is what an agent should learn, so it does not count as a short answer."""

NEAR_OWN = 0.2
"""The least share of them that is not in a train task with the same answer."""

NEAR_MOST = 40
"""Tasks of more different words than this are found by their runs only."""

_SHOWN = 120
_COMMON = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be by can did do does for from has have how i if in is it its me my no "
        "not of on or that the their there they this to was we were what when where which who why "
        "will with would you your",
    )
)


@dataclass(frozen=True, slots=True)
class Leak:
    """Words of a task, an answer or a judge in a file of a candidate.

    ``line`` counts from 1, ``text`` is what the file has there, at most 120 characters. ``split``
    and ``task_id`` are ``""`` for the wording of a judge.
    """

    path: str
    line: int
    text: str
    kind: Kind
    split: str
    task_id: str

    @property
    def refused(self) -> bool:
        """Whether a candidate with it must not be measured; answers of train tasks are reported."""
        return self.split != "train"

    def place(self) -> str:
        """Where and what kind it is, without a secret word: fit for an engine to read."""
        whose = {"task": f"a {self.split} task", "judge": "the judge"}
        whose["answer"] = f"the answer of a {self.split} task"
        return f"{_printable(self.path)}:{self.line} holds words of {whose[self.kind]}"

    def __str__(self) -> str:
        """For people only: it quotes the text and names the task."""
        whose = {"task": f"{self.split} task {self.task_id!r}", "judge": "the judge"}
        whose["answer"] = f"the answer of {self.split} task {self.task_id!r}"
        return (
            f"{_printable(self.path)}:{self.line} holds words of {whose[self.kind]}: {self.text!r}"
        )


@dataclass(frozen=True, slots=True)
class SecretTask:
    """A task as no candidate may repeat it. ``text`` is what is asked, ``context`` further texts
    that the agent gets with it, ``answers`` what the graders know."""

    split: str
    id: str
    text: str
    context: Sequence[str] = ()
    answers: Sequence[str] = ()


@dataclass(frozen=True)
class Secrets:
    """The tasks of all splits, train included, and the wording of judges.

    What is looked for is prepared at the first use and kept, so make one and use it for a run.
    """

    tasks: Sequence[SecretTask]
    judge: Sequence[str] = ()

    @cached_property
    def _index(self) -> _Index:
        return _Index(self)


def secrets_of(benchmark: Any, tasks_by_split: Mapping[str, Iterable[Task]]) -> Secrets:
    """What a candidate may not hold, from the tasks of ``train``, ``holdout`` and ``test``.

    Asks the benchmark for ``answers_of(task)`` and ``judge_texts()`` where it has these methods (an
    attribute of that name that can't be called is none); what they raise goes through. A task that
    a split before it has (in this order) is left out.
    """
    answers = getattr(benchmark, "answers_of", None)
    judge_texts = getattr(benchmark, "judge_texts", None)
    found: dict[str, SecretTask] = {}
    for split in ("train", "holdout", "test"):
        for task in tasks_by_split.get(split, ()):
            if task.id in found:
                continue
            told = _as_texts(answers(task)) if callable(answers) else ()
            context = tuple(texts_in(task.metadata, but="directory"))
            found[task.id] = SecretTask(split, task.id, task.input, context, told)
    return Secrets(tuple(found.values()), _as_texts(judge_texts()) if callable(judge_texts) else ())


def find_leaks(
    before: Mapping[str, bytes],
    after: Mapping[str, bytes],
    secrets: Secrets,
    remembers: Sequence[str] = ("memory",),
) -> tuple[Leak, ...]:
    """Leaks of a candidate, by path and line; each names its first line that differs.

    Args:
        before: path and content of the head's files.
        after: the same of the candidate. Only files and lines that differ are looked at.
        secrets: what may not be there.
        remembers: layers (first directories) where answers of train tasks may stand.
    """
    head = _Head(before, secrets._index)
    found: list[Leak] = []
    for path, content in sorted(after.items()):
        if before.get(path) == content:
            continue
        text = read_words(content)
        changed = _changed(text, before.get(path))
        if any(changed):
            train = path.split("/", 1)[0] not in remembers
            found += _File(path, text, changed, head, train).leaks()
    return tuple(sorted(set(found), key=lambda leak: (leak.path, leak.line, str(leak))))


@dataclass(frozen=True, slots=True)
class _Source:
    """Where a secret text is from."""

    kind: Kind
    split: str = ""
    task_id: str = ""


@dataclass(frozen=True, slots=True)
class _Short:
    """An answer that tells nothing without its task: weights of the task's words, which sum to 1,
    and the words of each train task with the same answer."""

    source: _Source
    answer: Sequence[str]
    weights: Mapping[str, float]
    train: Sequence[frozenset[str]]

    @property
    def reach(self) -> int:
        """How many words around the answer are near."""
        return 2 * len(self.weights) + 8


class _Index:
    """Everything secret, ready to be looked up."""

    def __init__(self, secrets: Secrets) -> None:
        self.sources: list[_Source] = []
        self.pieces: dict[int, dict[int, int]] = {RUN: {}, ANSWER_RUN: {}}
        self.phrases = Phrases()
        self.short: list[_Short] = []
        self._whole: list[int] = []
        self._words: dict[str, list[str]] = {}
        self._count = len(secrets.tasks)
        self._held = Counter(w for task in secrets.tasks for w in set(self._read(task.text)))
        self._take_train([task for task in secrets.tasks if task.split == "train"])
        self._take_secrets(secrets)
        self._leave_out_known()

    def _read(self, text: str) -> list[str]:
        if text not in self._words:
            self._words[text] = words_of(text)
        return self._words[text]

    def _take_train(self, train: Sequence[SecretTask]) -> None:
        """What an agent may know: texts and answers of train, and the tasks with each answer."""
        self._trains = len(train)
        self._asked = [self._read(text) for task in train for text in (task.text, *task.context)]
        self._vocabulary = {word for words in self._asked for word in words}
        self._train_with: dict[tuple[str, ...], list[frozenset[str]]] = {}
        for task in train:
            for text in task.answers:
                told = tuple(self._read(text))
                self._train_with.setdefault(told, []).append(frozenset(self._read(task.text)))

    def _take_secrets(self, secrets: Secrets) -> None:
        asked = {piece for words in self._asked for _, _, piece in runs(words, KNOWN_RUN)}
        known = asked | {p for words in self._train_with for _, _, p in runs(words, KNOWN_RUN)}
        for task in secrets.tasks:
            train = task.split == "train"
            if not train:
                source = self._source(_Source("task", task.split, task.id))
                self._add_text(source, task.text, known)
                for text in task.context:
                    self._add_runs(source, self._read(text), known, RUN)
            source = self._source(_Source("answer", task.split, task.id))
            for text in task.answers:
                self._add_answer(source, task, text, asked if train else known)
        source = self._source(_Source("judge"))
        for text in secrets.judge:
            self._add_text(source, text, known)

    def _source(self, source: _Source) -> int:
        self.sources.append(source)
        return len(self.sources) - 1

    def _add_text(self, source: int, text: str, known: set[int]) -> None:
        words = self._read(text)
        if not self._add_runs(source, words, known, RUN) and units(words) >= WHOLE:
            self._add_whole(words, source)

    def _add_runs(self, source: int, words: Sequence[str], known: set[int], size: int) -> bool:
        """Take the runs that are not known, and say whether there are any."""
        sums = strange(words, known, KNOWN_RUN)
        any_taken = False
        for start, end, piece in runs(words, size):
            if 2 * (sums[end] - sums[start]) >= size:
                self.pieces[size].setdefault(piece, source)
                any_taken = True
        return any_taken

    def _add_answer(self, source: int, task: SecretTask, text: str, known: set[int]) -> None:
        words = self._read(text)
        train = task.split == "train"
        if not words or (train and self._is_label(words)):
            return
        if units(words) > ANSWER_RUN:
            self._add_runs(source, words, known, ANSWER_RUN)
        elif self._tells(words):
            self._add_whole(words, source)
        if units(words) < TOLD_WHOLE and not self._is_label(words):
            self._add_short(source, task, words)

    def _is_label(self, words: Sequence[str]) -> bool:
        same = len(self._train_with.get(tuple(words), ()))
        return same >= 2 and same >= LABEL_SHARE * self._trains

    def _tells(self, words: Sequence[str]) -> bool:
        """Whether an answer is unusual enough to count wherever it stands."""
        if units(words) >= TOLD_WHOLE:
            return True
        text = "".join(words)
        digits = re.sub(r"\D", "", text)
        if len(digits) >= 8 and len(set(digits)) >= 5:
            return True
        mixed = any(re.search(r"\d", w) and re.search(r"[^\W\d]", w) for w in words)
        rare = any(word not in self._vocabulary and word not in _COMMON for word in words)
        return len(text) >= 12 and (mixed or (len(words) >= 3 and len(text) >= 16 and rare))

    def _add_short(self, source: int, task: SecretTask, answer: Sequence[str]) -> None:
        words = {w for w in self._read(task.text) if _says_something(w)} - set(answer)
        if not 2 <= len(words) <= NEAR_MOST:
            return
        weights = {word: math.log(1 + self._count / self._held[word]) for word in words}
        total = sum(weights.values())
        train = [] if task.split == "train" else self._train_with.get(tuple(answer), [])
        shares = {word: weight / total for word, weight in weights.items()}
        self.short.append(_Short(self.sources[source], answer, shares, train))

    def _add_whole(self, words: Sequence[str], source: int) -> None:
        self.phrases.add(words, len(self._whole))
        self._whole.append(source)

    def _leave_out_known(self) -> None:
        """Forget phrases that train has; an answer of train only where a train task has it."""
        had = {number for words in self._asked for _, _, number in self.phrases.find(words)}
        for words in self._train_with:
            for _, _, number in self.phrases.find(words):
                if self.sources[self._whole[number]].split != "train":
                    had.add(number)
        self._had = had

    def find_whole(self, words: Sequence[str]) -> Iterator[tuple[int, int, int]]:
        """Start, end and source of what counts whole."""
        for start, end, number in self.phrases.find(words):
            if number not in self._had:
                yield start, end, self._whole[number]


@dataclass
class _Head:
    """What the head has, read once something was found."""

    before: Mapping[str, bytes]
    index: _Index

    @cached_property
    def texts(self) -> Sequence[Words]:
        return [read_words(content) for _, content in sorted(self.before.items())]

    @cached_property
    def known(self) -> set[int]:
        return {piece for text in self.texts for _, _, piece in runs(text.words, KNOWN_RUN)}

    @cached_property
    def phrases(self) -> set[tuple[str, ...]]:
        return {
            tuple(text.words[start:end])
            for text in self.texts
            for start, end, _ in self.index.find_whole(text.words)
        }

    def tells(self, short: _Short) -> bool:
        return any(_near(short, text) is not None for text in self.texts)


@dataclass
class _File:
    """A changed file. ``changed`` says of each word whether its line is new."""

    path: str
    text: Words
    changed: Sequence[bool]
    head: _Head
    train: bool
    index: _Index = field(init=False)

    def __post_init__(self) -> None:
        self.index = self.head.index

    def leaks(self) -> Iterator[Leak]:
        told = set()
        for start, end, source in [*self._runs(), *self._phrases()]:
            told.add((source.split, source.task_id))
            yield self._leak(start, end, source)
        for short in self.index.short:
            source = short.source
            known = (source.split, source.task_id) in told
            if known or (source.split == "train" and not self.train):
                continue
            span = _near(short, self.text, self.changed)
            if span is not None and not self.head.tells(short):
                yield self._leak(*span, source)

    def _leak(self, start: int, end: int, source: _Source) -> Leak:
        first = next(at for at in range(start, end) if self.changed[at])
        shown = self.text.as_written(start, end, _SHOWN)
        line = self.text.lines[first]
        return Leak(self.path, line, shown, source.kind, source.split, source.task_id)

    def _wanted(self, start: int, end: int, number: int) -> _Source | None:
        source = self.index.sources[number]
        if source.split == "train" and not self.train:
            return None
        return source if any(self.changed[start:end]) else None

    def _runs(self) -> Iterator[tuple[int, int, _Source]]:
        """Runs that are shared, those of one task that touch each other as one."""
        open_runs: dict[_Source, tuple[int, int]] = {}
        for size, pieces in self.index.pieces.items():
            for start, end, piece in runs(self.text.words, size) if pieces else ():
                if piece not in pieces:
                    continue
                source = self._wanted(start, end, pieces[piece])
                if source is None or 2 * (self._strange[end] - self._strange[start]) < size:
                    continue
                first, last = open_runs.get(source, (start, end))
                if start > last:
                    yield first, last, source
                    first = start
                open_runs[source] = first, end
        for source, (start, end) in open_runs.items():
            yield start, end, source

    @cached_property
    def _strange(self) -> Sequence[int]:
        return strange(self.text.words, self.head.known, KNOWN_RUN)

    def _phrases(self) -> Iterator[tuple[int, int, _Source]]:
        for start, end, number in self.index.find_whole(self.text.words):
            source = self._wanted(start, end, number)
            if source and tuple(self.text.words[start:end]) not in self.head.phrases:
                yield start, end, source


def _near(
    short: _Short, text: Words, changed: Sequence[bool] | None = None
) -> tuple[int, int] | None:
    """Where a short answer stands with enough of its task's words near it, in a changed line."""
    for start in _candidates(short, text):
        end = start + len(short.answer)
        if list(text.words[start:end]) != list(short.answer):
            continue
        low, high = max(0, start - short.reach), min(len(text.words), end + short.reach)
        places = [at for at in range(low, high) if text.words[at] in short.weights]
        seen = {text.words[at] for at in places}
        if not _enough(short, seen):
            continue
        low, high = min([start, *places]), max([end, *(at + 1 for at in places)])
        if changed is None or any(changed[at] for at in [start, *places]):
            return low, high
    return None


def _enough(short: _Short, seen: set[str]) -> bool:
    share = math.fsum(short.weights[word] for word in seen)
    if len(seen) < 2 or share < NEAR_SHARE:
        return False
    return all(
        math.fsum(short.weights[word] for word in seen - words) >= NEAR_OWN for words in short.train
    )


def _candidates(short: _Short, text: Words) -> Sequence[int]:
    """Where the answer may stand with its task near it.

    Whatever has enough of the task has one of its seldom words: those that, with the words that the
    text lacks, weigh more than may be missing.
    """
    answers = text.places.get(short.answer[0], ())
    if not answers:
        return ()
    spare = 1 - NEAR_SHARE
    seldom: list[int] = []
    for word in sorted(short.weights, key=lambda w: len(text.places.get(w, ()))):
        if spare < 0:
            break
        spare -= short.weights[word]
        seldom += text.places.get(word, ())
    if not seldom or spare >= 0:
        return ()
    if len(answers) <= len(seldom):
        return answers
    reach = short.reach + len(short.answer)
    found: set[int] = set()
    for at in seldom:
        found.update(answers[bisect_left(answers, at - reach) : bisect_right(answers, at + reach)])
    return sorted(found)


def _changed(text: Words, before: bytes | None) -> Sequence[bool]:
    if before is None:
        return [True] * len(text.words)
    had = set(lines_of(before))
    new = [line not in had for line in text.source]
    return [new[line - 1] for line in text.lines]


def _as_texts(told: Any) -> tuple[str, ...]:
    """What a benchmark of the user's tells; a single text is a list of one."""
    return (told,) if isinstance(told, str) else tuple(map(str, told))


def _says_something(word: str) -> bool:
    """A single digit or letter stands near anything."""
    return word not in _COMMON and (len(word) > 1 or not word.isascii())


def _printable(path: str) -> str:
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in path)
