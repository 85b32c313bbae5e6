"""A Delta table or another job's output as a source: which rows are new, and whether landed rows were changed since.

New rows are in files that newer versions added with new data. A version that removes rows is rejected, because a log is
append-only. A row arrives at its ``arrived_at`` or, if there is no such column, at the time of its commit. A first landing
reads files of older versions. If VACUUM has deleted one of them, the landing reads the files that the table has now. The rows
of these files have no arrival.

Another job's output is landed epoch by epoch, and only from published runs of main. Before the landing, the rows of these
runs are counted, and the sizes of their files are checked. Files are read for this check only if UPDATE, DELETE or OPTIMIZE
has rewritten such rows.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pyarrow.compute as pc
from deltalake import DeltaTable
from pyarrow import fs

from rewindow.contracts.ingest import ARRIVAL, LogSpec, Piece, ReadWindow, SourceLook
from rewindow.contracts.source_fields import named_columns
from rewindow.control.plan.spec import add_digests
from rewindow.errors import ConfigError, SourceError
from rewindow.storage.locations import filesystem_of, is_uri
from rewindow.tables.delta.check_published import lacking
from rewindow.tables.delta.commit import check_writable
from rewindow.tables.delta.create_table import OWNER
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.open_table import added_files, direct_problem, existing_table, open_table, table_path
from rewindow.tables.delta.run_rows import run_counts
from rewindow.tables.delta.table_rows import file_batches, table_files, table_schema
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.drift import difference_of
from rewindow.tables.shared.landed_outputs import DELTA, altered, missing_source, new_epochs, output_gone, rows_changed
from rewindow.tables.shared.paths import staged_by

if TYPE_CHECKING:
    from rewindow.control.plan.job_state import CommittedRun, JobState
    from rewindow.tables.delta.drift import Digest


@dataclass(frozen=True, slots=True)
class _AddedFile:
    """A data file that a commit adds: its full path, and pairs of a partition column and its value as text.

    ``data_change``: whether the file adds rows, or only contains rows of replaced files. ``has_deletions``: whether it has a
    deletion vector.
    """

    path: str
    values: tuple[tuple[str, str | None], ...]
    data_change: bool
    has_deletions: bool


@dataclass(frozen=True, slots=True)
class _TableCommit:
    """The commit of one version of a table. ``time_ms``: the writer's time.

    ``takes_rows``: whether it removes or replaces rows.
    """

    version: int
    time_ms: int | None
    operation: str
    adds: tuple[_AddedFile, ...]
    takes_rows: bool


def _read_commit(root: str, version: int) -> _TableCommit | None:
    """Return the commit of a version; None if its file in the log is gone or broken."""
    try:
        text = _read(f"{root.rstrip('/')}/_delta_log/{version:020}.json")
        return _parse(root, version, (json.loads(line) for line in text.split("\n") if line)) if text else None
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        # The table could be opened, because a later checkpoint has the rows of this commit. But the checkpoint does not have
        # their arrival.
        return None


def _full_path(root: str, path: str) -> str:
    """Return the full path of a data file. Paths in a Delta log are URL-encoded and, in a shallow clone, absolute."""
    if path.startswith("file:"):
        return unquote(urlsplit(path).path)
    decoded = unquote(path)
    return decoded if decoded.startswith("/") or is_uri(decoded) else f"{root.rstrip('/')}/{decoded}"


def _first_missing(root: str, paths: Sequence[str]) -> str | None:
    """Return the first data file that does not exist; None if all exist. Lists a bucket instead of requesting each path."""
    listed: set[str] = set()
    if is_uri(root):
        base = root.rstrip("/")
        listed = {f"{base}/{path}" for path, _ in Folder(base).listed()}
    return next((path for path in paths if path not in listed and not _is_there(path)), None)


def _is_there(path: str) -> bool:
    system, key = filesystem_of(path)
    return bool(system.get_file_info(key).type == fs.FileType.File)


def _parse(root: str, version: int, actions: Iterable[dict[str, Any]]) -> _TableCommit:
    time_ms: int | None = None
    operation, takes_rows, adds = "unknown", False, list[_AddedFile]()
    for action in actions:
        if info := action.get("commitInfo"):
            time_ms = info.get("inCommitTimestamp", info.get("timestamp"))
            mode = (info.get("operationParameters") or {}).get("mode")
            operation = " ".join(filter(None, (info.get("operation", operation), mode)))
        elif add := action.get("add"):
            adds.append(
                _AddedFile(
                    _full_path(root, add["path"]),
                    # Delta's protocol defines an empty text as null.
                    tuple(sorted((name, value or None) for name, value in (add.get("partitionValues") or {}).items())),
                    add.get("dataChange", True),
                    bool(add.get("deletionVector")),
                )
            )
        elif remove := action.get("remove"):
            takes_rows = takes_rows or remove.get("dataChange", True)
    return _TableCommit(version, time_ms, operation, tuple(adds), takes_rows)


def _read(path: str) -> str | None:
    if is_uri(path):
        system, key = filesystem_of(path)
        if system.get_file_info(key).type == fs.FileType.NotFound:
            return None
        with system.open_input_stream(key) as stream:
            return bytes(stream.read()).decode()
    return Path(path).read_text(encoding="utf-8")


_Dated = tuple[_TableCommit, int | None]
"""A commit and its arrival (epoch ms)."""


def look_at_table(spec: LogSpec, position: Mapping[str, Any] | None, window: ReadWindow) -> SourceLook:
    """Return the present state of a Delta table, compared with the landed position (None: nothing is landed).

    Raises `SourceError` (66) if there is no table, if it is no longer the table that was landed, or if it cannot be read;
    `DataError` (65) if a version removed rows; `ConfigError` (78) if the arrival of rows cannot be determined, or if the table is
    partitioned by a BINARY column that the log needs.
    """
    table = open_table(spec.source.location)
    if table is None:
        raise missing_source(spec.source.name)
    return _TableLook(spec, table, position, window).look()


class _TableLook:
    """The state of one source table, compared with a position."""

    def __init__(
        self, spec: LogSpec, table: DeltaTable, position: Mapping[str, Any] | None, window: ReadWindow
    ) -> None:
        self._spec, self._table, self._window = spec, table, window
        self._root, self._name = spec.source.location, spec.source.name
        self._position = position
        self._version = table.version()
        self._metadata = table.metadata()
        self._needs_commits = spec.arrived_at is None
        self._is_direct = not direct_problem(table)
        """Whether reading the table's files gives the table's rows. If not, Spark reads the table."""

    def look(self) -> SourceLook:
        self._check_partitions()
        active = self._active_files()
        if self._position is None:
            commits = self._first_commits(active) if self._needs_commits else None
            fresh = _pieces(commits) if commits is not None else [Piece(path, None, v) for path, v in active.items()]
            return self._result(fresh, (), commits or [], overlapping=False)
        self._check_same_table(self._position)
        commits = self._dated(self._new_commits(self._position["version"]), self._position.get("arrival"))
        fresh = _pieces(commits if self._needs_commits else [(commit, None) for commit, _ in commits])
        self._check_exist(fresh, active)
        if self._window.until_ms is None:
            return self._result(fresh, (), commits, overlapping=False)
        if self._needs_commits:
            pending = self._pending(self._position)
            rest = _pieces(pending)
            self._check_exist(rest, active)
            return self._result(fresh, rest, [*pending, *commits], overlapping=False)
        new = {piece.path for piece in fresh}
        overlapping = not new <= active.keys()
        rest = [Piece(path, None, values) for path, values in active.items() if overlapping or path not in new]
        return self._result(fresh, rest, commits, overlapping=overlapping)

    def _result(
        self, fresh: Sequence[Piece], rest: Sequence[Piece], commits: Sequence[_Dated], *, overlapping: bool
    ) -> SourceLook:
        arrivals = [arrival for _, arrival in commits if arrival is not None]
        last = arrivals[-1] if arrivals else self._position.get("arrival") if self._position else None
        until = self._window.until_ms
        later = [
            [commit.version, arrival]
            for commit, arrival in commits
            if self._needs_commits and until is not None and arrival is not None and arrival >= until
        ]
        position = {"kind": DELTA, "id": self._metadata.id, "version": self._version, "arrival": last, "later": later}
        return SourceLook(
            position,
            tuple(fresh),
            tuple(rest),
            overlapping=overlapping,
            schema=self._table.schema().to_json(),
            partition_columns=tuple(self._metadata.partition_columns),
            version=None if self._is_direct else self._version,
            owner=self._metadata.configuration.get(OWNER),
        )

    def _first_commits(self, active: Mapping[str, Any]) -> list[_Dated] | None:
        """Return all commits with their arrivals, for a first landing; None if the arrivals are unknown but not needed."""
        every = [_read_commit(self._root, version) for version in range(self._version + 1)]
        commits = [commit for commit in every if commit is not None]
        if len(commits) == len(every):
            if any(commit.takes_rows for commit in commits):
                commits = list(_only(commits, active))
                is_whole = active.keys() == {file.path for commit in commits for file in commit.adds}
            else:
                is_whole = self._first_gone(_pieces(self._dated(commits, None)), active) is None
            if is_whole:
                return self._dated(commits, None)
        if not self._needs_arrivals:
            return None
        raise ConfigError(
            "source-arrival-unknown",
            "log {topic}: the Delta log of {table} no longer shows when its rows were added (old versions were cleaned"
            " up, their files were deleted by VACUUM, or rows were rewritten): name a column with the arrival, "
            "`arrived_at: COLUMN`",
            topic=self._spec.topic,
            table=self._name,
        )

    @property
    def _needs_arrivals(self) -> bool:
        """Whether a first landing needs the times of all commits."""
        return self._needs_commits and (self._window.until_ms is not None or self._spec.timestamp == ARRIVAL)

    @property
    def _again(self) -> str:
        """The advice to land all rows again.

        It applies if the Delta log no longer has the times at which all rows were added.
        """
        column = " with a column that tells when they arrived, `arrived_at: COLUMN`" if self._needs_arrivals else ""
        return f"land all rows again{column}: `rewindow land FEED --new-generation`"

    def _new_commits(self, after: int) -> list[_TableCommit]:
        commits = []
        for version in range(after + 1, self._version + 1):
            commit = _read_commit(self._root, version)
            if commit is None:
                raise SourceError(
                    "source-version-cleaned",
                    "{table}: version {version} was cleaned out of its Delta log, or damaged, before it was landed. To "
                    "go on, {fix}. Then land more often than delta.logRetentionDuration",
                    table=self._name,
                    version=version,
                    fix=self._again,
                )
            self._check_only_adds(commit)
            commits.append(commit)
        return commits

    def _pending(self, position: Mapping[str, Any]) -> list[_Dated]:
        """Return the commits that an earlier landing read but did not land, because they arrived after its interval."""
        pending: list[_Dated] = []
        for version, arrival in position.get("later", ()):
            commit = _read_commit(self._root, version)
            if commit is None:
                raise SourceError(
                    "source-version-cleaned-early",
                    "{table}: version {version} was cleaned out of its Delta log, or damaged, before its rows were due. "
                    "To go on, {fix}",
                    table=self._name,
                    version=version,
                    fix=self._again,
                )
            pending.append((commit, arrival))
        return pending

    def _dated(self, commits: Sequence[_TableCommit], before: int | None) -> list[_Dated]:
        dated: list[_Dated] = []
        for commit in commits:
            times = [time for time in (before, commit.time_ms) if time is not None]
            before = max(times) if times else None
            dated.append((commit, before))
        return dated

    def _active_files(self) -> dict[str, tuple[tuple[str, str | None], ...]]:
        columns = self._metadata.partition_columns
        actions = added_files(self._table).to_pydict()
        paths = actions.get("path", [])
        partitions = (
            zip(*(actions[f"partition.{name}"] for name in columns), strict=True) if columns else [()] * len(paths)
        )
        return {
            _full_path(self._root, path): tuple(zip(columns, map(_partition_text, values), strict=True))
            for path, values in zip(paths, partitions, strict=True)
        }

    def _check_partitions(self) -> None:
        """Raise `ConfigError` (78) if a landed column is a partition column of type BINARY."""
        # The Delta log stores values of a partition column as texts, and writers encode bytes differently.
        spec, partitions = self._spec, self._metadata.partition_columns
        if not partitions or not self._is_direct:
            return
        named = named_columns(spec)
        for field in json.loads(self._table.schema().to_json())["fields"]:
            name = field["name"]
            is_landed = name in named or (spec.value is None and name not in spec.ignore)
            if name in partitions and field["type"] == "binary" and is_landed:
                way = "" if name in named else f", or leave the column out, `ignore: [{name}]`"
                raise ConfigError(
                    "source-partition-binary",
                    "log {topic}: {table} is partitioned by {column}, which is BINARY. Writers store such values as different "
                    "texts, so their bytes are unknown. Partition the table by another column{way}",
                    topic=spec.topic,
                    table=self._name,
                    column=name,
                    way=way,
                )

    def _check_same_table(self, position: Mapping[str, Any]) -> None:
        if position.get("kind") != DELTA or position["id"] != self._metadata.id:
            change = "was dropped and created again"
        elif position["version"] > self._version:
            change = f"went back from version {position['version']} to {self._version}"
        else:
            return
        raise SourceError(
            "source-table-replaced",
            "{table} {change} since it was landed. Put the table back, or land it again: `rewindow land FEED "
            "--new-generation`",
            table=self._name,
            change=change,
        )

    def _check_only_adds(self, commit: _TableCommit) -> None:
        if commit.operation.startswith("RESTORE"):
            raise SourceError(
                "source-table-restored",
                "{table}: version {version} is a RESTORE, so rows that were landed may be gone. Land it "
                "again: `rewindow land FEED --new-generation`",
                table=self._name,
                version=commit.version,
            )
        if commit.takes_rows:
            raise rows_changed(self._name, commit.version, commit.operation)
        if any(file.has_deletions for file in commit.adds if file.data_change):
            raise SourceError(
                "source-deletion-vectors",
                "{table}: version {version} added files with deletion vectors: switch them off",
                table=self._name,
                version=commit.version,
            )

    def _check_exist(self, pieces: Sequence[Piece], active: Mapping[str, Any]) -> None:
        """Raise `SourceError` (66) if a file has left the table and can no longer be read."""
        # OPTIMIZE removes files from the table, and VACUUM deletes them later.
        path = self._first_gone(pieces, active)
        if path is not None:
            gone = (
                "and deleted by VACUUM" if self._is_direct else "(the table is read as a whole: it has column mapping)"
            )
            raise SourceError(
                "source-rewritten-before-landing",
                "{table}: {path} was rewritten by OPTIMIZE {gone} before it was landed. To go on, "
                "{fix}. Then land before each OPTIMIZE",
                table=self._name,
                path=path,
                gone=gone,
                fix=self._again,
            )

    def _first_gone(self, pieces: Sequence[Piece], active: Mapping[str, Any]) -> str | None:
        """Return the first file that can no longer be read, because VACUUM deleted it after its removal; None if all can."""
        left = [piece.path for piece in pieces if piece.path not in active]
        if not left or not self._is_direct:
            return left[0] if left else None
        return _first_missing(self._root, left)


def _pieces(commits: Sequence[_Dated]) -> list[Piece]:
    return [Piece(file.path, arrival, file.values) for commit, arrival in commits for file in _new_files(commit)]


def _new_files(commit: _TableCommit) -> Iterator[_AddedFile]:
    return (file for file in commit.adds if file.data_change)


def _only(commits: Sequence[_TableCommit], active: Mapping[str, Any]) -> Iterator[_TableCommit]:
    """Yield the commits, each with only those files that no earlier commit added and that the table still has."""
    # A deletion vector or a RESTORE adds the same file again.
    left = set(active)
    for commit in commits:
        adds = tuple(file for file in _new_files(commit) if file.path in left)
        left -= {file.path for file in adds}
        yield replace(commit, adds=adds)


def _partition_text(value: Any) -> str | None:
    """Return a partition value as text."""
    # In the Delta protocol, an empty text means null for every type.
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime | date):
        return value.isoformat()
    return str(value)


def look_at_output(
    warehouse: str, spec: LogSpec, position: Mapping[str, Any] | None, digest: Digest | None = None
) -> SourceLook:
    """Return the present state of a job's output, compared with the landed position (None: nothing is landed).

    Raises `SourceError` (66) if the job never ran, has no such output, or was rewound to before the landed position, and
    `StorageError` (74) if rows to land differ from the published rows. ``digest``: see `_difference_from_runs`.
    """
    new = new_epochs(tables := DeltaTables(warehouse), spec, position)
    path = table_path(warehouse, new.table.path)
    fresh, schema, last = _files(path, position["epoch"] if position else 0)
    if (change := _difference_from_runs(path, new.target, new.runs, new.state, digest)) is not None:
        if not new.is_newest(tables):
            return look_at_output(warehouse, spec, position, digest)
        raise altered(new.job, path, change)
    epochs = tuple(replace(epoch, may_have_rows=last is None or epoch.number <= last) for epoch in new.epochs)
    return SourceLook({}, fresh, schema=new.marked(schema), epochs=epochs, on_hold=new.on_hold, keys=new.keys)


def _files(path: str, landed: int) -> tuple[tuple[Piece, ...], str, int | None]:
    """Return a table's files, its schema as JSON, and the last epoch with rows (None if unknown).

    The checksums of files with epochs after ``landed`` are verified, because these files will be read next.
    """
    if (table := open_table(path)) is None:
        raise output_gone(path)
    check_writable(path, table)
    actions = added_files(table).to_pydict()
    paths = actions["path"]
    lasts = actions.get("max._epoch", [None] * len(paths))
    folder = Folder(path)
    for name, last in zip(paths, lasts, strict=True):
        if last is None or last > landed:
            # Spark verifies the checksums of pages, but these cover neither page headers nor the footer.
            folder.check(unquote(name))
    last = None if None in lasts else max(lasts, default=0)
    return tuple(Piece(_full_path(path, name)) for name in sorted(paths)), table.schema().to_json(), last


def _difference_from_runs(
    path: str, target: str, runs: Sequence[CommittedRun], state: JobState, digest: Digest | None
) -> str | None:
    """Describe how an output's rows of published runs differ from what the runs wrote; None if they are equal.

    ``digest`` returns the digest of rows. It is used to compare rows in rewritten files. If it is None, rows are only
    counted.
    """
    if not runs:
        return None
    table, numbers = existing_table(path), {run.spec.run for run in runs}
    files = table_files(path, table, runs=numbers)
    if (change := lacking(path, files)) is not None:
        return change
    wanted = Counter({run.spec.run: total.rows for run in runs if (total := run.commit.targets.get(target))})
    attempts = {run.commit.attempt for run in runs}
    folder, counts, digests = Folder(path), Counter[int](), dict[int, list[str]]()
    if all(staged_by(file.path) in attempts and file.first_run == file.last_run for file in files):
        for file in files:
            counts.update(run_counts(folder, file) or {})
    else:
        schema = table_schema(table)
        for rows in (batch for file in files for batch in file_batches(folder, file, schema)):
            for run in runs:
                own = rows.filter(pc.field("_run") == run.spec.run)
                counts[run.spec.run] += own.num_rows
                if digest is not None and own.num_rows:
                    columns = [column.name for column in run.spec.binding.tables[target].columns]
                    digests.setdefault(run.spec.run, []).append(digest(own.select(columns)))
    if +counts != +wanted:
        return difference_of(wanted, counts, state)
    for run in runs:
        parts = digests.get(run.spec.run)
        if parts and add_digests(parts) != run.commit.targets[target].digest:
            return f"has other rows of run {run.spec.name}"
    return None
