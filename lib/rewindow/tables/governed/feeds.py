"""The feeds of a catalog: landing ledger, logs and quarantine through Spark.

The k-th commit to a log has what the k-th append of landings to the ledger names: a function of the ledger alone, as in
`tables.governed.publish`. Landings are appended only after all earlier ones were published. So all commits but the last are
there, and the last one is simply made again: if it is there too, Delta skips it, without a Spark job (ADR-107).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from pyspark.sql import SparkSession

from rewindow.contracts.ingest import LogSpec, ReadWindow, SourceLook
from rewindow.contracts.landed_columns import LOG_COLUMNS, QUARANTINE_COLUMNS
from rewindow.contracts.staged_files import StagedFile
from rewindow.control.ingest.landings import LANDING, PLAN, Feed, LogSchema
from rewindow.control.ingest.watermarks import HeldFile
from rewindow.control.plan.branches import LedgerRow
from rewindow.engine.spark.errors import mapped
from rewindow.streams.serde.schema import Column
from rewindow.tables.governed.blocks import block_path, rows_of_block
from rewindow.tables.governed.commit import OWNER, create_table, is_there, owner
from rewindow.tables.governed.history import has_files, last_version
from rewindow.tables.governed.job_source import look_at_output
from rewindow.tables.governed.journal import SparkJournal
from rewindow.tables.governed.log_rows import frame_of_log
from rewindow.tables.governed.names import TableName
from rewindow.tables.governed.own_rows import feed_name
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
        self.journal_table = tables.own.table
        self._times: dict[str, npt.NDArray[np.int64]] = {}
        self._published: dict[str, int] = {}
        self._empty: dict[TableName, bool] = {}

    def journal(self, feed: str) -> SparkJournal:
        """Return the journal of a feed's landings."""
        return self._tables.journal(feed_name(feed))

    def state(self, feed: str) -> list[LedgerRow]:
        """Return the rows of a feed's landing ledger. Raises `InvariantError` (70) if it is damaged."""
        return self._tables.feed_rows(feed)

    def append(self, feed: str, *rows: LedgerRow) -> bool:
        """Append rows in one commit. Return whether they are the rows that now have their numbers.

        A PLAN is held as that of a run is (`CatalogTables.append`). Landings take along what the journal holds of their
        attempt, and follow only published ones.
        """
        own = self._tables.own
        if len(rows) == 1 and rows[0].kind == PLAN and own.is_in_command:
            return own.ledger(feed_name(feed)).hold(dated(rows))
        attempts = [row.body["attempt"] for row in rows if row.kind == LANDING]
        if attempts and self._published.get(feed) != len(self._tables.landings(feed).appends()):
            self._publish_all(feed)
        return own.append(feed_name(feed), dated(rows), attempts)

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
        """Bring a feed's log tables and the quarantine up to its ledger. Any process may do so at any time.

        In a run it is put off until Spark reads the logs: small runs read the landed blocks.
        """
        own = self._tables.own
        if own.is_in_command:
            own.before_workers(feed, lambda: self._publish_all(feed))
        else:
            self._publish_all(feed)

    def _publish_all(self, feed: str) -> None:
        for _ in self.publish_steps(feed):
            pass

    def publish_steps(self, feed: str) -> Iterator[str]:
        """Publish as `publish` does. Raises `StorageError` (74).

        Yield the name of each commit before it, but not of one that is only made again.
        """
        rows = self._tables.landings(feed).appends()
        ledger, found = rows[0][0].token if rows else "", list(generations(rows))
        is_ours = self._published.get(feed, len(rows)) < len(rows)
        self._empty.clear()
        for index, (generation, appends) in enumerate(found, start=1):
            for topic, text in generation["logs"].items():
                if topic not in generation.get("source_offsets", ()):
                    due = tuple(_files(append, "files", topic) for append in appends)
                    log = self._log(feed, ledger, generation["generation"], topic, LogSchema.from_json(text), due)
                    yield from self._publish(feed, log, is_newest=index == len(found), is_ours=is_ours)
            refused = tuple(_files(append, "quarantine") for append in appends)
            if any(refused):
                is_only = not any(_files(append, "quarantine") for _, others in found[: index - 1] for append in others)
                quarantine = self._quarantine(feed, ledger, generation["generation"], refused, is_first=is_only)
                yield from self._publish(feed, quarantine, is_newest=index == len(found), is_ours=is_ours)
        self._published[feed] = len(rows)

    def lagging(self, feed: Feed) -> dict[str, int]:
        """Return how many landings each log lacks, by topic, without those that lack none. Reads the history of each."""
        of = feed.definition
        *_, (_, appends) = generations(self._tables.landings(of.feed).appends())
        app_id, lacking = log_id(feed.ledger, of.feed, of.generation), {}
        for topic in of.logs:
            due = [(at, len(some)) for at, some in enumerate(appends, start=1) if any(_files(some, "files", topic))]
            if due and topic not in of.source_offsets:
                spark, name = self._spark_of(), self._tables.log_name(of.feed, topic)
                with mapped():
                    is_there = spark.catalog.tableExists(name.quoted)
                reached = last_version(spark, name, app_id) if is_there else 0
                lacking[topic] = sum(landings for at, landings in due if at > reached)
        return {topic: count for topic, count in lacking.items() if count}

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
        """Remove what attempts staged from the journal, once they can never land.

        That is when the PLAN after them is committed: until then, a server may still execute the append of a client that died.
        """
        self._tables.landings(feed).flush()
        self.journal(feed).drop(attempts)

    def _log(self, feed: str, ledger: str, generation: int, topic: str, schema: LogSchema, due: _Due) -> _Published:
        return _Published(
            self._tables.log_name(feed, topic),
            lambda: self._create_log(feed, topic, schema),
            log_id(ledger, feed, generation),
            _columns(schema),
            due,
            topic,
            f"generation = {generation}",
        )

    def _quarantine(self, feed: str, ledger: str, generation: int, due: _Due, *, is_first: bool) -> _Published:
        return _Published(
            self._tables.name_of(QUARANTINE),
            self._create_quarantine,
            quarantine_id(ledger, feed, generation),
            QUARANTINE_COLUMNS,
            due,
            "quarantine",
            f"name = '{feed}' AND _run IS NULL" if is_first else "false",  # else its rows are known
            is_shared=True,
        )

    def _publish(self, feed: str, log: _Published, *, is_newest: bool, is_ours: bool) -> Iterator[str]:
        due = [(ordinal, files) for ordinal, files in enumerate(log.due, start=1) if files]
        if not due:
            return
        spark, (last, files) = self._spark_of(), due[-1]
        if log.name not in self._empty:  # as it was before the first generation was published
            self._empty[log.name] = not has_files(spark, log.name)
        is_empty = self._empty[log.name]
        is_last_append = is_newest and last == len(log.due)
        if not (is_empty or log.is_shared or is_last_append):
            return  # a later landing was appended after it was published
        name = log.create()
        if log.is_shared or (not is_empty and len(due) == 1):
            if not is_ours and is_there(spark, name, log.app_id, last, log.columns[0]):
                return
            reached = last_version(spark, name, log.app_id)
            if reached >= last:
                return
            self._check_claim(feed, name, log, reached)
            missing = [one for one in due if one[0] > reached]
        else:  # an empty table gets all rows in one commit
            missing = [(last, [file for _, some in due for file in some])] if is_empty else [(last, files)]
        for ordinal, some in missing:
            if is_ours or is_empty or log.is_shared or len(due) == 1:
                yield f"publish {log.what} {ordinal}"
            paths = [path for path, _ in some]
            frame = frame_of_log(spark, self.journal(feed), paths, log.columns)
            land_once(spark, frame, name, log.app_id, ordinal, is_last=ordinal == last)

    def _check_claim(self, feed: str, name: TableName, log: _Published, reached: int) -> None:
        """Check that a table has the rows of this ledger, and of no other. Raises `CheckpointError` (76)."""
        with mapped():
            if not reached and self._spark_of().table(name.quoted).where(log.unknown).limit(1).collect():
                if log.is_shared:
                    fix = f"delete its rows, `DELETE FROM {name} WHERE {log.unknown}`,"  # noqa: S608 - for the user to read
                    raise unknown_landings(str(name), feed, fix=fix)
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
            data = self.journal(feed).block_data([path])[path]
            if len(self._times) >= _FILES_CACHED:
                self._times.clear()
            self._times[path] = np.asarray(rows_of_block(data)["timestamp"])
        return self._times[path]


_Due = tuple[Sequence[tuple[str, str]], ...]
"""By ordinal, path and attempt of the blocks to publish."""


class _Published(NamedTuple):
    """A table to publish: a function that creates it, and the blocks (path, attempt) of each ordinal.

    ``unknown`` is the SQL condition of rows that the table may not have before the first ordinal. Feeds and jobs share the
    quarantine.
    """

    name: TableName
    create: Callable[[], TableName]
    app_id: str
    columns: Sequence[Column]
    due: _Due
    what: str
    unknown: str
    is_shared: bool = False


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
