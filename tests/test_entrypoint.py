"""An agent's own class, named in the manifest: from the workspace first, with errors that help."""

from __future__ import annotations

import pytest

from agent_evolve.entrypoint import load_object
from agent_evolve.errors import ManifestError

WHERE = "manifest.yaml, key agent.entrypoint"


def test_each_workspace_has_its_own_module_of_the_same_name(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "agent.py").write_text(f"class Mine:\n    home = {name!r}\n")
    first = load_object("agent.Mine", tmp_path / "one", WHERE)
    second = load_object("agent.Mine", tmp_path / "two", WHERE)
    assert (first.home, second.home) == ("one", "two")
    assert load_object("agent.Mine", tmp_path / "one", WHERE) is first


def test_packages_and_neighbours_are_found(tmp_path):
    package = tmp_path / "my_agent_package"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("from my_agent_package.base import Base as Whole\n")
    (package / "base.py").write_text("class Base: pass\n")
    (package / "inner" / "deep.py").write_text("class Deep: pass\n")
    assert load_object("my_agent_package.Whole", tmp_path, WHERE).__name__ == "Base"
    assert load_object("my_agent_package.inner.deep.Deep", tmp_path, WHERE).__name__ == "Deep"


def test_a_workspace_comes_before_what_is_installed(tmp_path):
    assert load_object("json.JSONDecoder", tmp_path, WHERE).__module__ == "json.decoder"
    (tmp_path / "json.py").write_text("class JSONDecoder: pass\n")
    assert load_object("json.JSONDecoder", tmp_path, WHERE).__module__ != "json.decoder"


@pytest.mark.parametrize(
    ("code", "entrypoint", "message", "fix"),
    [
        ("", "Mine", "'Mine' has no dot", "write it as module.Class"),
        ("", "nowhere.Mine", "can't import 'nowhere'", "put nowhere.py into"),
        ("", "no.where.Mine", "can't import 'no.where'", "put no/where.py into"),
        ("class Mine: pass", "agent.Mime", "no 'Mime'. Did you mean 'Mine'?", "after the last dot"),
        ("import no_such_thing_7", "agent.Mine", "No module named", "install no_such_thing_7"),
        ("def broken(:", "agent.Mine", "SyntaxError", "agent.py"),
        ("1 / 0", "agent.Mine", "ZeroDivisionError: division by zero", "agent.py"),
        ("raise SystemExit(3)", "agent.Mine", "SystemExit: 3", "agent.py"),
    ],
)
def test_what_can_not_be_loaded_says_why_and_what_to_do(tmp_path, code, entrypoint, message, fix):
    (tmp_path / "agent.py").write_text(code + "\n")
    with pytest.raises(ManifestError) as caught:
        load_object(entrypoint, tmp_path, WHERE)
    assert caught.value.message.startswith(f"{WHERE}: ")
    assert message in caught.value.message
    assert fix in caught.value.fix


def test_a_module_that_failed_is_read_again_once_it_is_mended(tmp_path):
    (tmp_path / "agent.py").write_text("1 / 0\n")
    with pytest.raises(ManifestError):
        load_object("agent.Mine", tmp_path, WHERE)
    (tmp_path / "agent.py").write_text("class Mine: pass\n")
    assert load_object("agent.Mine", tmp_path, WHERE).__name__ == "Mine"
