"""Guided synthesis without a model: what failures turn into, through real workspaces."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_evolve import registry
from agent_evolve.engines.guided_synthesis import GuidedSynthesis
from agent_evolve.errors import ConfigurationError, UnknownNameError
from agent_evolve.types import Feedback, Observation, StepResult, Task, Trajectory
from agent_evolve.workspace import AgentWorkspace


class Past:
    """A history that holds the observations it is given."""

    def __init__(self, *observations: Observation) -> None:
        self.observations = list(observations)

    def get_observations(
        self, last_n_cycles: int | None = 3, only_failures: bool = False
    ) -> list[Observation]:
        return [o for o in self.observations if not (only_failures and o.success)]

    def get_score_curve(self) -> list[tuple[int, float]]:
        return []

    def get_workspace_diff(self, a: str, b: str) -> str:
        return ""

    def read_file_at(self, ref: str, path: str) -> str:
        return ""


class NoTrial:
    """A trial that must not be used."""

    def get_tasks(self, limit: int | None = 5) -> list[Task]:
        raise AssertionError("this engine tries nothing")

    def run_tasks(
        self, tasks: Sequence[Task], workspace: AgentWorkspace | None = None
    ) -> list[Observation]:
        raise AssertionError("this engine tries nothing")

    def run_single(self, task: Task, workspace: AgentWorkspace | None = None) -> Observation:
        raise AssertionError("this engine tries nothing")


def make(root: Path) -> AgentWorkspace:
    (root / "prompts").mkdir(parents=True)
    (root / "prompts" / "system.md").write_text("default: general\n", encoding="utf-8")
    (root / "manifest.yaml").write_text("agent: {type: recall}\n", encoding="utf-8")
    return AgentWorkspace(root)


def seen(
    asked: str,
    expected: str | None,
    output: str = "general",
    *,
    task_id: str = "",
    cycle: int = 1,
    category: str = "",
    detail: str = "",
) -> Observation:
    right = output == expected
    return Observation(
        Task(task_id or asked[:40], asked, {"category": category} if category else {}),
        Trajectory(task_id or asked[:40], output),
        Feedback(right, float(right), detail, {} if expected is None else {"expected": expected}),
        cycle=cycle,
    )


def step(
    workspace: AgentWorkspace,
    observations: Sequence[Observation],
    *past: Observation,
    **options: object,
) -> StepResult:
    return GuidedSynthesis(**options).step(workspace, observations, Past(*past), NoTrial())


def files(workspace: AgentWorkspace) -> dict[str, bytes]:
    return {
        str(path.relative_to(workspace.root)): path.read_bytes()
        for path in sorted(workspace.root.rglob("*"))
        if path.is_file()
    }


LOCKERS = [
    seen("locker 14 will not open", "network-ops"),
    seen("my locker is empty", "network-ops"),
    seen("the screen of the locker is black", "network-ops"),
    seen("LOCKER code expired", "network-ops"),
]
OTHERS = [
    seen("where is my parcel", "last-mile"),
    seen("driver threw it over the fence", "last-mile"),
    seen("charged twice", "billing"),
    seen("no invoice came", "billing"),
    seen("sofa in green", "general"),
    seen("open on sunday", "general"),
    seen("thanks a lot", "general"),
    seen("do you have jobs", "general"),
    seen("hello there", "general"),
    seen("when is the sale", "general"),
    seen("is this sold in oak", "general"),
    seen("what a lovely shop", "general"),
]


def test_it_is_registered() -> None:
    assert registry.load("engine", "guided-synthesis") is GuidedSynthesis


def test_a_failure_becomes_an_example_with_its_right_answer(tmp_path: Path) -> None:
    workspace = make(tmp_path / "w")
    result = step(workspace, [seen("my locker is empty", "network-ops", task_id="m-1")])
    assert workspace.read_memories("examples") == [
        {
            "kind": "example",
            "input": "my locker is empty",
            "answer": "network-ops",
            "task_id": "m-1",
        }
    ]
    assert result.mutated
    assert "1 examples (+1)" in result.summary


def test_a_success_becomes_no_example(tmp_path: Path) -> None:
    workspace = make(tmp_path / "w")
    step(workspace, [*LOCKERS, *OTHERS])
    answers = {entry["answer"] for entry in workspace.read_memories("examples")}
    assert answers == {"network-ops", "last-mile", "billing"}


def test_a_shared_word_becomes_a_rule_that_a_person_can_read(tmp_path: Path) -> None:
    workspace = make(tmp_path / "w")
    step(workspace, [*LOCKERS, *OTHERS])
    [rule] = workspace.read_memories("rules")
    assert rule == {
        "kind": "rule",
        "rule": 'When the input mentions "locker", answer "network-ops".',
        "when": ["locker"],
        "answer": "network-ops",
        "support": 4,
        "conflicts": 0,
    }


def test_a_success_is_evidence_against_a_rule(tmp_path: Path) -> None:
    workspace = make(tmp_path / "w")
    contradiction = seen("do you sell a locker for the hall", "general")
    step(workspace, [*LOCKERS, *OTHERS, contradiction])
    assert workspace.read_memories("rules") == []


def test_a_success_of_an_earlier_cycle_is_evidence_too(tmp_path: Path) -> None:
    workspace = make(tmp_path / "w")
    contradiction = seen("do you sell a locker for the hall", "general", cycle=1)
    step(workspace, [*LOCKERS, *OTHERS], contradiction)
    assert workspace.read_memories("rules") == []


def test_a_rule_that_turns_out_wrong_is_dropped(tmp_path: Path) -> None:
    workspace = make(tmp_path / "w")
    step(workspace, [*LOCKERS, *OTHERS])
    assert len(workspace.read_memories("rules")) == 1
    result = step(
        workspace, [seen("a locker for the hall", "general", "network-ops", cycle=2)], *LOCKERS
    )
    assert workspace.read_memories("rules") == []
    assert "0 rules (-1)" in result.summary


def test_what_two_successes_share_is_not_worth_a_rule(tmp_path: Path) -> None:
    workspace = make(tmp_path / "w")
    successes = [seen(o.task.input, "network-ops", "network-ops") for o in LOCKERS]
    result = step(workspace, [*successes, *OTHERS])
    assert result.mutated
    assert workspace.read_memories("rules") == []


def test_failures_of_one_kind_become_one_short_lesson(tmp_path: Path) -> None:
    workspace = make(tmp_path / "w")
    step(workspace, [*LOCKERS, *OTHERS])
    lessons = {entry["about"]: entry for entry in workspace.read_memories("episodic")}
    lesson = lessons['"network-ops", not "general"']
    assert (lesson["kind"], lesson["count"], lesson["cycle"]) == ("lesson", 4, 1)
    assert lesson["lesson"] == (
        'Asked about "locker", e.g. "LOCKER code expired": expected "network-ops", '
        'answered "general".'
    )


def test_lessons_of_the_same_kind_are_merged_over_cycles(tmp_path: Path) -> None:
    workspace = make(tmp_path / "w")
    past = [*LOCKERS, *OTHERS]
    step(workspace, past)
    later = seen("nobody can open locker 3", "network-ops", cycle=2)
    step(workspace, [later], *past, later)
    lessons = [e for e in workspace.read_memories("episodic") if "network-ops" in e["about"]]
    assert [(lesson["count"], lesson["cycle"]) for lesson in lessons] == [(5, 2)]


def test_failures_of_a_refused_candidate_are_learned_again(tmp_path: Path) -> None:
    workspace = make(tmp_path / "w")
    later = seen("charged twice", "billing", cycle=2)
    step(workspace, [later], *LOCKERS, later)  # the files written after LOCKERS were not kept
    assert len(workspace.read_memories("examples")) == 5
    counts = {e["about"]: e["count"] for e in workspace.read_memories("episodic")}
    assert counts == {'"network-ops", not "general"': 4, '"billing", not "general"': 1}


def test_a_task_that_succeeds_by_now_is_not_learned_from_again(tmp_path: Path) -> None:
    workspace = make(tmp_path / "w")
    fixed = seen("charged twice", "billing", "billing", cycle=2)
    step(workspace, [fixed], seen("charged twice", "billing", cycle=1))
    assert workspace.read_memories("examples") == []


def test_near_duplicates_become_one_example(tmp_path: Path) -> None:
    workspace = make(tmp_path / "w")
    step(
        workspace,
        [
            seen("My locker is EMPTY!! order 88213907", "network-ops", task_id="a"),
            seen("my locker is empty. Order 11904482", "network-ops", task_id="b"),
        ],
    )
    assert [entry["task_id"] for entry in workspace.read_memories("examples")] == ["a"]
    step(workspace, [seen("my locker is empty... ORDER 55550000", "network-ops", task_id="c")])
    assert [entry["task_id"] for entry in workspace.read_memories("examples")] == ["a"]


def test_a_corrected_answer_replaces_the_old_one(tmp_path: Path) -> None:
    workspace = make(tmp_path / "w")
    step(workspace, [seen("gift card lost", "billing", task_id="a")])
    step(workspace, [seen("gift card lost", "trust-desk", task_id="a", cycle=2)])
    assert [entry["answer"] for entry in workspace.read_memories("examples")] == ["trust-desk"]


def test_free_answers_give_examples_and_lessons_but_no_rules(tmp_path: Path) -> None:
    workspace = make(tmp_path / "w")
    dates = [
        seen(
            f"Write the {day} of March 2024", f"2024-03-{day:02}", f"March {day}", category="dates"
        )
        for day in range(1, 9)
    ]
    step(workspace, dates)
    assert workspace.read_memories("rules") == []
    assert len(workspace.read_memories("examples")) == 8
    assert {entry["category"] for entry in workspace.read_memories("examples")} == {"dates"}
    [lesson] = workspace.read_memories("episodic")
    assert lesson["about"] == "dates: 9999-99-99, not Aa 9"
    assert lesson["count"] == 8


def test_a_bound_keeps_examples_of_every_kind(tmp_path: Path) -> None:
    workspace = make(tmp_path / "w")
    dates = [
        seen(f"Write the {day} of March 2024", f"2024-03-{day:02}", "?", category="dates")
        for day in range(1, 20)
    ]
    queries = [
        seen(
            "all customers in Oslo",
            "SELECT * FROM customer WHERE city = 'Oslo'",
            "?",
            category="sql",
        ),
        seen(
            "how many orders",
            "SELECT count(*) FROM orders WHERE open = 1 OR 1",
            "?",
            category="sql",
        ),
    ]
    records = [seen("Ann is 9", '{"name": "Ann", "age": 9}', "?", category="json")]
    step(workspace, [*dates, *queries, *records], max_examples=5)
    kept = [entry["category"] for entry in workspace.read_memories("examples")]
    assert sorted(kept) == ["dates", "dates", "json", "sql", "sql"]


def test_the_expected_answer_is_read_from_words_where_the_grader_gives_only_those(
    tmp_path: Path,
) -> None:
    workspace = make(tmp_path / "w")
    step(
        workspace,
        [
            seen("one", None, detail='expected "a b", got "general"'),
            seen("two", None, detail="Expected: 42, but the answer was 41"),
            seen("three", None, detail="expected something better"),
        ],
    )
    assert [entry["answer"] for entry in workspace.read_memories("examples")] == ["a b", "42"]


def test_without_expected_answers_only_a_lesson_is_left(tmp_path: Path) -> None:
    workspace = make(tmp_path / "w")
    observations = [seen(o.task.input, None, detail="wrong queue") for o in LOCKERS]
    result = step(workspace, observations)
    assert workspace.read_memories("examples") == []
    assert workspace.read_memories("rules") == []
    [lesson] = workspace.read_memories("episodic")
    assert lesson["count"] == 4
    assert "wrong queue" in lesson["lesson"]
    assert result.metadata["failures_without_answer"] == 4


def test_other_forms_of_expected_answers(tmp_path: Path) -> None:
    workspace = make(tmp_path / "w")
    for number, expected in enumerate([["first", "second"], {"a": 1}, 3.5, [1, 2]]):
        task = Task(f"t{number}", f"question number {'abcd'[number]}")
        feedback = Feedback(False, 0.0, "", {"expected": expected})
        step(workspace, [Observation(task, Trajectory(task.id, "?"), feedback)])
    answers = [entry["answer"] for entry in workspace.read_memories("examples")]
    assert answers == ["first", '{"a": 1}', "3.5", "[1, 2]"]


def test_an_answer_too_long_to_remember_is_not_remembered_in_part(tmp_path: Path) -> None:
    workspace = make(tmp_path / "w")
    long = "a b " * 5_000
    step(
        workspace,
        [seen("one", long), seen("two", None, detail=f"expected: {long}"), seen("three", "short")],
    )
    assert [entry["answer"] for entry in workspace.read_memories("examples")] == ["short"]


def test_invalid_observations_teach_nothing(tmp_path: Path) -> None:
    workspace = make(tmp_path / "w")
    invalid = Observation(
        Task("t", "hello"), Trajectory("t"), Feedback(False, 0.0, "outage"), status="invalid"
    )
    result = step(workspace, [invalid], invalid)
    assert not result.mutated
    assert not (workspace.root / "memory").exists()


def test_an_agent_that_failed_is_told_apart_from_a_wrong_answer(tmp_path: Path) -> None:
    workspace = make(tmp_path / "w")
    crashed = Observation(
        Task("t", "hello"),
        Trajectory("t", error="KeyError: 'x'"),
        Feedback(False, 0.0, "", {"expected": "hi"}),
        status="agent_failed",
    )
    step(workspace, [crashed])
    [lesson] = workspace.read_memories("episodic")
    assert "KeyError" in lesson["lesson"]


@pytest.mark.parametrize("observations", [[], [seen("sofa in green", "general")]])
def test_nothing_to_learn_changes_no_byte(tmp_path: Path, observations: list[Observation]) -> None:
    workspace = make(tmp_path / "w")
    before = files(workspace)
    result = step(workspace, observations)
    assert (result.mutated, files(workspace)) == (False, before)
    assert result.summary.startswith("no change: ")


def test_entries_that_others_wrote_and_drafts_stay(tmp_path: Path) -> None:
    workspace = make(tmp_path / "w")
    workspace.add_memory({"content": "remembered by the agent"}, "episodic")
    workspace.add_memory({"kind": "rule", "rule": "Be polite."}, "rules")
    workspace.write_draft("idea", "---\nname: idea\ndescription: An idea\n---\nDo it.\n")
    draft = workspace.read_draft("idea")
    result = step(workspace, [*LOCKERS, *OTHERS])
    assert {"content": "remembered by the agent"} in workspace.read_memories("episodic")
    assert {"kind": "rule", "rule": "Be polite."} in workspace.read_memories("rules")
    assert workspace.read_draft("idea") == draft
    assert result.metadata["drafts_left_alone"] == 1


def test_a_person_may_reword_a_rule_and_it_is_kept(tmp_path: Path) -> None:
    workspace = make(tmp_path / "w")
    past = [*LOCKERS, *OTHERS]
    step(workspace, past)
    [rule] = workspace.read_memories("rules")
    reworded = rule | {"rule": "Lockers are for network-ops, always."}
    workspace.write_memories([reworded], "rules")
    step(workspace, [seen("locker no 7 is jammed", "network-ops", cycle=2)], *past)
    assert workspace.read_memories("rules") == [reworded | {"support": 5}]


def test_rules_can_be_switched_off(tmp_path: Path) -> None:
    workspace = make(tmp_path / "w")
    step(workspace, [*LOCKERS, *OTHERS], write_rules=False)
    assert not (workspace.root / "memory" / "rules.jsonl").exists()
    assert workspace.read_memories("examples")


@pytest.mark.parametrize(
    "text", ["", "\x00", "\udce9\udcff", "\ud83d half an emoji", "a" * 3_000_000, '"\\\n\r\u2028']
)
def test_odd_texts_are_learned_without_harm(tmp_path: Path, text: str) -> None:
    workspace = make(tmp_path / "w")
    odd = [
        seen(text, "label", text, task_id="a"),
        seen("x" + text, text[:100] or "l", "y", task_id="b"),
    ]
    step(workspace, odd)
    step(workspace, odd, *odd)
    assert sum(len(data) for data in files(workspace).values()) < 100_000
    for path in (workspace.root / "memory").glob("*.jsonl"):
        for line in path.read_bytes().splitlines():
            assert isinstance(json.loads(line.decode("utf-8", "replace")), dict)


def test_an_unknown_option_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'max_examples'"):
        GuidedSynthesis(max_exampels=3)


@pytest.mark.parametrize(
    "options",
    [{"max_rules": -1}, {"max_lessons": 2.5}, {"write_rules": 1}, {"history_cycles": 0}],
)
def test_an_option_out_of_range_is_an_error(options: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        GuidedSynthesis(**options)


WORDS = ["locker", "parcel", "refund", "card", "seller", "green", "sofa", "code", "12", "é"]
OBSERVATION = st.builds(
    lambda words, label, output, task, category: seen(
        " ".join(words), label, output, task_id=f"t{task}", category=category
    ),
    st.lists(st.sampled_from(WORDS), max_size=5),
    st.sampled_from(["a", "b", "c", None]),
    st.sampled_from(["a", "b", "general"]),
    st.integers(0, 30),
    st.sampled_from(["", "x"]),
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.lists(OBSERVATION, max_size=12), min_size=1, max_size=4))
def test_whatever_is_observed_memory_stays_bounded_and_the_same_past_gives_the_same_files(
    tmp_path_factory: pytest.TempPathFactory, cycles: list[list[Observation]]
) -> None:
    engine = GuidedSynthesis(max_examples=6, max_rules=2, max_lessons=3)
    written = []
    for _ in range(2):
        workspace = make(tmp_path_factory.mktemp("run") / "w")
        past: list[Observation] = []
        for batch in cycles:
            before = files(workspace)
            result = engine.step(workspace, batch, Past(*past), NoTrial())
            assert result.mutated == (files(workspace) != before)
            past.extend(batch)
            assert len(workspace.read_memories("examples")) <= 6
            assert len(workspace.read_memories("rules")) <= 2
            assert len(workspace.read_memories("episodic")) <= 3
            for rule in workspace.read_memories("rules"):
                assert rule["support"] >= 2
                assert rule["support"] >= 9 * rule["conflicts"]
        written.append(files(workspace))
    assert written[0] == written[1]
