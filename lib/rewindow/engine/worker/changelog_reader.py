"""Changelog files on their way in: batch by batch, in the order of their runs, so that later rows of a key win."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar

import pyarrow as pa

from rewindow.contracts.staged_files import named_checksum
from rewindow.engine.worker.arrow_rows import decode
from rewindow.engine.worker.checksums import UNREADABLE, open_verified
from rewindow.errors import StorageError
from rewindow.streams.serde.schema import Shape

REMEMBERED = 20_000
"""Files whose statistics are kept at hand."""


def read_changelog(
    paths: Sequence[str],
    key: Shape,
    value: Shape,
    *,
    wanted: Reaches | None = None,
    chosen: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None,
) -> Iterator[tuple[Any, Any]]:
    """Yield the ``(key, value)`` rows of changelog files, in the order of their runs.

    ``wanted``: see `changelog_batches`. ``chosen`` says which rows of a batch become values at all.
    """
    columns = [*key.names, *value.names, "_tombstone"]
    width = len(key.columns)
    for batch in changelog_batches(paths, columns, wanted=wanted):
        arrays = (batch if chosen is None else chosen(batch)).columns
        values = decode(value, arrays[width:-1])
        gone = arrays[-1].to_pylist()
        for row_key, row_value, is_gone in zip(decode(key, arrays[:width]), values, gone, strict=True):
            yield row_key, None if is_gone else row_value


def changelog_batches(
    paths: Iterable[str], columns: Sequence[str], *, wanted: Reaches | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of changelog files, in order. Row groups for whose metadata ``wanted`` is false are left out.

    Raises `StorageError` (74) for a file that cannot be read.
    """
    for path in paths:
        if wanted and wanted.is_below(path):
            continue
        try:
            with open_verified(path) as parquet:
                known = parquet.metadata
                if wanted:
                    wanted.note(path, known)
                groups = [n for n in range(known.num_row_groups) if wanted is None or wanted(known.row_group(n))]
                if groups:
                    for batch in parquet.iter_batches(columns=list(columns), row_groups=groups):
                        yield batch.select(list(columns))
        except UNREADABLE as error:
            message = (
                f"cannot read the checkpoint file {path}: {error}. Put it back from a copy, or replay the job in a new "
                "branch (`rewindow run JOB --branch NAME`)"
            )
            raise StorageError(message) from error


class Reaches:
    """Says whether a row group may have a larger value of a column than ``above``, as its statistics say.

    Files are named by what is in them, so what one says is remembered: each run comes by the same old ones again.
    """

    _largest: ClassVar[dict[tuple[str, str], Any]] = {}

    def __init__(self, column: str, above: int) -> None:
        self._column, self._above = column, above

    def __call__(self, group: Any) -> bool:
        """Say so of a row group's metadata."""
        known = self._known(group)
        return known is None or known > self._above

    def is_below(self, path: str) -> bool:
        """Say whether a file that was looked at before has nothing larger."""
        known = self._largest.get((path, self._column))
        return known is not None and known <= self._above

    def note(self, path: str, metadata: Any) -> None:
        """Remember what a checked file's metadata say."""
        known = [self._known(metadata.row_group(number)) for number in range(metadata.num_row_groups)]
        if known and None not in known and named_checksum(path) is not None:
            if len(self._largest) >= REMEMBERED:
                self._largest.clear()
            self._largest[path, self._column] = max(known)

    def _known(self, group: Any) -> Any:
        """Return the largest value of the column in a row group; None if nobody knows."""
        for number in range(group.num_columns):
            chunk = group.column(number)
            if chunk.path_in_schema == self._column:
                known = chunk.statistics
                return known.max if known is not None and known.has_min_max else None
        return None
