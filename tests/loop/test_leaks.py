"""Texts of held-out tasks, their answers and judge wording in a candidate's files."""

from __future__ import annotations

import json
import random
import time
from itertools import accumulate
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_evolve.benchmarks.local import LocalTasks, literals
from agent_evolve.loop.leaks import Leak, Secrets, SecretTask, find_leaks, secrets_of
from agent_evolve.types import Task

SKILL = "skills/x/SKILL.md"
RULES = b"# Rules\n\nBe brief. Answer in one word.\n"
HELD = (
    "A customer of the northern branch returned seven broken kettles after the spring sale; "
    "which form has to be filed before the refund?"
)
TRAIN = (
    "Our warehouse in Gdansk received ninety crates without labels; who signs the delivery note "
    "when the foreman is away?"
)


def secrets(
    holdout: str = HELD,
    answers: tuple[str, ...] = (),
    *,
    train: tuple[tuple[str, tuple[str, ...]], ...] = ((TRAIN, ("The deputy",)),),
    test: str = "",
    judge: tuple[str, ...] = (),
) -> Secrets:
    tasks = [SecretTask("train", f"t{i}", text, (), told) for i, (text, told) in enumerate(train)]
    tasks.append(SecretTask("holdout", "h1", holdout, (), answers))
    if test:
        tasks.append(SecretTask("test", "x1", test))
    return Secrets(tuple(tasks), judge)


def leaks(text: str | bytes, known: Secrets, path: str = SKILL, head: bytes = RULES) -> list[Leak]:
    new = text.encode() if isinstance(text, str) else text
    return list(find_leaks({path: head}, {path: head + new}, known))


def test_a_copied_task_is_refused_and_its_place_is_shown():
    (leak,) = leaks(f"\nExample:\n{HELD}\n", secrets())
    assert (leak.path, leak.line, leak.kind, leak.split, leak.task_id) == (
        SKILL,
        6,
        "task",
        "holdout",
        "h1",
    )
    assert leak.refused
    assert leak.text.startswith("A customer of the northern branch")
    assert len(leak.text) <= 120
    assert str(leak).startswith(f"{SKILL}:6 holds words of holdout task 'h1': 'A customer")


def test_what_an_engine_may_read_of_it_repeats_no_word_of_the_task():
    (leak,) = leaks(HELD, secrets())
    assert leak.place() == f"{SKILL}:4 holds words of a holdout task"


DISGUISES = {
    "upper case": str.upper,
    "no punctuation": lambda text: text.replace(";", "").replace("?", ""),
    "markup": lambda text: " ".join(f"**{word}**" for word in text.split()),
    "a word a line": lambda text: "\n".join(text.split()),
    "quoted lines": lambda text: "\n".join(f"> {w}\n>" for w in text.split()),
    "zero-width": lambda text: "\u200b".join(text),
    "soft hyphens": lambda text: text.replace("e", "e\u00ad"),
    "full width": lambda text: "".join(
        chr(ord(c) + 0xFEE0) if "a" <= c <= "z" else c for c in text
    ),
    "accents": lambda text: text.replace("e", "e\u0301"),
    "snake case": lambda text: text.replace(" ", "_"),
    "JSON": lambda text: json.dumps({"x": text.replace(" ", "\n")}),
    "carriage returns": lambda text: text.replace(" ", "\r"),
}


@pytest.mark.parametrize("disguise", DISGUISES.values(), ids=DISGUISES)
def test_disguises_make_no_difference(disguise):
    found = leaks("\nsee:\n" + disguise(HELD), secrets())
    assert [(leak.line, leak.split) for leak in found] == [(6, "holdout")]


def test_a_file_in_utf_16_is_read():
    found = find_leaks({}, {"tools/a.txt": HELD.encode("utf-16")}, secrets())
    assert [leak.line for leak in found] == [1]


def test_part_of_a_task_is_enough_and_seven_words_are_not():
    words = HELD.split()
    assert leaks(" ".join(words[4:12]), secrets())
    assert not leaks(" ".join(words[4:11]), secrets())


def test_a_test_task_counts_too():
    other = "Seventeen ferries left the harbour of Bergen although the storm warning was in force."
    (leak,) = leaks(other, secrets(test=other))
    assert (leak.split, leak.task_id, leak.refused) == ("test", "x1", True)


