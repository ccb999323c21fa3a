"""The quickstart seed: honest data, and a holdout score that rises from the files it wrote."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from agent_evolve import Evolver
from agent_evolve.agents.recall import RecallAgent
from agent_evolve.matching import Index, normalise
from agent_evolve.types import EvolutionResult, Task

SEED = Path(__file__).parents[2] / "seed_workspaces/quickstart"
MESSAGES: list[dict[str, str]] = [
    json.loads(line) for line in (SEED / "tasks.jsonl").read_text(encoding="utf-8").splitlines()
]
TRAIN = [message for message in MESSAGES if message["split"] == "train"]
HOLDOUT = [message for message in MESSAGES if message["split"] == "holdout"]
NEARLY_THE_SAME = 0.6


@pytest.fixture(scope="module")
def evolved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, EvolutionResult]:
    """The workspace after one run as the seed configures it, and what the run said."""
    place = tmp_path_factory.mktemp("run")
    return place / "quickstart", Evolver("quickstart", work_dir=place).run()


def right_on_holdout(workspace: Path) -> float:
    """The share of holdout messages that an agent with these files sends to the right queue."""
    agent = RecallAgent(workspace)
    answers = [agent.solve(Task(m["id"], m["input"])).output for m in HOLDOUT]
    return sum(a == m["expected"] for a, m in zip(answers, HOLDOUT, strict=True)) / len(HOLDOUT)


def memory(workspace: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((workspace / "memory").iterdir())}


def test_every_message_has_an_id_of_its_own_and_a_queue_that_the_prompt_names() -> None:
    prompt = (SEED / "prompts" / "system.md").read_text(encoding="utf-8")
    assert len(MESSAGES) >= 200
    assert len({message["id"] for message in MESSAGES}) == len(MESSAGES)
    assert len(TRAIN) + len(HOLDOUT) == len(MESSAGES)
    for queue in {message["expected"] for message in MESSAGES}:
        assert f"- `{queue}`" in prompt
        assert sum(message["expected"] == queue for message in HOLDOUT) >= 5


def test_no_holdout_message_is_nearly_a_train_message() -> None:
    texts = {normalise(message["input"]) for message in TRAIN} - {" "}
    assert not texts & {normalise(message["input"]) for message in HOLDOUT}
    assert not {m["input"].strip() for m in TRAIN} & {m["input"].strip() for m in HOLDOUT}
    index = Index([message["input"] for message in TRAIN])
    for message in HOLDOUT:
        for found in index.nearest(message["input"], 1):
            assert found.similarity < NEARLY_THE_SAME, (message, TRAIN[found.place])


def test_the_holdout_score_rises_by_half_of_all_messages_without_a_model(
    evolved: tuple[Path, EvolutionResult],
) -> None:
    _, result = evolved
    assert result.gated
    assert result.start_score is not None
    assert result.final_score is not None
    assert result.start_score < 0.25
    assert result.final_score > result.start_score + 0.5
    assert result.usd == 0
    assert sum(record.verdict == "accepted" for record in result.cycles) >= 3


def test_the_score_never_falls_from_one_version_to_the_next(
    evolved: tuple[Path, EvolutionResult],
) -> None:
    _, result = evolved
    scores: list[Any] = [result.start_score, *(record.holdout_score for record in result.cycles)]
    assert scores == sorted(scores)


def test_the_score_comes_from_the_files_in_memory(
    evolved: tuple[Path, EvolutionResult], tmp_path: Path
) -> None:
    workspace, result = evolved
    assert right_on_holdout(workspace) == pytest.approx(result.final_score)
    emptied = Path(shutil.copytree(workspace, tmp_path / "emptied"))
    shutil.rmtree(emptied / "memory")
    assert right_on_holdout(emptied) == pytest.approx(result.start_score)


def test_memory_is_readable_text_without_a_word_of_the_holdout(
    evolved: tuple[Path, EvolutionResult],
) -> None:
    workspace, _ = evolved
    written = memory(workspace)
    assert set(written) == {"episodic.jsonl", "examples.jsonl", "rules.jsonl"}
    train_ids = {message["id"] for message in TRAIN}
    train_texts = {message["input"] for message in TRAIN}
    for line in written["examples.jsonl"].decode().splitlines():
        example = json.loads(line)
        assert example["task_id"] in train_ids
        assert example["input"] in train_texts
    everything = " ".join(
        str(value)
        for content in written.values()
        for line in content.decode().splitlines()
        for value in json.loads(line).values()
    )
    for message in HOLDOUT:
        if message["input"] not in " ".join(train_texts):
            assert message["input"] not in everything


def test_a_second_run_of_the_seed_writes_the_same_bytes(
    evolved: tuple[Path, EvolutionResult], tmp_path: Path
) -> None:
    workspace, result = evolved
    again = Evolver("quickstart", work_dir=tmp_path).run()
    assert again.score_history == result.score_history
    assert memory(tmp_path / "quickstart") == memory(workspace)
