"""The tables of logs: what each generation of a feed has landed, append by append, and the rows in landed blocks.

Logs are published from landed blocks, and tasks read blocks without Spark. The path of a block contains the values of its
rows' partition columns.

The appends that a stored fold covers were published before the fold was stored. The fold contains the number of these
appends, the last append with rows of each topic, and the end of the offsets of each partition.

Some commands read a few partitions of logs again. They get landed blocks as files below a temporary folder (`LogCopies`). The
files have their original names, which contain their checksums.
"""

from __future__ import annotations

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
from rewindow.engine.spark.spark_calls import mapped
from rewindow.engine.worker.worker_errors import mark
from rewindow.errors import StorageError
from rewindow.storage.scratch import make_folder, remove_folder
from rewindow.streams.record import TopicPartition
from rewindow.streams.serde.schema import Column
from rewindow.tables.governed.journal import ROOT, SparkJournal, block_path, rows_of_block
from rewindow.tables.governed.ledger import KeptFold, SparkLedger
from rewindow.tables.governed.names import TableName, ddl
from rewindow.tables.shared.stored_feeds import LOG_PARTITIONS, generations

QUARANTINED = ""
"""Stands for the quarantine where the name of a topic is expected."""
_Due = tuple[tuple[int, Sequence[tuple[str, str]]], ...]
"""Maps the number of each append with rows to pairs (path, attempt) of its blocks."""
_IN_ONE_TASK = 64
"""Up to this many blocks are decoded by one task, which checks that none is missing. For more blocks, a query makes this
check."""


class LandedAppends(NamedTuple):
    """The definition of a generation, and its appends with landings, which are numbered 1, 2, 3 ...

    ``before``: how many appends a stored fold covers. ``last``: by topic, the number of the last covered append with rows.
    ``appends``: for each append after these, the bodies of its landings.
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
        """Return the blocks of a topic or of the quarantine, by append. Appends that a stored fold covers are left out."""
        part, named = ("quarantine", None) if topic == QUARANTINED else ("files", topic)
        every = (landed_blocks(append, part, named) for append in self.appends)
        return tuple((number, files) for number, files in enumerate(every, self.before + 1) if files)

    def last_of(self, topic: str) -> int:
        """Return the number of the last append with rows of a topic, or of the quarantine; 0 for none."""
        due = self.due(topic)
        return due[-1][0] if due else self.last.get(topic, 0)


def landed_appends(kept: KeptFold | None, later: Sequence[Sequence[LedgerRow]]) -> list[LandedAppends]:
    """Return what each generation of a feed landed. ``kept``: the feed's stored fold, if any.

    ``later``: the appends after it.
    """
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
    """Return the landings of a catalog's logs as a stored fold keeps them (`KeptFold.landed`).

    ``ranges``: the last range of offsets that was landed in each partition.
    """
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
    """Return whether landings that a stored fold covers may have offsets of a partition that are in ``spans``."""
    end = kept.landed["ends"].get(topic, {}).get(str(partition), 0)
    return any(span.first < end for span in spans)


def landed_blocks(bodies: Sequence[Mapping[str, Any]], part: str, topic: str | None = None) -> list[tuple[str, str]]:
    """Return pairs of path and attempt of the blocks that landings name.

    ``bodies``: the landings' ledger bodies. ``part``: ``files`` for blocks of logs, ``quarantine`` for blocks of the
    quarantine. ``topic``: return only the blocks of this topic; if None, of all topics.
    """
    return [
        (block_path(body["attempt"], staged.target, staged.path), body["attempt"])
        for body in bodies
        for name, files in body[part].items()
        if topic in (None, name)
        for staged in map(StagedFile.from_json, files)
    ]


def landed_files(ledger: SparkLedger, topic: str, partition: int, spans: Sequence[LogSpan]) -> list[LogFile]:
    """Return the landed blocks of a partition that have an offset in one of ``spans``, in offset order."""
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
    """A log or the quarantine that is to be published: its table and its landed blocks.

    ``create``: creates the table. ``unknown``: the SQL condition that selects rows which the table must not have before the
    first append. ``is_shared``: whether other writers use the table, too. Feeds and jobs share the quarantine.
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
    """Return the error of a log from which all rows were deleted. Only to a new table would Delta add the rows again."""
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
    """Return the rows of landed blocks. Workers decode the blocks, unless all of them are in memory.

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
"""One query collects at most this many blocks, because they go through this process's memory."""


class LogCopies:
    """Local copies of landed blocks, as files. They last as long as this object."""

    def __init__(self) -> None:
        """Nothing is read or created."""
        self._folder: Path | None = None
        self._made: dict[str, str] = {}

    def files(self, journal: SparkJournal, parts: Sequence[LogFile]) -> list[LogFile]:
        """Return landed blocks as files, in the same order. Reads each block once. Raises `StorageError` (74) if one is lost."""
        missing = [part.path for part in parts if part.path not in self._made]
        for start in range(0, len(missing), _AT_ONCE):
            some = {path.removeprefix(ROOT): path for path in missing[start : start + _AT_ONCE]}
            for path, data in journal.block_data(some).items():
                self._made[some[path]] = self._write(path, data)
        return [replace(part, path=self._made[part.path]) for part in parts]

    def _write(self, path: str, data: bytes) -> str:
        if self._folder is None:
            self._folder = Path(make_folder())
            weakref.finalize(self, remove_folder, str(self._folder))
        folder = self._folder / str(len(self._made))
        folder.mkdir()
        file = folder / path.rpartition("/")[2]
        file.write_bytes(data)
        return str(file)
