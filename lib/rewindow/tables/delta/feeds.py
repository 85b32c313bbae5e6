"""Feeds in Delta: the landing ledger, and the log tables that follow it."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rewindow.contracts.reserved_names import QUARANTINE_COLUMNS
from rewindow.contracts.staged_files import StagedFile
from rewindow.control.ingest.feed_progress import Made, made_by, progress_lines
from rewindow.control.ingest.landings import Feed, LogSchema
from rewindow.control.plan.stored_rows import identity
from rewindow.errors import StorageError, not_committed
from rewindow.storage.locations import check_spark_reads
from rewindow.tables.delta.commit import Retract, add_actions, check_writable, commit_actions
from rewindow.tables.delta.create_table import create_table
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.handle import Mark, mark_of
from rewindow.tables.delta.ledger import LandingLedgers, Ledger
from rewindow.tables.delta.log_tables import (
    LandedTimes,
    check_log_claim,
    create_log,
    lost_files,
    lost_landings,
    missing_columns,
    more_landings,
)
from rewindow.tables.delta.open_table import existing_table, open_table, table_path
from rewindow.tables.delta.retractions import retract_of_deleted
from rewindow.tables.delta.table_rows import table_files
from rewindow.tables.shared.arrow_tables import arrow_schema
from rewindow.tables.shared.paths import QUARANTINE, log_path
from rewindow.tables.shared.publications import log_id, quarantine_id
from rewindow.tables.shared.stored_feeds import first_above

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from rewindow.contracts.ingest import LogSpec, ReadWindow, SourceLook
    from rewindow.control.ingest.landings import HeldFile
    from rewindow.control.ingest.protocols import LostRows
    from rewindow.control.plan.job_state import LedgerRow
    from rewindow.tables.delta.drift import Digest

NUMBERS_PER_COMMIT = 1_000
ATTEMPTS = 8

_STAGED = re.compile(r"([0-9a-f]{32})-[0-9a-f]{32}(?:\.[0-9a-f]{8})?\.(?:parquet|arrow)")


class DeltaFeedTables:
    """The feeds of one warehouse, through delta-rs. It implements the protocol `LandingTables` of `land`."""

    def __init__(self, warehouse: str, ledgers: LandingLedgers | None = None, digest: Digest | None = None) -> None:
        """Bind to a folder or URI. Nothing is read or created.

        ``ledgers``: landing ledgers to share with other readers of the warehouse. ``digest``: used to compare the rows of
        another job's output with what was published, if files of the output were rewritten.
        """
        self._digest = digest
        self.warehouse = warehouse.rstrip("/")
        self._ledgers = ledgers or LandingLedgers(self.warehouse)
        self._timestamps = LandedTimes()
        self._published: dict[str, tuple[LedgerRow, dict[str, Mark | None]]] = {}
        """By feed: the last ledger row that was published, and each table's last commit after that publication, by path.

        There is nothing to publish until one of these changes.
        """

    def state(self, feed: str) -> Sequence[LedgerRow]:
        """Return the rows of a feed's landing ledger. Raises `InvariantError` (70) if it is damaged."""
        return self._ledger(feed).read()

    def append(self, feed: str, *rows: LedgerRow) -> bool:
        """Append rows in one commit. Return False if another writer has already appended rows with their numbers."""
        ledger = self._ledger(feed)
        if (rows_to_keep := ledger.to_keep()) is not None:
            ledger.keep_fold(len(rows_to_keep), progress_lines(rows_to_keep))
        return ledger.append(rows)

    def prepare(self, feed: str, logs: Mapping[str, LogSchema]) -> None:
        """Create the quarantine, and check that files can be added to the log tables that exist.

        Logs are created later, by `publish`, so a landing that fails leaves no log with its columns behind. Raises
        `CheckpointError` (76) for a log with other columns or rows of another ledger, `StorageError` (74) for a table that
        cannot be written.
        """
        ledger = identity(self.state(feed))
        for topic, schema in logs.items():
            path = table_path(self.warehouse, log_path(feed, topic))
            if (table := open_table(path)) is not None:
                missing_columns(path, table, schema)
                check_writable(path, table)
                check_log_claim(path, table, ledger, feed)
        create_table(table_path(self.warehouse, QUARANTINE), arrow_schema(QUARANTINE_COLUMNS))

    def check_claims(self, feed: str, topics: Iterable[str]) -> None:
        """Check that existing logs of a feed have no rows of another ledger. Raises `CheckpointError` (76)."""
        ledger = identity(self.state(feed))
        for topic in topics:
            path = table_path(self.warehouse, log_path(feed, topic))
            if (table := open_table(path)) is not None:
                check_log_claim(path, table, ledger, feed)

    def publish(self, feed: str) -> None:
        """Bring a feed's log tables and the quarantine up to date with its ledger. Any process may do so at any time."""
        rows = self.state(feed)
        row, marks = self._published.get(feed, (None, {}))
        is_as_before = all(mark is not None and mark == self._mark(path) for path, mark in marks.items())
        if rows and row == rows[-1] and is_as_before:
            return
        for _ in self.publish_steps(feed):
            pass
        if rows:
            made = made_by(rows)
            paths = [
                log_path(feed, topic) for topic in sorted({topic for each in made for topic in each.generation["logs"]})
            ]
            if any(each.refused or any(body["quarantine"] for body in each.bodies) for each in made):
                paths.append(QUARANTINE)
            self._published[feed] = rows[-1], {path: self._mark(path) for path in paths}

    def _mark(self, path: str) -> Mark | None:
        """Return the last commit of a table of the warehouse; None if there is no table, or if its last commit is unknown."""
        return mark_of(open_table(table_path(self.warehouse, path)))

    def publish_steps(self, feed: str, lost: list[LostRows] | None = None) -> Iterator[str]:
        """Publish as `publish` does; yield the name of each commit before making it.

        ``lost``: lost files of the quarantine are added to this list, and are never published. If it is None, neither the
        lost files nor the files after them are published to the quarantine.

        Raises `StorageError` (74) if a staged file of a log is gone, `CheckpointError` (76) if a table has other columns. If
        a later generation keeps no landing of an earlier one, files of the earlier one may be gone. These are left out,
        because no run reads them.
        """
        rows = self.state(feed)
        made = made_by(rows)
        replaced = max((index for index, each in enumerate(made) if not each.generation["kept"]), default=0)
        ledger, numbers = identity(rows), [0]
        for index, each in enumerate(made):
            generation, bodies, is_replaced = each.generation, each.bodies, index < replaced
            number, kept = generation["generation"], generation["kept"]
            for topic, schema in generation["logs"].items():
                if topic in generation.get("source_offsets", ()):
                    continue
                path = table_path(self.warehouse, log_path(feed, topic))
                table, app_id = create_log(path, LogSchema.from_json(schema)), log_id(ledger, feed, number)
                check_log_claim(path, table, ledger, feed)
                published = table.transaction_version(app_id) or 0
                # The stored state of the ledger (its fold) does not contain published landings. They are needed only if the
                # table went back to an older version.
                if max(published, kept) < each.through:
                    bodies = made_by(rows, is_whole=True)[index].bodies
                landed = {body["landing"]: body["files"].get(topic, ()) for body in bodies}
                named = max(landed, default=each.through)
                # If the ledger has more rows by now, another `land` has published them.
                if published > named and len(self.state(feed)) == len(rows):
                    raise more_landings(path, feed, published, named)
                if not (is_replaced and _is_gone(path, landed, max(published, kept))):
                    yield from _publish(path, table, app_id, kept, landed, topic, lost_files(feed))
            yield from self._publish_refused(feed, ledger, each, rows, index, numbers, [] if is_replaced else lost)

    def _publish_refused(
        self,
        feed: str,
        ledger: str,
        made: Made,
        rows: Sequence[LedgerRow],
        index: int,
        numbers: list[int],
        lost: list[LostRows] | None,
    ) -> Iterator[str]:
        """Publish to the quarantine the rows that a generation's landings rejected.

        ``numbers``: the earlier generations with such rows; this generation is added. The first publication of a ledger
        removes from the quarantine the feed's rows that come from a deleted ledger. ``lost``: see `publish_steps`.
        """
        refused = refused_files(made.bodies)
        if not refused and not made.refused:
            return
        path = table_path(self.warehouse, QUARANTINE)
        table = create_table(path, arrow_schema(QUARANTINE_COLUMNS))
        numbers.append(made.generation["generation"])
        retract = retract_of_deleted(table, ledger, feed, numbers)
        app_id, first_number = quarantine_id(ledger, feed, numbers[-1]), made.refused + 1
        published = table.transaction_version(app_id) or 0
        if published < made.refused:
            refused, first_number = refused_files(made_by(rows, is_whole=True)[index].bodies), 1
        files = {number: some for number, some in enumerate(refused, start=first_number) if number > published}
        try:
            yield from _publish(path, table, app_id, 0, files, "quarantine", lost_files(feed), retract)
        except StorageError:
            whole = _without_lost(Folder(path), files, lost)
            if whole == files:
                raise
            yield from _publish(path, existing_table(path), app_id, 0, whole, "quarantine", lost_files(feed), retract)

    def lagging(self, feed: Feed) -> dict[str, int]:
        """Return, by topic, how many landings each log lacks. Complete logs are left out."""
        of, last = feed.definition, feed.landings[-1] if feed.landings else None
        if last is None or last.generation != of.generation:
            return {}
        app_id, lacking = log_id(feed.ledger, of.feed, of.generation), {}
        for topic in of.logs:
            if topic not in of.source_offsets:
                table = open_table(table_path(self.warehouse, log_path(of.feed, topic)))
                lacking[topic] = last.number - ((table.transaction_version(app_id) if table else None) or of.kept)
        return {topic: count for topic, count in lacking.items() if count > 0}

    def look(self, spec: LogSpec, position: Mapping[str, Any] | None, window: ReadWindow) -> SourceLook:
        """Return the state of a source that is a table or a job's output (see `look_at_table`, `look_at_output`)."""
        if spec.source.location.startswith(self.warehouse):
            check_spark_reads(spec.source.location, f"the source of the log {spec.topic}")
        if spec.is_output:
            from rewindow.tables.delta.source_table import look_at_output  # noqa: PLC0415 - few feeds read a job

            return look_at_output(self.warehouse, spec, position, self._digest)
        from rewindow.tables.delta.source_table import look_at_table  # noqa: PLC0415 - few feeds read a table

        return look_at_table(spec, position, window)

    def roots(self, feed: str, topic: str) -> tuple[str, str]:
        """Return the folder of a topic's log and the folder of the quarantine."""
        return table_path(self.warehouse, log_path(feed, topic)), table_path(self.warehouse, QUARANTINE)

    def first_above(self, feed: str, file: HeldFile, offset: int, time_ms: int) -> int | None:
        """Return the first offset of a landed file, from ``offset`` on, whose timestamp is above ``time_ms``, or None."""
        times = self._timestamps.of(table_path(self.warehouse, log_path(feed, file.topic)), file)
        return first_above(times, file, offset, time_ms)

    def remove_orphans(self, feed: str, topics: Sequence[str], attempts: Sequence[str]) -> None:
        """Delete the files of attempts that can never land.

        Raises `CheckpointError` (76) if a table names such a file. The ledger has then lost the landing that added the file.
        """
        roots = {self.roots(feed, topic)[0] for topic in topics} | {table_path(self.warehouse, QUARANTINE)}
        left = {root: _files_of(root, frozenset(attempts)) for root in sorted(roots)}
        for root, paths in left.items():
            table = open_table(root) if paths else None
            if table is not None and not paths.isdisjoint(file.path for file in table_files(root, table)):
                raise lost_landings(root, feed, "has files of a landing that its ledger does not know")
        for root, paths in left.items():
            folder = Folder(root)
            for path in sorted(paths):
                folder.delete(path)

    def _ledger(self, feed: str) -> Ledger:
        return self._ledgers.of(feed)


