"""Play a driver scenario through Spark and Delta: each step becomes a landing, and branches replay them in one or several runs.

Scenarios that landings cannot express are not played: a wall clock that does not follow the records, waiting for an
idle topic (a landing has its watermark already), and timestamps that `land` rejects. A failed run leaves no rows, so for the
step at which a scenario fails only the failure is compared. Each sink is a separate table: its order is compared, but not
the order between sinks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

from rewindow import Record, Topology
from rewindow.control.ingest.landings import LogSchema, log_shapes
from rewindow.control.run import Engine
from rewindow.engine.worker.changelog_reader import changelog_batches, row_columns, rows_of
from rewindow.errors import RewindowError
from rewindow.storage.zone_data import read_zones
from rewindow.streams.checkpoint import new_store
from rewindow.streams.record import UNKNOWN
from rewindow.streams.serde.schema import Column
from rewindow.streams.serde.types_to_columns import bind_sink, bind_store, bound
from rewindow.streams.settings import Semantics
from rewindow.streams.zoned_topology import with_clocks, zones_of
from rewindow.tables.delta.checkpoints import find_checkpoint
from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.table_rows import read_rows
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.testing import Epoch
from tests import landed
from tests.conformance.build import Builder, Fired
from tests.conformance.drive import add_contents, as_key, contents_of, sent
from tests.conformance.extractors import as_landed
from tests.conformance.played import Played
from tests.conformance.scenario import comparable

FEED = "scenario"
SEVERAL_RUNS = 3
"""The number of runs of the second branch. Each costs a Spark job per sub-topology."""


class NotLandedError(Exception):
    """A scenario cannot be expressed as landings."""


def play(scenario: dict[str, Any], engine: Engine) -> dict[str, Played]:
    """Play a scenario in one run and in several. Raises `NotLandedError` if it cannot be expressed as landings."""
    check_can_be_landed(scenario)
    scenario = as_landed(scenario)
    load = partial(build, json.dumps(scenario))
    try:
        load()
    except RewindowError as error:
        return {"one run": Played(error=("build", None), message=str(error))}
    epochs = list(as_epochs(scenario["steps"]))
    logs = {source["name"]: log_of(source) for source in scenario["sources"]}
    with TemporaryDirectory(prefix="rewindow-scenario-") as warehouse:
        landed.land(warehouse, FEED, epochs, logs, partitions=scenario.get("config", {}).get("partitions", 1))
        tables = DeltaTables(warehouse)
        return {
            name: _replayed(tables, engine, name.replace(" ", "-"), load, ends, scenario)
            for name, ends in cuts(scenario["name"], len(epochs)).items()
        }


def log_of(source: dict[str, Any]) -> LogSchema:
    """Return the columns of a source's log. ``key_columns``: how many texts its key has, if more than one."""
    schema = landed.LONG if source["value"] == "long" else landed.STRING
    columns = tuple(Column(f"key{number}", "string") for number in range(source.get("key_columns", 1)))
    return schema if len(columns) == 1 else replace(schema, key=columns, scalar_key=False)


def build(scenario: str) -> Topology:
    """Return the topology of a scenario. Workers call this too."""
    topology = Builder(json.loads(scenario), Fired()).build()
    return with_clocks(topology, read_zones(zones_of(topology)))


def check_can_be_landed(scenario: dict[str, Any]) -> None:
    """Raise `NotLandedError` if a landing cannot express something in the scenario."""
    text = json.dumps(scenario["nodes"])
    if scenario.get("config", {}).get("max_task_idle_ms", 0) > 0:
        message = "waiting for a quiet topic by the wall clock"
        raise NotLandedError(message)
    follows_records = scenario.get("config", {}).get("clock") == "records"
    if not follows_records and ('"WALL_CLOCK_TIME"' in text or '"forward_times"' in text):
        message = "the wall clock of the test driver"
        raise NotLandedError(message)
    if any(timestamp < 0 for *_, timestamp in _records(scenario["steps"])):
        message = "a negative timestamp, which land refuses"
        raise NotLandedError(message)


