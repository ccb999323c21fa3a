"""The house-rules seed: its tasks, its graders, and a holdout score that rises by its memory."""

from __future__ import annotations

import importlib.util
import json
import re
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest

from agent_evolve import Evolver
from agent_evolve.llm import Request, ScriptedModel
from agent_evolve.types import Task

SEED = Path(__file__).parents[2] / "seed_workspaces" / "house-rules"
FAMILIES = ("dates", "sql", "orders")


def graders() -> ModuleType:
    spec = importlib.util.spec_from_file_location("house_rules_graders", SEED / "graders.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GRADERS = graders()


def tasks(family: str) -> list[dict[str, str]]:
    lines = (SEED / "tasks" / f"{family}.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def score(family: str, output: str, expected: str) -> tuple[float, str]:
    return GRADERS.grade(Task("t", "", {"category": family}), output, expected)


# -- tasks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_held_out_can_be_answered_by_copying_a_train_task(family: str) -> None:
    rows = tasks(family)
    assert Counter(row["split"] for row in rows) == {"train": 24, "holdout": 8, "test": 8}
    for key in ("id", "input", "expected"):
        assert len({row[key] for row in rows}) == len(rows), f"{key} is there twice"


def test_no_two_questions_have_the_same_rows_by_chance() -> None:
    """Else a wrong query, or that of another question, would be right."""
    connection = GRADERS.database()
    rows = [repr(GRADERS.rows_of(connection, row["expected"])) for row in tasks("sql")]
    copied = {
        train for row, train in zip(tasks("sql"), rows, strict=True) if row["split"] == "train"
    }
    held = [r for row, r in zip(tasks("sql"), rows, strict=True) if row["split"] != "train"]
    # Small counts may meet; sums and maxima may not.
    assert not [found for found in held if found in copied and "." in found]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_expected_answer_is_right_and_another_task_s_is_not(family: str) -> None:
    rows = tasks(family)
    for row, other in pairwise(rows):
        assert score(family, f" {row['expected']}\n", row["expected"])[0] == 1.0
        assert score(family, other["expected"], row["expected"])[0] < 1.0


@pytest.mark.parametrize("rule", [" AND deleted = 0", " WHERE deleted = 0", " / 100.0"])
def test_a_query_that_forgets_a_house_rule_is_wrong(rule: str) -> None:
    concerned = [row for row in tasks("sql") if rule in row["expected"]]
    for row in concerned:
        assert score("sql", row["expected"].replace(rule, ""), row["expected"])[0] == 0.0


# -- graders -------------------------------------------------------------------------------------


def test_a_query_is_right_by_its_rows_and_not_by_its_words() -> None:
    expected = "SELECT COUNT(*) FROM orders WHERE product = 'desk' AND deleted = 0"
    other = "select count(id) from orders where not deleted and product='desk';"
    assert score("sql", other, expected)[0] == 1.0


@pytest.mark.parametrize(
    "query",
    [
        "DROP TABLE orders",
        "DELETE FROM orders",
        "UPDATE orders SET deleted = 0",
        "ATTACH DATABASE '{path}' AS other",
        "VACUUM INTO '{path}'",
        "PRAGMA table_info(orders)",
        "SELECT load_extension('x')",
        "SELECT 1; SELECT 2",
        "SELECT * FROM orders a, orders b, orders c",
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT COUNT(*) FROM c",
        "SELECT length(zeroblob(2000000000))",
        "SELECT hex(randomblob(900000000))",
        "SELECT '\0'",
        "I am sorry, I can't.",
        "",
        "x" * 2_000_000,
    ],
    ids=lambda query: query[:40] or "empty",
)
def test_a_query_that_means_harm_scores_zero_soon_and_writes_nothing(
    tmp_path: Path, query: str
) -> None:
    expected = "SELECT COUNT(*) FROM orders WHERE deleted = 0"
    started = time.monotonic()
    found, words = score("sql", query.format(path=tmp_path / "out.db"), expected)
    assert found == 0.0
    assert "expected" in words
    assert len(words) < 2000
    assert time.monotonic() - started < 10
    assert not list(tmp_path.iterdir())


ORDER = '{"who": "BERG, Anna", "item": "DESK", "qty": 3, "rush": "Y"}'


@pytest.mark.parametrize(
    ("output", "expected_score", "words"),
    [
        (ORDER, 1.0, "every field is right"),
        ('{"rush":"Y","qty":3,"item":"DESK","who":"BERG, Anna"}', 1.0, "every field"),
        (ORDER.replace("3", '"3"'), 0.75, 'qty: "3"'),
        (ORDER.replace("3", "true"), 0.75, "qty: true"),
        (ORDER.replace("3", "3.0"), 0.75, "qty: 3.0"),
        (ORDER.replace(', "rush": "Y"', ""), 0.75, "rush: missing"),
        (ORDER.replace("}", ', "note": ""}'), 0.8, "note should not be there"),
        ("{}", 0.0, "who: missing"),
        ("[]", 0.0, "not a JSON object"),
        (f"```json\n{ORDER}\n```", 0.0, "not JSON alone"),
        ("NaN", 0.0, "not a JSON object"),
        ("[" * 100_000, 0.0, "not JSON alone"),
        ("", 0.0, "not JSON alone"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_an_order_is_scored_field_by_field(output: str, expected_score: float, words: str) -> None:
    found, said = score("orders", output, ORDER)
    assert found == pytest.approx(expected_score)
    assert words in said


def test_a_date_must_be_the_date_alone() -> None:
    assert score("dates", "2024-04-03\n", "2024-04-03")[0] == 1.0
    assert score("dates", "It is 2024-04-03", "2024-04-03")[0] == 0.0
    assert (
        score("dates", "2024-03-04", "2024-04-03")[1] == "expected '2024-04-03', got '2024-03-04'"
    )


# -- runs ----------------------------------------------------------------------------------------


def imitator(request: Request) -> str:
    """Knows no house rule; writes as the first worked example of its prompt is written."""
    asked = request.messages[-1].content
    shown = re.findall(r"^Q: (.*)\nA: (.*)$", request.system, re.MULTILINE)
    date = re.search(r"(\d+)[./-](\d+)[./-](\d+)", asked)
    if date:
        first, second, year = (int(part) for part in date.groups())
        month, day = (second, first) if shown else (first, second)
        return f"{2000 + year % 100}-{month:02d}-{day:02d}"
    who = re.search(r"([A-Z]\w+) ([A-Z]\w+)(?=,|:| wants| takes|\.)", asked)
    amount = re.search(r"(\d+) (\w+)s\b", asked)
    if who and amount and shown:
        order = {
            "who": f"{who[2].upper()}, {who[1]}",
            "item": amount[2].upper(),
            "qty": int(amount[1]),
            "rush": "Y" if re.search("urgent|hurry|soon", asked) else "N",
        }
        return json.dumps(order)
    return "I don't know."


def test_it_runs_as_it_is_and_its_memory_lifts_the_holdout_score(tmp_path: Path) -> None:
    model = ScriptedModel(imitator)
    result = Evolver("house-rules", model=model, work_dir=tmp_path).run(cycles=2)
    assert result.start_score is not None
    assert result.final_score is not None
    assert result.final_score >= result.start_score + 0.4
    assert result.cycles[0].verdict == "accepted"
    assert set(result.cycles[0].changes) == {"memory"}
    memory = (tmp_path / "house-rules/memory/examples.jsonl").read_text()
    learned = [json.loads(line)["input"] for line in memory.splitlines()]
    held = {row["input"] for family in FAMILIES for row in tasks(family) if row["split"] != "train"}
    assert learned
    assert not held & set(learned)
    assert all(request.max_tokens == 160 for request in model.requests)


def test_a_prompt_holds_the_examples_of_its_own_family_only(tmp_path: Path) -> None:
    model = ScriptedModel(imitator)
    Evolver("house-rules", model=model, work_dir=tmp_path).run(cycles=1)
    for request in model.requests:
        answers = re.findall(r"^A: (.*)$", request.system, re.MULTILINE)
        kinds = {"sql" if a[0] == "S" else "orders" if a[0] == "{" else "dates" for a in answers}
        assert len(kinds) <= 1
