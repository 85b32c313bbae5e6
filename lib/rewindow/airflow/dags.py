"""The DAGs of a project: for each file in ``conf/jobs``, one that runs the job and one that recomputes its past.

A DAG file needs no more than this:

    from rewindow.airflow.dags import make_dags

    globals().update(make_dags("/opt/flights"))

Parsing it reads YAML and does not import Spark. A pool of one slot, ``max_active_tis_per_dag`` (which also holds for
backfills) and ``max_active_runs`` allow one writer at a time. That only avoids wasted work: rewindow's ledger keeps the
tables correct.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pendulum
from airflow.sdk import DAG, CronDataIntervalTimetable

from rewindow.airflow.assets import table_asset
from rewindow.airflow.backfills import backfill_dag
from rewindow.airflow.commands import several
from rewindow.airflow.operators import RewindowOperator
from rewindow.airflow.params import RUN
from rewindow.airflow.sensors import LogCompleteSensor
from rewindow.airflow.single_writer import one_writer
from rewindow.config.feed import FeedConfig
from rewindow.config.job import JobConfig
from rewindow.config.load import find_project, load_feed, load_job, load_jobs, load_target
from rewindow.errors import ConfigError, UsageError


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
    executable: Sequence[str] = (),
    default_args: Mapping[str, Any] | None = None,
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
        executable: The command line of rewindow if it is installed in another environment.
        default_args: Airflow's default arguments of every task, including ``retries`` and ``retry_delay``.

    Raises `ConfigError` (78) for invalid configuration, `UsageError` (2) for an invalid argument.
    """
    root = find_project(Path(project).absolute())
    _check_dates(start_date, end_date, catchup=catchup)
    location = {"project": str(root), "target": target, "executable": several("executable", executable)}
    if "{{" not in target:
        load_target(root, target)
    dags: dict[str, DAG] = {}
    chosen = load_jobs(root) if jobs is None else {name: load_job(root, name) for name in several("jobs", jobs)}
    if not chosen:
        raise ConfigError(f"{root} has no jobs: add a file conf/jobs/JOB.yaml")
    for name, job in chosen.items():
        builder = DagBuilder(
            job,
            load_feed(root, job.feed),
            location,
            _pool_of(job, pool),
            (start_date or pendulum.datetime(2000, 1, 1), end_date),
            catchup,
            lands,
            dict(default_args or {}),
        )
        dags[name] = builder.build()
        dags[f"{name}__backfill"] = backfill_dag(job, location, pool=builder.pool, default_args=builder.default_args)
    return dags


def _check_dates(start: datetime | None, end: datetime | None, *, catchup: bool) -> None:
    for name, given in (("start_date", start), ("end_date", end)):
        if not isinstance(given, datetime | None):
            raise UsageError(f"{name}={given!r} is not a datetime: write {name}=pendulum.datetime(2026, 11, 1)")
    if catchup and start is None:
        raise ConfigError("catchup=True requires start_date=: add it")


def _pool_of(job: JobConfig, pool: str) -> str:
    try:
        return pool.format(job=job.job, feed=job.feed)
    except (LookupError, ValueError) as error:
        raise UsageError(f"pool={pool!r}: only {{job}} and {{feed}} can be replaced") from error


@dataclass(frozen=True)
class DagBuilder:
    """Builds a job's DAG."""

    job: JobConfig
    feed: FeedConfig
    location: Mapping[str, Any]
    pool: str
    dates: tuple[datetime, datetime | None]
    catchup: bool
    lands: bool
    default_args: Mapping[str, Any] = field(default_factory=dict)

    def build(self) -> DAG:
        """Return the DAG: land -> run, a single task for a feed without ``every``, or wait -> run."""
        with DAG(
            dag_id=self.job.job,
            schedule=self._schedule(),
            start_date=self.dates[0],
            end_date=self.dates[1],
            catchup=self.catchup,
            max_active_runs=1,
            default_args=dict(self.default_args),
            params=RUN,
            tags=["rewindow", self.job.feed],
            doc_md=self._doc(),
        ) as dag:
            self._tasks()
        return dag

    def _schedule(self) -> CronDataIntervalTimetable | list[Any] | None:
        if self.job.schedule is not None:
            return CronDataIntervalTimetable(self.job.schedule, timezone=self.feed.zone)
        return None

    def _tasks(self) -> None:
        job, feed = self.job.job, self.feed.feed
        where = {"project": self.location["project"], "target": self.location["target"]}
        outlets = [table_asset(output.table, **where) for output in self.job.outputs.values()]
        writer = one_writer(self.pool, self.default_args)
        if not self.lands:
            complete = LogCompleteSensor(
                task_id="log_complete",
                feed=feed,
                **where,
                deferrable=True,
            )
            complete >> RewindowOperator(
                task_id="run", job=job, by="through", outlets=outlets, **self.location, **writer
            )
        elif self.feed.landing.every is None:
            RewindowOperator(
                task_id="run", job=job, feed=feed, by="nothing", outlets=outlets, **self.location, **writer
            )
        else:
            land = RewindowOperator(task_id="land", feed=feed, **self.location, **writer)
            by = "through" if self.feed.landing.watermark == "interval_end" else "until"
            land >> RewindowOperator(task_id="run", job=job, by=by, outlets=outlets, **self.location, **writer)

    def _doc(self) -> str:
        tables = ", ".join(f"`{output.table}`" for output in self.job.outputs.values()) or "no table"
        return (
            f"Replays feed `{self.job.feed}` through `{self.job.topology}` into {tables}.\n\n"
            "A run takes everything that is complete at its interval's end, including what earlier runs have left, and ends "
            f"at once if there is nothing to do. Use the DAG `{self.job.job}__backfill` to recompute the past."
        )
