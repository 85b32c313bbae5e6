"""Transcripts: tests in YAML that `TopologyTestDriver` plays in milliseconds, without Spark.

    name: an hour is closed ten minutes late
    why: KIP-328, final results
    topology: jobs.low_activity:build_topology
    transcript:
      - input: [events, ann, {page: home}, 59m]       # topic, key, value, timestamp
      - input: [events, bob, {page: home}, 1h10m]
      - expect: [[low-activity-alerts, ann, {events: 1}, 59m]]
      - watermark: 3h

An ``expect`` step must list the records that the step before sent, in order. Otherwise the case fails. The steps:

============== ==========================================================================================
``input``      one record, or a list of records to pipe at once, which are then ordered (L1)
``clock``      advance the wall clock by a duration
``watermark``  end the epoch with a watermark
``cut``        end the epoch and the run: checkpoint, discard and restore every task
``finish``     end the input (D18)
``expect``     the records that the step before sent
``metrics``    totals since the start, by ``name`` or ``name/reason``: ``{late-record-drop: 1}``
============== ==========================================================================================

* The topic may be omitted if the topology has only one. Times are epoch milliseconds or durations since the epoch.
* A mapping is a row, even within a value. ``!map {a: 1}`` is a dictionary, and ``!decimal 10.50`` a ``Decimal``. A windowed key
  is ``{key: ann, start: 0s, end: 1h}``.
* A step with ``error: some words`` must fail with these words in the message. Records sent before the error need not be
  expected.
* A case may have ``with:`` (arguments of the topology's function), ``semantics``, ``wall_clock``, ``max_task_idle`` (a duration
  or ``forever``) and ``partitions``.

In a test:

    @pytest.mark.parametrize("case", load("tests/low_activity.yaml"), ids=str)
    @pytest.mark.parametrize("cut", [False, True])
    def test_low_activity(case: Transcript, cut: bool) -> None:
        check(case, cut=cut)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import SequenceMatcher, get_close_matches
from functools import partial
from importlib import import_module
from itertools import zip_longest
from typing import Any

from rewindow.errors import ConfigError, RewindowError, missing_function
from rewindow.streams.duration import time_to_ms
from rewindow.streams.error_context import line_of
from rewindow.streams.metrics import KINDS
from rewindow.streams.settings import Semantics, StreamTimeFrom
from rewindow.streams.topology import Topology
from rewindow.testing.driver import Input, TopologyTestDriver
from rewindow.testing.fresh_modules import Build, Rebuilding, can_be_found_again
from rewindow.testing.transcript_files import Transcript, as_given, load, yaml_value

__all__ = ["Transcript", "TranscriptError", "check", "load", "play"]
_UNMOVED = (
    "\nA watermark moves no time in this case. If it does in the job, add `semantics: {stream_time_from: watermark}` to the "
    "case, as in the job's file"
)
_PARTS = ("topic", "key", "value", "timestamp")


class TranscriptError(AssertionError):
    """A transcript does not match its topology. The message has the step, and the expected and the sent records."""


def check(
    transcript: Transcript, topology: Topology | Callable[..., Topology] | None = None, *, cut: bool = False
) -> None:
    """Play a case. If the case has ``fails``, it must fail. ``cut``: restore every task between any two steps.

    Raises `TranscriptError`, which names the step.
    """
    if transcript.fails is None:
        play(transcript, topology, cut=cut)
        return
    try:
        play(transcript, topology, cut=cut)
    except TranscriptError as error:
        if transcript.fails not in str(error):
            message = f"{transcript.name}: expected to fail with {transcript.fails!r}, but failed with: {error}"
            raise TranscriptError(message) from error
        return
    message = f"{transcript.name}: expected to fail with {transcript.fails!r}, but passed"
    raise TranscriptError(message)


def play(
    transcript: Transcript, topology: Topology | Callable[..., Topology] | None = None, *, cut: bool = False
) -> None:
    """Play a case with its own topology or a given one. Raises `TranscriptError`, which names the failing step.

    ``cut``: restore every task between any two steps. If the case names its topology, or a function at the top level of a
    module builds it, the topology is then built again from freshly imported modules. If a case fails only with cuts, the
    message says so.
    """
    try:
        _play(transcript, topology, cut=cut)
    except TranscriptError as error:
        if not cut or _fails_uncut(transcript, topology):
            raise
        why = "Without cuts the case passes: code keeps state in a field, module, class, default or cache. Keep it in a store"
        raise TranscriptError(f"{error}\n{why}") from error


def _fails_uncut(transcript: Transcript, topology: Topology | Callable[..., Topology] | None) -> bool:
    built = _topology(transcript, topology)
    try:
        _play(transcript, built if isinstance(built, Topology) else Rebuilding(built).again(), cut=False)
    except TranscriptError:
        return True
    return False


def _play(transcript: Transcript, topology: Topology | Callable[..., Topology] | None, *, cut: bool) -> None:
    with _building(transcript.name):
        driver = TopologyTestDriver(_topology(transcript, topology), **transcript.settings)
    pending: list[Any] = _sent(driver)
    sender, has_failed, hint = "the beginning", False, ""
    for number, step in enumerate(transcript.steps, start=1):
        this = f"step {number} ({_shown(step)})"
        at = f"{transcript.name}, {this}"
        if "expect" in step:
            wanted = [_expected(record, driver) for record in step["expect"]]
            got, pending = pending[: len(wanted)], pending[len(wanted) :]
            if wanted != got:
                raise TranscriptError(
                    f"{at}: {sender} sent different records\n{_compared(wanted, got + pending)}{hint}"
                )
        elif "metrics" in step:
            if wrong := _counted(step["metrics"], driver.metrics):
                raise TranscriptError(f"{at}: {wrong}")
        else:
            if not has_failed:  # a failing run sends nothing, so records sent before the error need not be expected
                _check_all_expected(transcript, sender, pending)
            if cut and number > 1 and not driver.is_finished:
                driver.cut()
            _perform(driver, step, at)
            pending, sender, has_failed = _sent(driver), this, "error" in step
            hint = _UNMOVED if "watermark" in step and not _follows_watermarks(transcript) else ""
    if not has_failed:
        _check_all_expected(transcript, sender, pending)


def _follows_watermarks(transcript: Transcript) -> bool:
    semantics: Semantics = transcript.settings.get("semantics", Semantics())
    return semantics.stream_time_from is StreamTimeFrom.WATERMARK


def _check_all_expected(transcript: Transcript, sender: str, pending: list[Any]) -> None:
    if pending:
        raise TranscriptError(f"{transcript.name}: no step expects what {sender} sent\n{_compared([], pending)}")


def _perform(driver: TopologyTestDriver, step: Mapping[str, Any], at: str) -> None:
    error_wanted = step.get("error")
    try:
        if "input" in step:
            given = step["input"]
            many = given if given and isinstance(given[0], list) else [given]
            driver.pipe_all([_input(one, driver) for one in many])
        elif "clock" in step:
            driver.advance_wall_clock(step["clock"])
        elif "watermark" in step:
            driver.advance_watermark(time_to_ms(step["watermark"]))
        elif "cut" in step:
            driver.cut()
        else:
            driver.finish()
    except RewindowError as error:
        if error_wanted is None:
            raise TranscriptError(f"{at} failed: {error}") from error
        if error_wanted not in str(error):
            message = f"{at}: expected to fail with {error_wanted!r}, but failed with: {error}"
            raise TranscriptError(message) from error
    else:
        if error_wanted is not None:
            raise TranscriptError(f"{at}: expected to fail with {error_wanted!r}, but passed")


def _sent(driver: TopologyTestDriver) -> list[Any]:
    return [[topic, yaml_value(r.key), yaml_value(r.value), r.timestamp] for topic, r in driver.read_all()]


def _input(record: list[Any], driver: TopologyTestDriver) -> Input:
    topic, key, value, at = _with_topic(record, driver.inputs, "reads")
    return topic, as_given(key), as_given(value), time_to_ms(at)


def _expected(record: list[Any], driver: TopologyTestDriver) -> list[Any]:
    topic, key, value, at = _with_topic(record, driver.outputs, "writes")
    if isinstance(key, dict) and {"key", "start", "end"} == set(key):
        key = {"key": key["key"], "start": time_to_ms(key["start"]), "end": time_to_ms(key["end"])}
    return [topic, key, value, time_to_ms(at)]


def _with_topic(record: list[Any], topics: Iterable[str], verb: str) -> list[Any]:
    known = tuple(topics)
    if len(record) == 3 and len(known) == 1:
        return [known[0], *record]
    if len(record) != 4:
        raise ConfigError(
            "transcript-record-invalid",
            "{record}: write [topic, key, value, timestamp]; the topology {verb} {topics}",
            record=str(record),
            verb=verb,
            topics=", ".join(known),
        )
    return record


def _shown(step: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}: {value}" for name, value in step.items())


def _topology(transcript: Transcript, given: Topology | Callable[..., Topology] | None) -> Topology | Build:
    """Return a case's topology. If a function builds it and can be found again after a cut, return the function."""
    if isinstance(given, Topology):
        return given
    build = partial(given or _named_function(transcript.name, transcript.topology), **transcript.arguments)
    return build if can_be_found_again(build) else build()


