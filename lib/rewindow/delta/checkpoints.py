"""What a run goes on from: the small state of each task, and the changelog files of each store, in the runs' order.

State as of a run is the last row a key among the runs of its lineage. Nothing is ever retracted from a changelog:
which files count is decided here, by the runs that the ledger has in the chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rewindow.core.staging import PARTITION, StagedFile, TaskReport
from rewindow.delta.contents import TableFile, table_files
from rewindow.delta.files import Folder
from rewindow.delta.publish import Reports
from rewindow.delta.tables import open_table, table_path
from rewindow.errors import StorageError
from rewindow.plan.lineage import CommittedRun
from rewindow.plan.stages import Restored

CHANGELOG = "changelog/"
"""How the targets of changelogs begin."""


@dataclass(frozen=True, slots=True)
class Checkpoint(Restored):
    """What a run goes on from, and what it costs to read: ``rows`` and ``bytes`` of changelog files."""

    rows: int = 0
    bytes: int = 0


def find_checkpoint(warehouse: str, chain: Sequence[CommittedRun], reports: Reports) -> Checkpoint:
    """Return what goes on from the last run of a chain; an empty one for an empty chain.

    Everything in the chain must be published. Raises `StorageError` (74) if a changelog lacks rows that were committed.
    """
    if not chain:
        return Checkpoint({}, {})
    binding = chain[-1].spec.binding
    states = {(report.stage, report.partition): report.state for report in reports(chain[-1])}
    stores: dict[tuple[str, int], tuple[str, ...]] = {}
    read: list[TableFile] = []
    for store in sorted(binding.stores):
        target = f"{CHANGELOG}{store}"
        path = table_path(warehouse, binding.tables[target].path)
        files = changelog_files(path, target, chain, reports)
        for partition in sorted({int(file.partition[PARTITION]) for file in files}):
            own = [file.path for file in files if int(file.partition[PARTITION]) == partition]
            stores[store, partition] = tuple(f"{path}/{name}" for name in own)
        read += files
    return Checkpoint(states, stores, sum(file.rows for file in read), sum(file.bytes for file in read))


def changelog_files(path: str, target: str, chain: Sequence[CommittedRun], reports: Reports) -> list[TableFile]:
    """Return a changelog's files of the runs of a chain, in the order of the runs: later rows of a key win.

    Raises `StorageError` (74) if they lack rows that were committed, or have more.
    """
    chain = _since_it_is_there(chain, target)
    table = open_table(path)
    listed = table_files(path, table) if table else []
    runs = {run.spec.run for run in chain}
    if any(file.first_run is None or file.first_run != file.last_run for file in listed):
        # Somebody merged files of several runs (OPTIMIZE): what was staged still tells them apart, until VACUUM.
        own = [_as_table_file(file, run.spec.run) for run in chain for file in _staged(reports(run), target)]
        _check_present(path, own)
    else:
        own = [file for file in listed if file.first_run in runs]
    _check_complete(path, target, chain, own)
    return sorted(own, key=lambda file: (file.first_run or 0, file.path))


def _since_it_is_there(chain: Sequence[CommittedRun], target: str) -> Sequence[CommittedRun]:
    """Leave out the runs before a store was put in again: what was taken out begins empty."""
    gone = [number for number, run in enumerate(chain, start=1) if target not in run.spec.binding.tables]
    return chain[gone[-1] :] if gone else chain


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
                f"the changelog {path} was rewritten and its file {file.path} removed: put it back from a copy, or "
                "replay the job in a new lineage"
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
                "it was altered by another hand. Put its files back from a copy, or replay the job in a new lineage "
                f"(`rewindow run {run.spec.job} --lineage NAME`)"
            )
            raise StorageError(message)
