"""What a run goes on from: the small state of each task, and the changelog files of each store, in the runs' order.

State as of a run is the last row a key among the runs of its branch. Nothing is ever retracted from a changelog:
which files count is decided here, by the runs that the ledger has in the chain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rewindow.contracts.staged_files import StagedFile, TaskReport
from rewindow.control.plan.branches import CommittedRun
from rewindow.control.plan.spec import CHANGELOG
from rewindow.errors import StorageError
from rewindow.streams.serde.meta_columns import PARTITION
from rewindow.tables.delta.commit import open_table, table_path
from rewindow.tables.delta.content_hash import TableFile, table_files
from rewindow.tables.delta.files import Folder
from rewindow.tables.shared.checkpoint import Checkpoint, since_last_added
from rewindow.tables.shared.publications import Reports


def find_checkpoint(
    warehouse: str,
    head: CommittedRun | None,
    basis: Sequence[CommittedRun],
    reports: Reports,
    *,
    as_staged: bool = False,
) -> Checkpoint:
    """Return what goes on from a run; an empty one for None. ``basis``: the runs to read, see `JobState.basis`.

    Everything in it must be published, or files are read ``as_staged``, whatever the tables say. Raises `StorageError`
    (74) if a changelog lacks rows that were committed.
    """
    if head is None:
        return Checkpoint({}, {})
    binding = head.spec.binding
    states = {(report.sub_topology, report.partition): report.state for report in reports(head)}
    stores: dict[tuple[str, int], tuple[str, ...]] = {}
    read: list[TableFile] = []
    for store in sorted(binding.stores):
        target = f"{CHANGELOG}{store}"
        path = table_path(warehouse, binding.tables[target].path)
        files = changelog_files(path, target, basis, reports, as_staged=as_staged)
        for partition in sorted({int(file.partition[PARTITION]) for file in files}):
            own = [file.path for file in files if int(file.partition[PARTITION]) == partition]
            stores[store, partition] = tuple(f"{path}/{name}" for name in own)
        read += files
    return Checkpoint(states, stores, sum(file.rows for file in read), sum(file.bytes for file in read))


def changelog_files(
    path: str, target: str, chain: Sequence[CommittedRun], reports: Reports, *, as_staged: bool = False
) -> list[TableFile]:
    """Return a changelog's files of some runs, in their order: later rows of a key win.

    Raises `StorageError` (74) if they lack rows that were committed, or have more.
    """
    chain = since_last_added(chain, target)
    table = None if as_staged else open_table(path)
    listed = table_files(path, table) if table else []
    order = {run.spec.run: place for place, run in enumerate(chain)}
    attempts = {run.spec.run: run.commit.attempt for run in chain}
    if as_staged or any(not _is_staged(file, attempts) for file in listed):
        # Somebody rewrote files (OPTIMIZE, UPDATE): what was staged is still there, until VACUUM.
        own = [_as_table_file(file, run.spec.run) for run in chain for file in _staged(reports(run), target)]
        _check_present(path, own)
    else:
        own = [file for file in listed if file.first_run in order]
    _check_complete(path, target, chain, own)
    return sorted(own, key=lambda file: (order[file.first_run or 0], file.path))


def _is_staged(file: TableFile, attempts: Mapping[int, str]) -> bool:
    """Whether a file is as some run staged it: of one run, and, of those that count here, by the attempt that counts."""
    if file.first_run is None or file.first_run != file.last_run:
        return False
    attempt = attempts.get(file.first_run)
    return attempt is None or file.path.rpartition("/")[2].startswith(f"{attempt}-")


def _staged(reports: Sequence[TaskReport], target: str) -> list[StagedFile]:
    return [file for report in reports for file in report.files if file.target == target]


def _as_table_file(file: StagedFile, run: int) -> TableFile:
    return TableFile(file.path, file.rows, file.bytes, dict(file.partition_values), run, run)


def _check_present(path: str, files: Sequence[TableFile]) -> None:
    folder = Folder(path)
    for file in files:
        facts = folder.facts(file.path)
        if facts is None or facts.bytes != file.bytes:
            message = (
                f"the changelog {path} was rewritten and its file {file.path} removed: "
                "`rewindow republish JOB` makes it again"
            )
            raise StorageError(message)


def _check_complete(path: str, target: str, chain: Sequence[CommittedRun], files: Sequence[TableFile]) -> None:
    found: dict[int, int] = {}
    for file in files:
        found[file.first_run or 0] = found.get(file.first_run or 0, 0) + file.rows
    for run in chain:
        total = run.commit.targets.get(target)
        due = total.rows if total else 0
        if found.get(run.spec.run, 0) != due:
            rows = found.get(run.spec.run, 0)
            message = (
                f"the changelog {path} has {rows} rows of run {run.spec.name}, committed were {due}: "
                f"it was altered by another hand. Publish it again: `rewindow republish {run.spec.job}`"
            )
            raise StorageError(message)
