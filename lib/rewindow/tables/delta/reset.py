"""Empty the tables of a job that starts over, in one commit each. History before that commit stays readable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from rewindow.control.plan.job_state import JobState
from rewindow.tables.delta.claims import check_owner, is_of_another, unknown_tables
from rewindow.tables.delta.commit import Retract, commit_files, open_table, table_path
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.retract import retract_all, retract_job
from rewindow.tables.shared.paths import EXPECTATIONS, METRICS, QUARANTINE, safe_name
from rewindow.tables.shared.publications import SHARED_TABLES, publication_id, reset_id


def finish_reset(warehouse: str, job: str, state: JobState) -> Iterator[str]:
    """Empty the tables that the last RESET names; yield the name of each commit before it.

    The commit also closes the application ids of the ended identity, so that no process that still publishes for it can
    add rows. Any process may do this at any time, repeatedly. Another job's table stays as it is, whatever the ledger says.
    """
    if state.reset is None:
        return
    app_id = reset_id(state.ledger)
    for path, targets in sorted(state.reset.tables.items()):
        root = table_path(warehouse, path)
        table = open_table(root)
        if table is None or is_of_another(table, job) or table.transaction_version(app_id):
            continue
        yield f"empty {path}"
        closes = _ids(state.reset.ledger, job, targets)
        commit_files(root, [], app_id=app_id, version=1, table=table, retract=_retract(path, job), closes=closes)


def unknown(warehouse: str, job: str, state: JobState, outputs: Sequence[str]) -> list[str]:
    """Return the tables with rows of the job that its ledger did not publish: of these outputs, stores, and shared tables.

    Raises `ConfigError` (78) for an output of another job.
    """
    for path in outputs:
        table = open_table(table_path(warehouse, path))
        check_owner(table_path(warehouse, path), table, job)
    stores = f"state/{safe_name(job, 'job')}"
    changelogs = {"/".join(name.split("/")[:2]) for name, _, _ in Folder(table_path(warehouse, stores)).files()}
    paths = [*outputs, *(f"{stores}/{name}" for name in sorted(changelogs)), METRICS, QUARANTINE, EXPECTATIONS]
    return unknown_tables(warehouse, job, state, paths)


def _retract(path: str, job: str) -> Retract:
    if path in SHARED_TABLES:
        return partial(retract_job, column=SHARED_TABLES[path], job=job)
    return retract_all


def _ids(ledger: str, job: str, targets: Mapping[str, int]) -> list[str]:
    return [
        publication_id(ledger, job, target, epoch)
        for target, epochs in sorted(targets.items())
        for epoch in range(1, epochs + 1)
    ]
