"""The rows of a job's output tables, for people to look at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rewindow.app.open_project import OpenProject
from rewindow.app.run_references import check_has_branch
from rewindow.config.job import JobConfig
from rewindow.config.load import load_job, names_of
from rewindow.config.yaml_text import did_you_mean
from rewindow.control.plan.spec import MAIN, OUTPUT
from rewindow.errors import StorageError, UsageError
from rewindow.tables.shared.paths import QUARANTINE, safe_name
from rewindow.tables.shared.quarantine import Chosen
from rewindow.tables.shared.state_query import as_rows
from rewindow.tables.shared.warehouse import Warehouse, check_not_deleted

INTERNAL = ("_epoch", "_partition", "_offset", "_run")
"""Columns that people need not see; the run is named."""

_QUARANTINE = "rewindow.quarantine"
_SHOWN = ("name", "landing", "topic", "partition", "offset", "timestamp", "node", "reason", "record")


def output_rows(
    project: OpenProject, name: str, *, branch: str | None, limit: int, last: bool, of: str | None = None
) -> Iterator[dict[str, Any]]:
    """Yield each output table that ``name`` names, a job or a table: its job, topic, path, number of rows and some rows.

    The name ``rewindow.quarantine`` stands for the quarantine, which belongs to no job; ``of`` is a job or feed that put records
    there, and ``branch`` one of the job's branches (None: all). For outputs, None is the main branch.

    ``keys`` are the columns of the table's key. A row has the table's key and value columns, ``_timestamp``, and as ``_run`` the
    name of the run that wrote it. A table that does not exist yet has ``count`` None. Raises `UsageError` (2) for a name that no
    job and no output has, a branch that the job does not have, or a dropped one whose rows `gc` has deleted, `StorageError` (74)
    if a table or its files are gone.
    """
    if is_quarantine(name):
        yield _quarantine(project, limit, last=last, of=of, branch=branch)
        return
    if of is not None:
        raise UsageError(
            "of-without-quarantine",
            "--of selects records of rewindow.quarantine, and {name!r} is not that: leave it out",
            name=name,
        )
    config, topics = find_outputs(project, name, or_else=f", or {_QUARANTINE}")
    tables = project.tables
    state = tables.state(config.job)
    known = state.branch(safe_name(branch or MAIN, "branch"))
    check_has_branch(config.job, state, known.name)
    check_not_deleted(config.job, known, tables.version_of)
    runs = {run.spec.run: run.spec.name for run in known.runs}
    for topic in topics:
        table = known.tables.get(f"{OUTPUT}{topic}")
        # The job's file may name another table since.
        named = config.outputs[topic].table if table is None else table.path.replace("/", ".")
        held = [run.spec.name for run in state.on_hold(known.name)]
        found: dict[str, Any] = {
            "job": config.job,
            "topic": topic,
            "table": named,
            "on_hold": held,
            "keys": list(known.head.spec.binding.keys.get(f"{OUTPUT}{topic}", ())) if known.head else [],
        }
        if table is None or tables.version_of(table) is None:
            if table is not None:
                # Names the repair of a table that runs have written.
                tables.check_published(config.job, state, known.name)
            yield {**found, "count": None, "rows": []}
            continue
        keys = [column.name for column in table.columns if not column.name.startswith("_")]
        try:
            rows = tables.first_rows(table, limit, last=last, keys=keys)
        except StorageError:
            tables.check_published(config.job, state, known.name)  # if files are gone, it names the repair
            raise
        shown = [
            {column: value for column, value in row.items() if column not in INTERNAL} | {"_run": runs.get(row["_run"])}
            for row in as_rows(rows)
        ]
        yield {**found, "count": tables.count_rows(table), "rows": shown}


def _quarantine(project: OpenProject, limit: int, *, last: bool, of: str | None, branch: str | None) -> dict[str, Any]:
    """Return the quarantine as `output_rows` does its tables: rows of jobs in the order of runs, then those of landings.

    Rows of landings that a later generation replaced are left out; ``replaced`` is their number.
    """
    known = [*names_of(project.root, "jobs"), *names_of(project.root, "feeds")]
    if of is not None and of not in known:
        hint = did_you_mean(of, known)
        raise UsageError(
            "of-name-unknown",
            "--of {of}: there is no such job or feed. {hint}Known are {known}",
            of=of,
            hint=hint,
            known=", ".join(sorted(set(known))),
        )
    tables = project.tables
    feeds = [feed for feed in names_of(project.root, "feeds") if of in (None, feed)]
    quarantine = tables.quarantine(feeds)
    found: dict[str, Any] = {"job": None, "topic": None, "table": _QUARANTINE, "on_hold": [], "keys": []}
    if quarantine is None:
        return {**found, "count": 0, "rows": [], "replaced": 0}
    count, first = quarantine.first(_chosen(project, of, branch), limit, last=last)
    rows = as_rows(first)
    columns = [name for name in _SHOWN if any(row[name] is not None for row in rows)]
    runs, has_runs = _RunNames(tables), any(row["_run"] is not None for row in rows)
    shown = [
        {"_timestamp" if name == "timestamp" else name: row[name] for name in columns}
        | ({"_run": runs.of(row)} if has_runs else {})
        for row in rows
    ]
    return {**found, "count": count, "rows": shown, "replaced": quarantine.replaced_rows}


def _chosen(project: OpenProject, of: str | None, branch: str | None) -> Chosen:
    """Return which rows of the quarantine are asked for."""
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
    """The names of the runs that put records into the quarantine. A record stays there when its run is taken back."""

    def __init__(self, tables: Warehouse) -> None:
        self._tables = tables
        self._known: dict[str, dict[int, str]] = {}

    def of(self, row: Mapping[str, Any]) -> str | None:
        """Return the name of a row's run, and whether no branch has it any more; None for a record that a landing refused."""
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
    """Whether a name stands for the quarantine."""
    return name in (_QUARANTINE, QUARANTINE)


def find_outputs(project: OpenProject, name: str, *, or_else: str = "") -> tuple[JobConfig, list[str]]:
    """Return the job and the output topics that a name stands for: all of a job, or the one of a table.

    ``or_else``: what else the caller takes, as the end of a refusal.

    Raises `UsageError` (2) for a name that no job and no output has.
    """
    jobs = names_of(project.root, "jobs")
    if name in jobs:
        config = load_job(project.root, name)
        return config, list(config.outputs)
    known: list[str] = []
    topics: list[str] = []
    for job in jobs:
        config = load_job(project.root, job)
        if (topic := topic_of(config, name)) is not None:
            return config, [topic]
        known += [output.table for output in config.outputs.values()]
        topics += config.outputs
    shown = [", ".join(names) or "there are none" for names in (jobs, known)]
    hint = did_you_mean(name, [*jobs, *known, *topics])
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
    """Return the topic of a job's output, given this topic, or the output's table or path; None for another name."""
    outputs = config.outputs.items()
    return next((topic for topic, out in outputs if name in (topic, out.table, out.table.replace(".", "/"))), None)
