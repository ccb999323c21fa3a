"""What a model is shown of a workspace, and what becomes of what it says."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_evolve.agents.chat import ChatAgent, without_thinking
from agent_evolve.agents.prompting import memory_section
from agent_evolve.errors import ConfigurationError, InfrastructureError, ModelError
from agent_evolve.llm import Completion, ScriptedModel
from agent_evolve.types import Task

from .support import broken, call, chat, lines, task, workspace

SKILL = "---\nname: dates\ndescription: How we write\n  dates.\n---\n# Dates\nDay first.\n"


def asked(root: Path, **metadata: object) -> str:
    """The system prompt of one task."""
    model = ScriptedModel(["fine"])
    chat(root, model).solve(task(**metadata))
    return model.requests[0].system


# -- the prompt ----------------------------------------------------------------------------------


def test_the_prompt_is_prompt_fragments_skills_and_memory_in_this_order(tmp_path: Path) -> None:
    root = workspace(
        tmp_path,
        {
            "prompts/fragments/b.md": "Second fragment.",
            "prompts/fragments/a.md": "First fragment.",
            "skills/dates/SKILL.md": SKILL,
            "memory/rules.jsonl": lines({"rule": "Cents are\nnot shown."}),
            "memory/examples.jsonl": lines({"input": "3.4.24", "answer": "2024-04-03"}),
        },
    )
    prompt = asked(root)
    parts = [
        "Be brief.",
        "First fragment.",
        "Second fragment.",
        "- dates: How we write dates.",
        "- Cents are not shown.",
        "Q: 3.4.24\nA: 2024-04-03",
    ]
    places = [prompt.index(part) for part in parts]
    assert places == sorted(places)
    assert "Day first." not in prompt, "a skill is read through the tool"


def test_an_empty_workspace_has_no_headings_and_no_tools(tmp_path: Path) -> None:
    model = ScriptedModel(["fine"])
    trajectory = chat(workspace(tmp_path), model).solve(task())
    assert trajectory.output == "fine"
    assert model.requests[0].system == "Be brief."
    assert not model.requests[0].tools


def test_files_changed_on_disk_count_after_a_reload(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    model = ScriptedModel(lambda request: request.system)
    agent = chat(root, model)
    assert agent.solve(task()).output == "Be brief."
    workspace(root, {"prompts/system.md": "Be long.", "memory/m.jsonl": lines({"content": "new"})})
    assert agent.solve(task()).output == "Be brief."
    agent.reload_from_fs()
    assert agent.solve(task()).output.startswith("Be long.")
    assert "- new" in agent.solve(task()).output


def test_a_twin_of_another_copy_reads_that_copy(tmp_path: Path) -> None:
    agent = chat(workspace(tmp_path / "a"), ScriptedModel(lambda request: request.system))
    twin = agent.at(workspace(tmp_path / "b", {"prompts/system.md": "Other."}))
    assert twin.solve(task()).output == "Other."
    assert agent.solve(task()).output == "Be brief."


def test_bytes_that_are_not_utf8_are_sent_as_replacement_characters(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    (root / "prompts/system.md").write_bytes(b"caf\xe9")
    assert asked(root) == "caf�"


def test_by_category_shows_the_examples_of_the_task_s_own_category(tmp_path: Path) -> None:
    memory = lines(
        {"input": "q1", "answer": "a1", "category": "sql"},
        {"input": "q2", "answer": "a2", "category": "dates"},
        {"input": "q3", "answer": "a3"},
        {"rule": "for all"},
    )
    root = workspace(tmp_path, {"memory/m.jsonl": memory}, agent="chat, examples: by_category")
    prompt = asked(root, category="sql")
    assert "q1" in prompt
    assert "q2" not in prompt
    assert "q3" in prompt
    assert "for all" in prompt


@pytest.mark.parametrize(
    ("option", "shown", "hidden"),
    [
        ("true", ["one", "two"], []),
        ("false", [], ["one", "two"]),
        ("[rules]", ["one"], ["two"]),
        ("[later]", [], ["one", "two"]),
    ],
)
def test_the_manifest_says_which_memory_is_shown(
    tmp_path: Path, option: str, shown: list[str], hidden: list[str]
) -> None:
    memory = {"memory/rules.jsonl": lines({"rule": "one"})}
    memory["memory/episodic.jsonl"] = lines({"content": "two"})
    prompt = asked(workspace(tmp_path, memory, agent=f"chat, memory: {option}"))
    assert all(word in prompt for word in shown)
    assert not any(word in prompt for word in hidden)


def test_skills_can_stand_in_the_prompt_whole(tmp_path: Path) -> None:
    root = workspace(tmp_path, {"skills/dates/SKILL.md": SKILL}, agent="chat, skills: inline")
    model = ScriptedModel(["fine"])
    chat(root, model).solve(task())
    assert "# Skill: dates\n# Dates\nDay first." in model.requests[0].system
    assert "description:" not in model.requests[0].system
    assert not model.requests[0].tools


# -- memory is bounded ---------------------------------------------------------------------------


def test_the_newest_memories_that_fit_are_taken_oldest_first() -> None:
    entries = [{"content": f"number {n}"} for n in range(100)]
    section = memory_section({"episodic": entries}, limit=40)
    assert section.splitlines()[1:] == ["- number 97", "- number 98", "- number 99"]


def test_one_memory_that_is_too_long_does_not_hide_the_others() -> None:
    entries = [{"content": "short"}, {"content": "x" * 5000}]
    assert memory_section({"episodic": entries}, limit=100) == "# What we have learned\n- short"


def test_many_of_one_category_do_not_crowd_out_another() -> None:
    memories = {
        "episodic": [{"content": f"event {n:03d}"} for n in range(500)],
        "rules": [{"rule": "pay in cash"}],
    }
    assert "pay in cash" in memory_section(memories, limit=200)


def test_a_memory_of_unknown_form_is_shown_as_json_and_twice_the_same_once() -> None:
    section = memory_section({"m": [{"b": 1, "a": "é"}, {"a": "é", "b": 1}]}, limit=100)
    assert section.splitlines()[1:] == ['- {"a": "é", "b": 1}']


_entry = st.dictionaries(
    st.sampled_from(["input", "answer", "rule", "lesson", "content", "category", "x"]),
    st.one_of(st.text(max_size=30), st.integers(), st.none(), st.lists(st.text(max_size=3))),
)


@given(st.dictionaries(st.text(min_size=1), st.lists(_entry, max_size=8)), st.integers(0, 400))
def test_memory_never_passes_its_limit_whatever_stands_in_it(
    memories: dict[str, list[dict[str, object]]], limit: int
) -> None:
    headings = len("# What we have learned\n\n# Examples with the right answers\n\n")
    assert len(memory_section(memories, limit)) <= limit + headings


# -- reading skills ------------------------------------------------------------------------------


def skilled(tmp_path: Path) -> Path:
    files = {"skills/dates/SKILL.md": SKILL, "skills/dates/references/units.md": "miles"}
    return workspace(tmp_path, files)


def read(root: Path, **arguments: object) -> dict[str, object]:
    """The step of one call to read_skill."""
    model = ScriptedModel([call("read_skill", **arguments), "done"])
    [step] = chat(root, model).solve(task()).steps
    return step


def test_a_skill_and_its_files_are_read_through_the_tool(tmp_path: Path) -> None:
    root = skilled(tmp_path)
    assert "Day first." in str(read(root, name="dates")["output"])
    assert read(root, name="dates", file="references/units.md")["output"] == "miles"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"name": "date"}, "dates"),
        ({"name": "../../manifest"}, "manifest"),
        ({"name": "dates", "file": "references/unit.md"}, "Did you mean 'references/units.md'"),
        ({"name": "dates", "file": "../../manifest.yaml"}, "has no file"),
        ({"name": "dates", "file": "/etc/passwd"}, "has no file"),
        ({"name": 3}, "schema"),
        ({}, "name"),
    ],
)
def test_a_skill_that_can_t_be_read_is_told_and_the_task_goes_on(
    tmp_path: Path, arguments: dict[str, object], told: str
) -> None:
    step = read(skilled(tmp_path), **arguments)
    assert step["is_error"]
    assert told in str(step["output"])


def test_a_link_out_of_the_workspace_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hidden words")
    root = skilled(tmp_path / "w")
    (root / "skills/dates/leak.md").symlink_to(tmp_path / "secret")
    step = read(root, name="dates", file="leak.md")
    assert step["is_error"]
    assert "hidden words" not in str(step["output"])


def test_a_long_skill_is_cut_and_that_is_said(tmp_path: Path) -> None:
    body = SKILL + "x" * 5000
    root = workspace(tmp_path, {"skills/dates/SKILL.md": body}, agent="chat, skill_chars: 500")
    output = str(read(root, name="dates")["output"])
    assert "characters left out" in output
    assert len(output) < 600


# -- what becomes of the answer ------------------------------------------------------------------


def test_the_trajectory_keeps_conversation_steps_and_tokens(tmp_path: Path) -> None:
    model = ScriptedModel([call("read_skill", name="dates"), "2024-04-03"])
    trajectory = chat(skilled(tmp_path), model).solve(task("3.4.24"))
    assert trajectory.output == "2024-04-03"
    assert trajectory.error is None
    roles = [turn["role"] for turn in trajectory.conversation]
    assert roles == ["user", "assistant", "user", "assistant"]
    assert trajectory.conversation[1]["tool_calls"][0]["arguments"] == {"name": "dates"}
    assert trajectory.metrics["turns"] == 2
    assert trajectory.metrics["input_tokens"] > 0
    assert trajectory.metrics["output_tokens"] > 0


@pytest.mark.parametrize(
    ("completion", "error"),
    [
        (Completion(""), "empty"),
        (Completion(" \n"), "empty"),
        (Completion("<think>hmm</think>\n"), "thought but gave no answer"),
        (Completion("<think>hmm", stop_reason="max_tokens"), "within 4096 tokens"),
        (Completion("", stop_reason="other"), "empty"),
    ],
)
def test_no_answer_is_the_agent_s_failure_and_says_why(
    tmp_path: Path, completion: Completion, error: str
) -> None:
    trajectory = chat(workspace(tmp_path), ScriptedModel([completion])).solve(task())
    assert trajectory.error is not None
    assert error in trajectory.error
    assert trajectory.output == ""


def test_an_answer_cut_at_max_tokens_is_graded_and_marked(tmp_path: Path) -> None:
    cut = Completion("SELECT a, b, ", stop_reason="max_tokens")
    trajectory = chat(workspace(tmp_path), ScriptedModel([cut])).solve(task())
    assert trajectory.output == "SELECT a, b,"
    assert trajectory.error is None
    assert trajectory.metrics["cut"] == 1


def test_a_refusal_says_nothing_about_the_agent(tmp_path: Path) -> None:
    no = Completion("I can't help with that.", stop_reason="refusal")
    with pytest.raises(InfrastructureError, match=r"refused to answer: I can't help"):
        chat(workspace(tmp_path), ScriptedModel([no])).solve(task())


def test_an_outage_says_nothing_about_the_agent(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="down"):
        chat(workspace(tmp_path), ScriptedModel([ModelError("down")])).solve(task())


def test_a_task_over_its_time_says_how_to_give_it_more(tmp_path: Path) -> None:
    model = ScriptedModel(lambda request: call("read_skill", name="dates"))
    with pytest.raises(InfrastructureError, match="task_timeout"):
        chat(skilled(tmp_path), model, timeout=0).solve(task())


def test_the_turn_limit_ends_a_model_that_never_answers(tmp_path: Path) -> None:
    files = {"skills/dates/SKILL.md": SKILL}
    root = workspace(tmp_path, files, agent="chat, max_turns: 3")
    names = iter("abcdefgh")
    model = ScriptedModel(lambda request: call("read_skill", name=next(names)))
    trajectory = chat(root, model).solve(task())
    assert trajectory.error == "no answer after 3 turns: the model still wanted to use tools"
    assert len(model.requests) == 3
    assert model.requests[-1].tool_choice == "none"
    assert len(trajectory.steps) == 2


def test_the_same_call_again_and_again_is_stopped_and_the_answer_kept(tmp_path: Path) -> None:
    script = [call("read_skill", name="dates")] * 4 + ["2024-04-03"]
    trajectory = chat(skilled(tmp_path), ScriptedModel(script)).solve(task())
    assert trajectory.output == "2024-04-03"
    assert [step["is_error"] for step in trajectory.steps] == [False, False, True, True]


@pytest.mark.parametrize("raw", ["{name: dates}", "", '["dates"]', '{"name": "da'])
def test_a_tool_call_with_broken_json_is_told_and_recorded(tmp_path: Path, raw: str) -> None:
    model = ScriptedModel([broken(raw, "read_skill"), "done"])
    trajectory = chat(skilled(tmp_path), model).solve(task())
    assert trajectory.output == "done"
    [step] = trajectory.steps
    assert step["is_error"]
    assert "not a JSON object" in step["output"]
    assert step["action"] == raw


def test_a_tool_that_does_not_exist_is_told(tmp_path: Path) -> None:
    model = ScriptedModel([call("read_skil", name="dates"), "done"])
    [step] = chat(skilled(tmp_path), model).solve(task()).steps
    assert "Did you mean 'read_skill'" in step["output"]


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("<think>a</think> b", "b"),
        ("<think>a</think>\n<think>c</think>\nb", "b"),
        ("thought begun in the prompt</think>b", "b"),
        ("<think>never closed", ""),
        ("Use <b> and a < b", "Use <b> and a < b"),
    ],
)
def test_thinking_is_no_part_of_the_answer(said: str, answer: str) -> None:
    assert without_thinking(said) == answer


def test_many_threads_may_solve_at_once(tmp_path: Path) -> None:
    agent = chat(workspace(tmp_path), ScriptedModel(lambda request: request.messages[0].content))
    seen: dict[int, str] = {}

    def solve(number: int) -> None:
        seen[number] = agent.solve(Task(f"t{number}", f"say {number}")).output

    threads = [threading.Thread(target=solve, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {n: f"say {n}" for n in range(16)}


# -- options -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("agent", "told"),
    [
        ("chat, memry: true", "Did you mean 'memory'"),
        ("chat, max_turns: 0", "max_turns is 0"),
        ("chat, temperature: 3", "temperature is 3"),
        ("chat, skills: all", "skills is 'all'"),
        ("chat, memory: 3", "memory is 3"),
    ],
)
def test_a_wrong_option_is_named_with_what_can_be(tmp_path: Path, agent: str, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        ChatAgent(workspace(tmp_path, agent=agent))


def test_options_reach_the_model(tmp_path: Path) -> None:
    model = ScriptedModel(["fine"])
    root = workspace(tmp_path, agent="chat, temperature: 0.5, max_tokens: 77")
    chat(root, model).solve(task())
    assert model.requests[0].temperature == 0.5
    assert model.requests[0].max_tokens == 77


def test_without_a_model_it_says_how_to_name_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="--model"):
        ChatAgent(workspace(tmp_path)).solve(task())
