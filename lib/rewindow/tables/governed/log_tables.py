"""The tables of logs: what the generations of a feed have landed, grouped as it was appended, and the rows made of it.

Logs are published from landed blocks, and tasks read blocks without Spark. A row's partition columns are in its block's path.

The appends that a stored fold covers were published before it was stored. The fold keeps their number, the last append with
rows of each topic, and the end of each partition.

Commands that read a few partitions of logs again get landed blocks as files below a temporary folder (`LogCopies`). The files
have the names that they were staged with, which state their checksums.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rewindow.contracts.reserved_names import LOG_COLUMNS
from rewindow.contracts.staged_files import StagedFile
from rewindow.contracts.tasks import LogFile, LogSpan
from rewindow.control.ingest.landings import LANDING, LandedRange, LogSchema
from rewindow.control.plan.job_state import LedgerRow
from rewindow.engine.spark.spark_job import mapped
from rewindow.engine.worker.failures import mark
from rewindow.errors import StorageError
from rewindow.streams.record import TopicPartition
from rewindow.streams.serde.schema import Column
from rewindow.tables.governed.journal import ROOT, SparkJournal, block_path, rows_of_block
from rewindow.tables.governed.ledger import KeptFold, SparkLedger
from rewindow.tables.governed.names import TableName, ddl
from rewindow.tables.shared.feeds import LOG_PARTITIONS, generations

QUARANTINED = ""
"""Stands for the quarantine where topics are named."""
_Due = tuple[tuple[int, Sequence[tuple[str, str]]], ...]
"""The numbers of appends that have rows, with path and attempt of each block."""
_IN_ONE_TASK = 64
"""So many blocks are decoded by one task, which sees whether all are there: a query less."""


class LandedAppends(NamedTuple):
    """The definition of a generation, and its appends with landings. The first ``before`` of them are covered by a stored fold.

    ``last``: the numbers of the last covered ones with rows, by topic. ``appends`` are the bodies of the others.
    """

    definition: Mapping[str, Any]
    before: int
    last: Mapping[str, int]
    appends: list[list[Mapping[str, Any]]]

    @property
    def number(self) -> int:
        """The number of the last append with landings."""
        return self.before + len(self.appends)

    def due(self, topic: str) -> _Due:
        """Return the blocks of a topic, or of the quarantine, in the appends that no stored fold covers."""
        part, named = ("quarantine", None) if topic == QUARANTINED else ("files", topic)
        every = (landed_blocks(append, part, named) for append in self.appends)
        return tuple((number, files) for number, files in enumerate(every, self.before + 1) if files)

    def last_of(self, topic: str) -> int:
        """Return the number of the last append with rows of a topic, or of the quarantine; 0 for none."""
        due = self.due(topic)
        return due[-1][0] if due else self.last.get(topic, 0)


def landed_appends(kept: KeptFold | None, later: Sequence[Sequence[LedgerRow]]) -> list[LandedAppends]:
    """Return what each generation has landed, from the stored fold of a feed, if it has one, and the appends after it."""
    stored = kept.landed["generations"] if kept else ()
    before = [LandedAppends(definition, number, last, []) for definition, number, last in stored]
    begun = before.pop() if before else None
    landed = [
        LandedAppends(definition_begun, 0, {}, appends)
        for definition_begun, appends in generations(later, begun and begun.definition)
    ]
    if begun:
        landed[0] = begun._replace(appends=landed[0].appends)
    return [*before, *landed]


def to_store(landed: Sequence[LandedAppends], ranges: Mapping[TopicPartition, LandedRange]) -> dict[str, Any]:
    """Return what a stored fold keeps of the landings that it covers, as JSON. ``ranges``: the last of each partition."""
    made = []
    for generation in landed:
        last = {topic: generation.last_of(topic) for topic in (*generation.definition["logs"], QUARANTINED)}
        made.append(
            [generation.definition, generation.number, {topic: number for topic, number in last.items() if number}]
        )
    ends: dict[str, dict[int, int]] = {}
    for (topic, partition), landed_range in ranges.items():
        ends.setdefault(topic, {})[partition] = landed_range.end
    return {"generations": made, "ends": ends}


def is_covered(kept: KeptFold, topic: str, partition: int, spans: Sequence[LogSpan]) -> bool:
    """Return whether landings that a stored fold covers may have some offsets of a partition."""
    end = kept.landed["ends"].get(topic, {}).get(str(partition), 0)
    return any(span.first < end for span in spans)


def landed_blocks(bodies: Sequence[Mapping[str, Any]], part: str, topic: str | None = None) -> list[tuple[str, str]]:
    """Return path and attempt of the blocks that landings name: of one topic, or of all."""
    return [
        (block_path(body["attempt"], staged.target, staged.path), body["attempt"])
        for body in bodies
        for name, files in body[part].items()
        if topic in (None, name)
        for staged in map(StagedFile.from_json, files)
    ]


def landed_files(ledger: SparkLedger, topic: str, partition: int, spans: Sequence[LogSpan]) -> list[LogFile]:
    """Return the landed blocks of a partition that have an offset of the spans, in offset order."""
    (kept, _), rows = ledger.later(), ledger.read()
    is_later = kept is not None and not is_covered(kept, topic, partition, spans)
    return _block_files(rows.later if is_later else rows, topic, partition, spans)


def _block_files(rows: Iterable[LedgerRow], topic: str, partition: int, spans: Sequence[LogSpan]) -> list[LogFile]:
    files = []
    for row in rows:
        if row.kind != LANDING:
            continue
        for staged in map(StagedFile.from_json, row.body["files"].get(topic, ())):
            values = {name: int(value) for name, value in staged.partition_values.items()}
            first, last = staged.stats["minValues"]["offset"], staged.stats["maxValues"]["offset"]
            if values["partition"] == partition and any(
                span.generation == values["generation"] and first <= span.last and last >= span.first for span in spans
            ):
                path = block_path(row.body["attempt"], f"log/{topic}", staged.path)
                files.append(LogFile(f"{ROOT}{path}", first, last))
    return sorted(files, key=lambda file: file.first)


class LogPublication(NamedTuple):
    """A table to publish: a function that creates it, and what was landed of a topic, or for the quarantine.

    ``unknown`` is the SQL condition of rows that the table may not have before the first append. Feeds and jobs share the
    quarantine.
    """

    name: TableName
    create: Callable[[], TableName]
    app_id: str
    columns: Sequence[Column]
    landed: LandedAppends
    topic: str
    unknown: str
    is_shared: bool = False


def columns_of(schema: LogSchema) -> tuple[Column, ...]:
    """Return the columns of a log's table."""
    return (*(Column(name, "int") for name in LOG_PARTITIONS), *LOG_COLUMNS, *schema.key, *schema.value)


