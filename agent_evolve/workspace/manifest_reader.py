"""From the text of a ``manifest.yaml`` to the fields of a ``Manifest``, with errors that point."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import yaml

from ..errors import ManifestError, nearest
from . import strict_yaml
from .manifest import CONTRACT_VERSION, DEFAULT_EVOLVABLE, STANDARD_LAYERS
from .names import PRIVATE, unportable, unsafe
from .powers import KINDS as POWERS

KEYS = (
    "name",
    "version",
    "contract_version",
    "agent",
    "evolvable_layers",
    "layers",
    "reload_strategy",
    "benchmark",
    "engine",
    "model",
    "locked",
    "allowed_powers",
    "config",
)
_LOCK_FIX = 'locked: [skills/house-style, "skills/x#Heading", prompts/system.md]'
_ENTRYPOINT = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")


def read(text: str, path: Path) -> dict[str, Any]:
    """The fields of the manifest in ``text``. ``path`` is named in errors, and its directory is
    looked at to know the layers. Raises ``ManifestError``."""
    try:
        value, node = strict_yaml.load(text)
    except strict_yaml.YamlFault as fault:
        colon = fault.message.startswith("mapping values")
        raise ManifestError(
            f"{path}:{fault.line}:{fault.column}: not valid YAML: {fault.message}",
            fix=f"correct line {fault.line}"
            + ("; a value with ': ' needs quotes" if colon else ""),
        ) from fault
    if not isinstance(value, dict):
        what = "empty" if node is None else strict_yaml.kind(node)
        raise ManifestError(
            f"{path}:1: the manifest is {what}, not a mapping of keys to values",
            fix="start from 'agent-evolve init', or write lines such as 'agent: {type: chat}'",
        )
    return _Reader(path, value, node).fields()


class _Reader:
    """One reading of one file: the values, and where each key stands."""

    def __init__(self, path: Path, value: dict[Any, Any], node: yaml.Node | None) -> None:
        self.path = path
        self.value = value
        self.nodes = {key.value: (key, entry) for key, entry in strict_yaml.pairs(node)}
        self.warnings: list[str] = []

    def fields(self) -> dict[str, Any]:
        extra = self._unknown()
        layers = self._layers()
        fields = {
            "name": self._text("name") or self.path.resolve().parent.name,
            "version": self._text("version") or "0.1.0",
            "contract_version": self._contract(),
            **self._agent(),
            "layers": layers,
            "evolvable_layers": self._evolvable(layers),
            "reload_strategy": self._reload(),
            "benchmark": self._part("benchmark"),
            "engine": self._part("engine"),
            "model": self._text("model", fix="model: anthropic:claude-sonnet-5-5"),
            "config": self._mapping("config"),
            "allowed_powers": self._powers(),
            "extra": extra,
        }
        fields["layers"] = tuple(dict.fromkeys((*layers, *fields["evolvable_layers"])))
        fields["locked"] = self._locked(fields["layers"])
        fields["warnings"] = tuple(self.warnings)
        return fields

    def fail(self, key: str, message: str, fix: str = "") -> NoReturn:
        raise ManifestError(f"{self._where(key)}: {key}: {message}", fix=fix)

    def _where(self, key: str) -> str:
        place = self.nodes.get(key)
        return f"{self.path}:{place[0].start_mark.line + 1}" if place else str(self.path)

    def _kind(self, key: str) -> str:
        return strict_yaml.kind(self.nodes[key][1]) if key in self.nodes else "absent"

    def _unknown(self) -> dict[str, Any]:
        extra = {key: value for key, value in self.value.items() if key not in KEYS}
        for key in extra:
            near = nearest(str(key), KEYS)
            guess = f"; did you mean {near!r}?" if near else f"; known: {', '.join(KEYS)}"
            self.warnings.append(f"{self._where(str(key))}: unknown key {key!r} is ignored{guess}")
        return extra

    def _text(self, key: str, fix: str = "") -> str | None:
        """A scalar as it is written: ``version: 1.10`` is "1.10", and ``name: on`` is "on"."""
        if key not in self.nodes:
            return None
        node = self.nodes[key][1]
        if strict_yaml.is_null(node):
            return None
        if not isinstance(node, yaml.ScalarNode):
            self.fail(key, f"must be text, not {strict_yaml.kind(node)}", fix)
        return str(node.value).strip() or None

    def _mapping(self, key: str) -> dict[str, Any]:
        value = self.value.get(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.fail(key, f"must be a mapping, not {self._kind(key)}")
        return self._named(key, value)

    def _named(self, key: str, value: dict[Any, Any]) -> dict[str, Any]:
        for inner in value:
            if not isinstance(inner, str):
                self.fail(key, f"the key {inner!r} is not text", fix=f'put it in quotes: "{inner}"')
        return value

    def _strings(self, key: str) -> tuple[str, ...] | None:
        """A list of text; a single word stands for a list of one. ``None`` when not given."""
        if key not in self.value:
            return None
        value = self.value[key]
        if value is None:
            return ()
        if isinstance(value, str):
            value = [value]
        if not isinstance(value, list):
            self.fail(key, f"must be a list, not {self._kind(key)}", fix=f"{key}: [skills]")
        for item in value:
            if not isinstance(item, str) or not item.strip():
                self.fail(key, f"{item!r} is not text")
        return tuple(dict.fromkeys(item.strip() for item in value))

    def _contract(self) -> str:
        version = self._text("contract_version") or CONTRACT_VERSION
        if version not in (CONTRACT_VERSION, "1"):
            self.fail(
                "contract_version",
                f"{version!r} is not a layout that this version knows",
                fix=f'contract_version: "{CONTRACT_VERSION}"',
            )
        return CONTRACT_VERSION

    def _agent(self) -> dict[str, Any]:
        value = self.value.get("agent")
        if value is not None and not isinstance(value, dict):
            fix = f"agent: {{type: {value}}}" if isinstance(value, str) else "agent: {type: chat}"
            if isinstance(value, str) and "." in value:
                fix = f"agent: {{entrypoint: {value}}}"
            self.fail("agent", f"must be a mapping, not {self._kind('agent')}", fix=fix)
        options = self._named("agent", dict(value or {}))
        kind, entrypoint = options.pop("type", None), options.pop("entrypoint", None)
        if kind is not None and not isinstance(kind, str):
            self.fail("agent", f"type must be text, not {kind!r}", fix="agent: {type: chat}")
        if entrypoint is not None:
            self._check_entrypoint(entrypoint)
        if kind == "reference" and entrypoint is None:
            self.fail(
                "agent",
                "type 'reference' needs an entrypoint",
                fix="agent: {type: reference, entrypoint: my_agent.MyAgent}",
            )
        if value is not None and not kind and not entrypoint:
            self.fail("agent", "gives neither type nor entrypoint", fix="agent: {type: chat}")
        kind = kind or ("reference" if entrypoint else "")
        return {"agent_type": kind, "entrypoint": entrypoint, "agent_options": options}

    def _check_entrypoint(self, entrypoint: Any) -> None:
        if isinstance(entrypoint, str) and _ENTRYPOINT.fullmatch(entrypoint):
            return
        fix = "agent: {entrypoint: my_agent.MyAgent}"
        wrong = "is not a dotted path such as module.Class"
        if isinstance(entrypoint, str) and entrypoint.count(":") == 1:
            fix = f"agent: {{entrypoint: {entrypoint.replace(':', '.')}}}"
        elif isinstance(entrypoint, str) and "." not in entrypoint:
            wrong = "has no dot; it must be a dotted path such as module.Class"
        self.fail("agent", f"entrypoint {entrypoint!r} {wrong}", fix=fix)

    def _layers(self) -> tuple[str, ...]:
        named = self._strings("layers") or ()
        for layer in named:
            self._check_layer("layers", layer)
        return tuple(dict.fromkeys((*STANDARD_LAYERS, *named)))

    def _check_layer(self, key: str, layer: str) -> None:
        broken = unportable(layer)
        if layer.casefold() in PRIVATE:
            broken = "it holds the history of the workspace"
        elif layer.casefold() == self.path.name.casefold():
            broken = "it is this manifest"
        if broken:
            self.fail(
                key,
                f"{layer!r} can't be a layer: {broken}",
                fix="name a directory of the workspace, such as 'skills'",
            )

    def _evolvable(self, layers: tuple[str, ...]) -> tuple[str, ...]:
        given = self._strings("evolvable_layers")
        if given is None:
            return DEFAULT_EVOLVABLE
        if not given:
            self.fail(
                "evolvable_layers",
                "is empty, so nothing could ever change",
                fix="evolvable_layers: [prompts, skills, memory]",
            )
        root = self.path.parent
        for layer in given:
            self._check_layer("evolvable_layers", layer)
            if layer in layers or (root / layer).is_dir():
                continue
            folders = [entry.name for entry in root.iterdir() if entry.is_dir()]
            known = [*layers, *(name for name in folders if name.casefold() not in PRIVATE)]
            near = nearest(layer, known)
            guess = f" Did you mean {near!r}?" if near else ""
            self.fail(
                "evolvable_layers",
                f"unknown layer {layer!r}.{guess} Known: {', '.join(dict.fromkeys(known))}",
                fix=f"correct the name, or make the directory: mkdir {root / layer}",
            )
        return given

    def _reload(self) -> str:
        value = self._text("reload_strategy") or "hot"
        if value not in ("hot", "cold"):
            near = nearest(value, ("hot", "cold"))
            guess = f" Did you mean {near!r}?" if near else ""
            self.fail(
                "reload_strategy",
                f"{value!r} is neither 'hot' nor 'cold'.{guess}",
                fix="reload_strategy: hot   # or cold: the agent is built anew each cycle",
            )
        return value

    def _part(self, key: str) -> Mapping[str, Any] | None:
        """``local``, ``{name: local, ...}`` or ``{type: local, ...}``."""
        value = self.value.get(key)
        if value is None:
            return None
        if isinstance(value, str) and value.strip():
            return {"name": value.strip()}
        if not isinstance(value, dict):
            self.fail(
                key, f"must be a name or a mapping, not {self._kind(key)}", f"{key}: {{name: ...}}"
            )
        options = self._named(key, dict(value))
        name = options.pop("name", None)
        if name is None:
            name = options.pop("type", None)
        if not isinstance(name, str) or not name.strip():
            self.fail(key, "has no name", fix=f"{key}: {{name: {_example(key)}, ...}}")
        return {"name": name.strip(), **options}

    def _powers(self) -> tuple[str, ...]:
        kinds = self._strings("allowed_powers") or ()
        for kind in kinds:
            if kind not in POWERS:
                near = nearest(kind, POWERS)
                guess = f" Did you mean {near!r}?" if near else ""
                self.fail(
                    "allowed_powers",
                    f"{kind!r} is no kind of power.{guess} Known: {', '.join(POWERS)}",
                    fix="allowed_powers: [url, script]",
                )
        return kinds

    def _locked(self, layers: tuple[str, ...]) -> tuple[str, ...]:
        locked = tuple(item.strip("/") for item in self._strings("locked") or ())
        for item in locked:
            path, _, heading = item.partition("#")
            parts = path.rstrip("/").split("/")
            if any(map(unsafe, parts)) or (item.endswith("#") and not heading):
                self.fail("locked", f"{item!r} is not a path in the workspace", _LOCK_FIX)
            if parts[0] not in layers:
                near = nearest(parts[0], layers)
                guess = f"; did you mean {near!r}?" if near else ""
                self.warnings.append(
                    f"{self._where('locked')}: locked: {item!r} is in no layer, so it protects "
                    f"nothing{guess}"
                )
            elif not (self.path.parent / path).exists():
                self.warnings.append(
                    f"{self._where('locked')}: locked: {path!r} does not exist; is it misspelt?"
                )
        return locked


def _example(key: str) -> str:
    return "local" if key == "benchmark" else "skillforge"
