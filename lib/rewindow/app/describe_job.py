"""Describe what a job has done: its runs, tables and metrics. Find its tables that were altered outside rewindow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rewindow.control.health.holds import describe_holds
from rewindow.control.health.inputs import records_of, rows_by_output
from rewindow.control.health.phrases import command_words
from rewindow.control.plan.spec import MAIN, OUTPUT, run_version
from rewindow.errors import StorageError, naming
from rewindow.streams.metrics import SIMULATED_TIME, add_up, kind_of, reason_order
from rewindow.streams.record import known_time
from rewindow.tables.shared.paths import safe_name

if TYPE_CHECKING:
    from rewindow.app.open_project import OpenProject
    from rewindow.contracts.expectations import Observation
    from rewindow.control.plan.job_state import Branch, CommittedRun, JobState
    from rewindow.tables.shared.warehouse import Warehouse


def show_job(project: OpenProject, job: str, *, branch: str = MAIN, hashes: bool = False) -> dict[str, Any]:
    """Return what `show` shows of a job: the runs, tables and metrics of a branch."""
    project.job_config(job)
    with naming(JOB=command_words(job, branch)):
        return describe_job(project.tables, project.state(job), job, branch=safe_name(branch, "branch"), hashes=hashes)


def describe_job(tables: Warehouse, state: JobState, job: str, *, branch: str, hashes: bool) -> dict[str, Any]:
    """Return the runs of a branch, its tables and the totals of its metrics. Rewound runs are left out."""
    of_branch = state.branch(branch)
    runs = of_branch.runs
    tables.check_published(job, state, branch)
    return {
        "job": job,
        "branch": branch,
        "branches": sorted(name for name, of_branch in state.branches.items() if of_branch.runs),
        "runs": [_describe_run(run) for run in runs],
        "tables": _describe_tables(tables, of_branch, hashes=hashes),
        "lagging": dict(tables.lagging(job, state, branch)),
        "metrics": _describe_metrics(tables.measures(runs)),
        "unmet": [_describe_unmet(run, expectation) for run in runs for expectation in run.commit.unmet],
        "on_hold": describe_holds(state, branch),
    }


def describe_published(tables: Warehouse, job: str, branch: str) -> list[dict[str, Any]]:
    """Return the output tables of a branch with their versions and the rows that the last published run wrote to them."""
    of_branch = tables.state(job).branch(branch)
    if not of_branch.published_runs:
        return []
    last = of_branch.published_runs[-1]
    described = []
    for target, table in of_branch.tables.items():
        total = last.commit.targets.get(target)
        version = tables.version_of(table) if target.startswith(OUTPUT) else None
        if version is None:
            continue
        described.append(
            {
                "topic": target.removeprefix(OUTPUT),
                "table": table.path,
                "version": version,
                "run": last.spec.name,
                "rows": total.rows if total else 0,
                "digest": total.digest if total else None,
                "watermark_ms": known_time(last.commit.watermark_ms),
            }
        )
    return described


def _describe_unmet(run: CommittedRun, unmet: Observation) -> dict[str, Any]:
    return {
        "run": run.spec.name,
        "output": unmet.output,
        "expectation": unmet.name,
        "on_fail": unmet.on_fail,
        "observed": unmet.observed,
        "expected": unmet.expected,
    }


def _describe_run(run: CommittedRun) -> dict[str, Any]:
    return {
        "run": run.spec.name,
        "epochs": [run.spec.input.first, run.spec.input.last] if run.spec.epochs else None,
        "records": records_of(run),
        "rows": sum(rows_by_output(run.commit).values()),
        "watermark_ms": known_time(run.commit.watermark_ms),
        "final": run.spec.final,
        "code": run_version(run.spec.binding),
        "ledger_row": run.spec.run,
    }


def _describe_tables(tables: Warehouse, branch: Branch, *, hashes: bool) -> list[dict[str, Any]]:
    """Return a description of a branch's tables. ``rows`` is None for a table that does not exist yet.

    Branches share the tables of changelogs. Of a changelog, only rows of this branch's runs are counted.
    """
    described = []
    for target, table in branch.tables.items():
        if "/" not in target:
            continue
        is_output = target.startswith(OUTPUT)
        rows: int | None = sum(run.commit.rows_in(target) for run in branch.runs)
        if is_output:
            rows = None if tables.version_of(table) is None else tables.count_rows(table)
        row: dict[str, Any] = {"table": target, "path": tables.location_of(table), "rows": rows}
        if hashes and is_output and rows is not None:
            row["content"] = tables.content_hash(table)[:16]
        described.append(row)
    return described


def _describe_metrics(measures: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the metrics over all runs. Rates are per second of simulated time. Current values are summed over the tasks."""
    current: Counter[tuple[str, ...]] = Counter()
    for row in measures:
        current[row["level"], row["node"], row["name"], row["reason"]] += row["current"] or 0
    seconds = max((row["total"] for row in measures if row["name"] == SIMULATED_TIME), default=0) / 1000
    described = []
    for key, measure in sorted(add_up(measures).items(), key=lambda item: (*item[0][:3], reason_order(item[0][3]))):
        level, node, name, reason = key
        kind = kind_of(name)
        shown = {
            "total": measure.total,
            "rate": round(measure.total / seconds, 6) if seconds else None,
            "current": current[key],
            "avg": round(measure.total / measure.count, 1),
            "min": measure.minimum,
            "max": measure.maximum,
        }
        described.append(
            {"level": level, "node": node, "metric": name, "reason": reason, "unit": kind.unit}
            | {part: value if part in kind.parts else None for part, value in shown.items()}
        )
    return described


def check_rows(tables: Warehouse, job: str, state: JobState, branch: str) -> None:
    """Check that the tables of a branch have the rows that were published.

    Raises `StorageError` (74) if they do not, with the command `republish`.
    """
    _refuse(list(described_drift(tables, job, state, branch)), job, branch)


def check_outputs(tables: Warehouse, job: str, state: JobState, branch: str, targets: Iterable[str]) -> None:
    """Check, as `check_rows` does, the given outputs of a branch to which other programs have added files.

    Reads no other outputs.

    For tables in a catalog, only the cheaper `check_published` is called.
    """
    tables.check_published(job, state, branch)
    own_tables = state.branch(branch).tables
    rewritten = [target for target in targets if target in own_tables and tables.has_foreign_rows(own_tables[target])]
    _refuse(
        [sentence for one in rewritten for sentence in described_drift(tables, job, state, branch, one)], job, branch
    )


def _refuse(altered: Sequence[str], job: str, branch: str) -> None:
    if altered:
        raise StorageError(
            "table-altered",
            "{tables}. Publish again: `rewindow republish {job}`",
            tables=". ".join(altered),
            job=command_words(job, branch),
        )


def described_drift(
    tables: Warehouse, job: str, state: JobState, branch: str, target: str | None = None
) -> Iterator[str]:
    """Yield a sentence for each table that differs from what was published. ``target``: check only the table of this target."""
    for drift in tables.drift(job, state, branch):
        if target in (None, drift.target):
            how = "UPDATE, RESTORE, DELETE, a rewrite, deleted files"
            yield f"{drift.path} {drift.change}: it was altered outside rewindow ({how})"
