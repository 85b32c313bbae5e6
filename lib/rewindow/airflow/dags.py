"""The DAGs of a project: for each file in ``conf/jobs``, one that runs the job and one that recomputes its past.

On request there is one more for the project, which drops branches and cleans up.

A DAG file needs no more than this:

    from rewindow.airflow.dags import make_dags

    globals().update(make_dags("/opt/flights"))

Parsing it reads YAML and does not import Spark. A pool of one slot, ``max_active_tis_per_dag`` (which also holds for
backfills) and ``max_active_runs`` allow one writer at a time. That only avoids wasted work: rewindow's ledger keeps the
tables correct.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import pendulum
from airflow.sdk import DAG, CronDataIntervalTimetable

from rewindow.airflow.advice import BACKFILL
from rewindow.airflow.assets import TableAssets
from rewindow.airflow.backfills import DagLook, backfill_dag
from rewindow.airflow.commands import several
from rewindow.airflow.job_tasks import JobTasks, location_of, pool_of
from rewindow.airflow.maintenance import maintenance_dag
from rewindow.airflow.params import RUN, set_params
from rewindow.airflow.reports import WAREHOUSE
from rewindow.config.job import JobConfig
from rewindow.config.load import find_project, load_feed, load_job, load_jobs
from rewindow.errors import ConfigError, UsageError

_OURS = frozenset(
    (
        *("self", "dag_id", "schedule", "start_date", "end_date", "catchup", "max_active_runs", "default_args"),
        *("params", "tags", "doc_md", "task_group", "template_undefined", "render_template_as_native_obj"),
    )
)
"""The arguments of Airflow's `DAG` that `make_dags` sets itself or has under its own name."""


def make_dags(
    project: str | os.PathLike[str] = ".",
    *,
    target: str = "local",
    jobs: Sequence[str] | None = None,
    start_date: datetime | None = None,
    end_date: datetime | None = None,
    catchup: bool = False,
    lands: bool = True,
    pool: str = "rewindow",
    conn_id: str | None = None,
    reports: str = WAREHOUSE,
    reports_url: str | None = None,
    executable: Sequence[str] = (),
    default_args: Mapping[str, Any] | None = None,
    prefix: str = "",
    tags: Sequence[str] = (),
    approvers: Sequence[str] = (),
    maintenance: str | None = None,
    **options: Any,
) -> dict[str, DAG]:
    """Return the DAGs ``<job>`` and ``<job>__backfill`` of each job, to add to a DAG file's globals.

    Args:
        project: The folder with ``conf/`` and ``jobs/``; the same path on every worker.
        target: The target to run against, a file of ``conf/targets``.
        jobs: Only these jobs; no other job's file is read. Default: every file in ``conf/jobs``.
        start_date: Start of the schedule; required for ``catchup``. Airflow creates no task for earlier logical dates.
        end_date: End of the schedule and of all logical dates.
        catchup: Create a run for each interval since ``start_date``. The tables do not need it, because a run takes
            everything that is complete at its interval's end.
        lands: Whether the DAG lands its job's feed. If False, the run waits until the log is complete.
        pool: The pool of one slot. ``{job}`` and ``{feed}`` in its name are replaced.
        conn_id: The Airflow connection with the credentials of the buckets; see `hooks.BucketHook`.
        reports: Whether tasks write reports: ``warehouse`` (below ``rewindow/reports`` in the warehouse) or ``none``.
        reports_url: The address at which a web server shows that folder, for the links. Default: the files' own.
        executable: The command line of rewindow if it is installed in another environment.
        default_args: Airflow's default arguments of every task, including ``retries`` and ``retry_delay``.
        prefix: What the id of each DAG begins with, so that one project can be loaded for several targets.
        tags: Tags of each DAG besides rewindow's.
        approvers: The ids of the users who may approve a backfill. Default: everybody who may trigger it.
        maintenance: The id, after ``prefix``, of one more DAG, which drops branches and cleans up. Default: there is none.
        options: Other arguments of Airflow's `DAG`: ``access_control``, ``dagrun_timeout``, ``deadline``,
            ``on_success_callback``, ``on_failure_callback``, ``owner_links`` and so on. The backfill DAG, which waits for
            people, and that of ``maintenance`` get neither ``dagrun_timeout`` nor ``deadline``.

    Raises `ConfigError` (78) for invalid configuration, `UsageError` (2) for an invalid argument.
    """
    root = find_project(Path(project).absolute())
    _check_dates(start_date, end_date, catchup=catchup)
    more = {"conn_id": conn_id, "reports": reports, "reports_url": reports_url}
    location, assets = location_of(root, target, executable, more), TableAssets(root, target)
    look = DagLook(prefix, several("tags", tags), _options(options), dict(default_args or {}))
    dags: dict[str, DAG] = {}
    chosen = load_jobs(root) if jobs is None else {name: load_job(root, name) for name in several("jobs", jobs)}
    if not chosen:
        raise ConfigError(f"{root} has no jobs: add a file conf/jobs/JOB.yaml")
    feeds = {name: load_feed(root, name) for name in dict.fromkeys(job.feed for job in chosen.values())}
    for name, job in chosen.items():
        tasks = JobTasks(job, feeds[job.feed], location, assets, pool_of(job, pool), lands, look.default_args)
        dates = (start_date or pendulum.datetime(2000, 1, 1), end_date)
        dags[f"{prefix}{name}"] = _job_dag(tasks, look, dates, catchup=catchup)
        dags[f"{prefix}{name}{BACKFILL}"] = backfill_dag(
            job, location, assets, look, pool=tasks.pool, approvers=several("approvers", approvers)
        )
    if maintenance is not None:
        if f"{prefix}{maintenance}" in dags:
            raise UsageError(f"maintenance={maintenance!r} is the id of a job's DAG: choose another id")
        dag = maintenance_dag(maintenance, (sorted(chosen), sorted(feeds)), location, look, pool=pool)
        dags[dag.dag_id] = dag
    return dags


