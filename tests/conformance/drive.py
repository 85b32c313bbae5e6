"""Play a driver scenario through `TopologyTestDriver`: what each step sends, the error, the stores at the end."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from rewindow import Record, Stamped, Windowed
from rewindow.errors import RewindowError
from rewindow.streams.record import MAX_MS
from rewindow.streams.serde.key_bytes import encode_key
from rewindow.streams.settings import Semantics
from rewindow.streams.state.versioned_store import VersionedStore
from rewindow.testing import TopologyTestDriver
from tests.conformance import internals
from tests.conformance.build import Builder, Fired, MissingError
from tests.conformance.extractors import as_landed
from tests.conformance.played import Played
from tests.conformance.scenario import comparable


def play(scenario: dict[str, Any], *, cut: bool, recorded: dict[str, Any] | None = None) -> Played:
    """Play a scenario. With ``cut``, every task is discarded and restored after each step.

    ``recorded``: the recorded result, to compare its buffers and metrics too (`internals`).
    """
    scenario = as_landed(scenario)
    played, fired = Played(), Fired()
    config = scenario.get("config", {})
    try:
        driver = TopologyTestDriver(
            Builder(scenario, fired).build(),
            wall_clock_ms=config.get("wall_clock", 0),
            max_task_idle_ms=config.get("max_task_idle_ms", 0),
            semantics=semantics_of(config),
            partitions=config.get("partitions", 1),
        )
    except RewindowError as error:
        played.error, played.message = ("build", None), str(error)
        return played
    played.init = [sent(*one) for one in driver.read_all()]
    buffers = []
    for number, step in enumerate(scenario["steps"]):
        ties_before = driver.ties
        fired.clear()
        try:
            _take_step(driver, step)
        except RewindowError as error:
            played.error, played.message = ("step", number), str(error)
        played.steps.append(comparable(scenario, [sent(*one) for one in driver.read_all()]))
        if driver.ties > ties_before or any(count > 1 for count in Counter(fired).values()):
            played.ties.add(number)
        if recorded is not None and not played.error:
            buffers.append(internals.buffers_of(driver, scenario))
        if played.error:
            break
        if cut and not driver.is_finished:
            driver.cut()
    if recorded is not None:
        metrics = internals.metrics_of(driver, scenario)
        played.inside = internals.difference(scenario, recorded, metrics, buffers)
    if played.error:
        return played
    copied = {source["name"] for source in scenario["sources"] if source["kind"] == "global"}
    for queued in driver._tasks:
        for name, store in queued.local.task.stores.items():
            if name in copied:  # every task has all its rows
                played.stores.pop(name, None)
            add_contents(played, name, contents_of(store, scenario))
    return played


def semantics_of(config: dict[str, Any]) -> Semantics:
    """Return the semantics of a scenario. With ``"clock": "records"`` the wall clock follows the records (D8)."""
    clock = "stream_time" if config.get("clock") == "records" else "run"
    return Semantics(wall_clock=clock, stream_time_from=config.get("stream_time_from", "records"))


def as_key(said: Any) -> Any:
    """Return a scenario's key: text, or a tuple of a list's items."""
    return tuple(said) if isinstance(said, list) else said


def _take_step(driver: TopologyTestDriver, step: dict[str, Any]) -> None:
    if "watermark" in step:
        _end_epoch(driver, step["watermark"])
    elif "pipe" in step:
        driver.pipe(step["pipe"], as_key(step["key"]), step["value"], step["ts"])
    elif "batch" in step:
        driver.pipe_all((one["topic"], as_key(one["key"]), one["value"], one["ts"]) for one in step["batch"])
    elif "advance_wall_clock" not in step:
        raise MissingError(f"a step with {', '.join(step)}")
    else:
        driver.advance_wall_clock(f"{step['advance_wall_clock']}ms")


def _end_epoch(driver: TopologyTestDriver, watermark_ms: int) -> None:
    """Advance the watermark; the largest one is the end. Only random scenarios have watermarks, Kafka has none."""
    if watermark_ms == MAX_MS:
        driver.finish()
    else:
        driver.advance_watermark(watermark_ms)


def sent(topic: str, record: Record) -> dict[str, Any]:
    """Return a sent record in the format of the recordings."""
    key = _written(record.key)
    if isinstance(key, Windowed):
        key = {"key": key.key, "start": key.window.start_ms, "end": key.window.end_ms}
    return {"sink": topic, "key": key, "value": record.value, "ts": record.timestamp}


def _written(key: Any) -> Any:
    return list(key) if isinstance(key, tuple) and not isinstance(key, Windowed) else key


def contents_of(store: Any, scenario: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a store's content in the format of the recordings. A versioned store: each key as of each time of the steps."""
    if not isinstance(store, VersionedStore):
        return contents(store.rows())
    records = [one for step in scenario["steps"] for one in step.get("batch", [step]) if "ts" in one]
    keys, times = {one["key"] for one in records} - {None}, {one["ts"] for one in records}
    found = [(key, at, store.get_as_of(key, at)) for key in sorted(keys) for at in sorted(times)]
    return [{"key": key, "value": one.value, "ts": one.timestamp, "as_of": at} for key, at, one in found if one]


def add_contents(played: Played, name: str, rows: list[dict[str, Any]]) -> None:
    """Add what one partition of a store has."""
    played.stores[name] = sorted([*played.stores.get(name, ()), *rows], key=_by_key_and_start)


def contents(entries: Iterable[tuple[Any, Any]]) -> list[dict[str, Any]]:
    """Return a store's entries in the format of the recordings."""
    rows = []
    for key, value in entries:
        row: dict[str, Any] = {"key": _written(key)}
        if isinstance(key, Windowed):
            row["key"] = {"key": key.key, "start": key.window.start_ms}
            if key.window.is_session:
                row["key"]["end"] = key.window.end_ms
        if isinstance(value, Stamped) or getattr(value, "_fields", ()) == Stamped._fields:
            row |= {"value": value.value, "ts": value.timestamp}
        else:
            row["value"] = value
        rows.append(row)
    return sorted(rows, key=_by_key_and_start)


def _by_key_and_start(row: dict[str, Any]) -> tuple[bytes, int]:
    key = row["key"]
    if isinstance(key, list):
        return json.dumps(key, separators=(",", ":")).encode(), 0
    return (key["key"].encode(), key["start"]) if isinstance(key, dict) else (encode_key(key), 0)
