"""The feeds of a catalog: landing ledger, logs and quarantine through Spark.

The k-th commit to a log has what the k-th append of landings to the ledger names: a function of the ledger alone, as in
`tables.governed.publish`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rewindow.contracts.ingest import LOG_COLUMNS, QUARANTINE_COLUMNS, LogSpec, ReadWindow, SourceLook
from rewindow.contracts.staged_files import StagedFile
from rewindow.control.ingest.landings import LogSchema
from rewindow.control.ingest.watermarks import HeldFile
from rewindow.control.plan.branches import LedgerRow
from rewindow.engine.spark.errors import mapped
from rewindow.errors import StorageError
from rewindow.streams.serde.schema import Column
from rewindow.tables.governed.commit import OWNER, create_table, ddl, last_version, owner
from rewindow.tables.governed.job_source import look_at_output
from rewindow.tables.governed.journal import SparkJournal, block_path, rows_of_block
from rewindow.tables.governed.names import TableName
from rewindow.tables.governed.publish import land_once
from rewindow.tables.governed.source_table import look_at_table
from rewindow.tables.governed.warehouse import CatalogTables
from rewindow.tables.shared.feeds import LOG_PARTITIONS, first_above, generations
from rewindow.tables.shared.ledger import dated
from rewindow.tables.shared.paths import QUARANTINE
from rewindow.tables.shared.publications import log_id, quarantine_id, unknown_landings

_FILES_CACHED = 64


class CatalogFeedTables:
    """The feeds whose logs a catalog governs: the `LandingTables` of `land`."""

    def __init__(self, spark: Callable[[], SparkSession], tables: CatalogTables) -> None:
        """Bind to the tables of a catalog. Nothing is read or created."""
        self._spark_of, self._tables = spark, tables
        self.warehouse = tables.warehouse
        self.name_of = tables.name_of
        self._times: dict[str, npt.NDArray[np.int64]] = {}

    def journal(self, feed: str) -> SparkJournal:
        """Return the journal of a feed's landings."""
        return self._tables.journal(f"feed:{feed}")

    def state(self, feed: str) -> list[LedgerRow]:
        """Return the rows of a feed's landing ledger. Raises `InvariantError` (70) if it is damaged."""
        return self._tables.feed_rows(feed)

    def append(self, feed: str, *rows: LedgerRow) -> bool:
        """Append rows in one commit. Return whether they are the rows that now have their numbers."""
        return self._tables.landings(feed).append(dated(rows))

    def prepare(self, feed: str, logs: Mapping[str, LogSchema]) -> None:
        """Create the journal and the quarantine, and check the logs as far as they exist: publishing creates them.

        Raises `CheckpointError` (76) if one has other columns, `ConfigError` (78) if it belongs to another feed.
        """
        self.journal(feed).prepare()
        catalog = self._spark_of().catalog
        for topic, schema in logs.items():
            if catalog.tableExists(self._tables.log_name(feed, topic).quoted):
                self._create_log(feed, topic, schema)
        if logs:
            self._create_quarantine()

    def publish(self, feed: str) -> None:
        """Bring a feed's log tables and the quarantine up to its ledger. Any process may do so at any time."""
        for _ in self.publish_steps(feed):
            pass

    def publish_steps(self, feed: str) -> Iterator[str]:
        """Publish as `publish` does; yield the name of each commit before it. Raises `StorageError` (74)."""
        rows = self._tables.landings(feed).appends()
        ledger, other_rows = rows[0][0].token if rows else "", f"name = '{feed}' AND _run IS NULL"
        for generation, appends in generations(rows):
            number = generation["generation"]
            for topic, text in generation["logs"].items():
                if topic in generation.get("source_offsets", ()):
                    continue
                schema = LogSchema.from_json(text)
                due = [_files(append, "files", topic) for append in appends]
                create = partial(self._create_log, feed, topic, schema)
                columns = _columns(schema)
                app_id, unknown = log_id(ledger, feed, number), f"generation = {number}"
                log = _Published(create, app_id, columns, tuple(due), topic, unknown)
                yield from self._publish(feed, log)
            refused = [found for append in appends if (found := _files(append, "quarantine"))]
            if refused:
                app_id = quarantine_id(ledger, feed, number)
                quarantine = _Published(
                    self._create_quarantine, app_id, QUARANTINE_COLUMNS, tuple(refused), "quarantine", other_rows
                )
                yield from self._publish(feed, quarantine)
                other_rows = "false"  # the rows of this generation are known

    def look(self, spec: LogSpec, position: Mapping[str, Any] | None, window: ReadWindow) -> SourceLook:
        """Return a table or a job's output as a source (see `look_at_table`)."""
        if spec.is_output:
            return look_at_output(self._spark_of(), self._tables, spec, position)
        name = self._tables.name_of(spec.source.name)
        return look_at_table(self._spark_of(), name, spec, position, window)

    def roots(self, feed: str, topic: str) -> tuple[str, str]:  # noqa: ARG002 - workers write to temporary folders
        """Return the targets that stand for the folders of a topic's log and of the quarantine."""
        return f"log/{topic}", QUARANTINE

    def first_above(self, feed: str, file: HeldFile, offset: int, time_ms: int) -> int | None:
        """Return the first offset of a landed file, from ``offset`` on, whose timestamp is above ``time_ms``."""
        return first_above(self._timestamps(feed, file), file, offset, time_ms)

    def remove_orphans(self, feed: str, topics: Sequence[str], attempts: Sequence[str]) -> None:  # noqa: ARG002
        """Remove what attempts staged that can never land from the journal."""
        self.journal(feed).drop(attempts)

    def _publish(self, feed: str, log: _Published) -> Iterator[str]:
        name: TableName | None = None
        reached = 0
        for ordinal, files in enumerate(log.due, start=1):
            if not files:
                continue
            if name is None:
                name = log.create()
                reached = last_version(self._spark_of(), name, log.app_id)
                self._check_claim(feed, name, log, reached)
            if ordinal <= reached:
                continue
            yield f"publish {log.what} {ordinal}"
            paths = [path for path, _ in files]
            attempts = sorted({attempt for _, attempt in files})
            rows = self.journal(feed).blocks(attempts).where(F.col("path").isin(paths))
            with mapped():
                staged = {row["path"] for row in rows.select("path").collect()}
            if staged != set(paths):
                message = (
                    f"{name}: blocks that were landed for it are gone from the journal: restore the journal from a copy"
                )
                raise StorageError(message)
            names = [column.name for column in log.columns]
            frame = rows.mapInArrow(partial(_log_rows, names), ddl(log.columns))
            land_once(self._spark_of(), frame, name, log.app_id, ordinal)

    def _check_claim(self, feed: str, name: TableName, log: _Published, reached: int) -> None:
        """Check that a table has the rows of this ledger, and of no other. Raises `CheckpointError` (76)."""
        with mapped():
            if not reached and self._spark_of().table(name.quoted).where(log.unknown).limit(1).count():
                raise unknown_landings(str(name), feed)

    def _create_log(self, feed: str, topic: str, schema: LogSchema) -> TableName:
        name = self._tables.log_name(feed, topic)
        properties = {OWNER: owner(feed, topic)}
        create_table(self._spark_of(), name, _columns(schema), LOG_PARTITIONS, properties, grows=True)
        return name

    def _create_quarantine(self) -> TableName:
        name = self._tables.name_of(QUARANTINE)
        create_table(self._spark_of(), name, QUARANTINE_COLUMNS)
        return name

    def _timestamps(self, feed: str, file: HeldFile) -> npt.NDArray[np.int64]:
        attempt = file.path.rpartition("/")[2].partition("-")[0]
        path = block_path(attempt, f"log/{file.topic}", file.path)
        if path not in self._times:
            with mapped():
                found = self.journal(feed).blocks([attempt]).where(F.col("path") == path).collect()
            if len(found) != 1:
                message = f"{path} is gone from the journal: restore the journal from a copy"
                raise StorageError(message)
            if len(self._times) >= _FILES_CACHED:
                self._times.clear()
            self._times[path] = np.asarray(rows_of_block(bytes(found[0]["data"]))["timestamp"])
        return self._times[path]


