"""The rows of a run on hold, which are in no table yet, for people who decide whether to publish it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from rewindow.app.first_rows import INTERNAL, find_outputs
from rewindow.app.open_project import OpenProject
from rewindow.control.health.job_health import Hold, describe_holds
from rewindow.control.health.phrases import command_words
from rewindow.control.plan.job_state import CommittedRun
from rewindow.control.plan.spec import OUTPUT, TableSpec
from rewindow.errors import NothingFoundError, StorageError
from rewindow.streams.serde.schema import OUTPUT_META
from rewindow.tables.shared.arrow_tables import arrow_schema
from rewindow.tables.shared.drift import repeat_run
from rewindow.tables.shared.paths import safe_name
from rewindow.tables.shared.state_query import as_rows
from rewindow.tables.shared.warehouse import Warehouse


def held_rows(project: OpenProject, name: str, *, branch: str, limit: int, last: bool) -> Iterator[dict[str, Any]]:
    """Yield each output that ``name`` names, a job or a table, with rows of the run on hold that publishing waits for.

    They are as those of `output_rows`; ``hold`` describes the run. Raises `UsageError` (2) for a name that no job and no output
    has, `NothingFoundError` (1) if no run is on hold, `StorageError` (74) if what the run staged is gone.
    """
    config, topics = find_outputs(project, name)
    state = project.tables.state(config.job)
    holds = describe_holds(state, safe_name(branch, "branch"))
    if not holds:
        shows = f"`rewindow head {command_words(config.job, branch)}` shows what is published"
        raise NothingFoundError(
            "run-on-hold-missing",
            "no run of {job} is on hold on branch {branch}: {hint}",
            job=config.job,
            branch=branch,
            hint=shows,
        )
    run = state.on_hold(branch)[0]
    for topic in topics:
        if (table := run.spec.binding.tables.get(f"{OUTPUT}{topic}")) is not None:
            yield _output(project.tables, run, topic, table, holds[0], branch, limit, last=last)


def _output(
    tables: Warehouse,
    run: CommittedRun,
    topic: str,
    table: TableSpec,
    hold: Hold,
    branch: str,
    limit: int,
    *,
    last: bool,
) -> dict[str, Any]:
    target, names = f"{OUTPUT}{topic}", [column.name for column in table.columns]
    kept = arrow_schema(table.columns).empty_table()
    try:
        for batch in tables.run_batches(run, target, names):
            kept = _best(
                pa.concat_tables([kept, pa.Table.from_batches([batch]).cast(kept.schema)]), table, limit, last=last
            )
    except StorageError as error:
        where, fix = tables.location_of(table), repeat_run(run.spec.job, branch)
        raise StorageError(
            "held-rows-unreadable",
            "run {run} is on hold, and what it staged for {table} cannot be read. {fix}",
            run=run.spec.name,
            table=where,
            fix=fix,
        ) from error
    shown = as_rows(kept)
    return {
        "job": run.spec.job,
        "topic": topic,
        "table": table.path.replace("/", "."),
        "hold": hold,
        "keys": list(run.spec.binding.keys.get(target, ())),
        "count": total.rows if (total := run.commit.targets.get(target)) else 0,
        "rows": [
            {name: value for name, value in row.items() if name not in INTERNAL} | {"_run": run.spec.name}
            for row in (reversed(shown) if last else shown)
        ],
    }


def _best(rows: pa.Table, table: TableSpec, limit: int, *, last: bool) -> pa.Table:
    """Return the rows that come first, or last, in the order of timestamp, record and key."""
    keys = [column.name for column in table.columns if not column.name.startswith("_")]
    order = "descending" if last else "ascending"
    names: Sequence[str] = [*(column.name for column in OUTPUT_META if column.name != "_run"), *keys]
    return rows.sort_by([(name, order) for name in names if name in rows.column_names]).slice(0, limit)
