"""The rows of a job's outputs, for people: published, on hold, or in the quarantine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from rewindow.app.open_project import OpenProject
from rewindow.app.run_references import check_has_branch, unknown_name
from rewindow.config.job import JobConfig
from rewindow.config.load import load_job, names_of
from rewindow.config.yaml_text import did_you_mean
from rewindow.control.health.holds import Hold, describe_holds
from rewindow.control.health.phrases import command_words
from rewindow.control.plan.job_state import CommittedRun
from rewindow.control.plan.spec import MAIN, OUTPUT, TableSpec
from rewindow.errors import NothingFoundError, StorageError, UsageError
from rewindow.streams.serde.schema import OUTPUT_META
from rewindow.tables.shared.arrow_tables import arrow_schema, current_rows
from rewindow.tables.shared.drift import repeat_run
from rewindow.tables.shared.paths import QUARANTINE, safe_name
from rewindow.tables.shared.quarantine import Chosen
from rewindow.tables.shared.state_query import as_rows
from rewindow.tables.shared.warehouse import Warehouse, check_not_deleted

INTERNAL = ("_epoch", "_partition", "_offset", "_run")
"""Columns that people need not see. Instead of ``_run``, the name of the run is shown."""

_QUARANTINE = "rewindow.quarantine"
_SHOWN = ("name", "landing", "topic", "partition", "offset", "timestamp", "node", "reason", "record")


def output_rows(
    project: OpenProject,
    name: str,
    *,
    branch: str | None,
    limit: int,
    last: bool,
    of: str | None = None,
    current: bool = False,
) -> Iterator[dict[str, Any]]:
    """Yield each output table of ``name``, a job or a table: its job, topic, path, number of rows and some rows.

    The name ``rewindow.quarantine`` means the quarantine, which belongs to no job. For the quarantine, ``of`` selects the
    records of a job or feed, and ``branch`` those of one of the job's branches (None: all branches). For outputs, a ``branch``
    of None means main. With ``current``, only the `current_rows` are yielded.

    In the results, ``keys`` are the columns of the table's key. A row has the table's key and value columns, ``_timestamp``, and
    as ``_run`` the name of the run that wrote the row. ``count`` is None for a table that does not exist yet.

    Raises `UsageError` (2) if no job and no output has the name, if the job does not have the branch, or if the branch was
    dropped and `gc` has deleted its rows. Raises `StorageError` (74) if a table or its files are gone.
    """
    if is_quarantine(name):
        yield _quarantine(project, limit, last=last, of=of, branch=branch)
        return
    if of is not None:
        raise UsageError(
            "of-without-quarantine",
            "--of works only for rewindow.quarantine, not for {name!r}: leave --of out",
            name=name,
        )
    config, topics = find_outputs(project, name, or_else=f", or {_QUARANTINE}")
    tables = project.tables
    of = safe_name(branch or MAIN, "branch")
    state = project.state(config.job, of)
    of_branch = state.branch(of)
    check_has_branch(config.job, state, of_branch.name)
    check_not_deleted(config.job, of_branch, tables.version_of)
    runs = {run.spec.run: run.spec.name for run in of_branch.runs}
    for topic in topics:
        table = of_branch.tables.get(f"{OUTPUT}{topic}")
        # The job's file may name a table other than the one that the branch writes.
        named = config.outputs[topic].table if table is None else table.path.replace("/", ".")
        held = [run.spec.name for run in state.on_hold(of_branch.name)]
        described: dict[str, Any] = {
            "job": config.job,
            "topic": topic,
            "table": named,
            "on_hold": held,
            "keys": list(of_branch.head.spec.binding.keys.get(f"{OUTPUT}{topic}", ())) if of_branch.head else [],
        }
        if table is None or tables.version_of(table) is None:
            if table is not None:
                # If runs have written the table, this call raises an error with the command that repairs it.
                tables.check_published(config.job, state, of_branch.name)
            yield {**described, "count": None, "rows": []}
            continue
        keys = [column.name for column in table.columns if not column.name.startswith("_")]
        try:
            if current:
                every = current_rows(tables.rows_of_runs(table, runs), described["keys"])
                rows = _best(every, table, limit, last=last)
                rows = rows.take(pa.array(reversed(range(rows.num_rows)), pa.int64())) if last else rows
            else:
                rows = tables.first_rows(table, limit, last=last, keys=keys)
        except StorageError:
            tables.check_published(config.job, state, of_branch.name)  # if files are gone, its error names the repair
            raise
        shown = [
            {column: value for column, value in row.items() if column not in INTERNAL} | {"_run": runs.get(row["_run"])}
            for row in as_rows(rows)
        ]
        yield {**described, "count": every.num_rows if current else tables.count_rows(table), "rows": shown}


def _quarantine(project: OpenProject, limit: int, *, last: bool, of: str | None, branch: str | None) -> dict[str, Any]:
    """Return the quarantine in the form of `output_rows`: first the rows of jobs in the order of runs, then those of landings.

    Rows of landings that a later generation replaced are left out; ``replaced`` is their number. ``lost`` has
    the files that are gone or damaged, each with its number of rows.
    """
    all_feeds = names_of(project.root, "feeds")
    if of is not None and of not in (*names_of(project.root, "jobs"), *all_feeds):
        raise unknown_name(project.root, of)
    tables = project.tables
    feeds = [feed for feed in all_feeds if of in (None, feed)]
    quarantine = tables.quarantine(feeds)
    described: dict[str, Any] = {"job": None, "topic": None, "table": _QUARANTINE, "on_hold": [], "keys": []}
    if quarantine is None:
        return {**described, "count": 0, "rows": [], "replaced": 0, "lost": []}
    count, first = quarantine.first(_chosen(project, of, branch), limit, last=last)
    rows = as_rows(first)
    columns = [name for name in _SHOWN if any(row[name] is not None for row in rows)]
    runs, has_runs = _RunNames(tables), any(row["_run"] is not None for row in rows)
    shown = [
        {"_timestamp" if name == "timestamp" else name: row[name] for name in columns}
        | ({"_run": runs.of(row)} if has_runs else {})
        for row in rows
    ]
    lost = [{"file": file, "rows": rows} for file, rows in quarantine.lost]
    return {**described, "count": count, "rows": shown, "replaced": quarantine.replaced_rows, "lost": lost}


def _chosen(project: OpenProject, of: str | None, branch: str | None) -> Chosen:
    """Return which rows of the quarantine to show: those of a job or feed, and of a branch."""
    if branch is None:
        return Chosen(of)
    if of is None or of not in names_of(project.root, "jobs"):
        raise UsageError(
            "quarantine-branch-without-job",
            "--branch selects the records that a job dropped on a branch: name the job, `--of JOB`, with rewindow.quarantine",
        )
    state = project.tables.state(of)
    check_has_branch(of, state, branch)
    return Chosen(of, runs=[run.spec.run for run in state.branch(branch).runs])


class _RunNames:
    """The names of the runs that put records into the quarantine. The records stay there if their run is rewound."""

    def __init__(self, tables: Warehouse) -> None:
        self._tables = tables
        self._known: dict[str, dict[int, str]] = {}

    def of(self, row: Mapping[str, Any]) -> str | None:
        """Return the name of the run that quarantined a row; None for a row that a landing quarantined.

        The name is marked if no branch has the run any more.
        """
        job, run = row["name"], row["_run"]
        if run is None:
            return None
        if job not in self._known:
            state = self._tables.state(job)
            kept = {one.spec.run for branch in state.branches.values() if branch.is_kept for one in branch.runs}
            self._known[job] = {
                one.spec.run: one.spec.name + ("" if one.spec.run in kept else " (taken back)")
                for one in state.committed
            }
        return self._known[job].get(run)


def is_quarantine(name: str) -> bool:
    """Return whether a name refers to the quarantine."""
    return name in (_QUARANTINE, QUARANTINE)


def find_outputs(project: OpenProject, name: str, *, or_else: str = "") -> tuple[JobConfig, list[str]]:
    """Return the job and the output topics of a name: all outputs of a job, or the one output of a table.

    Raises `UsageError` (2) if no job or output has the name. ``or_else`` is the end of its message: other names that the caller
    accepts.
    """
    jobs = names_of(project.root, "jobs")
    if name in jobs:
        config = load_job(project.root, name)
        return config, list(config.outputs)
    tables: list[str] = []
    topics: list[str] = []
    for job in jobs:
        config = load_job(project.root, job)
        if (topic := topic_of(config, name)) is not None:
            return config, [topic]
        tables += [output.table for output in config.outputs.values()]
        topics += config.outputs
    shown = [", ".join(names) or "there are none" for names in (jobs, tables)]
    hint = did_you_mean(name, [*jobs, *tables, *topics])
    raise UsageError(
        "name-not-found",
        "{name!r} is neither a job ({jobs}) nor an output table ({tables}): {hint}name one of these{or_else}",
        name=name,
        jobs=shown[0],
        tables=shown[1],
        hint=hint,
        or_else=or_else,
    )


def topic_of(config: JobConfig, name: str) -> str | None:
    """Return the topic of a job's output, given this topic or the output's table or path; None for any other name."""
    outputs = config.outputs.items()
    return next((topic for topic, out in outputs if name in (topic, out.table, out.table.replace(".", "/"))), None)


def held_rows(project: OpenProject, name: str, *, branch: str, limit: int, last: bool) -> Iterator[dict[str, Any]]:
    """Yield each output of ``name``, a job or a table, with rows of the first run on hold. Later runs wait for this run.

    The values are those of `output_rows`, plus ``hold``, which describes the run. Raises `UsageError` (2) if no job and no
    output has the name, `NothingFoundError` (1) if no run is on hold, `StorageError` (74) if the rows that the run staged are
    gone.
    """
    config, topics = find_outputs(project, name)
    state = project.state(config.job, safe_name(branch, "branch"))
    holds = describe_holds(state, branch)
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
            "run {run} is on hold, and the rows that it staged for {table} cannot be read. {fix}",
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
        "count": run.commit.rows_in(target),
        "rows": [
            {name: value for name, value in row.items() if name not in INTERNAL} | {"_run": run.spec.name}
            for row in (reversed(shown) if last else shown)
        ],
    }


def _best(rows: pa.Table, table: TableSpec, limit: int, *, last: bool) -> pa.Table:
    """Return the first rows, or with ``last`` the last rows, in the order of timestamp, record and key."""
    keys = [column.name for column in table.columns if not column.name.startswith("_")]
    order = "descending" if last else "ascending"
    names: Sequence[str] = [*(column.name for column in OUTPUT_META if column.name != "_run"), *keys]
    return rows.sort_by([(name, order) for name in names if name in rows.column_names]).slice(0, limit)
