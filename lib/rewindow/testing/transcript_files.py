"""Read files of transcripts: each YAML document is a case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import yaml

from rewindow.errors import ConfigError
from rewindow.streams.duration import time_to_ms, to_ms
from rewindow.streams.record import MAX_MS
from rewindow.streams.settings import Semantics
from rewindow.testing.transcript_values import load_all

VERBS = ("input", "clock", "watermark", "cut", "finish", "expect", "metrics")
LISTS: Mapping[str, type[Any]] = {"input": list, "expect": list, "metrics": dict}
FIELDS = {
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
    """A test case. ``settings`` are arguments of the driver; with ``fails`` the case must fail with these words."""

    name: str
    steps: tuple[Mapping[str, Any], ...]
    topology: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    fails: str | None = None
    why: str = ""

    def __str__(self) -> str:
        """Return the name, for test ids."""
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
    """Yield the name of each case of a file and the case, or what is wrong with it. What follows invalid YAML is not read."""
    number = 0
    try:
        for number, case in enumerate(load_all(Path(path).read_text(encoding="utf-8")), start=1):
            if case is not None:
                name = str(case.get("name", "")) if isinstance(case, dict) else ""
                yield name or f"document {number}", _parsed_or_wrong(case, str(path))
    except yaml.YAMLError as error:
        yield f"document {number + 1}", ConfigError(f"{path} is not YAML: {error}")


def _semantics(given: Any, where: str) -> Semantics:
    known = [one.name for one in fields(Semantics)]
    if not isinstance(given, dict) or not set(given) <= set(known):
        raise ConfigError(f"{where}: semantics: {given}: write a mapping with keys among {', '.join(known)}")
    return Semantics(**{"wall_clock": "run", **given})


def _parsed_or_wrong(case: Any, path: str) -> Transcript | ConfigError:
    try:
        return _parsed(case, path)
    except ConfigError as error:
        return error


def _parsed(case: Any, path: str) -> Transcript:
    if not isinstance(case, dict) or "name" not in case or not isinstance(case.get("transcript"), list):
        raise ConfigError(f"{path}: each document of a transcript file needs a `name` and a list `transcript`")
    where = f"{path}, {case['name']}"
    if unknown := set(case) - FIELDS:
        raise ConfigError(f"{where}: unknown keys {', '.join(sorted(unknown))}: use {', '.join(sorted(FIELDS))}")
    steps = [step if isinstance(step, dict) else {step: True} for step in case["transcript"]]
    for step in steps:
        if len(set(step) - {"error"}) != 1 or not set(step) <= {*VERBS, "error"}:
            raise ConfigError(f"{where}: {step} is not a step: use one of {', '.join(VERBS)}")
        for verb, kind in LISTS.items():
            if not isinstance(step.get(verb, kind()), kind):
                raise ConfigError(f"{where}: {step}: {verb} needs a {kind.__name__}")
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
