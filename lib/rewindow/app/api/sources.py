"""Where the rows of the API come from: an output table, or a store, as of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.compute as pc

from rewindow.app.api.readable import INTERNAL, RUN, for_spark, readable, readable_frame
from rewindow.app.as_of import AsOf, as_of, stores_of
from rewindow.app.first_rows import topic_of
from rewindow.app.project import Project
from rewindow.control.plan.explain_holds import describe_holds, explain_holds
from rewindow.control.plan.spec import CHANGELOG, OUTPUT, TableSpec
from rewindow.errors import UsageError
from rewindow.storage.locations import is_uri
from rewindow.streams.serde.schema import OUTPUT_META
from rewindow.tables.delta.commit import table_path
from rewindow.tables.delta.content_hash import read_rows
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.arrow_schema import arrow_schema
from rewindow.tables.shared.dropped_branches import check_not_deleted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rewindow.tables.governed.warehouse import CatalogTables


@dataclass(frozen=True, slots=True)
class Source:
    """Rows of a job as of a run. Each call looks the run up again, so rows of a run that was rewound since are refused."""

    job: str
    branch: str
    run: str
    name: str
    """The topic of the output, or the name of the store."""

    def found(self, project: Project) -> AsOf:
        """Return the job as of the run. Raises `UsageError` (2) if the branch no longer has it."""
        return as_of(project, self.job, self.branch, self.run)


@dataclass(frozen=True, slots=True)
class OutputSource(Source):
    """The rows that the runs of a branch, up to one of them, wrote to an output table."""

    def most_rows(self, project: Project) -> int:
        """Return how many rows there are, from the ledger alone."""
        totals = [run.commit.targets.get(f"{OUTPUT}{self.name}") for run in self.found(project).runs]
        return sum(total.rows for total in totals if total)

    def arrow(self, project: Project) -> pa.Table:
        """Return the rows in the order of timestamp, record and key. Raises `StorageError` (74) if the table was altered."""
        table, keys, runs = self._table(project)
        rows = _rows(project, table, runs)
        own = [name for name in rows.column_names if not name.startswith("_")]
        order = [*(column.name for column in OUTPUT_META if column.name != RUN), *own]
        ordered = rows.sort_by([(name, "ascending") for name in order])
        return readable(ordered.drop_columns(list(INTERNAL)), keys, runs)

    def frame(self, project: Project, session: SparkSession | None) -> DataFrame:
        """Return the rows as a data frame, which Spark reads when it is used.

        Without a session, a table in a bucket is read in this process: the Spark that rewindow starts has no client for one.
        """
        used = session or project.spark
        table, keys, runs = self._table(project)
        if project.tables.version_of(table) is None or (session is None and is_uri(_location(project, table))):
            return used.createDataFrame(for_spark(self.arrow(project)))
        frame = _frame(project, table, used)
        return readable_frame(used, frame, keys, runs, [name for name in frame.columns if name not in INTERNAL])

    def _table(self, project: Project) -> tuple[TableSpec, Sequence[str], dict[int, str]]:
        """Return the checked table, its key columns, and the runs whose rows are asked for, by their row in the ledger."""
        found = self.found(project)
        if found.run not in found.branch.published_runs:
            held = explain_holds(describe_holds(found.state, self.branch))
            raise UsageError("\n".join([f"the rows of run {self.run} are not published.", *held]))
        check_not_deleted(self.job, found.branch, project.tables.version_of)
        project.tables.check_published(self.job, found.state, self.branch)
        table = found.branch.tables.get(f"{OUTPUT}{self.name}")
        if table is None:
            raise UsageError(f"run {self.run} of job {self.job!r} has no output {self.name!r}: it was added later")
        keys = found.run.spec.binding.keys.get(f"{OUTPUT}{self.name}", ())
        return table, keys, {run.spec.run: run.spec.name for run in found.runs}


@dataclass(frozen=True, slots=True)
class StoreSource(Source):
    """The entries of a store after a run."""

    def most_rows(self, project: Project) -> int:
        """Return how many rows of the changelog a restore reads, from the ledger alone."""
        found = self.found(project)
        totals = [run.commit.targets.get(f"{CHANGELOG}{self.name}") for run in found.state.basis(found.run.spec.run)]
        return sum(total.rows for total in totals if total)

    def arrow(self, project: Project) -> pa.Table:
        """Return the entries in the order of their keys. Raises `CheckpointError` (76) if `gc` forgot them."""
        stores = stores_of(project, self.found(project))
        return readable(stores.rows(self.name), stores.keys(self.name))

    def frame(self, project: Project, session: SparkSession | None) -> DataFrame:
        """Return the entries, which are read in this process, as a data frame."""
        return (session or project.spark).createDataFrame(for_spark(self.arrow(project)))


def output_source(project: Project, job: str, name: str | None, *, branch: str, run: str | None) -> OutputSource:
    """Return the rows of an output as of a run, by default the branch's last one that is published.

    ``name`` is the output's topic or table; None stands for the only output. Raises `UsageError` (2) for an unknown output or
    run.
    """
    config = project.job_config(job)
    topics = list(config.outputs)
    topic = topic_of(config, name) if name is not None else topics[0] if len(topics) == 1 else None
    if topic is None:
        what = f"job {job!r} has no output {name!r}" if name is not None else f"job {job!r} has {len(topics)} outputs"
        raise UsageError(f"{what}: name one of {', '.join(topics) or 'none'}")
    found = as_of(project, job, branch, run)
    published = found.branch.published_runs
    last = published[-1] if run is None and published else found.run
    return OutputSource(job, branch, last.spec.name, topic)


def store_source(project: Project, job: str, store: str, *, branch: str, run: str | None) -> StoreSource:
    """Return the entries of a store after a run, by default the branch's last one.

    Raises `UsageError` (2) for an unknown store or run, `CheckpointError` (76) if `gc` forgot the state after the run.
    """
    found = as_of(project, job, branch, run)
    stores_of(project, found).keys(store)
    return StoreSource(job, branch, found.run.spec.name, store)


def _rows(project: Project, table: TableSpec, runs: Mapping[int, str]) -> pa.Table:
    """Return the stored rows of some runs."""
    if project.tables.version_of(table) is None:
        return arrow_schema(table.columns).empty_table()
    if isinstance(project.tables, DeltaTables):
        return read_rows(_location(project, table), where=pc.field(RUN).isin(pa.array(list(runs), pa.int64())))
    from rewindow.engine.spark.errors import mapped  # noqa: PLC0415 - Spark only where it is needed

    with mapped():
        frame = _frame(project, table, project.spark)
        return frame.where(frame[RUN].isin(list(runs))).toArrow()


def _frame(project: Project, table: TableSpec, session: SparkSession) -> DataFrame:
    if isinstance(project.tables, DeltaTables):
        return session.read.format("delta").load(_location(project, table))
    return session.table(cast("CatalogTables", project.tables).name_of(table.path).quoted)


def _location(project: Project, table: TableSpec) -> str:
    """Return the folder or URI of a table; empty if a catalog governs it."""
    return table_path(project.tables.warehouse, table.path) if isinstance(project.tables, DeltaTables) else ""
