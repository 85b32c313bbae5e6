"""Find drift: published tables whose rows are no longer the published rows.

`republish` reads all rows and compares their digests with the COMMIT rows, so it also finds an UPDATE that changes no number
of rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from rewindow.control.plan.job_state import JobState
from rewindow.control.plan.spec import MAIN, add_digests
from rewindow.engine.spark.spark_calls import mapped
from rewindow.engine.worker.digest import RowsDigest
from rewindow.tables.governed.last_publications import KnownTables, is_on_its_way, lacking, ordinal_at
from rewindow.tables.governed.names import TableName
from rewindow.tables.governed.publish import own_rows, published_tables
from rewindow.tables.governed.run_rows import NO_RUN
from rewindow.tables.governed.table_history import exists
from rewindow.tables.shared.drift import Drift, difference_of
from rewindow.tables.shared.landed_outputs import NewEpochs
from rewindow.tables.shared.publications import Due, due_rows, net, publication_id


def find_drift(
    spark: SparkSession, job: str, state: JobState, branch: str, name_of: Callable[[str], TableName], look: KnownTables
) -> Iterator[Drift]:
    """Yield the tables of a branch that differ from what was published. Reads all rows of the tables."""
    for due in published_tables(state, branch):
        if not lacking(due, 0):
            continue
        name = name_of(due.table.path)
        if not exists(spark, name):
            yield Drift(due.target, str(name), "is gone")
            continue
        version = look(name, publication_id(state.ledger, job, due.target)).reached
        published = ordinal_at(due, version)
        if published > len(due.publications) or is_on_its_way(due, version):
            continue
        change = _difference(spark, job, due, name, published, state)
        if change is not None:
            yield Drift(due.target, str(name), change)


def difference_from_runs(spark: SparkSession, new: NewEpochs, name: TableName, look: KnownTables) -> str | None:
    """Describe how the rows of an output's new epochs differ from what was published; None if they are equal.

    Rows are read only if another writer has changed the table since the second-last publication.
    """
    (due,) = [due for due in published_tables(new.state, MAIN) if due.target == new.target]
    history = look(name, publication_id(new.state.ledger, new.job, due.target))
    if not new.runs or history.is_untouched or is_on_its_way(due, history.reached):
        return None
    published, runs = ordinal_at(due, history.reached), {run.spec.run for run in new.runs}
    return _difference(spark, new.job, due, name, published, new.state, runs)


def _difference(
    spark: SparkSession,
    job: str,
    due: Due,
    name: TableName,
    published: int,
    state: JobState,
    only: AbstractSet[int] | None = None,
) -> str | None:
    """Describe how a table's rows differ from what was published; None if they are equal.

    ``published``: the table's last ordinal. ``only``: the ids of the runs to compare; all runs if it is None.
    """
    columns = [column.name for column in due.table.columns]
    rows = spark.table(name.quoted).where(own_rows(due.table.path, job)).select(*columns)
    if only is not None:
        rows = rows.where(rows["_run"].isin(sorted(only)))
    with mapped():
        parts = rows.mapInArrow(_digests, "run long, rows long, digest string").collect()
    counts, digests = Counter[int](), dict[int, list[str]]()
    for part in parts:
        counts[part["run"]] += part["rows"]
        digests.setdefault(part["run"], []).append(part["digest"])
    wanted = due_rows(due, published)
    if only is not None:
        wanted = Counter({run: count for run, count in wanted.items() if run in only})
    if counts != wanted:
        return difference_of(wanted, counts, state)
    for run in net(due.publications[:published]).adds:
        number = run.spec.run
        if number in wanted and add_digests(digests[number]) != run.commit.targets[due.target].digest:
            return f"has other rows of run {run.spec.name}"
    return None


def _digests(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield, for each run, the number and the digest of its rows in these batches."""
    digests: dict[int, RowsDigest] = {}
    rows = Counter[int]()
    for batch in batches:
        runs = pc.fill_null(batch.column("_run"), NO_RUN)
        for run in pc.unique(runs).to_pylist():
            own = batch.filter(pc.equal(runs, run))
            digests.setdefault(run, RowsDigest()).update(own)
            rows[run] += own.num_rows
    columns = [list(rows), list(rows.values()), [digests[run].hexdigest() for run in rows]]
    yield pa.RecordBatch.from_arrays(
        [pa.array(columns[0], pa.int64()), pa.array(columns[1], pa.int64()), pa.array(columns[2], pa.string())],
        names=["run", "rows", "digest"],
    )
