"""The expectations of a job's outputs.

When the job is bound, they are checked against the columns of the outputs. In each run, the new rows are checked against them.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from rewindow.config.job import JobConfig
from rewindow.config.load import at
from rewindow.config.yaml_text import did_you_mean
from rewindow.contracts.expectations import MOST_EXAMPLES, NEW_ROWS, PREVIOUS_ROWS, Expectation, Kind, Observation
from rewindow.contracts.staged_files import TaskReport
from rewindow.control.health.inputs import records_from_feed
from rewindow.control.plan.job_state import CommittedRun, JobState
from rewindow.control.plan.spec import OUTPUT, JobBinding, RunSpec
from rewindow.control.run import StagedRows
from rewindow.errors import ConfigError, ExpectationError, LimitError
from rewindow.streams.metrics import LATE_RECORD_DROP, sum_by_reason
from rewindow.streams.serde.schema import Column
from rewindow.streams.serde.types_to_columns import LogShapes, bind_sink
from rewindow.streams.topology import Topology
from rewindow.tables.delta.row_queries import QueryError, RowQueries, SlowQueryError, as_text, check_query, row_queries
from rewindow.tables.shared.arrow_tables import arrow_schema
from rewindow.tables.shared.expectation_checks import (
    bounds_of,
    counted,
    examples_of,
    needed_columns,
    observation,
    observe_rows,
)


@dataclass(frozen=True, slots=True)
class OutputExpectations:
    """The expectations of one output, its columns, and the names of its key columns, including the columns of the window."""

    topic: str
    expectations: tuple[Expectation, ...]
    columns: tuple[Column, ...]
    keys: tuple[str, ...]


class JobExpectations:
    """Checks the new rows of a job's outputs. See `control.run.Evaluator`."""

    def __init__(self, outputs: Sequence[OutputExpectations]) -> None:
        """Bind to the outputs that have expectations."""
        self._outputs = tuple(outputs)

    def observe(
        self, spec: RunSpec, state: JobState, reports: Sequence[TaskReport], rows: StagedRows
    ) -> list[Observation]:
        """Return one observation per expectation about the rows of an attempt, in the order of the job's file."""
        observations = []
        for output in self._outputs:
            observed = _observed(output, spec, state, reports, rows)
            observations += [observed[expectation.name] for expectation in output.expectations]
        return observations


def bound_expectations(
    root: Path, config: JobConfig, binding: JobBinding, topology: Topology, logs: LogShapes
) -> JobExpectations | None:
    """Return a job's expectations; None if no output has any.

    Raises `ConfigError` (78) with file and line for an unknown column, a value with a wrong type, or a query that fails.
    """
    sinks = {sink.topic: sink for part in topology.sub_topologies() for sink in part.sinks if not sink.is_internal}
    outputs = []
    for topic, output in config.outputs.items():
        if output.expect and topic in sinks:
            columns, keys = binding.tables[OUTPUT + topic].columns, bind_sink(sinks[topic], logs)[0].names
            checked = []
            for index, expectation in enumerate(config.expectations_of(topic)):
                with at(root, "jobs", config.job, "outputs", topic, "expect", index):
                    checked.append(_checked(expectation, {column.name: column.type for column in columns}, keys))
                    if expectation.kind is Kind.SQL:
                        _check_query(expectation, columns)
            outputs.append(OutputExpectations(topic, tuple(checked), columns, keys))
    return JobExpectations(outputs) if outputs else None


