"""Task files as people have them, read or refused through the benchmark."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_evolve.benchmarks.local import LocalTasks
from agent_evolve.errors import BenchmarkError, ConfigurationError, UnknownNameError


def local(root: Path, name: str, data: str | bytes, **options: object) -> LocalTasks:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return LocalTasks(root, tasks=name, **options)


def lines(*records: dict[str, object]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def test_jsonl_with_a_bom_crlf_blank_lines_and_no_last_line_end(tmp_path: Path) -> None:
    data = b'\xef\xbb\xbf{"id": "a", "input": "1", "expected": "x"}\r\n\r\n  \n'
    data += '{"id": "b", "question": "ü", "answer": "y"}'.encode()
    tasks = local(tmp_path, "t.jsonl", data).get_tasks(limit=None)
    assert [(task.id, task.input) for task in tasks] == [("a", "1"), ("b", "ü")]


def test_an_answer_never_reaches_the_task(tmp_path: Path) -> None:
    record = {
        "id": 7,
        "prompt": "p",
        "expected": "E",
        "answer": "A",
        "explanation": "because E",
        "assertions": ["is E"],
        "notes": "E it is",
        "category": "c",
        "split": "train",
    }
    [task] = local(tmp_path, "t.jsonl", lines(record), fields={"hidden": ["notes"]}).get_tasks()
    assert (task.id, dict(task.metadata)) == ("7", {"category": "c"})


def test_csv_with_quotes_and_line_ends_in_cells(tmp_path: Path) -> None:
    data = 'id,input,expected,split\r\n1,"a ""b"",\nc",x,dev\r\n2,d,y,\r\n'
    made = local(tmp_path, "t.csv", data)
    assert [task.input for task in made.get_tasks("holdout")] == ['a "b",\nc']
    assert [task.id for task in made.get_tasks("train")] == ["2"]


@pytest.mark.parametrize("key", ["assertions", "expectations"])
def test_evals_of_a_skill_in_both_spellings(tmp_path: Path, key: str) -> None:
    (tmp_path / "inv.txt").write_text("net 10")
    evals = {
        "skill_name": "s",
        "evals": [
            {"id": 1, "prompt": "Read inv.txt", "expected_output": "10", "files": ["inv.txt"],
             key: ["has 10"]},
            {"id": 2, "prompt": "Read nothing", "expected_output": "0", "files": []},
        ],
    }  # fmt: skip
    made = local(tmp_path, "evals/evals.json", json.dumps(evals), grader="contains")
    first, second = made.get_tasks()
    assert (first.id, first.metadata) == ("1", {"files": {"inv.txt": "net 10"}})
    assert second.metadata == {}


def test_a_directory_for_each_task(tmp_path: Path) -> None:
    for name, text in (
        ("tasks/b/instruction.md", "do b"),
        ("tasks/b/expected.json", '{"n": 1}'),
        ("tasks/b/files/data.csv", "1,2"),
        ("tasks/a/task.md", "do a"),
        ("tasks/a/expected.txt", "A\n"),
        ("tasks/a/task.json", '{"split": "holdout", "category": "x"}'),
        ("tasks/_notes/readme.md", "not a task"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    made = LocalTasks(
        tmp_path, tasks="tasks", grader="normalised"
    )  # fmt: skip
    [b] = made.get_tasks("train")
    [a] = made.get_tasks("holdout")
    assert (a.id, a.input, dict(a.metadata)) == ("a", "do a", {"category": "x"})
    assert Path(b.metadata["directory"]) == tmp_path / "tasks/b/files"


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        (
            "t.jsonl",
            '{"id": "a", "input": "x", "expected": "y"}\n{"id": "b", "inp',
            r"t\.jsonl:2: ",
        ),
        ("t.jsonl", "[1]\n", "a task is a JSON object"),
        ("t.jsonl", '{"id": "a", "expected": "y"}\n', "has none of input, prompt"),
        ("t.jsonl", '{"id": "a", "input": " ", "expected": "y"}\n', "the input is empty"),
        ("t.jsonl", '{"id": "a", "input": "x"}\n', "no expected answer"),
        ("t.jsonl", '{"id": "a", "input": "x", "expected": null}\n', "no expected answer"),
        ("t.jsonl", "\n\n", "holds no tasks"),
        ("t.jsonl", b'{"id": "a", "input": "\xe9"}\n', "not UTF-8"),
        ("t.jsonl", lines({"id": "a", "input": "x", "expected": "y", "split": "trian"}), "'trian'"),
        ("t.jsonl", lines({"id": "a" * 300, "input": "x", "expected": "y"}), "300 characters"),
        ("t.jsonl", lines({"id": "a\0b", "input": "x", "expected": "y"}), "printed"),
        (
            "t.jsonl",
            lines({"id": "a", "input": "x", "expected": "1"}, {"id": "a", "input": "y"}),
            r"t\.jsonl:2: the id 'a' stands at .*t\.jsonl:1",
        ),
        ("t.csv", "id,input\n1,2,3\n", "3 cells under a header of 2"),
        ("t.csv", "id,id\n1,2\n", "a column twice"),
        ("t.csv", 'id,input\n1,"open\n', r"t\.csv:2"),
        ("t.json", '{"evals": {}}', "neither a list"),
        ("t.json", '{"evals": [{"prompt": "p", "files": ["no.txt"]}]}', "no file 'no.txt'"),
        ("t.xlsx", "PK", "tasks are read from"),
    ],
)
def test_what_is_no_task_is_refused_by_file_and_line(
    tmp_path: Path, name: str, data: str | bytes, says: str
) -> None:
    with pytest.raises(BenchmarkError, match=says):
        local(tmp_path, name, data)


def test_no_file_and_wrong_options(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match="there is no task file"):
        LocalTasks(tmp_path)
    with pytest.raises(UnknownNameError, match="Did you mean 'tasks'"):
        LocalTasks(tmp_path, task="t.jsonl")
    data = lines({"id": "a", "input": "x", "expected": "y"})
    with pytest.raises(UnknownNameError, match="Did you mean 'input'"):
        local(tmp_path, "t.jsonl", data, fields={"inptu": "x"})
    with pytest.raises(UnknownNameError, match="Did you mean 'holdout'"):
        local(tmp_path, "t.jsonl", data, split={"holdot": 0.5})
    with pytest.raises(ConfigurationError, match="no mapping of shares"):
        local(tmp_path, "t.jsonl", data, split="fold")
    with pytest.raises(ConfigurationError, match="leave something to train on"):
        local(tmp_path, "t.jsonl", data, split={"holdout": 0.6, "test": 0.4})
    told = lines({"id": "a", "input": "x", "expected": "y", "split": "train"})
    with pytest.raises(ConfigurationError, match="remove one of the two"):
        local(tmp_path, "t.jsonl", told, split={"holdout": 0.5})


def test_ids_with_slashes_are_ids_and_missing_ones_do_not_depend_on_the_order(
    tmp_path: Path,
) -> None:
    some = [{"id": "a/../b", "input": "x", "expected": 1}, {"input": "no id", "expected": 2}]
    forth = local(tmp_path, "t.jsonl", lines(*some)).get_tasks()
    back = local(tmp_path, "u.jsonl", lines(*reversed(some))).get_tasks()
    assert {task.id for task in forth} == {task.id for task in back}
    assert forth[0].id == "a/../b"


def test_the_same_tasks_in_another_order_are_divided_the_same_way(tmp_path: Path) -> None:
    some = [{"id": f"t{i}", "input": f"q{i}", "expected": "x"} for i in range(40)]
    split = {"holdout": 0.25, "test": 0.1, "seed": 3}
    forth = local(tmp_path, "t.jsonl", lines(*some), split=split)
    back = local(tmp_path, "u.jsonl", lines(*reversed(some)), split=split)
    for name, size in (("train", 26), ("holdout", 10), ("test", 4)):
        ids = {task.id for task in forth.get_tasks(name, limit=None)}
        assert ids == {task.id for task in back.get_tasks(name, limit=None)}
        assert len(ids) == size
    assert forth.get_tasks("validation") == []
    other = local(tmp_path, "t.jsonl", lines(*some), split=split | {"seed": 4})
    assert other.get_tasks("holdout") != forth.get_tasks("holdout")


TEXT = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=30
)
ROWS = st.lists(
    st.tuples(TEXT.filter(str.strip), TEXT), min_size=1, max_size=8, unique_by=lambda r: r[0]
)


@given(ROWS)
def test_any_text_survives_csv_and_jsonl(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]
) -> None:
    place = tmp_path_factory.mktemp("rows")
    table = io.StringIO(newline="")
    writer = csv.writer(table)
    writer.writerow(["id", "input", "expected"])
    for number, (asked, answer) in enumerate(rows):
        writer.writerow([number, asked, answer])
    objects = [{"id": i, "input": a, "expected": e} for i, (a, e) in enumerate(rows)]
    for made in (
        local(place, "t.csv", table.getvalue()),
        local(place, "t.jsonl", lines(*objects)),
    ):
        assert [task.input for task in made.get_tasks(limit=None)] == [asked for asked, _ in rows]


def test_an_answer_is_known_by_its_name_however_it_is_spelled(tmp_path: Path) -> None:
    data = "ID,Question,Expected Output,Gold-Answer,SOLUTION,topic\n1,q,x,x,x,t\n"
    [task] = local(tmp_path, "t.csv", data).get_tasks()
    assert (task.id, task.input, dict(task.metadata)) == ("1", "q", {"topic": "t"})


@pytest.mark.parametrize("kind", ["id", "expected", "split", "hidden"])
def test_a_field_that_no_task_has_is_not_passed_over(tmp_path: Path, kind: str) -> None:
    data = lines({"id": "a", "input": "x", "expected": "y", "secret_notes": "y"})
    with pytest.raises(BenchmarkError, match="'secret_nots'.* as " + kind + ".*'secret_notes'"):
        local(tmp_path, "t.jsonl", data, fields={kind: "secret_nots"})


def test_a_blank_cell_is_no_answer_but_a_blank_text_may_be_one(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match=r"t\.csv:3: has no expected answer"):
        local(tmp_path, "t.csv", "id,input,expected\n1,a,x\n2,b,\n")
    told = lines({"id": "a", "input": "name it, or say nothing", "expected": ""})
    assert len(local(tmp_path, "t.jsonl", told).get_tasks()) == 1


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ('{"id": "a", "input": "x", "expected": NaN}', r"t\.jsonl:1.*NaN is no number"),
        ('{"id": "a", "input": "x", "expected": 1e999}', "1e999 is no number"),
        ('{"id": "a", "input": "x", "expected": "y", "expected": "z"}', "'expected' stands twice"),
        ('{"id": "a", "input": "\\ud800", "expected": "y"}', "surrogate"),
        ('{"id": "a", "input": null, "expected": "y"}', "the input is empty"),
    ],
)
def test_what_json_can_not_mean_is_refused(tmp_path: Path, data: str, says: str) -> None:
    with pytest.raises(BenchmarkError, match=says):
        local(tmp_path, "t.jsonl", data)


def test_the_advice_for_a_file_in_utf_16_is_for_utf_16(tmp_path: Path) -> None:
    data = lines({"id": "a", "input": "x", "expected": "y"}).encode("utf-16")
    with pytest.raises(BenchmarkError, match="iconv -f utf-16"):
        local(tmp_path, "t.jsonl", data)


def test_a_cell_may_hold_a_long_document(tmp_path: Path) -> None:
    made = local(tmp_path, "t.csv", f"id,input,expected\n1,{'q' * 300_000},x\n")
    assert len(made.get_tasks()[0].input) == 300_000


@pytest.mark.parametrize("name", ["{secret}", "../../secret.txt", "link.txt"])
def test_an_eval_shows_no_file_from_outside_its_skill(tmp_path: Path, name: str) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("key")
    skill = tmp_path / "skill"
    (skill / "evals").mkdir(parents=True)
    (skill / "evals" / "link.txt").symlink_to(secret)
    told = {"prompt": "p", "expected_output": "x", "files": [name.format(secret=secret)]}
    with pytest.raises(BenchmarkError, match="lies outside"):
        local(skill, "evals/evals.json", json.dumps({"evals": [told]}))


def test_a_task_file_among_directories_of_tasks_is_not_lost(tmp_path: Path) -> None:
    (tmp_path / "tasks" / "a").mkdir(parents=True)
    (tmp_path / "tasks" / "a" / "task.md").write_text("do a")
    (tmp_path / "tasks" / "a" / "expected.txt").write_text("A")
    (tmp_path / "tasks" / "README.md").write_text("about them")
    assert len(LocalTasks(tmp_path, tasks="tasks").get_tasks()) == 1
    (tmp_path / "tasks" / "more.jsonl").write_text("{}")
    with pytest.raises(BenchmarkError, match=r"name the file itself: tasks: \[tasks/more\.jsonl\]"):
        LocalTasks(tmp_path, tasks="tasks")


@pytest.mark.parametrize(
    "options",
    [
        {"tasks": 3},
        {"fields": "input"},
        {"fields": {"input": 3}},
        {"fields": {"hidden": 3}},
        {"split": {"holdout": 0.3, "seed": "x"}},
        {"split": {"holdout": 0.3, "seed": 1.5}},
        {"split": {"holdout": "a third"}},
    ],
)
def test_an_option_of_the_wrong_kind_is_named(tmp_path: Path, options: dict[str, Any]) -> None:
    (tmp_path / "tasks.jsonl").write_text(lines({"id": "a", "input": "x", "expected": "y"}))
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        LocalTasks(tmp_path, **options)


def test_the_files_of_a_task_are_in_its_fingerprint(tmp_path: Path) -> None:
    place = tmp_path / "tasks" / "a"
    (place / "files").mkdir(parents=True)
    (place / "task.md").write_text("sum it")
    (place / "expected.txt").write_text("3")
    prints = []
    for content in ("1,2", "1,2", "2,2"):
        (place / "files" / "data.csv").write_text(content)
        made = LocalTasks(tmp_path, tasks="tasks")
        prints.append(made.fingerprint(made.get_tasks()[0]))
    assert prints[0] == prints[1] != prints[2]