def _files_of(root: str, attempts: Collection[str]) -> set[str]:
    """Return the files in a table's folder that these attempts staged, whether or not the table names the files."""
    paths = (path for path, _, _ in Folder(root).files())
    return {path for path in paths if (staged := _STAGED.fullmatch(path.rpartition("/")[2])) and staged[1] in attempts}


def refused_files(bodies: Sequence[Mapping[str, Any]]) -> list[Sequence[Mapping[str, Any]]]:
    """Return, for each landing that has files for the quarantine, a list of these files."""
    return [[file for files in body["quarantine"].values() for file in files] for body in bodies if body["quarantine"]]


def _without_lost(
    folder: Folder, files: Mapping[int, Sequence[Mapping[str, Any]]], lost: list[LostRows] | None
) -> dict[int, Sequence[Mapping[str, Any]]]:
    """Return ``files`` without those that are gone or have another size. ``lost``: see `DeltaFeedTables.publish_steps`."""
    found: dict[int, Sequence[Mapping[str, Any]]] = {}
    for number, some in files.items():
        facts = {file["path"]: folder.facts(file["path"]) for file in some}
        whole = [file for file in some if (fact := facts[file["path"]]) and fact.bytes == file["bytes"]]
        if lost is None and len(whole) < len(some):
            return found
        if lost is not None:
            from rewindow.control.ingest.protocols import LostRows  # noqa: PLC0415 - hardly ever is a file lost

            lost += [LostRows(folder.full_path(file["path"]), file["rows"]) for file in some if file not in whole]
        found[number] = whole
    return found


