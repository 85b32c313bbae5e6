"""The journal: what each attempt staged. Each attempt appends one file, which counts only if a COMMIT row names it.

A row is a `TaskReport` in JSON: one for each task, and one for the run as a whole.

Before an attempt is committed, its staged files are read back. The digest of a file's bytes shows whether a byte is wrong or
missing (`StagedFile.file_digest`). The footer of the file states how many rows it has.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa

from rewindow.contracts.staged_files import StagedFile, TaskReport
from rewindow.control.health.inputs import StepTimes
from rewindow.control.plan.job_state import CommittedRun
from rewindow.control.plan.spec import JournalFile
from rewindow.control.plan.stored_rows import load_stored, stored_json
from rewindow.errors import InvariantError, StorageError
from rewindow.storage.locations import filesystem_of
from rewindow.tables.delta.commit import commit_files
from rewindow.tables.delta.create_table import SHORT_LOG, create_table
from rewindow.tables.delta.files import SMALL_BYTES, Folder, digest_of
from rewindow.tables.delta.open_table import open_table, table_path
from rewindow.tables.delta.table_rows import table_files
from rewindow.tables.shared.audit import INTERNAL
from rewindow.tables.shared.paths import JOURNAL, METRICS, safe_name

_COLUMNS = pa.schema(
    [
        ("attempt", pa.string()),
        ("sub_topology", pa.int64()),
        ("partition", pa.int64()),
        ("report", pa.string()),
    ]
)
_SCHEMA = pa.schema([pa.field("job", pa.string()), *_COLUMNS])
_READERS = 4


class Journal:
    """The attempts of one job in a journal table. The first append creates the table."""

    def __init__(self, path: str, job: str) -> None:
        """Bind to a table and a job. Nothing is read or created."""
        self.path = path
        self.job = safe_name(job, "job")
        self._folder = Folder(path)

    def append(self, attempt: str, reports: Sequence[TaskReport]) -> JournalFile:
        """Append an attempt's reports in one Delta commit; return the file that contains them. Repeated calls change nothing.

        Raises `StorageError` (74) if the reports were not committed, `InvariantError` (70) if the attempt staged other reports
        before.
        """
        table = create_table(self.path, _SCHEMA, ("job",), configuration=SHORT_LOG)
        path = self._path_of(attempt)
        rows = _as_table(attempt, reports)
        if table.transaction_version(_app_id(attempt)) is None:
            size = self._folder.write_table(path, rows).bytes
            commit_files(
                self.path, [self._staged(path, len(reports), size)], app_id=_app_id(attempt), version=1, table=table
            )
        stored = self._folder.read_whole(path, _COLUMNS.names)
        if stored is None:
            raise StorageError(
                "staged-file-deleted",
                "{path} was deleted after it was staged: stop whatever did that, then run again",
                path=self._folder.full_path(path),
            )
        if not stored.rows().equals(rows):
            raise InvariantError(
                "attempt-staged-otherwise",
                "attempt {attempt} staged something else before: each attempt needs its own id",
                attempt=attempt,
            )
        return JournalFile(path, stored.bytes, stored.digest)

    def find(self, attempt: str) -> list[TaskReport] | None:
        """Return the reports of an attempt, committed or not; None if it appended no reports, or if their file is gone."""
        table, path = open_table(self.path), self._path_of(attempt)
        if table is None or table.transaction_version(_app_id(attempt)) is None or self._folder.facts(path) is None:
            return None
        return _as_reports(self._folder.read_table(path, _COLUMNS.names), attempt, self.path)

    def read(self, file: JournalFile, attempt: str) -> list[TaskReport]:
        """Return the reports of an attempt, ordered by sub-topology and partition, from the file that its COMMIT row names.

        If that file was merged into another, the whole journal of the job is searched. Raises `StorageError` (74) if the
        reports are gone or differ from what was committed.
        """
        stored = self._folder.read_whole(file.path, _COLUMNS.names)
        if stored is None:
            return self._search(attempt)
        if (stored.bytes, stored.digest) != (file.bytes, file.digest):
            raise StorageError(
                "report-altered",
                "{path} is not what was committed ({bytes} bytes, digest {digest}). Repeat its run: "
                "`rewindow republish {job}`",
                path=self._folder.full_path(file.path),
                bytes=file.bytes,
                digest=file.digest,
                job=self.job,
            )
        return _as_reports(stored.rows(), attempt, self.path)

    def _search(self, attempt: str) -> list[TaskReport]:
        table = open_table(self.path)
        reports: list[TaskReport] = []
        files = table_files(self.path, table) if table else []
        for path in (file.path for file in files if file.partition["job"] == self.job):
            # The table may name files that no longer exist.
            if self._folder.facts(path) is not None:
                reports += _as_reports(self._folder.read_table(path, _COLUMNS.names), attempt, self.path)
        if not reports:
            raise StorageError(
                "reports-missing",
                "the journal {path} no longer has the reports of attempt {attempt}. Repeat its run: "
                "`rewindow republish {job}`",
                path=self.path,
                attempt=attempt,
                job=self.job,
            )
        return sorted(reports, key=_task)

    def _path_of(self, attempt: str) -> str:
        return f"job={self.job}/{safe_name(attempt, 'attempt')}.parquet"

    def _staged(self, path: str, rows: int, size: int) -> StagedFile:
        stats: dict[str, Any] = {"numRecords": rows, "minValues": {}, "maxValues": {}, "nullCount": {}}
        return StagedFile("journal", 0, path, rows, size, {"job": self.job}, stats, "", "")


def _app_id(attempt: str) -> str:
    return f"rewindow.journal/{attempt}"


def _as_table(attempt: str, reports: Sequence[TaskReport]) -> pa.Table:
    ordered = sorted(reports, key=_task)
    texts = [stored_json(report.as_json()) for report in ordered]
    sub_topologies, partitions = [report.sub_topology for report in ordered], [report.partition for report in ordered]
    return pa.table([[attempt] * len(ordered), sub_topologies, partitions, texts], schema=_COLUMNS)


def _as_reports(rows: pa.Table, attempt: str, table: str) -> list[TaskReport]:
    pairs = zip(rows["attempt"].to_pylist(), rows["report"].to_pylist(), strict=True)
    return [TaskReport.from_json(load_stored(text, table)) for owner, text in pairs if owner == attempt]


def _task(report: TaskReport) -> tuple[int, int]:
    return report.sub_topology, report.partition


def audit_files(reports: Sequence[TaskReport], roots: Mapping[str, str]) -> None:
    """Check every staged file against its manifest. ``roots``: maps each target to the folder of its table.

    Raises `StorageError` (74), which names the first file that is missing, cut short or altered.
    """
    files = [file for report in reports for file in report.files if not file.target.startswith(INTERNAL)]
    folders = {target: Folder(root) for target, root in roots.items()}
    if sum(file.bytes for file in files) <= SMALL_BYTES:
        for file in files:
            _check_file(folders[file.target], file)
        return
    # Threads save time, because digests are computed without the interpreter's lock.
    with ThreadPoolExecutor(_READERS) as readers:
        for _ in readers.map(lambda file: _check_file(folders[file.target], file), files):
            pass


def _check_file(folder: Folder, file: StagedFile) -> None:
    # A small file is read as a whole, which takes one request to a bucket.
    if file.bytes <= SMALL_BYTES:
        try:
            data = folder.read_bytes(file.path)
        except StorageError as error:
            raise _not_as_staged(folder, file, "is gone") from error
        _check_bytes(folder, file, data.size, digest_of(data))
        parquet_file = folder.as_parquet(file.path, data, is_checked=True)
    else:
        facts = folder.facts(file.path)
        if facts is None:
            raise _not_as_staged(folder, file, "is gone")
        _check_bytes(folder, file, facts.bytes, folder.digest(file.path))
        parquet_file = folder.open_parquet(file.path, is_checked=True)
    with parquet_file as parquet:
        rows = parquet.metadata.num_rows
    if rows != file.rows or file.stats.get("numRecords", rows) != rows:
        raise _not_as_staged(folder, file, f"has {rows} rows, not {file.rows}")


def _check_bytes(folder: Folder, file: StagedFile, size: int, digest: str) -> None:
    if size != file.bytes:
        raise _not_as_staged(folder, file, f"has {size} bytes, not {file.bytes}")
    if digest != file.file_digest:
        raise _not_as_staged(folder, file, "has other bytes than were written")


def _not_as_staged(folder: Folder, file: StagedFile, fault: str) -> StorageError:
    return StorageError(
        "staged-file-missing",
        "the staged file {path} {fault}. Nothing was committed: check the disk and run again",
        path=folder.full_path(file.path),
        fault=fault,
    )


_MOST_COMMITS = 200
"""At most this many commits of the journal and of the metrics are read, newest first, because other jobs write to both
tables, too."""


def step_times(warehouse: str, runs: Sequence[CommittedRun]) -> Mapping[int, StepTimes]:
    """Return when the steps of these runs ended, by run id. A time is None if the newest commits do not state it."""
    attempts = {run.commit.attempt: run for run in runs}
    staged: dict[str, int] = {}
    for at_ms, files in _commits(table_path(warehouse, JOURNAL)):
        named = [path.rpartition("/")[2].removesuffix(".parquet") for path, _ in files]
        staged |= {attempt: at_ms for attempt in named if attempt in attempts}
        if len(staged) == len(attempts):
            break
    # A run stages the file of its metrics last, and publishes it among the last files. So this file shows when a run was
    # executed and when it was published.
    published: dict[str, tuple[int, int]] = {}
    for at_ms, files in _commits(table_path(warehouse, METRICS)):
        named_at = [(path.rpartition("/")[2].partition("-")[0], modified_ms) for path, modified_ms in files]
        published |= {attempt: (modified_ms, at_ms) for attempt, modified_ms in named_at if attempt in attempts}
        if len(published) == len(attempts):
            break
    return {
        run.spec.run: StepTimes(
            executed_ms=published[attempt][0] if attempt in published else None,
            staged_ms=staged.get(attempt),
            published_ms=published[attempt][1] if attempt in published else None,
        )
        for attempt, run in attempts.items()
    }


def _commits(path: str) -> Iterator[tuple[int, list[tuple[str, int]]]]:
    """Yield a pair for each commit of a table, newest first: its time, and pairs (added file, the file's time).

    Times are ms.
    """
    table = open_table(path)
    newest = -1 if table is None else table.version()
    for version in range(newest, max(newest - _MOST_COMMITS, -1), -1):
        system, location = filesystem_of(f"{path}/_delta_log/{version:020d}.json")
        try:
            with system.open_input_stream(location) as file:
                actions: list[dict[str, Any]] = [json.loads(line) for line in file.read().splitlines()]
        except (FileNotFoundError, ValueError):
            # Delta has deleted this commit and all earlier ones, because a checkpoint replaces them.
            return
        at_ms = next((action["commitInfo"].get("timestamp", 0) for action in actions if "commitInfo" in action), 0)
        yield (
            at_ms,
            [(action["add"]["path"], action["add"]["modificationTime"]) for action in actions if "add" in action],
        )