def _checked(expectation: Expectation, types: Mapping[str, str], keys: Sequence[str]) -> Expectation:
    """Return an expectation whose bounds and values have the type of their column.

    Raises `ConfigError` (78) if they do not fit.
    """
    for name in expectation.columns:
        if name not in types:
            hint = did_you_mean(name, list(types))
            raise ConfigError(
                "expectation-column-unknown",
                "{expectation}: output {output!r} has no column {column!r}: {hint}It has {columns}",
                expectation=expectation.name,
                output=expectation.output,
                column=name,
                hint=hint,
                columns=", ".join(types),
            )
    if expectation.kind is Kind.UNIQUE and not (expectation.columns or keys):
        raise ConfigError(
            "unique-without-columns",
            "output {output!r} has no key columns: list the columns that no two rows share",
            output=expectation.output,
        )
    if expectation.kind not in (Kind.RANGE, Kind.VALUES):
        return expectation
    column = expectation.columns[0]
    if types[column] == "binary":
        raise ConfigError(
            "expectation-on-binary",
            "{column!r} is binary, so it has neither a range nor allowed values: use `sql`",
            column=column,
        )
    typed = partial(_typed, column, types[column])
    if expectation.kind is Kind.VALUES:
        return replace(expectation, allowed=tuple(map(typed, expectation.allowed)))
    if types[column] == "boolean":
        raise ConfigError(
            "expectation-range-on-boolean", "{column!r} is boolean, so it has no range: use `values`", column=column
        )
    low, high = (None if bound is None else typed(bound) for bound in (expectation.minimum, expectation.maximum))
    if low is not None and high is not None and low > high:
        raise ConfigError(
            "expectation-bounds-swapped",
            "{expectation}: min {minimum} is above max {maximum}: swap them",
            expectation=expectation.name,
            minimum=low,
            maximum=high,
        )
    return replace(expectation, minimum=low, maximum=high)


def _typed(column: str, column_type: str, value: Any) -> Any:
    """Return a value of the job's file, converted to the type of the column.

    Raises `ConfigError` (78) if the value does not fit the type.
    """
    try:
        typed = _converted(column_type, value)
        pa.scalar(typed, arrow_schema([Column(column, column_type)]).field(0).type)
    except (ValueError, OverflowError, InvalidOperation, pa.ArrowException) as error:
        raise ConfigError(
            "expectation-value-invalid",
            "{value!r} is not a value of column {column!r}, which is {type}",
            value=value,
            column=column,
            type=column_type,
        ) from error
    return typed


def _converted(column_type: str, value: Any) -> Any:
    if isinstance(value, bool) is not (column_type == "boolean"):
        raise ValueError(value)
    if column_type == "long":
        return int(value)
    if column_type == "double" and not math.isfinite(float(value)):
        raise ValueError(value)
    if column_type == "double":
        return float(value)
    if column_type.startswith("decimal"):
        return Decimal(value)
    return value if column_type == "boolean" else str(value)


def _check_query(expectation: Expectation, columns: Sequence[Column]) -> None:
    try:
        tables = {NEW_ROWS: _new(columns), PREVIOUS_ROWS: arrow_schema(columns)}
        check_query(expectation.query, tables, expectation.timeout_ms)
    except SlowQueryError as error:
        raise ConfigError(
            "expectation-query-endless",
            "{expectation}: on tables without rows, this query did not end within {limit}: limit the rows that the "
            "query itself generates",
            expectation=expectation.name,
            limit=error.limit,
        ) from error
    except QueryError as error:
        raise ConfigError(
            "expectation-query-invalid",
            "{expectation}: this query cannot be used: {reason}",
            expectation=expectation.name,
            reason=str(error),
        ) from error


def _new(columns: Sequence[Column]) -> pa.Schema:
    """Return the columns of `NEW_ROWS`.

    ``_run`` is left out, because its value differs between attempts of the same run.
    """
    return arrow_schema([column for column in columns if column.name != "_run"])


