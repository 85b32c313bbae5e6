"""The feeds of a catalog: landing ledger, logs and quarantine through Spark.

The k-th commit to a log has the rows that the k-th append of landings to the ledger names. So a log's content depends on the
ledger alone, as in `tables.governed.publish`. Landings are appended only after all earlier landings were published, so only
the last commit may be missing from the log. The last commit is always made again: if the log has it, Delta skips it without a
Spark job (ADR-107).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from pyspark.sql import SparkSession

from rewindow.contracts.ingest import LogSpec, ReadWindow, SourceLook
from rewindow.contracts.reserved_names import QUARANTINE_COLUMNS
from rewindow.control.ingest.feed_progress import fold_progress, progress_lines
from rewindow.control.ingest.landings import LANDING, PLAN, Feed, HeldFile, LogSchema
from rewindow.control.ingest.protocols import LostRows
from rewindow.control.plan.job_state import LedgerRow
from rewindow.control.plan.stored_rows import StoredRows, identity
from rewindow.engine.spark.spark_calls import mapped
from rewindow.tables.governed.commit import is_there
from rewindow.tables.governed.create_table import OWNER, create_table, owner
from rewindow.tables.governed.journal import SparkJournal, block_path, rows_of_block
from rewindow.tables.governed.ledger import Given
from rewindow.tables.governed.log_tables import (
    QUARANTINED,
    LandedAppends,
    LogPublication,
    columns_of,
    emptied,
    frame_of_log,
    landed_appends,
    to_store,
)
from rewindow.tables.governed.names import TableName
from rewindow.tables.governed.own_rows import feed_name
from rewindow.tables.governed.publish import land_once
from rewindow.tables.governed.source_table import look_at_output, look_at_table
from rewindow.tables.governed.table_history import exists, has_files, last_version, look_at
from rewindow.tables.governed.warehouse import CatalogTables
from rewindow.tables.shared.ledger import dated, now_ms
from rewindow.tables.shared.paths import QUARANTINE
from rewindow.tables.shared.publications import log_id, quarantine_id, unknown_landings
from rewindow.tables.shared.stored_feeds import LOG_PARTITIONS, first_above

_FILES_CACHED = 64


class CatalogFeedTables:
    """The feeds whose logs a catalog governs. It implements the protocol `LandingTables` of `land`."""

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

    def state(self, feed: str) -> Sequence[LedgerRow]:
        """Return the rows of a feed's landing ledger. Raises `InvariantError` (70) if it is damaged."""
        return self._tables.feed_rows(feed)

    def append(self, feed: str, *rows: LedgerRow) -> bool:
        """Append rows in one commit. Return False if another writer has used their numbers.

        A PLAN is held in memory, like the plan of a run (`CatalogTables.append`). Landings are appended after all earlier
        landings were published. The same commit contains the rows of their attempt that the journal holds.
        """
        own = self._tables.own
        if len(rows) == 1 and rows[0].kind == PLAN and own.is_in_command:
            return own.ledger(feed_name(feed)).hold(dated(rows))
        attempts = [row.body["attempt"] for row in rows if row.kind == LANDING]
        if attempts and self._published.get(feed) != self._tables.landings(feed).count:
            self._publish_all(feed)

        def give(rows: StoredRows) -> Given:
            landed = to_store(self._landed(feed), fold_progress(rows).ranges)
            return Given(progress_lines(rows), now_ms(), landed)

        return own.append(feed_name(feed), dated(rows), give, attempts)

    def _landed(self, feed: str) -> list[LandedAppends]:
        return landed_appends(*self._tables.landings(feed).later())

    def _all_landed(self, feed: str) -> list[LandedAppends]:
        """Return what all appends of the ledger landed, including those that a stored fold covers."""
        return landed_appends(None, self._tables.landings(feed).appends())

    def prepare(self, feed: str, logs: Mapping[str, LogSchema]) -> None:
        """Create the journal and the quarantine, and check the logs that exist. Missing logs are created by `publish`.

        Raises `CheckpointError` (76) if a log has other columns, `ConfigError` (78) if a log belongs to another feed.
        """
        self.journal(feed).prepare()
        for topic, schema in logs.items():
            if exists(self._spark_of(), self._tables.log_name(feed, topic)):
                self._create_log(feed, topic, schema)
        if logs:
            self._create_quarantine()

    def check_claims(self, feed: str, topics: Iterable[str]) -> None:
        """Check nothing, because a check takes a Spark job.

        The first publication to a log checks it for another ledger's rows.
        """

    def publish(self, feed: str) -> None:
        """Bring a feed's log tables and the quarantine up to date with its ledger. Any process may do so at any time.

        During a command, logs are published only when Spark's workers are about to read them, because small runs read the
        landed blocks instead.
        """
        own = self._tables.own
        if own.is_in_command:
            own.before_workers(feed, lambda: self._publish_all(feed))
        else:
            self._publish_all(feed)

    def _publish_all(self, feed: str) -> None:
        for _ in self.publish_steps(feed):
            pass

    def publish_steps(self, feed: str, lost: list[LostRows] | None = None) -> Iterator[str]:  # noqa: ARG002 - never any
        """Publish as `publish` does; yield the name of each commit before making it. Raises `StorageError` (74).

        A commit that was already made and is only repeated yields no name. ``lost`` stays empty: the journal contains the
        rows of the quarantine and of the logs, so no file of theirs can be lost.
        """
        ledger, generations_landed = self._tables.landings(feed), self._landed(feed)
        token, count = identity(ledger.read()), ledger.count
        is_ours = self._published.get(feed, count) < count
        self._empty.clear()
        if any(
            self._has_lost(feed, other, topic)
            for other in generations_landed
            for topic in other.last
            if topic != QUARANTINED
        ):
            generations_landed = self._all_landed(feed)
        for index, landed in enumerate(generations_landed, start=1):
            generation, is_newest = landed.definition, index == len(generations_landed)
            for topic, text in generation["logs"].items():
                if topic not in generation.get("source_offsets", ()):
                    log = self._log(feed, token, landed, topic, LogSchema.from_json(text))
                    yield from self._publish(feed, log, is_newest=is_newest, is_ours=is_ours)
            if landed.due(QUARANTINED):
                is_only = not any(other.last_of(QUARANTINED) for other in generations_landed[: index - 1])
                quarantine = self._quarantine(feed, token, landed, is_first=is_only)
                yield from self._publish(feed, quarantine, is_newest=is_newest, is_ours=is_ours)
        self._published[feed] = count

    def lagging(self, feed: Feed) -> dict[str, int]:
        """Return, by topic, how many landings each log lacks. Complete logs are left out. Reads the history of each log."""
        of = feed.definition
        app_id, lacking = log_id(feed.ledger, of.feed, of.generation), {}
        newest = self._landed(of.feed)[-1]
        for topic in (topic for topic in of.logs if topic not in of.source_offsets and newest.last_of(topic)):
            spark, name = self._spark_of(), self._tables.log_name(of.feed, topic)
            reached = self._reached(name, app_id) if exists(spark, name) else 0
            landed = newest if reached >= newest.last.get(topic, 0) else self._all_landed(of.feed)[-1]
            numbers = {number for number, _ in landed.due(topic)}
            counted = enumerate(landed.appends, landed.before + 1)
            lacking[topic] = sum(len(some) for ordinal, some in counted if ordinal in numbers and ordinal > reached)
        return {topic: count for topic, count in lacking.items() if count}

    def _reached(self, name: TableName, app_id: str) -> int:
        """Return the last version of an application id; 0 if there is none, or if all rows were removed since."""
        spark = self._spark_of()
        look = look_at(spark, name, app_id)
        return look.reached if look.is_untouched or has_files(spark, name) else 0

    def _has_lost(self, feed: str, landed: LandedAppends, topic: str) -> bool:
        """Return whether a log that `land` writes has no rows at all.

        A log that is read directly from its source never counts.
        """
        return topic not in landed.definition.get("source_offsets", ()) and self._is_empty(
            self._tables.log_name(feed, topic)
        )

    def _is_empty(self, name: TableName) -> bool:
        """Return whether a table had no rows when the current call of `publish_steps` began."""
        if name not in self._empty:
            self._empty[name] = not has_files(self._spark_of(), name)
        return self._empty[name]

    def look(self, spec: LogSpec, position: Mapping[str, Any] | None, window: ReadWindow) -> SourceLook:
        """Return the state of a source that is a table or a job's output (see `look_at_table`, `look_at_output`)."""
        if spec.is_output:
            return look_at_output(self._spark_of(), self._tables, spec, position)
        name = self._tables.name_of(spec.source.name)
        return look_at_table(self._spark_of(), name, spec, position, window)

    def roots(self, feed: str, topic: str) -> tuple[str, str]:  # noqa: ARG002 - workers write to temporary folders
        """Return the targets of a topic's log and of the quarantine. In a catalog, they are used instead of folders."""
        return f"log/{topic}", QUARANTINE

    def first_above(self, feed: str, file: HeldFile, offset: int, time_ms: int) -> int | None:
        """Return the first offset of a landed file, from ``offset`` on, whose timestamp is above ``time_ms``, or None."""
        return first_above(self._timestamps(feed, file), file, offset, time_ms)

    def remove_orphans(self, feed: str, topics: Sequence[str], attempts: Sequence[str]) -> None:  # noqa: ARG002
        """Remove all rows from the journal that these attempts, which can never land, have staged."""
        # The PLAN is committed first. Otherwise a server might execute the append of a dead client after this removal.
        self._tables.landings(feed).flush()
        self.journal(feed).drop(attempts)

    def _log(self, feed: str, ledger: str, landed: LandedAppends, topic: str, schema: LogSchema) -> LogPublication:
        generation = landed.definition["generation"]
        return LogPublication(
            self._tables.log_name(feed, topic),
            lambda: self._create_log(feed, topic, schema),
            log_id(ledger, feed, generation),
            columns_of(schema),
            landed,
            topic,
            f"generation = {generation}",
        )

    def _quarantine(self, feed: str, ledger: str, landed: LandedAppends, *, is_first: bool) -> LogPublication:
        return LogPublication(
            self._tables.name_of(QUARANTINE),
            self._create_quarantine,
            quarantine_id(ledger, feed, landed.definition["generation"]),
            QUARANTINE_COLUMNS,
            landed,
            QUARANTINED,
            f"name = '{feed}' AND _run IS NULL" if is_first else "false",  # later, its rows are this ledger's
            is_shared=True,
        )

    def _publish(self, feed: str, log: LogPublication, *, is_newest: bool, is_ours: bool) -> Iterator[str]:
        due = log.landed.due(log.topic)
        if not due:
            return
        spark, (last, files) = self._spark_of(), due[-1]
        is_empty = self._is_empty(log.name)
        is_last_append = is_newest and last == log.landed.number
        if not (is_empty or log.is_shared or is_last_append):
            # The ledger has later landings, and these were appended only after the earlier landings were published.
            return
        name = log.create()
        is_first = len(due) == 1 and log.topic not in log.landed.last
        if log.is_shared or (not is_empty and is_first):
            if not is_ours and is_there(spark, name, log.app_id, last, log.columns[0]):
                return
            reached = last_version(spark, name, log.app_id)
            if reached >= last:
                return
            # The table lacks appends that a stored fold covers. So all appends are read from the ledger.
            if reached < log.landed.last.get(log.topic, 0):
                due = next(entry for entry in self._all_landed(feed) if entry.definition == log.landed.definition).due(
                    log.topic
                )
            self._check_claim(feed, name, log, reached)
            missing = [entry for entry in due if entry[0] > reached]
        else:
            # An empty table gets the rows of all appends in one commit.
            missing = [(last, [file for _, some in due for file in some])] if is_empty else [(last, files)]
        for ordinal, some in missing:
            if is_ours or is_empty or log.is_shared or is_first:
                yield f"publish {log.topic or 'quarantine'} {ordinal}"
            paths = [path for path, _ in some]
            frame = frame_of_log(spark, self.journal(feed), paths, log.columns)
            land_once(spark, frame, name, log.app_id, ordinal, is_last=ordinal == last)
            if (
                is_empty and not log.is_shared and not has_files(spark, name)
            ):  # Delta has the version already, so it skipped the rows.
                raise emptied(name, feed)

    def _check_claim(self, feed: str, name: TableName, log: LogPublication, reached: int) -> None:
        """Raise `CheckpointError` (76) if a table has rows of the feed, but this ledger has published none to it.

        ``reached``: the last version that this ledger has published to the table.
        """
        with mapped():
            if not reached and self._spark_of().table(name.quoted).where(log.unknown).limit(1).collect():
                if log.is_shared:
                    fix = f"delete its rows, `DELETE FROM {name} WHERE {log.unknown}`,"  # noqa: S608 - for the user to read
                    raise unknown_landings(str(name), feed, fix=fix)
                raise unknown_landings(str(name), feed)

    def _create_log(self, feed: str, topic: str, schema: LogSchema) -> TableName:
        name = self._tables.log_name(feed, topic)
        properties = {OWNER: owner(feed, topic)}
        create_table(self._spark_of(), name, columns_of(schema), LOG_PARTITIONS, properties, grows=True)
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
