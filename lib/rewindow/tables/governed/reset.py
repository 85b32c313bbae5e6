"""Empty a catalog's tables of a job that starts over. Their history before that stays readable.

All publication epochs of a table share one application id, so the commit that empties it also closes that id: it has a version
that no publication has. Delta then skips a process that still publishes for the ended identity, or refuses its commit if both
are in flight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from pyspark.sql import SparkSession

from rewindow.control.plan.job_state import JobState
from rewindow.control.plan.spec import MAIN
from rewindow.engine.spark.spark_job import mapped
from rewindow.tables.governed.commit import CLOSED, exists, last_version
from rewindow.tables.governed.create_table import OWNER, check_owners, owner, properties_of
from rewindow.tables.governed.names import TableName
from rewindow.tables.governed.publish import is_published, land_once, own_rows
from rewindow.tables.shared.paths import EXPECTATIONS, QUARANTINE
from rewindow.tables.shared.publications import SHARED_TABLES, publication_id, reset_id


def is_finished(state: JobState) -> bool:
    """Return whether no table waits to be emptied: a run empties them before its COMMIT, so later commands need not look."""
    return state.reset is None or bool(state.committed)


def finish_reset(
    spark: SparkSession, job: str, state: JobState, branches: Iterable[str], name_of: Callable[[str], TableName]
) -> Iterator[str]:
    """Empty the tables that the last RESET names, and close their application ids; yield the name of each commit before it.

    Any process may do this at any time, repeatedly, until a run is committed. Another job's table stays as it is. ``branches``:
    those that the job ever had.
    """
    if state.reset is None:
        return
    owners = {owner(job, branch) for branch in branches}
    for path, targets in sorted(state.reset.tables.items()):
        ids = _ids(state, job, targets)
        if not ids or not exists(spark, name := name_of(path)):
            continue
        if path not in SHARED_TABLES and properties_of(spark, name).get(OWNER) not in owners:
            continue
        for app_id in ids:
            if last_version(spark, name, app_id) < CLOSED:
                yield f"empty {path}"
                empty = spark.createDataFrame([], spark.table(name.quoted).schema)
                land_once(spark, empty, name, app_id, CLOSED, replaces=own_rows(path, job))


def unknown_tables(
    spark: SparkSession, job: str, state: JobState, outputs: Sequence[str], name_of: Callable[[str], TableName]
) -> list[str]:
    """Return the tables with rows of the job that its ledger did not publish: of these outputs, and shared tables.

    Raises `ConfigError` (78) for an output of another job.
    """
    check_owners(spark, map(name_of, outputs), owner(job, MAIN))
    published = {(target, table.path) for run in state.committed for target, table in run.spec.binding.tables.items()}
    unknown = []
    for path in (*outputs, QUARANTINE, EXPECTATIONS):
        name = name_of(path)
        if not exists(spark, name):
            continue
        ids = [publication_id(state.ledger, job, target) for target, known_path in published if known_path == path]
        if any(last_version(spark, name, app_id) for app_id in ids):
            continue
        with mapped():
            if spark.table(name.quoted).where(own_rows(path, job)).limit(1).collect():
                unknown.append(path)
    return unknown


def _ids(state: JobState, job: str, targets: Mapping[str, int]) -> list[str]:
    """Return the application ids to close in a table: none in one that has no rows of its own, as the stores.

    Rows of a deleted ledger have ids that are no longer recorded anywhere.
    """
    was = state.reset.ledger if state.reset else ""
    if targets:
        return [publication_id(was, job, target) for target in sorted(targets) if is_published(target)]
    return [reset_id(state.ledger)]