def as_epochs(steps: Sequence[dict[str, Any]]) -> Iterator[Epoch]:
    """Yield an epoch for each step. Its watermark is the largest timestamp so far."""
    latest = UNKNOWN
    for step in steps:
        records = tuple(_records([step]))
        latest = max([latest, *(timestamp for *_, timestamp in records)])
        yield Epoch(records, latest)


def cuts(name: str, landings: int) -> dict[str, list[int]]:
    """Return for each branch the landings at which its runs end. They depend only on the scenario's name."""
    if not landings:
        return {}
    chosen = {1 + crc32(f"{name}/{number}".encode()) % landings for number in range(SEVERAL_RUNS - 1)}
    return {"one run": [landings], "several runs": sorted({*chosen, landings})}


def _records(steps: Sequence[dict[str, Any]]) -> Iterator[tuple[str, Any, Any, int]]:
    for step in steps:
        for one in step.get("batch", [{**step, "topic": step["pipe"]}] if "pipe" in step else []):
            yield one["topic"], as_key(one["key"]), one["value"], one["ts"]


def _replayed(
    tables: DeltaTables, engine: Engine, branch: str, load: Any, ends: list[int], scenario: dict[str, Any]
) -> Played:
    played, done = Played(), 0
    for end in ends:
        try:
            landed.replay(tables, engine, FEED, branch, load, Semantics(), [end])
        except RewindowError as error:
            played.error, played.message = ("step", _by_landing(tables, engine, branch, load, end)), str(error)
            break
        done = end
    if done:
        _read(tables, branch, load(), done, played, scenario)
    if played.error and (committed := played.error[1] or 0) > done:
        alone = Played()
        _read(tables, f"{branch}-by-landing", load(), committed, alone, scenario)
        played.steps += alone.steps[done:]
    return played


def _by_landing(tables: DeltaTables, engine: Engine, branch: str, load: Any, end: int) -> int:
    """Return the step that fails, found in a branch of its own: the plan of a failed run would come again in this one."""
    for number in range(1, end):
        try:
            landed.replay(tables, engine, FEED, f"{branch}-by-landing", load, Semantics(), [number])
        except RewindowError:
            return number - 1
    return end - 1


def _read(
    tables: DeltaTables, branch: str, topology: Topology, landings: int, played: Played, scenario: dict[str, Any]
) -> None:
    """Read a branch's tables: the records sent to each sink, by step, and the stores."""
    logs = log_shapes(dict(tables.feed(FEED).definition.logs))
    played.steps = [[] for _ in range(landings)]
    chain = tables.state(landed.JOB).branch(branch).runs
    checkpoint = find_checkpoint(tables.warehouse, chain[-1] if chain else None, chain, tables.reports)
    for part in topology.sub_topologies():
        for sink in part.sinks:
            if not sink.is_internal:
                key, value = bind_sink(sink, logs)
                path = table_path(tables.warehouse, landed.output_of(branch, sink.topic))
                for row in sorted(read_rows(path).to_pylist(), key=lambda row: row["_offset"]):
                    columns = (tuple(row[name] for name in shape.names) for shape in (key, value))
                    record = Record(key.decode(next(columns)), value.decode(next(columns)), row["_timestamp"])
                    played.steps[row["_epoch"] - 1].append(sent(sink.topic, record))
        for builder, partition in product(bound(part, logs).stores, range(tables.feed(FEED).definition.partitions)):
            clocks = checkpoint.states[part.index, partition]["store_clocks"]
            store = new_store(builder)
            files, shapes = checkpoint.stores.get((builder.name, partition), ()), bind_store(builder, logs)
            batches = changelog_batches(files, partition, row_columns(*shapes))
            store.restore(rows_of(batches, *shapes), clocks.get(builder.name, UNKNOWN))
            add_contents(played, builder.name, contents_of(store, scenario))
    played.steps = [comparable(scenario, step) for step in played.steps]