def test_chinese_has_no_spaces():
    task = "北部分店的一位顾客在春季促销之后退回了七个坏掉的水壶请问退款之前必须提交哪一张表格"
    (leak,) = leaks(f"示例：\n{task[:20]}\n", secrets(task))
    assert leak.line == 5
    assert not leaks(task[:10], secrets(task))


def test_a_short_task_counts_whole():
    known = secrets("Name the tallest Peruvian volcano")
    assert leaks("- name the tallest *Peruvian* volcano!", known)
    assert not leaks("Name the tallest volcano", known)


def test_a_shared_instruction_is_no_leak():
    prefix = "Read the ticket below and answer with the one category that fits it best. Ticket: "
    train = tuple((f"{prefix}{word} is late", ()) for word in ("train", "parcel", "salary"))
    known = secrets(f"{prefix}Which lamp burns longest in frost and fog?", train=train)
    assert not leaks(f"{prefix}Which of them is it?", known)
    assert leaks("Which lamp burns longest in frost and fog?", known)


def test_a_task_from_a_template_counts_whole_though_its_words_are_known():
    known = secrets(
        "Convert 17 miles into kilometres and round to two decimals",
        train=(("Convert 5 miles into kilometres and round to two decimals", ("8.05",)),),
    )
    assert leaks("Convert 17 miles into kilometres and round to two decimals", known)
    assert not leaks("Convert 5 miles into kilometres and round to two decimals", known)
    assert not leaks("Convert 6 miles into kilometres and round to two decimals", known)


def test_what_the_head_has_is_no_leak_wherever_it_is_moved():
    head = HELD.encode()
    before = {"prompts/system.md": head}
    after = {"prompts/system.md": b"short", "skills/new/SKILL.md": b"# New\n" + head.upper()}
    assert find_leaks(before, after, secrets()) == ()


def test_only_lines_that_differ_are_looked_at():
    before = {SKILL: HELD.encode() + b"\nold\n"}
    assert find_leaks(before, {SKILL: HELD.encode() + b"\nnew\n"}, secrets()) == ()


def test_lines_of_the_head_that_come_together_are_no_leak():
    words = HELD.split()
    lines = [" ".join(words[at : at + 3]) for at in range(0, 12, 3)]
    before = {SKILL: "\nbetween\n".join(lines).encode()}
    assert find_leaks(before, {SKILL: "\n".join([*lines, "new"]).encode()}, secrets()) == ()


@pytest.mark.parametrize("answer", ["42", "yes", "B", "Paris", "photosynthesis", "New York"])
def test_a_short_answer_alone_is_no_leak(answer):
    text = f"Answer {answer} when unsure. Examples: {answer}, no, 17.\nforms, refunds and sales"
    assert not leaks(text, secrets(answers=(answer,)))


@pytest.mark.parametrize(
    "text",
    [
        "| capital of France | Paris |",
        "France's capital:\n  paris",
        '{"france capital": "Paris"}',
        "Q: the capital city of France is called\nA: Paris.",
    ],
)
def test_a_short_answer_beside_its_question_is_a_leak(text):
    known = secrets("What is the capital of France?", ("Paris",))
    (leak,) = leaks(f"\nTable\n{text}\n", known)
    assert (leak.kind, leak.task_id) == ("answer", "h1")
    assert leak.line in (6, 7)


def test_a_table_that_the_head_has_may_be_worded_anew():
    known = secrets("What is the capital of France?", ("Paris",))
    assert not leaks("The capital that France has: Paris", known, head=b"France, capital: Paris\n")


def test_a_sum_beside_its_result_is_a_leak_and_a_list_of_numbers_is_not():
    known = secrets("What is 17 + 25?", ("42",))
    assert leaks("17 + 25 = 42", known)
    assert not leaks("17, 19 and 42 are numbers", known)
    assert not leaks("1. one 2. two 3. three 5. five", secrets("What is 2 + 3?", ("5",)))


def test_a_rule_for_a_label_is_what_is_to_be_learned():
    train = (
        ("I was charged by mistake", ("billing",)),
        ("Two bills came with one order", ("billing",)),
    )
    known = secrets("They charged my order twice", ("billing",), train=train)
    assert not leaks("order charged twice: billing", known)


def test_a_train_task_with_the_same_answer_excuses_its_own_words():
    train = (("The largest city of the country France", ("Paris",)), ("Largest lake", ("Ladoga",)))
    known = secrets("Largest city in the country France?", ("Paris",), train=train)
    found = leaks("largest city, country France: Paris", known)
    assert [(leak.split, leak.refused) for leak in found] == [("train", False)]


