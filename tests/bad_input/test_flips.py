"""A flipped bit never gives wrong rows: each kind of file is corrupted at many positions and read with its own reader."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from rewindow import StreamsBuilder, Topology
from rewindow.contracts.tasks import InternalFile, LogSlice
from rewindow.engine.worker.changelog_reader import changelog_batches, row_columns, rows_of
from rewindow.engine.worker.log_reader import InternalReader, LogReader
from rewindow.errors import RewindowError
from rewindow.streams.ordering import Rows
from rewindow.streams.record import TopicPartition
from rewindow.streams.serde.types_to_columns import bind_sink, bind_store
from rewindow.tables.delta.checkpoints import find_checkpoint
from rewindow.tables.delta.journal import Journal
from rewindow.tables.delta.ledger import Ledger
from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.table_rows import content_hash
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.paths import JOURNAL, LANDINGS, METRICS, RUNS, log_path
from tests.control.ledgers import TOPIC
from tests.properties.effort import examples
from tests.tables.scene import JOB, a_job, land, replay

pytestmark = pytest.mark.slow

LANDINGS_MADE = 12
"""Enough for each ledger to have a Delta checkpoint."""
SEED = 20261121
FLIPS = examples(120).max_examples
"""Number of bytes to corrupt in each file. With the profile `deep`, these are all bytes of small files."""

Reader = Callable[[], Any]


def by_remainder() -> Topology:
    builder = StreamsBuilder()
    grouped = builder.stream(TOPIC).group_by(lambda _user, value: str(value % 3))
    grouped.count(store="sums").to_stream().to("totals")
    return builder.build()


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = str(tmp_path_factory.mktemp("flips"))
    land(root, LANDINGS_MADE)
    for run in range(1, 6):
        replay(root, f"{run:032x}", through_landing=run * 2, build=by_remainder)
    return root


def log_rows(warehouse: str) -> Any:
    tables = DeltaTables(warehouse)
    feed = tables.feed("activity")
    shapes = a_job(tables, build=by_remainder).code.load_logs()[TOPIC]
    rows = []
    for partition in range(feed.definition.partitions):
        where = TopicPartition(TOPIC, partition)
        end = feed.epoch_range(LANDINGS_MADE, where)[1]
        files = tuple(tables.log_files(feed, where, 0, end))
        rows.append(_rows_of(LogReader(TOPIC, LogSlice(files, ((0, end),)), *shapes).epoch()))
    return rows


def _rows_of(batches: Iterable[Rows]) -> Any:
    return [[list(column) for column in batch] for batch in batches]


def states(warehouse: str) -> Any:
    tables = DeltaTables(warehouse)
    job = a_job(tables, build=by_remainder)
    (store,) = [store for part in by_remainder().sub_topologies() for store in part.stores]
    shapes = bind_store(store, job.code.load_logs())
    runs = tables.state(JOB).branch("main").runs
    restored = find_checkpoint(warehouse, runs[-1], runs, tables.reports)
    columns = row_columns(*shapes)
    return {
        where: list(rows_of(changelog_batches(files, where[1], columns), *shapes))
        for where, files in sorted(restored.stores.items())
    }


def internal_rows(warehouse: str) -> Any:
    tables = DeltaTables(warehouse)
    (sink,) = [sink for part in by_remainder().sub_topologies() for sink in part.sinks if sink.is_internal]
    shapes = bind_sink(sink, a_job(tables, build=by_remainder).code.load_logs())
    rows = []
    for path in sorted(Path(warehouse).glob("internal/**/*.parquet")):
        reader = InternalReader([InternalFile(str(path), 0)], *shapes)
        rows.append([_rows_of(reader.epoch(epoch, 0)) for epoch in range(1, LANDINGS_MADE + 1)])
    return rows


def reports(warehouse: str) -> Any:
    tables = DeltaTables(warehouse)
    runs = tables.state(JOB).branch("main").runs
    journal = Journal(table_path(warehouse, JOURNAL), JOB)
    return [journal.read(run.commit.journal, run.spec.attempt.id) for run in runs]


def table(path: str) -> Callable[[str], Any]:
    return lambda warehouse: content_hash(table_path(warehouse, path), exclude=())


def ledger(path: str, name: str) -> Callable[[str], Any]:
    return lambda warehouse: Ledger(table_path(warehouse, path), name).read()


STATE = "state/*/sums/*"
KINDS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "log file": (f"{log_path('activity', TOPIC)}/**/*.parquet", log_rows),
    "changelog file": (f"{STATE}/*.parquet", states),
    "internal file": ("internal/**/*.parquet", internal_rows),
    "output file": ("alerts/totals/*.parquet", table("alerts/totals")),
    "metrics file": (f"{METRICS}/*.parquet", table(METRICS)),
    "journal file": (f"{JOURNAL}/job*/*.parquet", reports),
    "runs ledger file": (f"{RUNS}/name*/*.parquet", ledger(RUNS, JOB)),
    "landing ledger file": (f"{LANDINGS}/name*/*.parquet", ledger(LANDINGS, "activity")),
}
LOGS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "Delta log of a log": (f"{log_path('activity', TOPIC)}/_delta_log/*.json", log_rows),
    "Delta log of a changelog": (f"{STATE}/_delta_log/*.json", states),
    "Delta log of an output": ("alerts/totals/_delta_log/*.json", table("alerts/totals")),
    "Delta log of the runs": (f"{RUNS}/_delta_log/*.json", ledger(RUNS, JOB)),
    "Delta checkpoint of the runs": (f"{RUNS}/_delta_log/*.parquet", ledger(RUNS, JOB)),
    "Delta checkpoint of the landings": (f"{LANDINGS}/_delta_log/*.parquet", ledger(LANDINGS, "activity")),
    "last checkpoint": (f"{RUNS}/_delta_log/_last_checkpoint", ledger(RUNS, JOB)),
}


def flip_bits(warehouse: str, pattern: str, read: Callable[[str], Any], flips: int) -> dict[str, int]:
    """Flip a bit at many positions of a file of this kind, read it, and count the outcomes."""
    expected = read(warehouse)
    rng = random.Random(SEED)
    path = rng.choice(sorted(Path(warehouse).glob(pattern)))
    data = path.read_bytes()
    counts = {"noticed": 0, "harmless": 0}
    try:
        for at in sorted(rng.sample(range(len(data)), min(flips, len(data)))):
            bit = 1 << rng.randrange(8)
            path.write_bytes(data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :])
            try:
                found = read(warehouse)
            except RewindowError:
                counts["noticed"] += 1
            else:
                assert found == expected, f"{path}: bit {bit} of byte {at} gives other rows (seed {SEED})"
                counts["harmless"] += 1
    finally:
        path.write_bytes(data)
    assert read(warehouse) == expected
    return counts


@pytest.mark.parametrize(("pattern", "read"), KINDS.values(), ids=KINDS)
def test_a_flipped_bit_of_a_data_file_is_noticed(warehouse, pattern, read, record_property):
    counts = flip_bits(warehouse, pattern, read, FLIPS)
    record_property("cases", sum(counts.values()))
    assert counts["noticed"]
    assert not counts["harmless"], "our own files have checksums, so every flip is noticed, even a harmless one"


@pytest.mark.parametrize(("pattern", "read"), LOGS.values(), ids=LOGS)
def test_a_flipped_bit_of_a_delta_log_is_noticed_or_harmless(warehouse, pattern, read, record_property):
    counts = flip_bits(warehouse, pattern, read, FLIPS // 2)
    record_property("cases", sum(counts.values()))
    assert counts["noticed"] + counts["harmless"]
