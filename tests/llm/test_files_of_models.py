"""Script files, and what a GGUF header that is not whole or not honest leads to."""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_evolve.errors import ConfigurationError, ModelError
from agent_evolve.llm import Message, Request, resolve_model
from agent_evolve.llm.gguf import read_facts


def ask(model: object, text: str = "hi") -> str:
    return model.complete(Request([Message("user", text)])).text  # type: ignore[attr-defined]


def test_a_script_file_answers_by_content_first_then_in_order(tmp_path: Path) -> None:
    path = tmp_path / "answers.yaml"
    path.write_text(
        "- first\n- {text: '2024-05-07', when: 7 May}\n"
        "- tool_calls: [{name: read_skill, arguments: {name: dates}}]\n- {error: it is down}\n"
    )
    model = resolve_model(f"scripted:{path}")
    assert ask(model, "on 7 May 2024") == "2024-05-07"
    assert ask(model) == "first"
    assert ask(model, "again 7 May") == "2024-05-07"
    completion = model.complete(Request([Message("user", "x")]))
    [call] = completion.tool_calls
    assert (call.name, call.arguments) == ("read_skill", {"name": "dates"})
    assert completion.stop_reason == "tool_use"
    with pytest.raises(ModelError, match="it is down"):
        ask(model)
    with pytest.raises(ModelError, match="run out"):
        ask(model)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("text: a mapping", "not a list"),
        ("- {txet: typo}", "answer 0"),
        ("- fine\n- [1, 2]", "answer 1"),
        ("- {text: [", "not YAML"),
    ],
)
def test_a_wrong_script_file_names_what_is_wrong(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "answers.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=says):
        resolve_model(f"scripted:{path}")


def test_an_option_that_a_provider_does_not_have_is_named(tmp_path: Path) -> None:
    path = tmp_path / "answers.yaml"
    path.write_text("- x")
    with pytest.raises(ConfigurationError, match="base_urll"):
        resolve_model(f"scripted:{path}", base_urll="x")


def _text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


HEADER = (
    b"GGUF"
    + struct.pack("<IQQ", 3, 0, 3)
    + (_text("general.architecture") + struct.pack("<I", 8) + _text("qwen2"))
    + (_text("qwen2.context_length") + struct.pack("<II", 4, 32_768))
    + (_text("general.tags") + struct.pack("<IIQ", 9, 8, 2) + _text("chat") + _text("code"))
)


def facts_of(data: bytes) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.gguf"
        path.write_bytes(data)
        return read_facts(path)


def test_a_header_is_read() -> None:
    assert facts_of(HEADER) == {
        "general.architecture": "qwen2",
        "qwen2.context_length": 32_768,
        "general.tags": ["chat", "code"],
    }


@settings(max_examples=150, deadline=None)
@given(st.integers(0, len(HEADER) - 1), st.binary(max_size=12), st.booleans())
def test_a_broken_header_is_told_and_nothing_else(at: int, junk: bytes, cut: bool) -> None:
    data = HEADER[:at] + junk + (b"" if cut else HEADER[at + len(junk) :])
    try:
        facts_of(data)
    except ConfigurationError as error:
        assert "model.gguf" in str(error)  # noqa: PT017 - most, not all, of these are broken


def test_lists_in_lists_without_end_are_told() -> None:
    deep = _text("x") + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 5_000
    with pytest.raises(ConfigurationError, match="not a whole GGUF"):
        facts_of(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + deep)