def _named_function(case: str, reference: str | None) -> Callable[..., Topology]:
    """Return the function that ``module:function`` names. Raises `ConfigError` (78) if it does not exist."""
    if reference is None:
        raise ConfigError(
            "transcript-topology-missing",
            "{case}: add `topology: module:function`, or pass a topology to check()",
            case=case,
        )
    name, _, function = reference.partition(":")
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        raise ConfigError(
            "transcript-module-missing",
            "cannot import {module!r}: {reason}. Fix `topology:` or the import",
            module=name,
            reason=str(error),
        ) from error
    named: Callable[..., Topology] | None = getattr(module, function, None)
    if not callable(named):
        raise missing_function(name, function)
    return named


@contextmanager
def _building(case: str) -> Iterator[None]:
    """Add the case and the line of the user's code to errors in this block, which builds the case's topology.

    An error that is no `RewindowError` becomes a `ConfigError`.
    """
    try:
        yield
    except RewindowError as error:
        error.surrounded("" if case in error.message else f"{case}: ")
        error.at_line(line_of(error))
        raise
    except SyntaxError as error:
        raise ConfigError(
            "topology-syntax-wrong",
            "{case}: {file}:{line}: {reason}. Fix that line",
            case=case,
            file=error.filename,
            line=error.lineno,
            reason=error.msg,
        ) from error
    except Exception as error:
        raise ConfigError(
            "topology-build-failed",
            "{case}: the topology cannot be built: {error}. Fix that line",
            case=case,
            error=f"{type(error).__name__}: {error}",
        ).at_line(line_of(error)) from error


