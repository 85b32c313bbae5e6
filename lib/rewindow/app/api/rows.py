"""The rows of an output table or a store as of a run, for Arrow, pandas and Spark. Times are in UTC. Runs are shown by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rewindow.app.api.calls import Context
from rewindow.app.api.results import lines, preview
from rewindow.app.open_project import OpenProject
from rewindow.app.output_rows import topic_of
from rewindow.app.run_references import AsOf, as_of
from rewindow.app.times import time_columns
from rewindow.contracts.instants import END_OF_TIME_MS
from rewindow.control.health.holds import describe_holds, explain_holds
from rewindow.control.health.phrases import counted
from rewindow.control.plan.spec import CHANGELOG, MAIN, OUTPUT, TableSpec
from rewindow.errors import Lines, UsageError
from rewindow.storage.locations import is_uri
from rewindow.streams.serde.schema import OUTPUT_META
from rewindow.tables.shared.arrow_tables import arrow_schema, current_rows
from rewindow.tables.shared.warehouse import check_not_deleted

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession


_SHOWN, _MOST_READ = 10, 100_000
"""A notebook shows at most the first number of rows. If there are more rows than the second number, it shows none."""
RUN = "_run"
INTERNAL = ("_epoch", "_partition", "_offset")
"""Columns of output tables that only rewindow needs: the epoch, partition and offset of each row."""
_TIME = pa.timestamp("ms", tz="UTC")


@dataclass(frozen=True, slots=True, repr=False)
class Rows:
    """Rows of a job as of one of its runs. Reading them again gives the same rows, even after further runs.

    Times in rewindow's own columns (``_timestamp``, the bounds of windows) are timestamps in UTC. They are null if the time is
    unknown or the end of time. ``_run`` is the name of the run that wrote the row. All other columns are as they are stored. If
    the run was rewound in the meantime, the methods raise `UsageError` (2).
    """

    _source: OutputSource | StoreSource = field(repr=False)
    _context: Context = field(repr=False, compare=False)

    @property
    def job(self) -> str:
        """The name of the job."""
        return self._source.job

    @property
    def branch(self) -> str:
        """The name of the branch."""
        return self._source.branch

    @property
    def run(self) -> str:
        """The name of the run."""
        return self._source.run

    @property
    def name(self) -> str:
        """The topic of the output, or the name of the store."""
        return self._source.name

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table, in the same order in each call. They must fit in this process's memory."""
        with self._context.command() as (project, _):
            return self._source.arrow(project)

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a pandas data frame. Whole numbers and booleans get the pandas types that have nulls."""
        return to_pandas(self.to_arrow())

    def to_spark(self, session: SparkSession | None = None) -> DataFrame:
        """Return the rows as a Spark data frame, in no particular order.

        ``session``: a Spark session that can read the warehouse's Delta tables; default: the session of the project's target,
        which is started on first use. Spark reads the rows of an output when the frame is used. The rows of a store pass through
        this process.
        """
        from rewindow.engine.spark.spark_calls import mapped  # noqa: PLC0415 - Spark only where it is needed

        with self._context.command() as (project, _), mapped():
            return self._source.frame(project, session)

    def create_view(self, name: str, session: SparkSession | None = None) -> DataFrame:
        """Register the rows as a temporary view of a Spark session, replacing a view of that name. Return the data frame.

        The view keeps showing the rows as of this run.
        """
        from rewindow.engine.spark.spark_calls import mapped  # noqa: PLC0415 - Spark only where it is needed

        frame = self.to_spark(session)
        with self._context.command(), mapped():
            frame.createOrReplaceTempView(name)
        return frame

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} of job {self.job!r} as of {_as_of(self)}>"

    def _repr_html_(self) -> str:
        title = f"{self.name} of {self.job} as of {_as_of(self)}"
        with self._context.command() as (project, _):
            most = self._source.most_rows(project)
        if most > _MOST_READ:
            return lines([f"{title}: up to {counted(most, 'row')}. `to_spark()` reads them where they are."])
        rows = self.to_arrow()
        shown = "" if rows.num_rows <= _SHOWN else f", of which the first {_SHOWN} are shown"
        return preview(f"{title}: {counted(rows.num_rows, 'row')}{shown}", rows.slice(0, _SHOWN))


class Output(Rows):
    """The rows of an output table as of a run: all rows that the branch has published up to and including that run.

    The column ``_run`` names the run that wrote a row: filter by it to see the rows of one run.
    """

    _source: OutputSource

    def current(self) -> pa.Table:
        """Return the last row of each key as of the run, without deleted keys.

        If the output is a table of the topology, these rows are its content.
        """
        with self._context.command() as (project, _):
            return self._source.arrow(project, is_current=True)


class State(Rows):
    """The entries of a store as of a run."""

    __slots__ = ()


def _as_of(rows: Rows) -> str:
    return rows.run if rows.branch == MAIN else f"{rows.run} on branch {rows.branch}"


@dataclass(frozen=True, slots=True)
class Source:
    """Where the rows of a job as of a run come from. Each call looks the run up again and refuses it if it was rewound."""

    job: str
    branch: str
    run: str
    name: str
    """The topic of the output, or the name of the store."""

    def as_of(self, project: OpenProject) -> AsOf:
        """Return the job as of the run. Raises `UsageError` (2) if the branch no longer has the run."""
        return as_of(project, self.job, self.branch, self.run)


@dataclass(frozen=True, slots=True)
class OutputSource(Source):
    """The rows that a branch wrote to an output table up to and including one run."""

    def most_rows(self, project: OpenProject) -> int:
        """Return the number of rows. Only the ledger is read."""
        return sum(run.commit.rows_in(f"{OUTPUT}{self.name}") for run in self.as_of(project).runs)

    def arrow(self, project: OpenProject, *, is_current: bool = False) -> pa.Table:
        """Return the rows, or with ``is_current`` only the `current_rows`, in the order of timestamp, record and key.

        Raises `StorageError` (74) if the table was altered.
        """
        table, keys, runs = self._table(project)
        rows = _rows(project, table, runs)
        if is_current:
            rows = current_rows(rows, keys)
        own = [name for name in rows.column_names if not name.startswith("_")]
        order = [*(column.name for column in OUTPUT_META if column.name != RUN), *own]
        ordered = rows.sort_by([(name, "ascending") for name in order])
        return readable(ordered.drop_columns(list(INTERNAL)), keys, runs)

    def frame(self, project: OpenProject, session: SparkSession | None) -> DataFrame:
        """Return the rows as a data frame. Spark reads them when the frame is used."""
        used = session or project.spark
        table, keys, runs = self._table(project)
        # The Spark that rewindow starts has no client for buckets, so this process reads tables in a bucket.
        if project.tables.version_of(table) is None or (session is None and is_uri(project.tables.location_of(table))):
            return used.createDataFrame(for_spark(self.arrow(project)))
        frame: DataFrame = project.tables.frame(used, table)
        return readable_frame(used, frame, keys, runs, [name for name in frame.columns if name not in INTERNAL])

    def _table(self, project: OpenProject) -> tuple[TableSpec, Sequence[str], dict[int, str]]:
        """Return the checked table, its key columns, and the runs up to this one, as a mapping from ledger row to run name."""
        at_run = self.as_of(project)
        if at_run.run not in at_run.branch.published_runs:
            held = explain_holds(describe_holds(at_run.state, self.branch))
            raise UsageError(
                "run-not-published",
                "the rows of run {run} are not published.{holds}",
                run=self.run,
                holds=Lines(["", *held]),
            )
        check_not_deleted(self.job, at_run.branch, project.tables.version_of)
        project.tables.check_published(self.job, at_run.state, self.branch)
        table = at_run.branch.tables.get(f"{OUTPUT}{self.name}")
        if table is None:
            raise UsageError(
                "output-added-later",
                "run {run} of job {job!r} has no output {output!r}: it was added later",
                run=self.run,
                job=self.job,
                output=self.name,
            )
        keys = at_run.run.spec.binding.keys.get(f"{OUTPUT}{self.name}", ())
        return table, keys, {run.spec.run: run.spec.name for run in at_run.runs}


@dataclass(frozen=True, slots=True)
class StoreSource(Source):
    """The source of the entries of a store as of a run."""

    def most_rows(self, project: OpenProject) -> int:
        """Return how many changelog rows a restore reads. Only the ledger is read."""
        at_run = self.as_of(project)
        basis = at_run.state.basis(at_run.run.spec.run)
        return sum(run.commit.rows_in(f"{CHANGELOG}{self.name}") for run in basis)

    def arrow(self, project: OpenProject) -> pa.Table:
        """Return the entries in the order of their keys. Raises `CheckpointError` (76) if `gc` has deleted them."""
        stores = self.as_of(project).stores(project.tables)
        return readable(stores.rows(self.name), stores.keys(self.name))

    def frame(self, project: OpenProject, session: SparkSession | None) -> DataFrame:
        """Return the entries as a data frame. This process reads them, not Spark."""
        return (session or project.spark).createDataFrame(for_spark(self.arrow(project)))


def output_source(project: OpenProject, job: str, name: str | None, *, branch: str, run: str | None) -> OutputSource:
    """Return the source of an output's rows as of a run, by default the branch's last published run.

    ``name`` is the output's topic or table. None means the job's only output. Raises `UsageError` (2) for an unknown output or
    run.
    """
    config = project.job_config(job)
    topics = list(config.outputs)
    topic = topic_of(config, name) if name is not None else topics[0] if len(topics) == 1 else None
    if topic is None:
        # A table's name finds its output everywhere, also if a topic has the name of the job.
        known = ", ".join(output.table for output in config.outputs.values()) or "none"
        if name is not None:
            raise UsageError(
                "output-unknown",
                "job {job!r} has no output {output!r}: name one of {outputs}",
                job=job,
                output=name,
                outputs=known,
            )
        raise UsageError(
            "output-not-named",
            "job {job!r} has {count} outputs: name one of {outputs}",
            job=job,
            count=len(topics),
            outputs=known,
        )
    at_run = as_of(project, job, branch, run)
    published = at_run.branch.published_runs
    last = published[-1] if run is None and published else at_run.run
    return OutputSource(job, branch, last.spec.name, topic)


def store_source(project: OpenProject, job: str, store: str, *, branch: str, run: str | None) -> StoreSource:
    """Return the source of a store's entries as of a run, by default the branch's last run.

    Raises `UsageError` (2) for an unknown store or run, `CheckpointError` (76) if `gc` has deleted the state after the run.
    """
    at_run = as_of(project, job, branch, run)
    at_run.stores(project.tables).keys(store)
    return StoreSource(job, branch, at_run.run.spec.name, store)


def _rows(project: OpenProject, table: TableSpec, runs: Mapping[int, str]) -> pa.Table:
    """Return the stored rows that these runs wrote."""
    if project.tables.version_of(table) is None:
        return arrow_schema(table.columns).empty_table()
    return project.tables.rows_of_runs(table, runs)


def readable(rows: pa.Table, keys: Sequence[str], runs: Mapping[int, str] | None = None) -> pa.Table:
    """Return rows with timestamps in rewindow's own columns of times, and with the name of the run in ``_run``.

    ``keys``: the key columns. They show whether a column is the bound of a window, or only a field with the name of a bound.
    ``runs`` maps each ledger row to the run's name. With None, ``_run`` is unchanged. A time that is unknown, or the end of
    time, becomes null.
    """
    times, shown = time_columns(keys), {}
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        if name in times and pa.types.is_int64(column.type):
            is_known = pc.and_(pc.greater_equal(column, 0), pc.less(column, END_OF_TIME_MS))
            shown[name] = pc.if_else(is_known, column, pa.scalar(None, pa.int64())).cast(_TIME)
        elif name == RUN and runs is not None:
            indexes = pc.index_in(column, pa.array(list(runs), pa.int64()))
            shown[name] = pa.array(list(runs.values()), pa.string()).take(indexes.combine_chunks())
        else:
            shown[name] = column
    return pa.table(shown)


def to_pandas(rows: pa.Table) -> Any:
    """Return rows as a pandas data frame. Whole numbers stay whole and exact, even in columns with nulls."""
    import pandas as pd  # noqa: PLC0415 - it takes a second, and only this function needs it

    exact = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    return rows.to_pandas(types_mapper=exact.get)


def readable_frame(
    session: SparkSession, frame: DataFrame, keys: Sequence[str], runs: Mapping[int, str], columns: Sequence[str]
) -> DataFrame:
    """Return the ``columns`` of a Spark data frame as `readable` shows them, and only the rows that ``runs`` wrote."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - Spark's own convention; Spark only where it is needed

    names = session.createDataFrame([(run, name) for run, name in runs.items()], "`_id` long, `_name` string")
    joined = frame.join(F.broadcast(names), F.col(RUN) == F.col("_id"))
    times, shown = time_columns(keys), []
    for name in columns:
        column = F.col(f"`{name}`")
        if name in times and dict(frame.dtypes)[name] == "bigint":
            is_known = (column >= 0) & (column < END_OF_TIME_MS)
            column = F.timestamp_millis(F.when(is_known, column))
        shown.append((F.col("_name") if name == RUN else column).alias(name))
    return joined.select(*shown)


def for_spark(rows: pa.Table) -> pa.Table:
    """Return rows with times in microseconds, the only unit that Spark has."""
    fields = [
        field.with_type(pa.timestamp("us", tz="UTC")) if pa.types.is_timestamp(field.type) else field
        for field in rows.schema
    ]
    return rows.cast(pa.schema(fields))