def test_long_and_unusual_answers_count_wherever_they_stand():
    assert leaks(
        "File the green carbon form KR seven first",
        secrets(answers=("the green carbon form KR seven",)),
    )
    assert leaks("send it to ORD-2024-99817x", secrets(answers=("ord-2024-99817x",)))
    assert leaks("key 9f86d081884c7d65", secrets(answers=("9f86d081884c7d65",)))


def test_a_long_answer_counts_in_parts():
    words = [f"w{i}rd" for i in range(40)]
    known = secrets(answers=(" ".join(words),))
    (leak,) = leaks(" ".join(words[10:30]), known)
    assert leak.kind == "answer"
    assert not leaks(" ".join(words[10:20]), known)


def test_an_answer_that_train_has_too_is_no_leak():
    same = "escalate the case to second level support"
    known = secrets(answers=(same,), train=((TRAIN, (same,)), ("Another one", (same,))))
    assert not leaks(f"If in doubt, {same}.", known)


def test_judge_wording_is_refused():
    rubric = "Full marks when the reply names the article of law, half when it only paraphrases it."
    (leak,) = leaks(f"Remember: {rubric}", secrets(judge=(rubric,)))
    assert (leak.kind, leak.split, leak.task_id, leak.refused) == ("judge", "", "", True)
    assert leak.place() == f"{SKILL}:4 holds words of the judge"
    assert str(leak).startswith(f"{SKILL}:4 holds words of the judge: 'Full marks")


def test_train_text_may_stand_anywhere_and_train_answers_in_memory():
    answer = "the deputy of the harbour master signs it"
    known = secrets(train=((TRAIN, (answer,)),))
    line = f"{TRAIN} -> {answer}"
    assert not leaks(TRAIN, known)
    assert not leaks(line, known, "memory/examples.jsonl")
    (leak,) = leaks(line, known, "prompts/system.md")
    assert (leak.kind, leak.split, leak.task_id) == ("answer", "train", "t0")
    assert not leak.refused


def test_a_short_train_answer_beside_its_question_is_reported_in_prompts():
    known = secrets(train=(("Who painted the Arnolfini portrait?", ("van Eyck",)),))
    line = "Arnolfini portrait, painted by van Eyck"
    (leak,) = leaks(line, known, "prompts/system.md")
    assert (leak.split, leak.refused) == ("train", False)
    assert not leaks(line, known, "memory/notes.md")


def test_the_local_benchmark_tells_its_answers(tmp_path: Path):
    rows = [
        {"id": "a", "input": "Say one", "expected": ["one", "uno"], "rationale": "it was asked"},
        {"id": "b", "input": "Say two", "expected": 2, "split": "holdout"},
    ]
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, rows)))
    benchmark = LocalTasks(tmp_path)
    splits = {name: benchmark.get_tasks(name, None) for name in ("train", "holdout", "test")}
    known = secrets_of(benchmark, splits)
    assert [(t.split, t.id, t.answers) for t in known.tasks] == [
        ("train", "a", ("one", "uno", "it was asked")),
        ("holdout", "b", ("2",)),
    ]
    assert known.judge == ()


def test_the_local_benchmark_tells_the_rubric_of_its_judge(tmp_path: Path):
    (tmp_path / "tasks.jsonl").write_text('{"id": "a", "input": "Say one"}')
    (tmp_path / "rubric.md").write_text("Kind and short.\n")
    benchmark = LocalTasks(tmp_path, grader={"name": "judge", "rubric": "rubric.md"})
    assert benchmark.judge_texts() == ["Kind and short."]


@pytest.mark.parametrize(
    ("pattern", "parts"),
    [
        (r"(?i)\bflight to (?:Rome|Oslo)\.?$", ["flight to", "Rome", "Oslo"]),
        (r"a\.b\.c", ["a.b.c"]),
        (r"[Pp]aris in (\d{4})", ["aris in"]),
        (r"(?P<x>hello world)(?=tail)", ["hello world", "tail"]),
        (r"order\\number", ["order\\number"]),
        (r"[]abc]\d{2,}", []),
    ],
)
def test_only_the_literal_parts_of_a_regular_expression_are_answers(pattern, parts):
    assert literals(pattern) == parts


def test_a_benchmark_without_the_optional_methods_has_secret_tasks_only():
    known = secrets_of(object(), {"holdout": [Task("h1", HELD, {"note": "x", "directory": "/d"})]})
    assert known == Secrets((SecretTask("holdout", "h1", HELD, ("x",), ()),))