def _observed(
    output: OutputExpectations, spec: RunSpec, state: JobState, reports: Sequence[TaskReport], rows: StagedRows
) -> dict[str, Observation]:
    """Return the observations of an output, by the name of the expectation."""
    target = OUTPUT + output.topic
    on_values = [
        expectation for expectation in output.expectations if expectation.kind not in (Kind.ROWS, Kind.LATE, Kind.SQL)
    ]
    observations = []
    if on_values:
        names = needed_columns(on_values, output.keys)
        batches = rows.staged_batches(spec, reports, target, names)
        observations += observe_rows(on_values, output.columns, output.keys, batches)
    queries = [expectation for expectation in output.expectations if expectation.kind is Kind.SQL]
    if queries:
        parent = None if spec.parent is None else state.find_run(spec.parent)
        observations += _queried(queries, output, target, partial(rows.staged_batches, spec, reports), parent, rows)
    observations += [
        _counted(expectation, target, reports) for expectation in output.expectations if expectation.kind is Kind.ROWS
    ]
    observations += [
        _late(expectation, spec, reports) for expectation in output.expectations if expectation.kind is Kind.LATE
    ]
    return {observed.name: observed for observed in observations}


def _queried(
    expectations: Sequence[Expectation],
    output: OutputExpectations,
    target: str,
    staged: Any,
    parent: CommittedRun | None,
    rows: StagedRows,
) -> Iterator[Observation]:
    """Yield one observation per query. ``parent`` is the preceding run of the branch, whose rows are `PREVIOUS_ROWS`."""
    new, before = _new(output.columns), arrow_schema(output.columns)
    table = parent.spec.binding.tables.get(target) if parent else None
    if table is not None:
        before = arrow_schema(table.columns)

    def previous() -> Iterator[pa.RecordBatch]:
        return rows.run_batches(parent, target, before.names) if parent and table else iter(())

    tables = {NEW_ROWS: (new, lambda: staged(target, new.names)), PREVIOUS_ROWS: (before, previous)}
    with row_queries(tables) as queries:
        for expectation in expectations:
            yield _returned(expectation, queries)


def _returned(expectation: Expectation, queries: RowQueries) -> Observation:
    """Return how many rows a query returns, with examples."""
    count, examples = 0, list[str]()
    try:
        for batch in queries.rows(expectation.query, expectation.timeout_ms):
            count += batch.num_rows
            names = batch.schema.names
            rows = examples_of(pa.table([as_text(column) for column in batch.columns], names=names))
            # A query may return rows in any order, so the examples are the first rows when sorted as text.
            examples = heapq.nsmallest(MOST_EXAMPLES, [*examples, *rows])
    except SlowQueryError as error:
        raise LimitError(
            "expectation-query-too-slow",
            "{output}: {expectation}: the query did not end within {limit} on the rows of this run. Nothing was committed: make "
            "it simpler, or set a longer `timeout:` for it",
            output=expectation.output,
            expectation=expectation.name,
            limit=error.limit,
        ) from error
    except QueryError as error:
        raise ExpectationError(
            "expectation-query-failed",
            "{output}: {expectation}: the query fails on the rows of this run: {reason}",
            output=expectation.output,
            expectation=expectation.name,
            reason=str(error),
        ) from error
    return observation(expectation, count, f"the query returned {counted(count, 'row')}", "none", examples)


def _counted(expectation: Expectation, target: str, reports: Sequence[TaskReport]) -> Observation:
    rows = sum(file.rows for report in reports for file in report.files if file.target == target)
    is_outside = (expectation.minimum is not None and rows < expectation.minimum) or (
        expectation.maximum is not None and rows > expectation.maximum
    )
    return observation(expectation, int(is_outside), counted(rows, "row"), bounds_of(expectation))


def _late(expectation: Expectation, spec: RunSpec, reports: Sequence[TaskReport]) -> Observation:
    """Return the share of late records of the node that dropped most late records. `rewindow status` counts in the same way."""
    records = sum(records_from_feed(spec.binding, report.consumed) for report in reports)
    by_node: dict[str, list[Mapping[str, Any]]] = {}
    for report in reports:
        for row in report.metrics:
            by_node.setdefault(row["node"], []).append(row)
    late = max((sum(sum_by_reason(rows, LATE_RECORD_DROP).values()) for rows in by_node.values()), default=0)
    share = min(1.0, late / records) if records else 0.0
    observed = f"{share:.4%} of {records} records were late ({late})"
    return observation(expectation, int(share > expectation.maximum), observed, f"at most {expectation.maximum:.4%}")
