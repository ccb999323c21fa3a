"""Whole runs against a provider that misbehaves: the real SDKs, real HTTP, the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.llm.fake_server import Answer, FakeProvider
from tests.loop.support import cli

KEY = "sk-test-0123456789abcdef"
SEED = Path(__file__).parents[2] / "seed_workspaces" / "house-rules"


def workspace(tmp_path: Path) -> Path:
    """house-rules with one family and few tasks."""
    place = tmp_path / "agent"
    shutil.copytree(SEED, place)
    records = (place / "tasks" / "dates.jsonl").read_text().splitlines()
    kept = [line for line in records if '"holdout"' in line][:4]
    kept += [line for line in records if '"train"' in line][:6]
    (place / "tasks" / "dates.jsonl").write_text("\n".join(kept))
    manifest = (place / "manifest.yaml").read_text()
    files = "[tasks/dates.jsonl, tasks/sql.jsonl, tasks/orders.jsonl]"
    assert files in manifest
    manifest = manifest.replace(files, "tasks/dates.jsonl").replace(
        "batch_size: 9", "batch_size: 3"
    )
    (place / "manifest.yaml").write_text(manifest)
    return place


def run(place: Path, provider: FakeProvider, model: str, *arguments: str):  # type: ignore[no-untyped-def]
    env = {
        "ANTHROPIC_API_KEY": KEY,
        "ANTHROPIC_BASE_URL": provider.url,
        "OPENAI_API_KEY": KEY,
        "OPENAI_BASE_URL": provider.url + "/v1",
    }
    return cli("run", str(place), "--model", model, *arguments, env=env)


MODELS = ["anthropic:claude-sonnet-5-5", "openai:gpt-5-mini"]


@pytest.mark.parametrize("model", MODELS)
def test_a_wrong_key_stops_at_once_with_advice_and_nothing_is_lost(
    tmp_path: Path, model: str
) -> None:
    place = workspace(tmp_path)
    with FakeProvider([Answer.status(401, "invalid x-api-key")]) as provider:
        done = run(place, provider, model, "--cycles", "1")
        asked = len(provider.requests)
    assert done.returncode == 2, done.stderr
    assert "_API_KEY" in done.stderr
    assert "Traceback" not in done.stderr
    assert asked == 1
    with FakeProvider([Answer.text("2024-03-01")]) as provider:
        again = run(place, provider, model, "--cycles", "1", "--json")
    assert json.loads(again.stdout)["cycles_completed"] == 1, again.stderr


@pytest.mark.parametrize("model", MODELS)
def test_a_rate_limit_that_passes_is_waited_for(tmp_path: Path, model: str) -> None:
    script = [Answer.status(429), Answer.status(500), Answer.text("2024-03-01")]
    with FakeProvider(script) as provider:
        done = run(workspace(tmp_path), provider, model, "--cycles", "1", "--json")
    record = json.loads(done.stdout)["cycles"][0]
    assert (record["valid"], record["total"]) == (3, 3), done.stderr


@pytest.mark.parametrize("model", MODELS)
def test_an_outage_scores_nothing_and_keeps_nothing(tmp_path: Path, model: str) -> None:
    place = workspace(tmp_path)
    with FakeProvider([Answer.status(500, "down")]) as provider:
        done = run(place, provider, model, "--cycles", "9", "--json")
    result = json.loads(done.stdout)
    assert done.returncode == 5, done.stderr
    assert [record["verdict"] for record in result["cycles"]] == ["unmeasured"] * 3
    assert [record["score"] for record in result["cycles"]] == [None] * 3
    assert not (place / "memory").exists()


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_half_an_answer_is_an_outage_and_an_empty_one_a_failure(tmp_path: Path, model: str) -> None:
    place = workspace(tmp_path)
    with FakeProvider([Answer.text("2024-03-01", cut=True)]) as provider:
        done = run(place, provider, model, "--cycles", "1", "--json")
    assert json.loads(done.stdout)["cycles"][0]["verdict"] == "unmeasured", done.stderr
    with FakeProvider([Answer.text("")]) as provider:
        done = run(place, provider, model, "--cycles", "1", "--json")
    record = json.loads(done.stdout)["cycles"][-1]
    assert (record["score"], record["valid"]) == (0.0, 3), done.stderr


def test_a_cap_stops_before_the_call_and_more_goes_on_from_there(tmp_path: Path) -> None:
    place = workspace(tmp_path)
    with FakeProvider([Answer.text("2024-03-01")]) as provider:
        done = run(place, provider, MODELS[0], "--cycles", "2", "--max-calls", "5")
        assert done.returncode == 4, done.stderr
        assert len(provider.requests) == 5
        again = run(place, provider, MODELS[0], "--cycles", "2", "--json")
        assert json.loads(again.stdout)["cycles_completed"] == 2
        asked = [request.body["messages"][0]["content"] for request in provider.requests]
    holdout = list(map(json.dumps, asked))
    events = (place / "evolution" / "journal.jsonl").read_text()
    calls = [line for line in events.splitlines() if '"type":"call"' in line]
    assert len(calls) == len(holdout)
    assert all(json.loads(line)["usd"] > 0 for line in calls)


def test_dollars_are_capped_and_an_unknown_price_is_not_guessed(tmp_path: Path) -> None:
    place = workspace(tmp_path)
    with FakeProvider([Answer.text("2024-03-01")]) as provider:
        capped = run(place, provider, MODELS[0], "--max-usd", "0.000001")
        assert capped.returncode == 4, capped.stderr
        assert provider.requests == []
        unknown = run(place, provider, "openai:house-made-model", "--max-usd", "1")
        assert unknown.returncode == 2, unknown.stderr
        assert "price" in unknown.stderr
        assert provider.requests == []


def test_every_call_is_traced_whole_and_without_the_key(tmp_path: Path) -> None:
    place = workspace(tmp_path)
    with FakeProvider([Answer.text("2024-03-01")]) as provider:
        assert run(place, provider, MODELS[0], "--cycles", "1").returncode in (0, 1)
    traces = list((place / "evolution" / "traces").glob("*.json"))
    journal = (place / "evolution" / "journal.jsonl").read_text()
    assert {path.stem for path in traces} == {
        json.loads(line)["call_id"]
        for line in journal.splitlines()
        if json.loads(line)["type"] == "call"
    }
    everything = "".join(path.read_text() for path in traces) + journal
    assert "You do the paperwork" in everything
    assert KEY not in everything
