"""Read files with transcripts: each YAML document is a case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import yaml

from rewindow.errors import ConfigError, one_line
from rewindow.streams.duration import time_to_ms, to_ms
from rewindow.streams.record import MAX_MS, Record, Window, Windowed, are_field_names, row_class
from rewindow.streams.settings import Semantics

_VERBS = ("input", "clock", "watermark", "cut", "finish", "expect", "metrics")
_LISTS: Mapping[str, type[Any]] = {"input": list, "expect": list, "metrics": dict}
_FIELDS = {
    "name",
    "why",
    "topology",
    "with",
    "semantics",
    "wall_clock",
    "max_task_idle",
    "partitions",
    "transcript",
    "fails",
}


@dataclass(frozen=True, slots=True)
class Transcript:
    """A test case. ``settings`` are arguments of the driver. If ``fails`` is set, the case must fail with these words."""

    name: str
    steps: tuple[Mapping[str, Any], ...]
    topology: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    fails: str | None = None
    why: str = ""

    def __str__(self) -> str:
        """Return the name, which test ids show."""
        return self.name


def load(path: str | Path) -> list[Transcript]:
    """Return the cases of a file, one per YAML document. Raises `ConfigError` for an invalid file."""
    cases = []
    for _, case in load_each(path):
        if isinstance(case, ConfigError):
            raise case
        cases.append(case)
    return cases


def load_each(path: str | Path) -> Iterator[tuple[str, Transcript | ConfigError]]:
    """Yield each case of a file: its name, and the case or the error in it. Cases after invalid YAML cannot be read."""
    number = 0
    try:
        for number, case in enumerate(_load_all(Path(path).read_text(encoding="utf-8")), start=1):
            if case is not None:
                name = str(case.get("name", "")) if isinstance(case, dict) else ""
                yield name or f"document {number}", _parsed_or_wrong(case, str(path))
    except (yaml.YAMLError, RecursionError) as error:
        yield (
            f"document {number + 1}",
            ConfigError("transcript-not-yaml", "{file} is not YAML: {reason}", file=str(path), reason=one_line(error)),
        )


def as_given(value: Any) -> Any:
    """Return a key or value of a transcript as a topology gets it.

    As in a landed record, a mapping at any depth becomes a row if its names can be attributes, and otherwise a dictionary.
    """
    if isinstance(value, _Map):
        return {name: as_given(item) for name, item in value.items()}
    if isinstance(value, dict):
        items = [as_given(item) for item in value.values()]
        return row_class(tuple(value))(*items) if are_field_names(value) else dict(zip(value, items, strict=True))
    return [as_given(item) for item in value] if isinstance(value, list) else value


def yaml_value(value: Any) -> Any:
    """Return a key or value of a record as YAML would contain it."""
    if isinstance(value, Windowed):
        return {"key": yaml_value(value.key), "start": value.window.start_ms, "end": value.window.end_ms}
    if isinstance(value, Record | Window) or hasattr(value, "_fields"):
        return {name: yaml_value(item) for name, item in zip(value._fields, value, strict=True)}
    if isinstance(value, dict):
        return {name: yaml_value(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [yaml_value(item) for item in value]
    return value


def _semantics(given: Any, where: str) -> Semantics:
    known = [one.name for one in fields(Semantics)]
    if not isinstance(given, dict) or not set(given) <= set(known):
        raise ConfigError(
            "transcript-semantics-unknown",
            "{case}: semantics: {given}: write a mapping with keys among {known}",
            case=where,
            given=str(given),
            known=", ".join(known),
        )
    return Semantics(**{"wall_clock": "run", **given})


def _parsed_or_wrong(case: Any, path: str) -> Transcript | ConfigError:
    try:
        return _parsed(case, path)
    except ConfigError as error:
        return error


def _parsed(case: Any, path: str) -> Transcript:
    if not isinstance(case, dict) or "name" not in case or not isinstance(case.get("transcript"), list):
        raise ConfigError(
            "transcript-document-incomplete",
            "{file}: each document of a transcript file needs a `name` and a list `transcript`",
            file=path,
        )
    where = f"{path}, {case['name']}"
    if unknown := set(case) - _FIELDS:
        raise ConfigError(
            "transcript-key-unknown",
            "{case}: unknown keys {keys}: use {known}",
            case=where,
            keys=", ".join(sorted(unknown)),
            known=", ".join(sorted(_FIELDS)),
        )
    steps = [step if isinstance(step, dict) else {step: True} for step in case["transcript"]]
    for step in steps:
        if len(set(step) - {"error"}) != 1 or not set(step) <= {*_VERBS, "error"}:
            raise ConfigError(
                "transcript-step-unknown",
                "{case}: {step} is not a step: use one of {known}",
                case=where,
                step=str(step),
                known=", ".join(_VERBS),
            )
        for verb, kind in _LISTS.items():
            if not isinstance(step.get(verb, kind()), kind):
                raise ConfigError(
                    "transcript-step-type-wrong",
                    "{case}: {step}: {verb} needs a {type}",
                    case=where,
                    step=str(step),
                    verb=verb,
                    type=kind.__name__,
                )
    settings: dict[str, Any] = {}
    if "semantics" in case:
        settings["semantics"] = _semantics(case["semantics"], where)
    if "wall_clock" in case:
        settings["wall_clock_ms"] = time_to_ms(case["wall_clock"])
    if "max_task_idle" in case:
        idle = case["max_task_idle"]
        settings["max_task_idle_ms"] = MAX_MS if idle == "forever" else to_ms(idle)
    if "partitions" in case:
        settings["partitions"] = case["partitions"]
    return Transcript(
        case["name"],
        tuple(steps),
        case.get("topology"),
        case.get("with", {}),
        settings,
        case.get("fails"),
        case.get("why", ""),
    )


def _load_all(text: str) -> Iterator[Any]:
    """Yield the documents of a YAML text. ``!map`` marks a dictionary, ``!decimal`` a decimal. Raises `yaml.YAMLError`."""
    return yaml.load_all(text, Loader=_Loader)


class _Map(dict[Any, Any]):
    """A mapping marked with ``!map``, which stays a dictionary in records."""


class _Loader(yaml.SafeLoader):
    """A YAML loader for plain values, and the tags ``!map`` and ``!decimal``."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - as in PyYAML
        seen = set[tuple[str, str]]()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if (key.tag, key.value) in seen:
                raise yaml.constructor.ConstructorError(None, None, f"duplicate key {key.value!r}", key.start_mark)
            seen.add((key.tag, key.value))
        return super().construct_mapping(node, deep=deep)

    def read_map(self, node: yaml.Node) -> _Map:
        if not isinstance(node, yaml.MappingNode):
            raise yaml.constructor.ConstructorError(None, None, "!map needs a mapping", node.start_mark)
        return _Map(self.construct_mapping(node, deep=True))

    def read_decimal(self, node: yaml.Node) -> Decimal:
        try:
            return Decimal(str(node.value))
        except InvalidOperation:
            problem = f"!decimal needs a number, not {node.value!r}"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from None


_Loader.add_constructor("!map", _Loader.read_map)
_Loader.add_constructor("!decimal", _Loader.read_decimal)
