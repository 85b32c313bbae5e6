"""What a job has done, as JSON values for `show`: its runs, tables and metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rewindow.control.health.inputs import records_of
from rewindow.control.health.job_health import describe_holds
from rewindow.control.plan.spec import MAIN, OUTPUT, run_version
from rewindow.errors import naming
from rewindow.streams.metrics import SIMULATED_TIME, add_up, kind_of, reason_order
from rewindow.streams.record import known_time
from rewindow.tables.shared.paths import safe_name

if TYPE_CHECKING:
    from rewindow.app.open_project import OpenProject
    from rewindow.contracts.expectations import Observation
    from rewindow.control.plan.job_state import Branch, CommittedRun
    from rewindow.tables.shared.warehouse import Warehouse


def show_job(project: OpenProject, job: str, *, branch: str = MAIN, hashes: bool = False) -> dict[str, Any]:
    """Return what `show` says of a job: the runs, tables and metrics of a branch."""
    project.job_config(job)
    with naming(JOB=job):
        return describe_job(project.tables, job, branch=safe_name(branch, "branch"), hashes=hashes)


def describe_job(tables: Warehouse, job: str, *, branch: str, hashes: bool) -> dict[str, Any]:
    """Return the runs of a branch, its tables and the totals of its metrics, without rewound runs."""
    state = tables.state(job)
    known = state.branch(branch)
    runs = known.runs
    tables.check_published(job, state, branch)
    return {
        "job": job,
        "branch": branch,
        "branches": sorted(name for name, known in state.branches.items() if known.runs),
        "runs": [_describe_run(run) for run in runs],
        "tables": _describe_tables(tables, known, hashes=hashes),
        "lagging": dict(tables.lagging(job, state, branch)),
        "metrics": _describe_metrics(tables.measures(runs)),
        "unmet": [_describe_unmet(run, one) for run in runs for one in run.commit.unmet],
        "on_hold": describe_holds(state, branch),
    }


def describe_published(tables: Warehouse, job: str, branch: str) -> list[dict[str, Any]]:
    """Return the output tables of a branch with their versions and what the last run wrote to them."""
    known = tables.state(job).branch(branch)
    if not known.published_runs:
        return []
    last = known.published_runs[-1]
    described = []
    for target, table in known.tables.items():
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


def _describe_unmet(run: CommittedRun, one: Observation) -> dict[str, Any]:
    return {
        "run": run.spec.name,
        "output": one.output,
        "expectation": one.name,
        "on_fail": one.on_fail,
        "observed": one.observed,
        "expected": one.expected,
    }


def _describe_run(run: CommittedRun) -> dict[str, Any]:
    return {
        "run": run.spec.name,
        "epochs": [run.spec.input.first, run.spec.input.last] if run.spec.epochs else None,
        "records": records_of(run),
        "rows": sum(total.rows for target, total in run.commit.targets.items() if target.startswith("output/")),
        "watermark_ms": known_time(run.commit.watermark_ms),
        "final": run.spec.final,
        "code": run_version(run.spec.binding),
        "ledger_row": run.spec.run,
    }


def _describe_tables(tables: Warehouse, branch: Branch, *, hashes: bool) -> list[dict[str, Any]]:
    """Return a branch's tables; ``rows`` is None for one that does not exist yet.

    Branches share changelogs, so a changelog counts only rows of this branch's runs.
    """
    described = []
    for target, table in branch.tables.items():
        if "/" not in target:
            continue
        is_output = target.startswith(OUTPUT)
        totals = [run.commit.targets[target].rows for run in branch.runs if target in run.commit.targets]
        rows: int | None = sum(totals)
        if is_output:
            rows = None if tables.version_of(table) is None else tables.count_rows(table)
        row: dict[str, Any] = {"table": target, "path": tables.location_of(table), "rows": rows}
        if hashes and is_output and rows is not None:
            row["content"] = tables.content_hash(table)[:16]
        described.append(row)
    return described


def _describe_metrics(measures: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the metrics over all runs. Rates are per simulated second; current values are summed over the tasks."""
    current: Counter[tuple[str, ...]] = Counter()
    for one in measures:
        current[one["level"], one["node"], one["name"], one["reason"]] += one["current"] or 0
    seconds = max((one["total"] for one in measures if one["name"] == SIMULATED_TIME), default=0) / 1000
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
