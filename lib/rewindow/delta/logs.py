"""Feeds in Delta: the landing ledger, the log tables that follow it, and the files that hold a range of offsets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from deltalake import DeltaTable
from deltalake import Schema as DeltaSchema

from rewindow.core.land import LogSpec, ReadWindow, SourceLook
from rewindow.core.schema import Column
from rewindow.core.staging import StagedFile
from rewindow.delta.files import Folder
from rewindow.delta.ledger import Ledger
from rewindow.delta.source_log import look_at_table
from rewindow.delta.tables import (
    LANDINGS,
    QUARANTINE,
    arrow_schema,
    check_writable,
    commit_files,
    create_table,
    log_path,
    open_table,
    table_path,
)
from rewindow.errors import CheckpointError
from rewindow.plan.fold import LedgerRow
from rewindow.plan.landings import GENERATION, LANDING, LogSchema
from rewindow.plan.watermarks import HeldFile

LOG_COLUMNS = tuple(Column(name, "long") for name in ("offset", "timestamp", "landing", "arrived_at"))
LOG_PARTITIONS = ("generation", "partition")
QUARANTINE_COLUMNS = (
    Column("name", "string"),
    Column("topic", "string"),
    Column("partition", "long"),
    Column("reason", "string"),
    Column("arrived_at", "long"),
    Column("timestamp", "long"),
    Column("record", "string"),
    Column("_run", "long"),
    Column("landing", "long"),
)

_STAGED = re.compile(r"([0-9a-f]{32})-[0-9a-f]{32}\.parquet")


class DeltaFeedTables:
    """The feeds of one warehouse, through delta-rs. `landing.py` knows it as its `LandingTables`."""

    def __init__(self, warehouse: str) -> None:
        """Bind to a folder or URI. Nothing is read or made."""
        self.warehouse = warehouse.rstrip("/")
        self._ledgers: dict[str, Ledger] = {}

    def rows(self, feed: str) -> list[LedgerRow]:
        """Return the feed's landing ledger. Raises `InvariantError` (70) if it is damaged."""
        return self._ledger(feed).read()

    def append(self, feed: str, rows: Sequence[LedgerRow]) -> bool:
        """Append ledger rows at once; whether it is these rows that stand at their numbers now."""
        return self._ledger(feed).append(rows)

    def prepare(self, feed: str, logs: Mapping[str, LogSchema]) -> None:
        """Make the log tables and the quarantine where they are missing, and see that they can be added to.

        Raises `CheckpointError` (76) if one has other columns, `StorageError` (74) if it cannot be made or written.
        """
        for topic, schema in logs.items():
            path = table_path(self.warehouse, log_path(feed, topic))
            check_writable(path, create_log(path, schema))
        create_table(table_path(self.warehouse, QUARANTINE), arrow_schema(QUARANTINE_COLUMNS))

    def publish(self, feed: str) -> None:
        """Bring a feed's log tables and the quarantine up to its ledger. Anyone may, at any time."""
        for _ in self.publish_steps(feed):
            pass

    def publish_steps(self, feed: str) -> Iterator[str]:
        """Do what `publish` does; yield the name of each commit before it is made.

        Raises `StorageError` (74) if a staged file is gone, `CheckpointError` (76) if a table has other columns.
        """
        generation: Mapping[str, Any] | None = None
        reached: dict[str, int] = {}
        refusals = 0
        for row in self.rows(feed):
            if row.kind == GENERATION:
                generation, reached, refusals = row.body, {}, 0
            elif row.kind == LANDING and generation is not None:
                yield from self._publish_landing(feed, generation, row.body, reached)
                if row.body["quarantine"]:
                    refusals += 1
                    yield from self._publish_quarantine(feed, generation, row.body, refusals, reached)

    def look(self, spec: LogSpec, position: Mapping[str, Any] | None, window: ReadWindow) -> SourceLook:
        """Return a table as a source (see `look_at_table`)."""
        return look_at_table(spec, position, window)

    def roots(self, feed: str, topic: str) -> tuple[str, str]:
        """Return the folders of a topic's log and of the quarantine."""
        return table_path(self.warehouse, log_path(feed, topic)), table_path(self.warehouse, QUARANTINE)

    def first_above(self, feed: str, file: HeldFile, offset: int, time_ms: int) -> int | None:
        """Return the first offset of a landed file, from ``offset`` on, with a timestamp above a time."""
        times = _timestamps(table_path(self.warehouse, log_path(feed, file.topic)), file.path)
        above = np.flatnonzero(times[offset - file.start :] > time_ms)
        return offset + int(above[0]) if len(above) else None

    def sweep(self, feed: str, topics: Sequence[str], attempts: Sequence[str]) -> None:
        """Delete the files of attempts that can never land. What cannot be deleted now is left to `gc`."""
        dead = frozenset(attempts)
        roots = {self.roots(feed, topic)[0] for topic in topics} | {table_path(self.warehouse, QUARANTINE)}
        for root in roots:
            for path in Path(root).glob("**/*.parquet"):
                staged = _STAGED.fullmatch(path.name)
                if staged and staged[1] in dead:
                    path.unlink(missing_ok=True)

    def _ledger(self, feed: str) -> Ledger:
        return self._ledgers.setdefault(feed, Ledger(table_path(self.warehouse, LANDINGS), feed))

    def _publish_landing(
        self, feed: str, generation: Mapping[str, Any], body: Mapping[str, Any], reached: dict[str, int]
    ) -> Iterator[str]:
        number, kept = body["landing"], generation["kept"]
        for topic, schema in generation["logs"].items():
            path = table_path(self.warehouse, log_path(feed, topic))
            app_id = f"rewindow.log/{feed}/g{generation['generation']}"
            if path not in reached:
                reached[path] = create_log(path, LogSchema.from_json(schema)).transaction_version(app_id) or kept
            if reached[path] >= number:
                continue
            yield f"publish {topic} {number}"
            files = [StagedFile.from_json(file) for file in body["files"].get(topic, ())]
            commit_files(path, files, app_id=app_id, version=number, after=kept)
            reached[path] = number

    def _publish_quarantine(
        self, feed: str, generation: Mapping[str, Any], body: Mapping[str, Any], ordinal: int, reached: dict[str, int]
    ) -> Iterator[str]:
        """Add what a landing refused. ``ordinal`` counts the generation's landings that refused something."""
        path = table_path(self.warehouse, QUARANTINE)
        app_id = f"rewindow.quarantine/{feed}/g{generation['generation']}"
        if path not in reached:
            reached[path] = create_table(path, arrow_schema(QUARANTINE_COLUMNS)).transaction_version(app_id) or 0
        if reached[path] >= ordinal:
            return
        yield f"publish quarantine {body['landing']}"
        files = [StagedFile.from_json(file) for files in body["quarantine"].values() for file in files]
        commit_files(path, files, app_id=app_id, version=ordinal)
        reached[path] = ordinal


