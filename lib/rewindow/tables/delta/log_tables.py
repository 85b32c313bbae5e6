"""The tables of logs: their columns, to which a newer generation may add some, and what their files contain.

The Delta log states which files have which offsets, so offsets are found without Spark and without opening files. The
timestamps, which decide when records are released, are read from the files. If landed data, or the ledger that names it, is
gone, an error says what to do.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake import Schema as DeltaSchema

from rewindow.contracts.reserved_names import LOG_COLUMNS, other_name
from rewindow.contracts.tasks import LogFile
from rewindow.control.ingest.landings import Feed, HeldFile, LogSchema
from rewindow.errors import CheckpointError, SourceError, StorageError
from rewindow.streams.record import TopicPartition
from rewindow.tables.delta.commit import check_writable
from rewindow.tables.delta.create_table import create_table
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.open_table import added_files, direct_problem, existing_table, open_table
from rewindow.tables.delta.table_rows import check_folders, table_files
from rewindow.tables.shared.arrow_tables import arrow_schema
from rewindow.tables.shared.publications import log_id, unknown_landings
from rewindow.tables.shared.stored_feeds import LOG_PARTITIONS

TIMES_CACHED = 16_000_000
_WITHOUT_COPY = (
    "Without a copy, give the feed another name (of its file, in it, and in its jobs' files), and land the source again"
)


def create_log(path: str, schema: LogSchema) -> DeltaTable:
    """Return a topic's log table with the columns of the newest generation; create or extend it if necessary.

    Raises `CheckpointError` (76) if a column was landed with another type before.
    """
    table = open_table(path)
    if table is None:
        return create_table(path, _log_schema(schema), LOG_PARTITIONS)
    missing = missing_columns(path, table, schema)
    if missing:
        check_writable(path, table)
        table.alter.add_columns(DeltaSchema.from_arrow(pa.schema(missing)).fields)
        table.update_incremental()
    return table


def _log_schema(schema: LogSchema) -> pa.Schema:
    columns = arrow_schema((*LOG_COLUMNS, *schema.key, *schema.value))
    return pa.schema([*(pa.field(name, pa.int32()) for name in LOG_PARTITIONS), *columns])


def missing_columns(path: str, table: DeltaTable, schema: LogSchema) -> list[pa.Field]:
    """Return the columns of ``schema`` that a log lacks. Raises `CheckpointError` (76) if one has another type in the log."""
    existing = {field.name: field.type for field in pa.schema(table.schema().to_arrow())}
    wanted = _log_schema(schema)
    for field in wanted:
        if field.name in existing and existing[field.name] != field.type:
            raise CheckpointError(
                "log-column-type-changed",
                "an older generation landed {column} in the log {path} as {landed_type}, but now it is {type}: {fix}, and "
                "use the new name wherever the feed and its jobs name the column",
                path=path,
                column=field.name,
                landed_type=existing[field.name],
                type=field.type,
                fix=other_name(field.name),
            )
    return [field for field in wanted if field.name not in existing]


class _File(NamedTuple):
    path: str
    generation: int
    partition: int
    first: int | None
    last: int | None


class LogFiles:
    """The files of one log table at the time of construction."""

    def __init__(self, path: str) -> None:
        """Read the table's Delta log. Raises `SourceError` (66) if there is no table."""
        table = open_table(path)
        if table is None:
            raise SourceError(
                "log-missing",
                "there is no log at {path}: land the feed first, or restore the table from a copy",
                path=path,
            )
        self._path = path
        self.problem = direct_problem(table)
        """The reason why reading the table's files would not give the table's rows; an empty text if it would."""
        actions = added_files(table)
        nothing = [None] * actions.num_rows
        names = ("path", "partition.generation", "partition.partition", "min.offset", "max.offset")
        columns = [actions[name].to_pylist() if name in actions.column_names else nothing for name in names]
        paths, generations, partitions = columns[:3]
        check_folders(path, paths, {"generation": generations, "partition": partitions})
        self._files: dict[int, list[_File]] = {}
        for file in map(_File._make, zip(*columns, strict=True)):
            self._files.setdefault(file.partition, []).append(file)
        if not self.problem and None in self._files:
            self.problem = "its files are not partitioned by generation and partition"

    def find(self, feed: Feed, where: TopicPartition, start: int, end: int) -> list[LogFile]:
        """Return the files with the offsets ``[start, end)`` of a topic-partition, sorted by first offset.

        A file of an older generation is returned only for offsets that the feed kept. A file without statistics may have any
        offset, so it is always returned.
        """
        files = {
            LogFile(
                f"{self._path}/{unquote(file.path)}",
                first if file.first is None else max(file.first, first),
                last if file.last is None else min(file.last, last),
            )
            for generation, first, last, _ in feed.spans(where, start, end)
            for file in self._files.get(where.partition, ())
            if file.generation == generation
            and (file.first is None or file.first <= last)
            and (file.last is None or file.last >= first)
        }
        return sorted(files, key=lambda file: (file.first, file.path))