def _is_gone(path: str, files: Mapping[int, Sequence[Mapping[str, Any]]], published: int) -> bool:
    """Return whether a staged file that is still to be published is gone."""
    folder = Folder(path)
    unpublished = (file for number, some in files.items() if number > published for file in some)
    return any(folder.facts(file["path"]) is None for file in unpublished)


def _publish(
    path: str,
    table: DeltaTable,
    app_id: str,
    before: int,
    files: Mapping[int, Sequence[Mapping[str, Any]]],
    label: str,
    fix: str,
    retract: Retract | None = None,
) -> Iterator[str]:
    """Add the files that a table lacks; yield the name of each commit before making it.

    ``files`` maps the numbers ``before`` + 1, ``before`` + 2, and so on to the files of each number. A commit may add the
    files of several numbers. ``label`` names the table in the yielded names. ``fix`` is the advice in the message for a file
    that is gone. ``retract`` returns actions that the first commit also makes.

    The version of a commit's application id is the last number that the commit adds. The commit is written with the handle
    that has read the last number in the table, so no number is added twice.
    """
    failure: Exception | None = None
    attempts = 0
    reached = table.transaction_version(app_id) or before
    while missing := [number for number in files if number > reached][:NUMBERS_PER_COMMIT]:
        if attempts == ATTEMPTS:
            raise not_committed(path, ATTEMPTS, failure) from failure
        yield f"publish {label} {missing[0]}-{missing[-1]}"
        check_writable(path, table)
        staged = [StagedFile.from_json(file) for number in missing for file in files[number]]
        failure = None
        try:
            added = add_actions(Folder(path), staged, table.metadata().partition_columns, fix)
            removed = retract(path, table) if retract and reached == before else ()
            commit_actions(table, [*added, *removed], app_id, missing[-1])
        except Exception as error:  # noqa: BLE001 - this or another commit may have landed: the log decides
            failure = error
            time.sleep(0.002 * 2**attempts)
        table = existing_table(path)
        now = table.transaction_version(app_id) or before
        if now == reached and isinstance(failure, StorageError):
            # A staged file is gone, and no other process has published the file.
            raise failure
        attempts = 0 if now > reached else attempts + 1
        reached = now
