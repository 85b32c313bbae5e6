"""Find which files of a log hold which offsets, from the Delta log alone: without Spark or opening a file."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from rewindow.contracts.tasks import LogFile
from rewindow.control.ingest.landings import Feed
from rewindow.errors import SourceError
from rewindow.streams.record import TopicPartition
from rewindow.tables.delta.commit import open_table
from rewindow.tables.delta.content_hash import check_folders
from rewindow.tables.delta.features import direct_problem


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
            message = f"there is no log at {path}: land the feed first, or restore the table from a copy"
            raise SourceError(message)
        self._path = path
        self.problem = direct_problem(table)
        """Why the files do not hold the table's rows; ``""`` if they do."""
        actions = pa.table(table.get_add_actions(flatten=True))
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
        """Return the files that hold the offsets ``[start, end)`` of a topic-partition, by first offset.

        Of each generation only the offsets that the feed still has. A file without statistics may hold any offset.
        """
        found = {
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
        return sorted(found, key=lambda file: (file.first, file.path))