def _check_dates(start: datetime | None, end: datetime | None, *, catchup: bool) -> None:
    for name, given in (("start_date", start), ("end_date", end)):
        if not isinstance(given, datetime | None):
            raise UsageError(f"{name}={given!r} is not a datetime: write {name}=pendulum.datetime(2026, 11, 1)")
    if catchup and start is None:
        raise ConfigError("catchup=True requires start_date=: add it")


def _options(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Check the arguments for Airflow's `DAG`. Raises `UsageError` (2) for one that it does not have or rewindow sets."""
    known = set(inspect.signature(DAG.__init__).parameters) - _OURS
    for name in options:
        if name not in known:
            near = get_close_matches(name, [*known, *inspect.signature(make_dags).parameters], 1)
            fix = f"did you mean {near[0]}=?" if near else "leave it out"
            raise UsageError(
                f"{name}= is neither an argument of make_dags nor one of Airflow's DAG that it leaves to you: {fix}"
            )
    return options


def _job_dag(tasks: JobTasks, look: DagLook, dates: tuple[datetime, datetime | None], *, catchup: bool) -> DAG:
    """Return the DAG that runs a job."""
    job, feed = tasks.job, tasks.feed
    with DAG(
        dag_id=f"{look.prefix}{job.job}",
        schedule=None if job.schedule is None else CronDataIntervalTimetable(job.schedule, timezone=feed.zone),
        start_date=dates[0],
        end_date=dates[1],
        catchup=catchup,
        max_active_runs=1,
        default_args=dict(look.default_args),
        tags=["rewindow", job.feed, *look.tags],
        doc_md=_doc(job, look.prefix),
        **look.options,
    ) as dag:
        tasks.add()
    set_params(dag, RUN)
    return dag


def _doc(job: JobConfig, prefix: str) -> str:
    tables = ", ".join(f"`{output.table}`" for output in job.outputs.values()) or "no table"
    return (
        f"Replays feed `{job.feed}` through `{job.topology}` into {tables}.\n\n"
        "A run takes everything that is complete at its interval's end, including what earlier runs have left, and ends "
        f"at once if there is nothing to do. Use the DAG `{prefix}{job.job}{BACKFILL}` to recompute the past."
    )