class Keeps:
    answers: ClassVar = {"h1": "an attribute of the user's own"}


def test_an_attribute_of_that_name_is_not_called():
    known = secrets_of(Keeps(), {"holdout": [Task("h1", HELD)]})
    assert known.tasks[0].answers == ()


class Careless:
    def answers_of(self, task: Task) -> str:
        return f"the answer to {task.id}"

    def judge_texts(self) -> list[int]:
        return [7]


def test_one_text_for_a_list_of_texts_is_taken_as_one():
    known = secrets_of(Careless(), {"holdout": [Task("h1", HELD)]})
    assert (known.tasks[0].answers, known.judge) == (("the answer to h1",), ("7",))


def test_a_task_of_two_splits_belongs_to_the_first():
    task = Task("a", HELD)
    known = secrets_of(object(), {"train": [task], "test": [task]})
    assert [t.split for t in known.tasks] == ["train"]


word = st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=8)
prose = st.lists(word, min_size=0, max_size=60).map(" ".join)
files = st.dictionaries(
    st.sampled_from(["a.md", "skills/b.md", "memory/c"]), st.binary(max_size=200)
)


@given(files=files, text=prose, answers=st.lists(st.text(max_size=30), max_size=3))
def test_what_did_not_change_leaks_nothing(files, text, answers):
    files = files | {"x": text.encode()}
    assert find_leaks(files, dict(files), secrets(text, tuple(answers), judge=(text,))) == ()


@given(before=files, after=files, text=st.text(max_size=80), answer=st.text(max_size=30))
def test_any_bytes_can_be_looked_through(before, after, text, answer):
    for leak in find_leaks(before, after, secrets(text, (answer,), judge=(answer,))):
        assert leak.path in after
        assert 1 <= leak.line <= after[leak.path].count(b"\n") + after[leak.path].count(b"\r") + 1
        assert len(leak.text) <= 120
        assert str(leak).isprintable()


@given(content=st.text(max_size=300))
def test_no_text_of_train_or_of_the_head_is_a_leak(content):
    known = secrets(content, (content,), train=((content, (content,)),), judge=(content,))
    assert not [leak for leak in leaks(content, known) if leak.refused]
    known = secrets(content, (content,), judge=(content,))
    after = {"prompts/new.md": content.encode()}
    assert find_leaks({SKILL: content.encode()}, after, known) == ()


@settings(max_examples=60)
@given(
    held=st.lists(word, min_size=9, max_size=30, unique=True),
    around=st.lists(st.lists(word, max_size=6).map(" ".join), max_size=8),
    place=st.integers(0, 8),
    wraps=st.lists(st.sampled_from([" ", "\n", " \n ", ", ", "-"]), min_size=30, max_size=30),
    upper=st.booleans(),
)
def test_a_planted_task_is_found_on_its_line(held, around, place, wraps, upper):
    held = [f"held{word}" for word in held]
    planted = "".join(a + b for a, b in zip(held, wraps, strict=False))
    lines = list(around)
    at = min(place, len(lines))
    lines.insert(at, planted.upper() if upper else planted)
    found = find_leaks({}, {SKILL: "\n".join(lines).encode()}, secrets(" ".join(held)))
    assert [(leak.line, leak.split, leak.task_id) for leak in found] == [(at + 1, "holdout", "h1")]


def test_two_thousand_tasks_and_a_megabyte_take_little_time():
    rng = random.Random(0)
    vocabulary = [f"w{i}" for i in range(20_000)]
    sums = list(accumulate(1 / (i + 1) for i in range(20_000)))

    def text(words: int) -> str:
        return " ".join(rng.choices(vocabulary, cum_weights=sums, k=words))

    names = ("train", "holdout", "test")
    tasks = [
        SecretTask(names[i % 3], str(i), text(200 if i % 2 else 12), (), (text(1), text(20)))
        for i in range(2000)
    ]
    body = "\n".join(text(10) for _ in range(22_000)).encode()
    assert len(body) > 900_000
    began = time.process_time()
    known = Secrets(tuple(tasks))
    planted = body + tasks[1].text.encode()
    found = find_leaks({SKILL: body[:500_000]}, {SKILL: planted}, known)
    took = time.process_time() - began
    assert "1" in {leak.task_id for leak in found}
    assert took < 4, took  # 1.1 s on an idle core