def _compared(wanted: Sequence[list[Any]], sent: Sequence[list[Any]]) -> str:
    """Return wanted and sent records as text, one ``[topic, key, value, timestamp]`` per line.

    A wanted record is followed by the record that was sent in its place, with the names of the parts that differ.
    """
    return "\n".join(f"{label:>12} {text}" for label, text in _lines(wanted, sent))


def _lines(wanted: Sequence[list[Any]], sent: Sequence[list[Any]]) -> Iterator[tuple[str, str]]:
    texts = [[repr(record) for record in records] for records in (wanted, sent)]
    for tag, a, b, c, d in SequenceMatcher(None, texts[0], texts[1], autojunk=False).get_opcodes():
        if tag == "equal":
            yield from (("as expected", text) for text in texts[0][a:b])
            continue
        for one, other in zip_longest(wanted[a:b], sent[c:d]):
            if one is not None:
                yield "expected", repr(one)
            if other is not None:
                differs = [part for part, x, y in zip(_PARTS, one, other, strict=True) if x != y] if one else []
                yield "sent", f"{other!r}" + (f"   <- different {' and '.join(differs)}" if differs else "")
            if one is None:
                yield "", "^ not expected"
            elif other is None:
                yield "", "^ not sent"


def _counted(wanted: dict[str, int], rows: Sequence[dict[str, Any]]) -> str:
    """Return a text about wanted metrics that do not exist or have other totals; ``""`` if there are none.

    ``wanted`` maps ``name`` or ``name/reason`` to the total. If both tasks and nodes have a metric (``record-lateness``), the
    totals of the tasks count.
    """
    wrong, known = [], {*KINDS, *(row["name"] for row in rows)}
    for metric, total in wanted.items():
        name, _, reason = metric.partition("/")
        if name not in known:
            close = get_close_matches(name, known, n=1)
            wrong.append(f"there is no metric {name}" + (f": did you mean {close[0]}?" if close else ""))
            continue
        named = [row for row in rows if row["name"] == name and reason in ("", row["reason"])]
        found = sum(row["total"] for row in [row for row in named if row["level"] == "task"] or named)
        if found != total:
            wrong.append(f"{metric} is {found}, not {total}")
    return "; ".join(wrong)
