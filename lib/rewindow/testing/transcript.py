"""Transcripts: a test as a story in YAML, played through `TopologyTestDriver`. Milliseconds, no Spark.

    name: an hour is closed ten minutes late
    why: KIP-328, final results
    topology: jobs.low_activity:build_topology
    transcript:
      - input: [events, ann, {page: home}, 59m]       # topic, key, value, timestamp
      - input: [events, bob, {page: home}, 1h10m]
      - expect: [[low-activity-alerts, ann, {events: 1}, 59m]]
      - watermark: 3h

What was sent must be expected before the next step, in order; anything else fails the case. The steps:

============== ==========================================================================================
``input``      one record, or a list of records that come at once (they are then ordered, L1)
``clock``      the wall clock jumps by a duration
``watermark``  the epoch ends, complete through a time
``cut``        the epoch and the run end: every task is checkpointed, thrown away and restored
``finish``     nothing ever comes any more (D18)
``expect``     the records that the step before sent
``metrics``    what was counted since the beginning, by ``name`` or ``name/reason``: ``{late-record-drop: 1}``
============== ==========================================================================================

A topic may be left out where the topology has one. Times are epoch milliseconds or durations since the epoch. A value
that is a mapping is a row; a windowed key is ``{key: ann, start: 0s, end: 1h}``. A step with ``error: some words``
must fail with these words in the message. A case may have ``with:`` (arguments of the topology's function),
``semantics``, ``wall_clock``, ``max_task_idle`` (a duration or ``forever``) and ``partitions``. In a test of yours:

    @pytest.mark.parametrize("case", load("tests/low_activity.yaml"), ids=str)
    @pytest.mark.parametrize("cut", [False, True])
    def test_low_activity(case: Transcript, cut: bool) -> None:
        check(case, cut=cut)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

from rewindow.errors import ConfigError, RewindowError
from rewindow.streams.duration import to_ms
from rewindow.streams.record import MAX_MS, Record, Window, Windowed, row_class
from rewindow.streams.semantics import Semantics
from rewindow.streams.topology import Topology
from rewindow.testing.driver import Input, TopologyTestDriver
from rewindow.testing.transcript_diff import compared, counted

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


class TranscriptError(AssertionError):
    """A transcript and its topology do not agree: the step, what was expected, what was sent."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """One case. ``settings`` is what the driver is made with; ``fails``: it must fail with these words (`check`)."""

    name: str
    steps: tuple[Mapping[str, Any], ...]
    topology: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    fails: str | None = None
    why: str = ""

    def __str__(self) -> str:
        """Its name, for test ids."""
        return self.name


def load(path: str | Path) -> list[Transcript]:
    """Return the cases of a file, one a YAML document. Raises `ConfigError` for what is no transcript."""
    text = Path(path).read_text(encoding="utf-8")
    try:
        return [_parsed(case, str(path)) for case in yaml.safe_load_all(text) if case is not None]
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is no YAML: {error}") from error


def check(
    transcript: Transcript, topology: Topology | Callable[..., Topology] | None = None, *, cut: bool = False
) -> None:
    """Play a case; one that is said to fail must fail so. ``cut`` restores every task between every two steps.

    Raises `TranscriptError` naming the step.
    """
    if transcript.fails is None:
        play(transcript, topology, cut=cut)
        return
    try:
        play(transcript, topology, cut=cut)
    except TranscriptError as error:
        if transcript.fails not in str(error):
            message = f"{transcript.name}: it shall fail with {transcript.fails!r}, but says: {error}"
            raise TranscriptError(message) from error
        return
    message = f"{transcript.name}: it shall fail with {transcript.fails!r}, and it passes"
    raise TranscriptError(message)


def play(
    transcript: Transcript, topology: Topology | Callable[..., Topology] | None = None, *, cut: bool = False
) -> None:
    """Play a case against its topology, or another one. Raises `TranscriptError` naming the step that went wrong."""
    driver = TopologyTestDriver(_topology(transcript, topology), **transcript.settings)
    pending: list[Any] = _sent(driver)
    sender = "the beginning"
    for number, step in enumerate(transcript.steps, start=1):
        this = f"step {number} ({_words(step)})"
        where = f"{transcript.name}, {this}"
        if "expect" in step:
            wanted = [_wanted(one, driver) for one in step["expect"]]
            got, pending = pending[: len(wanted)], pending[len(wanted) :]
            if wanted != got:
                raise TranscriptError(f"{where}: {sender} sent something else\n{compared(wanted, got + pending)}")
        elif "metrics" in step:
            if wrong := counted(step["metrics"], driver.metrics):
                raise TranscriptError(f"{where}: {wrong}")
        else:
            _check_nothing_is_left(transcript, sender, pending)
            if cut and number > 1 and not driver.is_finished:
                driver.cut()
            _take(driver, step, where)
            pending, sender = _sent(driver), this
    _check_nothing_is_left(transcript, sender, pending)


def _check_nothing_is_left(transcript: Transcript, sender: str, pending: list[Any]) -> None:
    if pending:
        raise TranscriptError(f"{transcript.name}: no step expects what {sender} sent\n{compared([], pending)}")


def _take(driver: TopologyTestDriver, step: Mapping[str, Any], where: str) -> None:
    error_wanted = step.get("error")
    try:
        if "input" in step:
            given = step["input"]
            many = given if given and isinstance(given[0], list) else [given]
            driver.pipe_all([_input(one, driver) for one in many])
        elif "clock" in step:
            driver.advance_wall_clock(step["clock"])
        elif "watermark" in step:
            driver.advance_watermark(to_ms(step["watermark"]))
        elif "cut" in step:
            driver.cut()
        else:
            driver.finish()
    except RewindowError as error:
        if error_wanted is None or error_wanted not in str(error):
            raise TranscriptError(f"{where} failed: {error}") from error
    else:
        if error_wanted is not None:
            raise TranscriptError(f"{where}: it shall fail with {error_wanted!r}, and it passes")


def _sent(driver: TopologyTestDriver) -> list[Any]:
    return [[topic, _plain(r.key), _plain(r.value), r.timestamp] for topic, r in driver.read_all()]


def _input(one: list[Any], driver: TopologyTestDriver) -> Input:
    topic, key, value, at = _four(one, driver.inputs, "reads")
    return topic, _row(key), _row(value), to_ms(at)


def _wanted(one: list[Any], driver: TopologyTestDriver) -> list[Any]:
    topic, key, value, at = _four(one, driver.outputs, "writes")
    if isinstance(key, dict) and {"key", "start", "end"} == set(key):
        key = {"key": key["key"], "start": to_ms(key["start"]), "end": to_ms(key["end"])}
    return [topic, key, value, to_ms(at)]


def _four(one: list[Any], topics: Iterable[str], verb: str) -> list[Any]:
    known = tuple(topics)
    if len(one) == 3 and len(known) == 1:
        return [known[0], *one]
    if len(one) != 4:
        raise ConfigError(f"{one}: write [topic, key, value, timestamp]; the topology {verb} {', '.join(known)}")
    return one


def _plain(value: Any) -> Any:
    """Return a key or value as YAML writes it."""
    if isinstance(value, Windowed):
        return {"key": _plain(value.key), "start": value.window.start_ms, "end": value.window.end_ms}
    if isinstance(value, Record | Window) or hasattr(value, "_fields"):
        return {name: _plain(item) for name, item in zip(value._fields, value, strict=True)}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _row(value: Any) -> Any:
    return row_class(tuple(value))(*value.values()) if isinstance(value, dict) else value


def _words(step: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}: {value}" for name, value in step.items())


def _topology(transcript: Transcript, given: Topology | Callable[..., Topology] | None) -> Topology:
    if isinstance(given, Topology):
        return given
    if given is not None:
        return given(**transcript.arguments)
    if transcript.topology is None:
        raise ConfigError(f"{transcript.name}: say `topology: module:function`, or give check() a topology")
    module, _, name = transcript.topology.partition(":")
    made: Topology = getattr(import_module(module), name)(**transcript.arguments)
    return made


def _semantics(given: Any, where: str) -> Semantics:
    known = [one.name for one in fields(Semantics)]
    if not isinstance(given, dict) or not set(given) <= set(known):
        raise ConfigError(f"{where}: semantics: {given}: it is a dict, and known are {', '.join(known)}")
    return Semantics(**{"wall_clock": "run", **given})


def _parsed(case: Any, path: str) -> Transcript:
    if not isinstance(case, dict) or "name" not in case or not isinstance(case.get("transcript"), list):
        raise ConfigError(f"{path}: each document of a transcript file has a name and a list `transcript`")
    where = f"{path}, {case['name']}"
    if unknown := set(case) - FIELDS:
        raise ConfigError(f"{where}: unknown {', '.join(sorted(unknown))}; known are {', '.join(sorted(FIELDS))}")
    steps = [step if isinstance(step, dict) else {step: True} for step in case["transcript"]]
    for step in steps:
        if len(set(step) - {"error"}) != 1 or not set(step) <= {*VERBS, "error"}:
            raise ConfigError(f"{where}: {step} is no step; write one of {', '.join(VERBS)}")
        for verb, kind in LISTS.items():
            if not isinstance(step.get(verb, kind()), kind):
                raise ConfigError(f"{where}: {step}: what is after {verb} is a {kind.__name__}")
    settings: dict[str, Any] = {}
    if "semantics" in case:
        settings["semantics"] = _semantics(case["semantics"], where)
    if "wall_clock" in case:
        settings["wall_clock_ms"] = to_ms(case["wall_clock"])
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
