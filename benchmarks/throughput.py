"""How much of the ideal throughput many workers keep against a slow model server.

usage: python benchmarks/throughput.py [--tasks 1280] [--workers 64] [--latency 0.2] [--rounds 3]

A server in a process of its own speaks the OpenAI-compatible chat protocol and answers each call
after the latency. The chat agent solves the tasks through ``Evolver.evaluate``: ledger, traces,
journal and score cache are those of a real run. The ideal is workers / latency tasks a second. One
JSON object a line on stdout, a table on stderr; the best of the rounds counts, since what else runs
on the machine only ever takes away.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

GOAL = 0.95
ANSWER = {
    "id": "c",
    "object": "chat.completion",
    "created": 0,
    "model": "slow",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": "4"},
        }
    ],
    "usage": {"prompt_tokens": 40, "completion_tokens": 1, "total_tokens": 41},
}


def serve(latency: float, started: Connection) -> None:
    """Answer every request after ``latency`` seconds, on kept-alive connections."""
    body = json.dumps(ANSWER).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    reply = head.encode() + b"\r\n" + body

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                header = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = header.partition(b"content-length:")[2].split(b"\r\n", 1)[0]
                await reader.readexactly(int(length or 0))
                await asyncio.sleep(latency)
                writer.write(reply)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def listen() -> None:
        server = await asyncio.start_server(connection, "127.0.0.1", 0, backlog=2048)
        started.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(listen())


def workspace(place: Path, tasks: int, url: str) -> Path:
    (place / "prompts").mkdir(parents=True)
    (place / "prompts" / "system.md").write_text("Answer with a number.\n")
    rows = [
        {"id": f"t{i}", "input": f"What is 2 + 2? ({i})", "expected": "4", "split": "train"}
        for i in range(tasks)
    ]
    rows += [
        {"id": f"h{i}", "input": f"1 + 1? ({i})", "expected": "4", "split": "holdout"}
        for i in range(8)  # enough for a gate: none of them joins the train tasks
    ]
    (place / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    manifest = {
        "name": "throughput",
        "agent": {"type": "chat"},
        "model": f"openai:slow@{url}",
        "benchmark": {"name": "local", "tasks": "tasks.jsonl"},
        "evolvable_layers": ["prompts"],
    }
    (place / "manifest.yaml").write_text(json.dumps(manifest))
    return place


def measure(tasks: int, workers: int, url: str) -> float:
    """Tasks a second, from the first to the last."""
    from agent_evolve import EvolutionEngine, Evolver, StepResult

    class Idle(EvolutionEngine):
        def step(self, *parts: object) -> StepResult:
            return StepResult(False)

    with tempfile.TemporaryDirectory(prefix="throughput-") as directory:
        place = workspace(Path(directory) / "agent", tasks, url)
        evolver = Evolver(place, config={"solve_workers": workers, "batch_size": 1}, engine=Idle())
        evolver.run(1)  # makes the version that is measured
        began = time.perf_counter()
        result = evolver.evaluate("head", "train")
        seconds = time.perf_counter() - began
    total = len(result.observations)
    if result.valid != total or result.mean != 1.0:
        raise SystemExit(f"{result.valid} of {total} tasks are valid, mean {result.mean}")
    return result.valid / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--tasks", type=int, default=2560)
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--latency", type=float, default=0.2, help="seconds of one answer")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    receiver, sender = multiprocessing.Pipe(duplex=False)
    server = multiprocessing.get_context("spawn").Process(
        target=serve, args=(arguments.latency, sender), daemon=True
    )
    server.start()
    url = f"http://127.0.0.1:{receiver.recv()}/v1"
    ideal = arguments.workers / arguments.latency
    try:
        rates = [measure(arguments.tasks, arguments.workers, url) for _ in range(arguments.rounds)]
    finally:
        server.terminate()
    row = (
        f"{arguments.workers} workers, {arguments.latency * 1000:g} ms model latency: "
        "share of the ideal throughput"
    )
    value = round(max(rates) / ideal, 3)
    line = {"row": row, "value": value, "unit": "ratio", "goal": GOAL, "better": "higher"}
    print(json.dumps(line | {"peers": {}}), flush=True)
    reached = "reached" if value >= GOAL else "MISSED"
    print(f"{row:<70} {value:>7.3f} goal {GOAL:g} {reached}", file=sys.stderr)
    each = ", ".join(f"{rate:.1f}" for rate in rates)
    print(f"tasks a second: {each} (ideal {ideal:g})", file=sys.stderr)


if __name__ == "__main__":
    main()
