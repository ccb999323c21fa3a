"""The recall agent answers from files, and from nothing else."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_evolve.agents.recall import RecallAgent, Recollection
from agent_evolve.errors import ConfigurationError, UnknownNameError
from agent_evolve.types import Task, Trajectory

RULE = {
    "kind": "rule",
    "rule": 'When the input mentions "locker", answer "network-ops".',
    "when": ["locker*"],
    "answer": "network-ops",
    "support": 3,
    "conflicts": 0,
}
EXAMPLES = [
    {"kind": "example", "input": "I was charged twice for my order", "answer": "billing"},
    {"kind": "example", "input": "How do I send back a jacket?", "answer": "returns"},
    {"kind": "example", "input": "Where is my parcel?", "answer": "last-mile"},
]


def workspace(root: Path, *, prompt: str = "default: general\n", agent: str = "") -> Path:
    (root / "prompts").mkdir(parents=True)
    (root / "prompts" / "system.md").write_text(prompt, encoding="utf-8")
    (root / "manifest.yaml").write_text(f"agent:\n  type: recall\n{agent}", encoding="utf-8")
    return root


def remember(root: Path, category: str, *entries: dict[str, object]) -> None:
    path = root / "memory" / f"{category}.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")


def ask(agent: RecallAgent, text: str) -> Trajectory:
    return agent.solve(Task("t", text))


def test_without_memory_every_answer_is_the_prompts_default(tmp_path: Path) -> None:
    agent = RecallAgent(workspace(tmp_path / "w"))
    assert ask(agent, "Where is my parcel?").output == "general"


def test_it_gets_better_when_the_files_do_and_falls_back_when_they_are_deleted(
    tmp_path: Path,
) -> None:
    root = workspace(tmp_path / "w")
    agent = RecallAgent(root)
    question = "charged 2 times for one order!!"
    assert ask(agent, question).output == "general"

    remember(root, "examples", *EXAMPLES)
    assert ask(agent, question).output == "general", "files are read on reload, not before"
    agent.reload_from_fs()
    assert ask(agent, question).output == "billing"

    (root / "memory" / "examples.jsonl").unlink()
    agent.reload_from_fs()
    assert ask(agent, question).output == "general"


def test_a_rule_goes_before_a_nearer_example(tmp_path: Path) -> None:
    root = workspace(tmp_path / "w")
    remember(root, "examples", *EXAMPLES)
    remember(root, "rules", RULE)
    agent = RecallAgent(root)
    assert ask(agent, "Where is my parcel? Not in the LOCKERS.").output == "network-ops"
    assert ask(agent, "Where is my parcel?").output == "last-mile"


def test_the_trajectory_says_which_rule_or_example_answered(tmp_path: Path) -> None:
    root = workspace(tmp_path / "w")
    remember(root, "examples", *EXAMPLES)
    remember(root, "rules", RULE)
    agent = RecallAgent(root)

    [step] = ask(agent, "locker stuck").steps
    assert (step["tool"], step["support"]) == ("rule", 3)
    assert "locker*" in step["action"]

    [step] = ask(agent, "send back jacket").steps
    assert step["tool"] == "example"
    assert "How do I send back a jacket?" in step["action"]

    [step] = ask(agent, "Zzz").steps
    assert step["tool"] == "default"


def test_a_rule_with_several_patterns_needs_all_of_them(tmp_path: Path) -> None:
    root = workspace(tmp_path / "w")
    remember(root, "rules", RULE | {"when": ["gift card", "stolen"]})
    agent = RecallAgent(root)
    assert ask(agent, "My gift   card was STOLEN").output == "network-ops"
    assert ask(agent, "My gift card is lost").output == "general"
    assert ask(agent, "A gift, and a card stolen").output == "general"


def test_rules_that_disagree_vote_with_their_support(tmp_path: Path) -> None:
    root = workspace(tmp_path / "w")
    weak = {"kind": "rule", "when": ["refund"], "answer": "returns", "support": 2}
    remember(root, "rules", weak, RULE)
    [step] = ask(RecallAgent(root), "refund for the locker fee").steps
    assert (step["output"], step["against"]) == ("network-ops", ["returns"])


def test_without_a_default_line_it_answers_nothing_and_says_why(tmp_path: Path) -> None:
    agent = RecallAgent(workspace(tmp_path / "w", prompt="Route messages.\n"))
    trajectory = ask(agent, "hello")
    assert trajectory.output == ""
    assert "default:" in trajectory.steps[0]["action"]


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"kind": "rule", "rule": "Be polite."},
        {"kind": "rule", "when": [], "answer": "x"},
        {"kind": "rule", "when": [3], "answer": "x"},
        {"kind": "rule", "when": ["", "*"], "answer": "x"},
        {"kind": "example", "input": "hello"},
        {"kind": "example", "input": None, "answer": ["x"]},
        {"kind": "lesson", "lesson": "hello"},
        {"content": "hello"},
    ],
)
def test_entries_that_hold_no_answer_change_nothing(
    tmp_path: Path, entry: dict[str, object]
) -> None:
    root = workspace(tmp_path / "w")
    remember(root, "notes", entry)
    assert ask(RecallAgent(root), "hello").output == "general"


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "\x00\x00",
        "\udce9t\udcff",
        "\ud83d",
        "locker" * 100_000,
        "\x00locker\x00",
        "日本語の荷物",
    ],
)
def test_odd_inputs_get_an_answer(tmp_path: Path, text: str) -> None:
    root = workspace(tmp_path / "w")
    remember(root, "examples", *EXAMPLES)
    remember(root, "rules", RULE)
    assert ask(RecallAgent(root), text).output in {"general", "network-ops"}


@given(st.text(), st.lists(st.tuples(st.text(), st.sampled_from(["a", "b"])), max_size=8))
def test_the_same_memory_gives_the_same_answer(text: str, pairs: list[tuple[str, str]]) -> None:
    memory = [{"kind": "example", "input": asked, "answer": answer} for asked, answer in pairs]
    first = Recollection(memory).answer(text)
    assert first == Recollection(memory).answer(text)
    assert first is None or first.text in {answer for _, answer in pairs}


@given(st.text(min_size=1))
def test_a_question_that_is_an_example_gets_its_answer(text: str) -> None:
    memory = [{"kind": "example", "input": text, "answer": "mine"}, *EXAMPLES]
    answer = Recollection(memory, neighbours=1).answer(text)
    assert answer is None or answer.text == "mine" or text in {e["input"] for e in EXAMPLES}


def test_an_unknown_option_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'neighbours'"):
        RecallAgent(workspace(tmp_path / "w", agent="  neighbors: 3\n"))


@pytest.mark.parametrize("value", ["0", "true", "many", "2.5"])
def test_an_option_out_of_range_is_an_error(tmp_path: Path, value: str) -> None:
    with pytest.raises(ConfigurationError, match="neighbours"):
        RecallAgent(workspace(tmp_path / "w", agent=f"  neighbours: {value}\n"))


def test_options_of_the_manifest_reach_the_agent(tmp_path: Path) -> None:
    root = workspace(tmp_path / "w", agent="  min_similarity: 1.0\n")
    remember(root, "examples", *EXAMPLES)
    assert ask(RecallAgent(root), "Where is the parcel?").output == "general"