def emptied(name: TableName, feed: str) -> StorageError:
    """Return the error of a log from which all rows were deleted. Only a new table takes them again."""
    return StorageError(
        "catalog-log-rows-deleted",
        "all rows of the log {log} were deleted outside rewindow. Remove the table, `DROP TABLE {log}`, "
        "then land again, and the rows are written anew: `rewindow land {feed}`",
        log=name,
        feed=feed,
    )


def frame_of_log(
    spark: SparkSession, journal: SparkJournal, paths: Sequence[str], columns: Sequence[Column]
) -> DataFrame:
    """Return the rows of landed blocks: from memory if all are there, else decoded by workers.

    Raises `StorageError` (74) if the journal lacks a block.
    """
    names = [column.name for column in columns]
    if journal.in_memory(paths):
        data = journal.block_data(paths)
        batches = [batch for path in paths for batch in _rows_of(names, path, data[path])]
        return spark.createDataFrame(pa.Table.from_batches(batches), ddl(columns)).coalesce(1)
    rows = journal.blocks(sorted({path.partition("/")[0] for path in paths})).where(F.col("path").isin(list(paths)))
    if len(paths) <= _IN_ONE_TASK:
        return rows.coalesce(1).mapInArrow(partial(_decoded, journal.name, names, set(paths)), ddl(columns))
    with mapped():
        staged = {row["path"] for row in rows.select("path").collect()}
    if staged != set(paths):
        raise _blocks_gone(journal.name)
    return rows.mapInArrow(partial(_decoded, journal.name, names, set()), ddl(columns))


def _blocks_gone(journal: str) -> StorageError:
    return StorageError(
        "catalog-journal-blocks-gone",
        "{journal}: blocks that were landed are gone from the journal: restore the journal from a copy",
        journal=journal,
    )


def _decoded(
    journal: str, names: Sequence[str], wanted: set[str], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    present = set()
    for batch in batches:
        for path, data in zip(batch.column("path").to_pylist(), batch.column("data").to_pylist(), strict=True):
            present.add(path)
            yield from _rows_of(names, path, data)
    if not wanted <= present:
        raise RuntimeError(mark(_blocks_gone(journal)))


def _rows_of(names: Sequence[str], path: str, data: bytes) -> Iterator[pa.RecordBatch]:
    rows = rows_of_block(data)
    for part in path.split("/")[:-1]:
        column, separator, number = part.partition("=")
        if separator and column in LOG_PARTITIONS and column in names:
            rows = rows.append_column(column, pa.array([int(number)] * rows.num_rows, pa.int32()))
    yield from rows.select(list(names)).to_batches()


_AT_ONCE = 16
"""The blocks that one query collects: they pass through this process's memory."""


class LogCopies:
    """The copies that a command has made. They last as long as this object."""

    def __init__(self) -> None:
        """Nothing is read or created."""
        self._folder: Path | None = None
        self._made: dict[str, str] = {}

    def files(self, journal: SparkJournal, parts: Sequence[LogFile]) -> list[LogFile]:
        """Return landed blocks as files, in the same order. Each is read once. Raises `StorageError` (74) for a lost block."""
        missing = [part.path for part in parts if part.path not in self._made]
        for start in range(0, len(missing), _AT_ONCE):
            some = {path.removeprefix(ROOT): path for path in missing[start : start + _AT_ONCE]}
            for path, data in journal.block_data(some).items():
                self._made[some[path]] = self._write(path, data)
        return [replace(part, path=self._made[part.path]) for part in parts]

    def _write(self, path: str, data: bytes) -> str:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="rewindow-log-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        folder = self._folder / str(len(self._made))
        folder.mkdir()
        file = folder / path.rpartition("/")[2]
        file.write_bytes(data)
        return str(file)
