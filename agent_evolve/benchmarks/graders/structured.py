"""Graders for answers in JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ...errors import ConfigurationError
from ...runtime import Runtime
from ...types import Feedback
from .base import Case, Grader, feedback, shown

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

_FENCE = re.compile(r"\A\s*```[\w-]*[ \t]*\n(.*?)\n?[ \t]*```\s*\Z", re.DOTALL)
_MOST_FAULTS = 8


class Json(Grader):
    """Scores an answer that is one JSON value.

    Args:
        match: how it compares with the expected value. ``exact``: equal. ``subset``: everything
            expected is there, more is allowed. ``fields`` (default): the share of right fields
            among the expected and the surplus ones, nested objects field by field. ``none``:
            the schema alone decides.
        schema: a JSON Schema, or the path of one, that the answer must satisfy to score at all; of
            the draft that its ``$schema`` names, else 2020-12. Nothing is fetched for it.
        fenced: allow one code fence around the answer.
    """

    def __init__(
        self,
        match: Literal["exact", "subset", "fields", "none"] = "fields",
        schema: Mapping[str, Any] | str | None = None,
        fenced: bool = True,
        root: Path = Path(),
    ) -> None:
        if match not in ("exact", "subset", "fields", "none"):
            raise ConfigurationError(f"grader json: match: {match!r} is not known")
        if match == "none" and schema is None:
            raise ConfigurationError("grader json: match: none needs a schema, or nothing decides")
        self._match, self._fenced = match, fenced
        self._schema = _schema(schema, root)
        self.needs_expected = match != "none"

    def grade(self, case: Case, runtime: Runtime) -> Feedback:
        expected = parsed_expected(case.expected)
        wanted = "" if expected is None else f"expected {shown(compact(expected))}; "
        text = case.output.strip()
        fence = _FENCE.match(text) if self._fenced else None
        try:
            seen = json.loads(fence[1] if fence else text)
        except (ValueError, RecursionError) as error:
            detail = f"{wanted}this is not JSON alone ({error}): {shown(case.output)}"
            return feedback(0.0, detail, case.expected)
        try:
            faults = self._schema_faults(seen)
        except RecursionError:  # the schema alone does not recurse, see _schema
            faults = ["nested too deeply to be checked"]
        if faults:
            return feedback(0.0, f"{wanted}against the schema: {'; '.join(faults)}", case.expected)
        if self._match == "none":
            return feedback(1.0, "satisfies the schema", None)
        right, total, faults = compare(expected, seen, surplus=self._match != "subset")
        score = right / total if self._match == "fields" else float(not faults)
        if not faults:
            return feedback(1.0, f"{wanted}every field is right", case.expected)
        more = f" and {len(faults) - _MOST_FAULTS} more" if len(faults) > _MOST_FAULTS else ""
        detail = f"{wanted}wrong: {'; '.join(faults[:_MOST_FAULTS])}{more}"
        return feedback(score, detail, case.expected, right=right, total=total)

    def _schema_faults(self, seen: Any) -> list[str]:
        if self._schema is None:
            return []
        found = sorted(_validator(self._schema).iter_errors(seen), key=str)
        return [f"{error.json_path}: {error.message[:200]}" for error in found[:_MOST_FAULTS]]

    def why_not(self, expected: Any) -> str:
        try:
            parsed_expected(expected)
        except ValueError as error:
            return f"is text that is not JSON: {error}"
        return ""

    def fingerprint(self) -> Any:
        return ["json", self._match, self._schema, self._fenced]


def parsed_expected(expected: Any) -> Any:
    """The expected value; text is read as JSON."""
    return json.loads(expected) if isinstance(expected, str) else expected


def compare(
    expected: Any, seen: Any, *, surplus: bool = True, at: str = "$"
) -> tuple[int, int, list[str]]:
    """Right leaves, leaves in all, and a line for each fault. ``1``, ``1.0`` and ``true`` differ
    in kind only between numbers and booleans. With ``surplus``, fields that nobody expected count
    as wrong ones."""
    if isinstance(expected, dict) and isinstance(seen, dict):
        pairs = [(f"{at}.{key}", value, seen.get(key, _ABSENT)) for key, value in expected.items()]
        extra = [f"{at}.{key} should not be there" for key in seen if key not in expected]
    elif isinstance(expected, list) and isinstance(seen, list):
        padded = [*seen[: len(expected)], *[_ABSENT] * (len(expected) - len(seen))]
        pairs = [
            (f"{at}[{i}]", e, s) for i, (e, s) in enumerate(zip(expected, padded, strict=True))
        ]
        extra = [f"{at}[{i}] should not be there" for i in range(len(expected), len(seen))]
    else:
        same = type(expected) is type(seen) or _both_numbers(expected, seen)
        if same and expected == seen:
            return 1, 1, []
        is_now = "is missing" if seen is _ABSENT else f"is {shown(compact(seen))}"
        return 0, max(1, leaves(expected)), [f"{at} {is_now}, not {shown(compact(expected))}"]
    right, total = 0, 0
    faults: list[str] = []
    for place, wanted, found in pairs:
        one = compare(wanted, found, surplus=surplus, at=place)
        right, total, faults = right + one[0], total + one[1], faults + one[2]
    if surplus:
        total, faults = total + len(extra), faults + extra
    return (right, total, faults) if total else (1, 1, faults)


def leaves(value: Any) -> int:
    """How many fields a value has that can be right or wrong."""
    if isinstance(value, dict):
        return sum(leaves(item) for item in value.values())
    if isinstance(value, list):
        return sum(leaves(item) for item in value)
    return 1


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


class _Absent:
    pass


_ABSENT = _Absent()


def _both_numbers(a: Any, b: Any) -> bool:
    kinds = (int, float)
    return type(a) in kinds and type(b) in kinds


def _schema(told: Mapping[str, Any] | str | None, root: Path) -> Mapping[str, Any] | None:
    if told is None:
        return None
    from jsonschema.exceptions import SchemaError
    from referencing.exceptions import Unresolvable

    where, schema = "the schema of grader json", told
    if isinstance(told, str):
        where = str(root / told)
        try:
            schema = json.loads((root / told).read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"{where}: can't be read as JSON: {error}") from error
    if not isinstance(schema, Mapping):
        raise ConfigurationError(f"{where}: is no JSON Schema object")
    try:
        validator = _validator(schema)
        validator.check_schema(dict(schema))
        list(validator.iter_errors(None))
    except SchemaError as error:
        raise ConfigurationError(f"{where}: {error.message}") from error
    except Unresolvable as error:
        raise ConfigurationError(
            f"{where}: its reference {error.ref!r} leads nowhere",
            fix="put what it refers to under $defs; nothing is fetched",
        ) from error
    except RecursionError as error:
        raise ConfigurationError(f"{where}: it refers to itself without end") from error
    return schema


def _validator(schema: Mapping[str, Any]) -> Validator:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

    cls = validator_for(schema, default=Draft202012Validator)
    return cls(schema, registry=REGISTRY)