class _Published(NamedTuple):
    """A table to publish: a function that creates it, and the blocks (path, attempt) of each ordinal.

    ``unknown`` is the SQL condition of rows that the table may not have before the first ordinal.
    """

    create: Callable[[], TableName]
    app_id: str
    columns: Sequence[Column]
    due: tuple[Sequence[tuple[str, str]], ...]
    what: str
    unknown: str


def _columns(schema: LogSchema) -> tuple[Column, ...]:
    return (*(Column(name, "int") for name in LOG_PARTITIONS), *LOG_COLUMNS, *schema.key, *schema.value)


def _files(bodies: Sequence[Mapping[str, Any]], part: str, topic: str | None = None) -> list[tuple[str, str]]:
    """Return path and attempt of the blocks that landings name: of one topic, or of all."""
    return [
        (block_path(body["attempt"], staged.target, staged.path), body["attempt"])
        for body in bodies
        for one, files in body[part].items()
        if topic in (None, one)
        for staged in map(StagedFile.from_json, files)
    ]


def _log_rows(names: Sequence[str], batches: Any) -> Iterator[pa.RecordBatch]:
    """Yield the rows of blocks. A log's partition columns are in the block's path."""
    for batch in batches:
        blocks = zip(batch.column("path").to_pylist(), batch.column("data").to_pylist(), strict=True)
        for path, data in blocks:
            rows = rows_of_block(data)
            for part in path.split("/")[:-1]:
                column, found, number = part.partition("=")
                if found and column in LOG_PARTITIONS and column in names:
                    rows = rows.append_column(column, pa.array([int(number)] * rows.num_rows, pa.int32()))
            yield from rows.select(list(names)).to_batches()
