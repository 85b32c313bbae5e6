"""The garbage collection of a feed: merge its logs' small files, and delete files whose rows are proven to be elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from uuid import uuid4

import pyarrow.compute as pc

from rewindow.control.gc import UNKNOWN_MS, Garbage
from rewindow.control.ingest.landings import GENERATION, LANDING
from rewindow.control.plan.branches import LedgerRow
from rewindow.control.plan.compaction import LogPart, dead_landings, held_paths, is_covered
from rewindow.errors import StorageError
from rewindow.tables.delta.commit import open_table, table_path
from rewindow.tables.delta.compaction import LogPartition, compact, due_in, log_parts
from rewindow.tables.delta.content_hash import table_files
from rewindow.tables.delta.features import direct_problem
from rewindow.tables.delta.feeds import DeltaFeedTables
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.ledger import Ledger
from rewindow.tables.delta.orphan_files import left_before, staged_by
from rewindow.tables.shared.paths import LANDINGS, QUARANTINE
from rewindow.tables.shared.warehouse import check_stored_feed


class FeedGc:
    """The files of one feed."""

    def __init__(self, tables: DeltaFeedTables, feed: str, is_quiet: Callable[[], bool]) -> None:
        """Bind to a feed. ``is_quiet`` returns whether no run is in progress that reads it."""
        self._tables, self._feed, self._is_quiet = tables, feed, is_quiet

    def topics(self) -> list[str]:
        """Return the logs that `land` ever wrote; logs that are read from their source tables are not among them."""
        found: dict[str, None] = {}
        for row in self._rows():
            if row.kind == GENERATION:
                found |= dict.fromkeys(
                    topic for topic in row.body["logs"] if topic not in row.body.get("source_offsets", ())
                )
        return sorted(found)

    def compact(self, topic: str) -> Iterator[str | tuple[int, int]]:
        """Merge a log's small files; see `compaction.compact`."""
        return compact(self._root(topic), topic, held_paths(self._rows(), topic), uuid4().hex)

    def due(self) -> int:
        """Return how many files would be merged."""
        rows = self._rows()
        merges = (due_in(self._root(topic), held_paths(rows, topic)) for topic in self.topics())
        return sum(len(group) for merge in merges for _, group in merge)

    def garbage(self, keep_ms: int) -> Iterator[Garbage]:
        """Yield what can be deleted now. All of it is found before the first is yielded."""
        rows = self._rows()
        check_stored_feed(self._feed, rows)
        found = [one for topic in self.topics() for one in self._of_log(topic, rows, keep_ms)]
        yield from [*found, *self._of_quarantine(rows), *self._of_ledger(keep_ms)]

    def delete(self, garbage: Sequence[Garbage]) -> None:
        """Delete files, if they still exist."""
        for one in garbage:
            Folder(one.folder).delete(one.path, is_folder=one.is_folder)

    def compact_ledger(self) -> None:
        """Merge the landing ledger's files."""
        self._ledger().compact()

    def _of_log(self, topic: str, rows: Sequence[LedgerRow], keep_ms: int) -> Iterator[Garbage]:
        """Yield files of dead landings at once, others when they are old and their offsets are in other files.

        It is not enough that the table does not name a file: a RESTORE may have removed it, and may be undone.
        """
        root = self._root(topic)
        table, folder = open_table(root), Folder(root)
        if table is None or direct_problem(table):
            return
        parts = log_parts(root, table)
        listed = {file.path for file in table_files(root, table)}
        dead, held, known = dead_landings(rows), held_paths(rows, topic), _landed(rows, topic)
        is_quiet = self._is_quiet()
        old = left_before(table, max(keep_ms, UNKNOWN_MS))
        for name, size, _ in folder.files():
            if name in listed or not name.endswith((".parquet", ".arrow")):
                continue
            if staged_by(name) in dead:
                yield Garbage(root, name, size, "of a landing that died")
            elif is_quiet and name in old and name not in held and _is_elsewhere(folder, name, known, parts):
                yield Garbage(root, name, size, "its rows are in another file")

    def _of_quarantine(self, rows: Sequence[LedgerRow]) -> Iterator[Garbage]:
        root, dead = table_path(self._tables.warehouse, QUARANTINE), dead_landings(rows)
        table = open_table(root)
        listed = {file.path for file in table_files(root, table)} if table else set()
        for name, size, _ in Folder(root).files() if dead else ():
            if staged_by(name) in dead and name not in listed:
                yield Garbage(root, name, size, "of a landing that died")

    def _of_ledger(self, keep_ms: int) -> Iterator[Garbage]:
        root = table_path(self._tables.warehouse, LANDINGS)
        ledger = open_table(root)
        for name in sorted(left_before(ledger, max(keep_ms, UNKNOWN_MS))) if ledger else ():
            facts = Folder(root).facts(name)
            if name.startswith(f"name={self._feed}/") and facts is not None:
                yield Garbage(root, name, facts.bytes, "merged into another file of the ledger")

    def _ledger(self) -> Ledger:
        return Ledger(table_path(self._tables.warehouse, LANDINGS), self._feed)

    def _rows(self) -> Sequence[LedgerRow]:
        return self._tables.state(self._feed)

    def _root(self, topic: str) -> str:
        return self._tables.roots(self._feed, topic)[0]


def _landed(rows: Sequence[LedgerRow], topic: str) -> dict[str, tuple[int, int]]:
    """Return the first and last offset of each file that a landing names."""
    files = [file for row in rows if row.kind == LANDING for file in row.body.get("files", {}).get(topic, ())]
    bounds = {file["path"]: file["stats"] for file in files}
    return {path: (of["minValues"]["offset"], of["maxValues"]["offset"]) for path, of in bounds.items()}


def _is_elsewhere(
    folder: Folder, name: str, known: Mapping[str, tuple[int, int]], parts: Mapping[LogPartition, Sequence[LogPart]]
) -> bool:
    log_partition = _log_partition(name)
    if log_partition is None:
        return False
    if name in known:
        return is_covered(*known[name], parts.get(log_partition, ()))
    try:
        offsets = pc.min_max(folder.read_table(name, ["offset"])["offset"]).as_py()
    except StorageError:
        return False  # its offsets are unknown
    return offsets["min"] is None or is_covered(offsets["min"], offsets["max"], parts.get(log_partition, ()))


def _log_partition(name: str) -> LogPartition | None:
    values = dict(part.partition("=")[::2] for part in name.split("/")[:-1])
    try:
        return int(values["generation"]), int(values["partition"])
    except (KeyError, ValueError):
        return None
