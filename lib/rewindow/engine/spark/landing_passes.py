"""The two passes of a large landing on Spark: workers read and write the files, Spark carries only names and reports."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa
from pyarrow import fs
from pyspark.sql import SparkSession

from rewindow.contracts.ingest import LogWrite
from rewindow.contracts.landing import Block
from rewindow.engine.spark.errors import mapped
from rewindow.engine.spark.progress import following
from rewindow.engine.spark.worker_rows import json_rows
from rewindow.engine.worker.landing.arrow_landing import merge, split
from rewindow.engine.worker.landing.sorted_runs import Run
from rewindow.engine.worker.landing.source import ArrowSource, split_evenly
from rewindow.engine.worker.landing.source_rows import Portion, RowReader
from rewindow.engine.worker.landing.source_types import UnsuitableError
from rewindow.engine.worker.text.blocks import Part
from rewindow.engine.worker.text.reading import PartRead, TextRead, read_into
from rewindow.storage.locations import filesystem_of, known

EXCHANGE = "_exchange"
"""The folder of the exchange files, below that of the log. Delta ignores names that start with an underscore."""

_UNSUITABLE = "unsuitable"

Work = Callable[[int], Iterator[Mapping[str, Any]]]


class SparkPasses:
    """Does both passes of a landing as two jobs of a Spark session."""

    def __init__(
        self,
        spark: Callable[[], SparkSession],
        *,
        slots: int,
        project_root: str,
        on_share: Callable[[float], None] | None = None,
    ) -> None:
        """``spark`` is called for the first large landing. ``slots``: concurrent tasks.

        ``on_share`` gets the share of finished tasks of the current pass, from 0 to 1.
        """
        self._spark, self._slots, self._project_root, self._on_share = spark, slots, project_root, on_share

    def __call__(self, write: LogWrite, source: ArrowSource) -> list[Block]:
        """Land a source. Raises the worker's own `RewindowError`, or `UnsuitableError`."""
        folder = f"{write.log_root}/{EXCHANGE}"
        system, location = filesystem_of(folder)
        system.create_dir(location, recursive=True)
        parts = split_evenly(source, self._slots)
        runs: list[Run] = []
        try:
            split_part = partial(_split, source.reader, parts, write.memory_bytes, folder, write.attempt)
            for found in self._run(len(parts), split_part):
                if _UNSUITABLE in found:
                    raise UnsuitableError(found[_UNSUITABLE])
                runs.append(Run.from_json(found))
            partitions = sorted({partition for run in runs for partition in run.batches})
            groups = [partitions[start :: self._slots] for start in range(min(self._slots, len(partitions)))]
            merge_group = partial(_merge, write, runs, groups, source.reader.sort_names)
            return [Block.from_json(found) for found in self._run(len(groups), merge_group)] if groups else []
        finally:
            _remove(folder, write.attempt)

    def read(self, read: TextRead, parts: Sequence[Part], folder: str) -> list[PartRead]:
        """Tokenize parts of text files into pages in a folder, as one job. Raises the worker's own `RewindowError`."""
        return [PartRead.from_json(part) for part in self._run(len(parts), partial(_read_part, read, parts, folder))]

    def _run(self, tasks: int, work: Work) -> list[Mapping[str, Any]]:
        if not tasks:
            return []
        do = partial(_do, work, self._project_root, known())
        with mapped(), following(self._spark(), self._on_share):
            rows = self._spark().range(0, tasks, 1, tasks).mapInArrow(do, "text string").collect()
        return [json.loads(row.text) for row in rows]


def _do(
    work: Work, project_root: str, buckets: Mapping[str, Mapping[str, str]], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    tasks = (task for batch in batches for task in batch.column(0).to_pylist())
    return json_rows("text", [project_root], buckets, lambda: chain.from_iterable(map(work, tasks)))


def _read_part(read: TextRead, parts: Sequence[Part], folder: str, task: int) -> Iterator[Mapping[str, Any]]:
    yield read_into(read, parts[task], folder).as_json()


def _split(
    reader: RowReader, parts: Sequence[Sequence[Portion]], memory_bytes: int, folder: str, attempt: str, task: int
) -> Iterator[Mapping[str, Any]]:
    try:
        for run in split(reader, parts[task], memory_bytes, folder, attempt):
            yield run.as_json()
    except UnsuitableError as error:
        yield {_UNSUITABLE: str(error)}


def _merge(
    write: LogWrite, runs: Sequence[Run], groups: Sequence[Sequence[int]], names: Sequence[str], task: int
) -> Iterator[Mapping[str, Any]]:
    for block in merge(write, runs, groups[task], names):
        yield block.as_json()


def _remove(folder: str, attempt: str) -> None:
    """Delete the exchange files of this landing; of tasks that died, too."""
    system, location = filesystem_of(folder)
    for info in system.get_file_info(fs.FileSelector(location, allow_not_found=True)):
        if info.base_name.startswith(f"{attempt}-"):
            system.delete_file(info.path)
