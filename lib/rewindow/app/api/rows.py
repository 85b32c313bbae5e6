"""The rows of an output table or of a store, as Arrow, pandas or Spark have them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rewindow.app.api.context import Context
from rewindow.app.api.readable import to_pandas
from rewindow.app.api.show import preview
from rewindow.app.api.sources import OutputSource, StoreSource
from rewindow.control.plan.spec import MAIN
from rewindow.report.html import Html, tag
from rewindow.report.text import counted

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_SHOWN, _MOST_READ = 10, 100_000
"""A notebook shows so many rows, and reads at most so many for that."""


@dataclass(frozen=True, slots=True, repr=False)
class Rows:
    """Rows of a job as of one of its runs: read again, they are the same, whatever ran meanwhile.

    Times that rewindow keeps (``_timestamp``, the bounds of windows) are timestamps in UTC, null if they are unknown or the end
    of time. ``_run`` is the name of the run that wrote a row. All other columns are as they are stored. The methods raise
    `UsageError` (2) if the run was rewound meanwhile.
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
        """Return the rows as an Arrow table, in an order that does not change. They must fit in this process's memory."""
        with self._context.command() as (project, _):
            return self._source.arrow(project)

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a pandas data frame; whole numbers and truths have pandas' types with nulls."""
        return to_pandas(self.to_arrow())

    def to_spark(self, session: SparkSession | None = None) -> DataFrame:
        """Return the rows as a Spark data frame, in no particular order.

        ``session``: one that reads the warehouse's Delta tables. Default: that of the project's target, which is started on first
        use. Spark reads the rows of an output when it needs them; those of a store pass through this process.
        """
        from rewindow.engine.spark.errors import mapped  # noqa: PLC0415 - Spark only where it is needed

        with self._context.command() as (project, _), mapped():
            return self._source.frame(project, session)

    def create_view(self, name: str, session: SparkSession | None = None) -> DataFrame:
        """Register the rows as a temporary view of a Spark session, replacing one of that name; return it.

        The view keeps showing the rows as of this run.
        """
        from rewindow.engine.spark.errors import mapped  # noqa: PLC0415 - Spark only where it is needed

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
            return tag("p", f"{title}: up to {counted(most, 'row')}. `to_spark()` reads them where they are.")
        rows = self.to_arrow()
        shown = "" if rows.num_rows <= _SHOWN else f", of which the first {_SHOWN} are shown"
        return Html(preview(f"{title}: {counted(rows.num_rows, 'row')}{shown}", rows.slice(0, _SHOWN)))


class Output(Rows):
    """The rows of an output table as of a run: all that the branch's runs up to it have published.

    A row that a later run added has another ``_run``; filter by it to see what one run wrote.
    """

    __slots__ = ()


class State(Rows):
    """The entries of a store after a run."""

    __slots__ = ()


def _as_of(rows: Rows) -> str:
    return rows.run if rows.branch == MAIN else f"{rows.run} on branch {rows.branch}"