def create_log(path: str, schema: LogSchema) -> DeltaTable:
    """Return a topic's log table, made if it was not there, with the columns of the newest generation added.

    Raises `CheckpointError` (76) if a column was landed with another type before.
    """
    columns = arrow_schema((*LOG_COLUMNS, *schema.key, *schema.value))
    wanted = pa.schema([*(pa.field(name, pa.int32()) for name in LOG_PARTITIONS), *columns])
    table = open_table(path)
    if table is None:
        return create_table(path, wanted, LOG_PARTITIONS)
    there = {field.name: field.type for field in pa.schema(table.schema().to_arrow())}
    for field in wanted:
        if field.name in there and there[field.name] != field.type:
            message = (
                f"the log {path} has {field.name} as {there[field.name]} from an older generation, "
                f"now it is {field.type}: give the column another name under `columns:`"
            )
            raise CheckpointError(message)
    missing = [field for field in wanted if field.name not in there]
    if missing:
        check_writable(path, table)
        table.alter.add_columns(DeltaSchema.from_arrow(pa.schema(missing)).fields)
        table.update_incremental()
    return table


@lru_cache(maxsize=64)
def _timestamps(root: str, path: str) -> npt.NDArray[np.int64]:
    """Return the timestamps of a landed file in offset order. A landed file never changes."""
    return np.asarray(Folder(root).read_table(path, ["timestamp"])["timestamp"])
