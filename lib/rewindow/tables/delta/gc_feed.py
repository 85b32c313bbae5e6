"""The garbage collection of a feed: merge its logs' small files, and delete files whose rows are proven to be elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from uuid import uuid4

import pyarrow.compute as pc

from rewindow.control.gc import UNKNOWN_MS, Garbage
from rewindow.control.ingest.feed_progress import Progress, fold_progress
from rewindow.control.ingest.landings import LANDING
from rewindow.control.plan.compaction import is_covered
from rewindow.errors import StorageError
from rewindow.tables.delta.commit import direct_problem, open_table, table_path
from rewindow.tables.delta.feeds import DeltaFeedTables
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.gc_job import Unnamed
from rewindow.tables.delta.ledger import Ledger, check_once
from rewindow.tables.delta.merging import LogPartition, compact, due_in, log_parts
from rewindow.tables.shared.folded_feeds import check_stored_feed
from rewindow.tables.shared.paths import LANDINGS, QUARANTINE, staged_by


class FeedGc:
    """The files of one feed."""

    def __init__(self, tables: DeltaFeedTables, feed: str, is_quiet: Callable[[], bool]) -> None:
        """Bind to a feed. ``is_quiet`` returns whether no run is in progress that reads it."""
        self._tables, self._feed, self._is_quiet = tables, feed, is_quiet

    def topics(self) -> list[str]:
        """Return the logs that `land` ever wrote; logs that are read from their source tables are not among them."""
        return list(self._progress.topics)

    def compact(self, topic: str) -> Iterator[str | tuple[int, int]]:
        """Merge a log's small files; see `merging.compact`."""
        return compact(self._root(topic), topic, self._progress.held_paths(topic), uuid4().hex)

    def due(self) -> int:
        """Return how many files would be merged."""
        progress = self._progress
        merges = (due_in(self._root(topic), progress.held_paths(topic)) for topic in progress.topics)
        return sum(len(group) for merge in merges for _, group in merge)

    def garbage(self, keep_ms: int) -> Iterator[Garbage]:
        """Yield what can be deleted now. All of it is found before the first is yielded."""
        ledger = self._ledger()
        check_once(Folder(ledger.path), self._feed, self._tables.state(self._feed), check_stored_feed)
        progress = self._progress
        of_logs = [item for topic in progress.topics for item in self._of_log(topic, progress, keep_ms)]
        yield from [*of_logs, *self._of_quarantine(progress), *self._of_ledger(keep_ms)]

    def delete(self, garbage: Sequence[Garbage]) -> None:
        """Delete files, if they still exist."""
        for item in garbage:
            Folder(item.folder).delete(item.path, is_folder=item.is_folder)

    def compact_ledger(self) -> None:
        """Merge the landing ledger's files."""
        self._ledger().compact()

    def _of_log(self, topic: str, progress: Progress, keep_ms: int) -> Iterator[Garbage]:
        """Yield files of dead landings at once, others when they are old and their offsets are in other files.

        It is not enough that the table does not name a file: a RESTORE may have removed it, and may be undone.
        """
        root = self._root(topic)
        table = open_table(root)
        if table is None or direct_problem(table):
            return
        parts, held, is_quiet = log_parts(root, table), progress.held_paths(topic), self._is_quiet()
        unnamed = Unnamed(root, table, (".parquet", ".arrow"))
        for name in unnamed.paths():
            if staged_by(name) in progress.dead:
                yield from unnamed.garbage(name, "of a landing that died")
            elif is_quiet and name not in held and unnamed.is_left(name, max(keep_ms, UNKNOWN_MS)):
                log_partition = _log_partition(name)
                offsets = self._offsets(topic, name) if log_partition else None
                if log_partition and offsets and is_covered(*offsets, parts.get(log_partition, ())):
                    yield from unnamed.garbage(name, "its rows are in another file")

    def _offsets(self, topic: str, name: str) -> tuple[int, int] | None:
        """Return the first and last offset of a log's file; None if they are unknown.

        The file is asked, because the landing that staged it may be among thousands that this process has not read.
        """
        try:
            offsets = pc.min_max(Folder(self._root(topic)).read_table(name, ["offset"])["offset"]).as_py()
        except StorageError:
            return self._landed(topic).get(name)
        return (0, -1) if offsets["min"] is None else (offsets["min"], offsets["max"])

    def _landed(self, topic: str) -> dict[str, tuple[int, int]]:
        """Return the first and last offset of each file that a landing names. Reads the whole ledger."""
        landings = [row.body for row in self._tables.state(self._feed) if row.kind == LANDING]
        files = [file for body in landings for file in body.get("files", {}).get(topic, ())]
        bounds = {file["path"]: file["stats"] for file in files}
        return {path: (of["minValues"]["offset"], of["maxValues"]["offset"]) for path, of in bounds.items()}

    def _of_quarantine(self, progress: Progress) -> Iterator[Garbage]:
        root = table_path(self._tables.warehouse, QUARANTINE)
        unnamed = Unnamed(root, open_table(root), "")
        for name in unnamed.paths() if progress.dead else ():
            if staged_by(name) in progress.dead:
                yield from unnamed.garbage(name, "of a landing that died")

    def _of_ledger(self, keep_ms: int) -> Iterator[Garbage]:
        root = table_path(self._tables.warehouse, LANDINGS)
        rows = Unnamed(root, open_table(root), ".parquet", f"name={self._feed}")
        yield from rows.old_garbage("", keep_ms, "merged into another file of the ledger")

    def _ledger(self) -> Ledger:
        return Ledger(table_path(self._tables.warehouse, LANDINGS), self._feed)

    @property
    def _progress(self) -> Progress:
        return fold_progress(self._tables.state(self._feed))

    def _root(self, topic: str) -> str:
        return self._tables.roots(self._feed, topic)[0]


def _log_partition(name: str) -> LogPartition | None:
    values = dict(part.partition("=")[::2] for part in name.split("/")[:-1])
    try:
        return int(values["generation"]), int(values["partition"])
    except (KeyError, ValueError):
        return None