class LandedTimes:
    """A cache of the timestamps in landed files, which never change. It has at most `TIMES_CACHED` timestamps."""

    def __init__(self) -> None:
        self._files: dict[tuple[str, str], npt.NDArray[np.int64]] = {}
        self._rows = 0

    def of(self, root: str, file: HeldFile) -> npt.NDArray[np.int64]:
        """Return a file's timestamps in offset order. If `gc` has merged the file into others, those are read instead."""
        path, folder = file.path, Folder(root)
        if (root, path) not in self._files:
            exists = folder.facts(path) is not None
            rows = folder.read_table(path, ["timestamp"]) if exists else _rows_of(root, file)
            times = np.asarray(rows["timestamp"])
            if self._rows + len(times) > TIMES_CACHED:
                self._files.clear()
                self._rows = 0
            self._files[root, path] = times
            self._rows += len(times)
        return self._files[root, path]


def _rows_of(root: str, file: HeldFile) -> pa.Table:
    """Return the rows of a file that was merged, from the log's present files.

    Raises `StorageError` (74) if rows are missing.
    """
    folder, directory = Folder(root), file.path.rpartition("/")[0]
    names = [
        log_file.path
        for log_file in table_files(root, existing_table(root))
        if log_file.path.startswith(f"{directory}/")
    ]
    parts = [folder.read_table(name, ["offset", "timestamp"]) for name in names]
    is_wanted = (pc.field("offset") >= file.start) & (pc.field("offset") < file.end)
    rows = pa.concat_tables(parts).filter(is_wanted).sort_by("offset") if parts else None
    if rows is None or not np.array_equal(np.asarray(rows["offset"]), np.arange(file.start, file.end)):
        raise StorageError(
            "log-rows-lost",
            "{path} is gone, and so are its rows: restore it from a copy",
            path=folder.full_path(file.path),
        )
    return rows


def lost_files(feed: str) -> str:
    """Return the advice for landed files that are gone."""
    return (
        "Only a copy of the warehouse has what was landed: restore the file from it. Without a copy, land the source again, "
        f"`rewindow land {feed} --new-generation`, then `rewindow rewind NAME --to 0` and `rewindow run NAME` for each job"
    )


def more_landings(path: str, feed: str, published: int, named: int) -> CheckpointError:
    """Return the error of a log that has more landings than its ledger."""
    return lost_landings(path, feed, f"has {published:,} landings, but its ledger {named:,}")


def lost_landings(path: str, feed: str, change: str) -> CheckpointError:
    """Return the error of a log with landings that its ledger does not name. ``change``: the text after the log's path."""
    return CheckpointError(
        "landing-ledger-behind-log",
        "{path} {change}: an older copy of the ledger was restored for feed {feed!r}, or its newest commit "
        "is lost. Restore the newest copy. {fix}",
        path=path,
        change=change,
        feed=feed,
        fix=_WITHOUT_COPY,
    )


def check_log_claim(path: str, table: DeltaTable, ledger: str, feed: str) -> None:
    """Check that the feed's ledger has published every generation that is in a log. Raises `CheckpointError` (76)."""
    actions = added_files(table)
    generations = pc.unique(actions["partition.generation"]).to_pylist() if actions.num_rows else []
    if any(table.transaction_version(log_id(ledger, feed, number)) is None for number in generations):
        raise unknown_landings(path, feed)
